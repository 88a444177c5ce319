"""Levels as data and as players."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgrl.cli.describe import describe
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, SchemaMismatch
from bgrl.files import shipped
from bgrl.game import HYPERGAMMON, Position, legal_plays
from bgrl.nets import FastNet, Net, save_net
from bgrl.players import load_player
from bgrl.players.level import (
    Level,
    LevelPlayer,
    Measured,
    MeasuredPr,
    MeasuredRating,
    Misses,
    read_level,
    write_level,
)
from bgrl.players.net import NetPlayer
from bgrl.players.search import SearchPlayer
from bgrl.players.style import CAUTIOUS, STYLES
from bgrl.search import BEST, Filters, MoveFilter

WHOLE = Level(
    "whole",
    2,
    Filters((MoveFilter(0, 4, 0.1), None), BEST),
    3,
    Misses(0.5, 0.1),
    CAUTIOUS,
    Measured(
        "0123456789ab",
        "bgrl calibrate level=whole rating=1200",
        "2026-11-30",
        MeasuredRating(1201.5, 5.5, "hard", 1700.0, 2000.0, 8000, 2),
        MeasuredPr(13.5, 0.1, 10080, "judge"),
    ),
)


def filters(wrong):
    """Filters with something wrong in one of them."""
    chosen = {"accept": 0, "extra": 4, "threshold": 0.1}
    return {"root": [None, chosen | wrong], "reply": chosen}


def measured(part=None, **changes):
    """WHOLE's measured figures with some changed."""
    data = WHOLE.to_json()["measured"]
    return data | ({part: data[part] | changes} if part else changes)


@pytest.fixture
def folder(tmp_path):
    """A checkpoint with a smaller one inside, and beside it the folder for a level."""
    save_net(Net(get_encoder("tesauro198"), (16,)).reset(1), tmp_path / "net")
    save_net(Net(get_encoder("tesauro198"), (4,)).reset(2), tmp_path / "net" / "small")
    (tmp_path / "whole").mkdir()
    return tmp_path / "whole"


def test_a_level_comes_back_from_json():
    for level in (WHOLE, Level("plain"), replace(WHOLE, misses=None, measured=None)):
        text = json.dumps(level.to_json())
        assert Level.from_json(json.loads(text), "here") == level


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "needs a name"),
        ({"plies": 4}, "0 to 3 plies"),
        ({"plies": "2"}, "0 to 3 plies"),
        ({"keep": 0}, "at least 1 play"),
        ({"keep": "3"}, "at least 1 play"),
        ({"keep": None}, "pruner is 'net/small', but keep is None"),
        ({"pruner": None}, "pruner is None, but keep is 3"),
        ({"pruner": "net/tiny"}, "pruner is 'net/tiny', but .*net/tiny has no net.json"),
        ({"pruner": "../net"}, "the name of a folder beside the level's"),
        ({"misses": {"rate": 2, "scale": 1, "depth": 3}}, "rate of 0 to 1"),
        ({"misses": {"rate": 1, "scale": "wide", "depth": 3}}, "not a level"),
        ({"misses": {"rate": 1, "scale": 1, "deep": 3}}, "'deep'"),
        *(
            ({"misses": {"rate": 1, "scale": 1, "depth": 3} | wrong}, "misses need a rate")
            for wrong in (
                {"depth": 2.5}, {"depth": 1e30}, {"depth": 10**30}, {"depth": True}, {"depth": "3"},
                {"depth": 0}, {"rate": True}, {"rate": math.nan}, {"scale": math.inf},
                {"scale": 10**400},
            )
        ),
        ({"misses": {}}, "'rate'"),
        ({"misses": False}, "not a level"),
        ({"plies": True}, "0 to 3 plies"),
        ({"plies": 2.0}, "0 to 3 plies"),
        ({"keep": True}, "at least 1 play"),
        ({"keep": 10**30}, "at least 1 play, at most 20475"),
        *(
            ({"filters": filters(wrong)}, "counts of plays, its threshold is points")
            for wrong in (
                {"threshold": math.nan}, {"threshold": math.inf}, {"threshold": None},
                {"threshold": True}, {"accept": True}, {"accept": 1.5}, {"extra": 10**30},
            )
        ),
        ({"filters": {"root": [{}], "reply": {"accept": 1}}}, "'accept'"),
        ({"filters": {"root": [0], "reply": {"accept": 1}}}, "not a level"),
        ({"filters": {"root": []}}, "no 'reply'"),
        ({"filters": {"root": [{"accept": -1, "extra": 0, "threshold": 0}]}}, "counts of plays"),
        ({"style": {"name": "wild", "loss": -1}}, "loss of 0 or more"),
        ({"style": None}, "not a level"),
        ({"style": {"name": 5}}, "a style needs a name"),
        ({"style": {"name": "wild", "hits": True}}, "finite weights"),
        ({"style": {"name": "wild", "hits": 10**400}}, "finite weights"),
        ({"style": {"name": "wild", "loss": math.nan}}, "loss of 0 or more"),
        ({"measured": {"net": "x"}}, "no 'rating'"),
        ({"measured": {}}, "no 'rating'"),
        ({"measured": measured(net=None)}, "what was measured needs a net"),
        *(
            ({"measured": measured("rating", **wrong)}, "a measured rating needs finite numbers")
            for wrong in (
                {"value": "abc"}, {"value": None}, {"value": math.nan}, {"error": -1},
                {"anchor": 5}, {"anchor_rating": math.inf}, {"scale": 0}, {"games": 2.5},
                {"seed": True},
            )
        ),
        *(
            ({"measured": measured("pr", **wrong)}, "a measured PR needs numbers of 0 or more")
            for wrong in (
                {"value": None}, {"value": "13"}, {"value": -1}, {"error": math.nan},
                {"decisions": "10"}, {"judge": None},
            )
        ),
        ({"measured": measured() | {"rating": {}}}, "'value'"),
        ({"measured": measured() | {"pr": 0}}, "not a level"),
        ({"format": "bgrl.net"}, "format"),
        ({"version": 2}, "version 2; this bgrl reads 1"),
        ({"name": "other"}, "unlike its folder"),
        ({"net": "nowhere"}, "net is 'nowhere', but .*nowhere has no net.json"),
        ({"net": "../net"}, "the name of a folder beside the level's"),
        ({"net": None}, "the name of a folder beside the level's"),
    ],
)  # fmt: skip
def test_a_bad_level_file_is_refused_by_name(folder, change, message):
    path = write_level(WHOLE, folder, "net", "net/small")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BgrlError, match=message) as caught:
        load_player(folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "null", '"level"'])
def test_another_file_is_no_level(folder, text):
    (folder / "level.json").write_text(text)
    with pytest.raises(SchemaMismatch, match="format"):
        read_level(folder)


def test_levels_and_checkpoints_by_name(folder):
    write_level(WHOLE, folder, "net", "net/small")
    net = folder.parent / "net"
    assert read_level(folder) == (WHOLE, net, net / "small")
    player = load_player(folder)
    assert isinstance(player, LevelPlayer)
    assert player.level == WHOLE
    assert player.searcher.plies == 2
    assert player.searcher.pruner.net.hash == FastNet.load(net / "small").hash
    assert player.searcher.pruner.keep == 3
    bare = load_player(folder.parent / "net")
    assert type(bare) is NetPlayer
    assert bare.name == "net"
    assert type(load_player(f"{folder.parent / 'net'}@1ply")) is SearchPlayer
    with pytest.raises(BgrlError, match="no net that could look"):
        load_player(f"{folder}@1ply")
    with pytest.raises(BgrlError, match="plays backgammon, not hypergammon"):
        load_player(folder, HYPERGAMMON)
    # A level may be no more than a name for its net.
    write_level(Level("whole"), folder, "net")
    plain = load_player(folder)
    assert (type(plain), plain.name, plain.identity) == (NetPlayer, "whole", bare.identity)


def test_a_level_in_a_style(folder):
    write_level(WHOLE, folder, "net", "net/small")
    for name, style in STYLES.items():
        player = load_player(f"{folder}@{name}")
        assert player.name == f"whole@{name}"
        assert player.level == replace(WHOLE, name=player.name, style=style, measured=None)
        assert player.searcher.pruner.keep == 3
    assert load_player(f"{folder.parent / 'net'}@runner").level.style.name == "runner"
    assert type(load_player(f"{folder.parent / 'net'}@balanced")) is NetPlayer
    with pytest.raises(BgrlError, match="'pubeval' is no level or net"):
        load_player("pubeval@runner")


def test_a_level_describes_itself(folder):
    write_level(WHOLE, folder, "net", "net/small")
    for path in (folder, folder / "level.json"):
        text = describe(path)
        assert "a level" in text
        assert (
            "whole, 2 plies pruned to 3 by small, misses at rate 0.5, scale 0.1, cautious" in text
        )
        assert "1201.5 ± 5.5" in text
        assert WHOLE.measured.command in text
    assert "a checkpoint" in describe(folder.parent / "net")


def test_what_was_measured_does_not_make_another_player(folder):
    net = FastNet.load(folder.parent / "net")

    def identity(level, pruner="net/small"):
        small = FastNet.load(folder.parent / pruner)
        return LevelPlayer(level, net, pruner=small).identity

    assert identity(WHOLE) == identity(replace(WHOLE, measured=None))
    assert identity(WHOLE) != identity(replace(WHOLE, misses=Misses(0.5, 0.2)))
    assert identity(WHOLE) != identity(replace(WHOLE, keep=2))
    assert identity(WHOLE) != identity(WHOLE, "net")


def test_a_pruner_and_a_level_that_takes_one_belong_together(folder):
    net = FastNet.load(folder.parent / "net")
    with pytest.raises(BgrlError, match="level whole takes a pruner"):
        LevelPlayer(WHOLE, net)
    with pytest.raises(BgrlError, match="level plain has no pruner"):
        LevelPlayer(Level("plain"), net, pruner=net)


def test_hints_are_without_misses_and_style(folder, decisions):
    net = FastNet.load(folder.parent / "net")
    level = Level("easy", misses=Misses(1, 1), style=replace(CAUTIOUS, loss=1))
    player, best = LevelPlayer(level, net), NetPlayer(net)
    differ = 0
    for board, *dice in decisions[::100]:
        ranked = player.rank_plays(Position(board), tuple(dice))
        wanted = best.rank_plays(Position(board), tuple(dice))
        assert [play.equity for play in ranked] == [play.equity for play in wanted]
        differ += bool(ranked) and not np.array_equal(
            player.choose(board, *dice), ranked[0].position.board
        )
    assert differ > 5


def test_a_pickled_level_plays_on(folder, decisions):
    write_level(replace(WHOLE, plies=0), folder, "net", "net/small")
    player = load_player(folder)
    player.start_game(3, 4, 1)
    again = pickle.loads(pickle.dumps(player))
    for board, *dice in decisions[:50]:
        np.testing.assert_array_equal(player.choose(board, *dice), again.choose(board, *dice))


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8).map(lambda x: sorted(x, reverse=True)),
    st.floats(0, 1),
    st.floats(1e-3, 10),
    st.integers(1, 5),
)
def test_no_play_is_missed_for_a_better_one_more_than_the_other_way(equities, rate, scale, depth):
    weights = Misses(rate, scale, depth).weights(equities)
    assert len(weights) == min(depth, len(equities))
    assert weights[0] == 1
    assert (np.diff(weights) <= 0).all()
    lost = equities[0] - np.array(equities[: len(weights)])
    expected = np.where(np.arange(len(weights)) > 0, rate, 1) * np.exp(-lost / scale)
    np.testing.assert_allclose(weights, expected)


@pytest.mark.parametrize("name", ["easy", "medium", "hard", "master"])
def test_shipped_levels_play_and_their_figures_are_of_the_net_that_ships(name):
    level, net_folder, _ = read_level(shipped("checkpoints") / name)
    player = load_player(name)
    assert player.name == name
    board = Position.start().board.copy()
    reached = {play.position.board.tobytes() for play in legal_plays(Position.start(), (3, 1))}
    assert player.choose(board, 3, 1).tobytes() in reached
    assert level.measured.net == FastNet.load(net_folder).hash
    wanted = {"easy": 1200, "medium": 1500, "hard": 1700}
    rating = level.measured.rating
    assert (rating.anchor, rating.anchor_rating, rating.scale) == ("hard", 1700, 2000)
    if name in wanted:
        assert abs(rating.value - wanted[name]) <= 25
    else:
        assert rating.value - 1700 > 2 * rating.error


def test_the_weaker_level_errs_more():
    rates = [
        read_level(shipped("checkpoints") / name)[0].measured.pr.value
        for name in ("master", "hard", "medium", "easy")
    ]
    assert rates == sorted(rates)
