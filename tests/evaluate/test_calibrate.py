"""Levels set to a wanted strength."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bgrl.cli import calibrate
from bgrl.cli.main import main
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.evaluate.calibrate import WIDEST, MissErrors, Trial, find_scale, nearest
from bgrl.evaluate.errors import PR
from bgrl.evaluate.reference import Reference
from bgrl.files import read_json, shipped
from bgrl.game import HYPERGAMMON
from bgrl.nets.net import Net, save_net
from bgrl.players import load_player
from bgrl.players.adaptive import adapt
from bgrl.players.level import Level, LevelPlayer, Misses, level_player, read_level


def falling(scale):
    return 1700 - 1500 * scale / (scale + 0.2)


@pytest.mark.parametrize("wanted", [1690, 1500, 1200, 400])
@pytest.mark.parametrize("start", [0.001, 0.05, 10.0])
@pytest.mark.parametrize("rising", [False, True])
def test_the_wanted_value_is_found_in_few_trials(wanted, start, rising):
    sign = 1 if rising else -1
    trials = find_scale(
        lambda scale: (-sign * falling(scale), 1.0), -sign * wanted, 4, rising, start, most=20
    )
    assert abs(nearest(trials, -sign * wanted).value + sign * wanted) <= 4
    assert trials[-1] == nearest(trials, -sign * wanted)
    assert len(trials) <= 14


def test_noise_does_not_keep_it_from_ending():
    rng = np.random.default_rng(1)
    ends = []
    for _ in range(50):
        trials = find_scale(lambda s: (falling(s) + rng.normal(0, 15), 15.0), 1400, 4, False, 0.05)
        assert len(trials) <= 12
        ends.append(falling(nearest(trials, 1400).scale) - 1400)
    assert abs(np.mean(ends)) < 8
    assert np.std(ends) < 25


@pytest.mark.parametrize(("wanted", "nearby"), [(1750, "nearest is 1699"), (150, "nearest is 203")])
def test_what_no_misses_reach_is_said(wanted, nearby):
    with pytest.raises(BgrlError, match=f"{wanted} out of reach: the {nearby}"):
        find_scale(lambda scale: (falling(scale), 1.0), wanted, 4, False, 0.05, most=40)


@pytest.fixture(scope="module")
def reference():
    return Reference.load(None)


def test_the_cost_of_misses_is_what_playing_them_costs(reference, net_player):
    decisions = reference.decisions[::40]
    misses = Misses(0.8, 0.2)
    player = LevelPlayer(Level("x", misses=misses), net_player(1).net)
    expected, _ = MissErrors(player, decisions, 3).pr(misses)
    means = []
    for game in range(30):
        player.start_game(1, game, 0)
        losses = [d.loss(player.choose(d.board.copy(), *d.dice)) for d in decisions]
        means.append(PR * np.mean(losses))
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - expected) < 4 * error
    assert error < 0.02 * expected
    assert MissErrors(player, decisions, 3).pr(Misses(0.0, 0.2))[0] < expected


def test_the_adaptive_level_errs_as_the_player_does(reference):
    levels = [
        (read_level(shipped("checkpoints") / name)[0], name) for name in ("easy", "medium", "hard")
    ]
    player = LevelPlayer(Level("x"), load_player("hard").net)
    errors = MissErrors(player, reference.decisions[::4], 3)
    strongest, weakest = (levels[i][0].measured.pr.value for i in (2, 0))
    for pr in np.linspace(strongest, weakest, 9):
        level, _ = adapt(float(pr), levels)
        assert errors.pr(level.misses or Misses(0.0, 1.0))[0] == pytest.approx(pr, abs=0.8)


@pytest.fixture
def folder(tmp_path, reference, monkeypatch):
    """A folder with a net that plays well, and a few reference positions to measure by."""
    for name in ("net.json", "net.safetensors"):
        (tmp_path / "checkpoints" / "net").mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped("checkpoints") / "hard" / name, tmp_path / "checkpoints" / "net")
    few = Reference(reference.decisions[::40], reference.made)
    monkeypatch.setattr(Reference, "load", lambda path: few)
    return tmp_path / "checkpoints"


def command(folder, *more):
    anchor = [f"anchor={folder}/net", "anchor_rating=1000", "luck=null", "workers=0"]
    games = ["games=200", "check_games=100", f"folder={folder.parent}/games"]
    return ["calibrate", f"level={folder}/weak", "net=net", *anchor, *games, *more]


def test_the_command_writes_a_level_and_goes_on(folder, capsys):
    assert main(command(folder, "rating=800", "seed=3")) == 0
    printed = capsys.readouterr().out
    level, net, _ = read_level(folder / "weak")
    assert net == folder / "net"
    rating = level.measured.rating
    assert f"weak: rating {rating.value:.1f} ± {rating.error:.1f} (wanted 800)" in printed
    assert rating.error > 20
    assert abs(rating.value - 800) < 5 * rating.error
    assert (rating.games, rating.seed, rating.anchor_rating) == (100, 4, 1000)
    assert level.measured.net == load_player(folder / "net").net.hash
    assert level.measured.command.endswith("check_games=100 rating=800 seed=3")
    # From nothing, and from the games already played, the same level comes out.
    text = (folder / "weak" / "level.json").read_text()
    for _ in range(2):
        (folder / "weak" / "level.json").unlink()
        assert main(command(folder, "rating=800", "seed=3")) == 0
        assert (folder / "weak" / "level.json").read_text() == text
        for file in (folder.parent / "games").rglob("pairs.jsonl"):
            file.unlink()
    # As it is: only measured, with the same dice.
    assert main(command(folder, "seed=3")) == 0
    again = read_level(folder / "weak")[0]
    assert again.misses == level.misses
    assert again.measured.rating == rating
    # With what prunes its search, which at 0 plies changes nothing.
    assert main(command(folder, "seed=3", "pruner=net")) == 0
    pruned, _, pruner = read_level(folder / "weak")
    assert (pruned.keep, pruner) == (4, folder / "net")
    assert pruned.measured.rating == rating
    # Only as far into its ranking as told.
    assert main(command(folder, "miss_depth=2")) == 0
    assert read_level(folder / "weak")[0].misses == replace(level.misses, depth=2)


def test_a_wanted_pr_is_reached(folder):
    own = LevelPlayer(Level("x"), load_player(folder / "net").net)
    best, _ = MissErrors(own, Reference.load(None).decisions, 1).pr(Misses(0.0, 1.0))
    assert main(command(folder, f"pr={best + 3:.2f}", "style=cautious", "miss_depth=2")) == 0
    level = read_level(folder / "weak")[0]
    assert level.measured.pr.value == pytest.approx(best + 3, abs=0.1)
    assert level.misses.depth == 2
    assert level.style.name == "cautious"
    assert level_player(level, own.searcher.net).name == "weak"


def test_bad_wishes_are_refused_and_nothing_is_written(folder, capsys):
    for more, message in (
        (["rating=800", "pr=10"], "rating or pr, not both"),
        (["rating=800", "games=3"], "games is 3, expected an even number from 2"),
        (["rating=800", "check_games=2"], "check_games is 2, expected an even number from 4"),
        (["net=nowhere"], "nowhere"),
        (["style=wild"], "no style 'wild'"),
        (["plies=4"], "plies is 4, expected 0 to 3"),
        (["miss_rate=2", "pr=20"], "miss_rate is 2.0, expected 0 to 1"),
        (["anchor=nobody"], "unknown player 'nobody'"),
        (["pr=1000"], "1000 out of reach"),
        (["miss_rate=0.5"], "miss_rate is 0.5, but level weak has no misses"),
        (["miss_depth=2"], "miss_depth is 2, but level weak has no misses"),
        ([f"net={folder}/net"], f"calibrate: net is '{folder}/net', expected the name of a folder"),
        (["net=../net"], "calibrate: net is '../net', expected the name of a folder"),
        (["pruner=../net"], "calibrate: pruner is '../net', expected the name of a folder"),
    ):
        assert main(command(folder, *more)) == 2
        assert message in capsys.readouterr().err
        assert not (folder / "weak").exists()
    (folder / "weak").mkdir()
    (folder / "weak" / "level.json").write_text(json.dumps({"format": "other"}))
    assert main(command(folder)) == 2
    assert f"{folder}/weak/level.json: its format" in capsys.readouterr().err
    assert read_json(folder / "weak" / "level.json") == {"format": "other"}


def test_links_to_nets_and_levels_are_followed(folder):
    """What level.json names is what read_level finds, wherever the links lead."""
    elsewhere = folder.parent / "elsewhere"
    save_net(Net(get_encoder("tesauro198"), (8,)).reset(1), elsewhere / "small")
    (folder / "small").symlink_to(elsewhere / "small")
    (elsewhere / "link").symlink_to(folder / "weak")
    small = command(folder, "anchor=random", "check_games=4")
    assert main([*small, "net=small", "pruner=small"]) == 0
    for level in (folder / "weak", elsewhere / "link"):
        assert main([*(one for one in small if one != "net=net"), f"level={level}"]) == 0
        assert read_level(level)[1:] == (folder / "small", folder / "small")


def test_only_backgammon_has_a_pr(folder, capsys):
    save_net(Net(get_encoder("tesauro198"), (8,), HYPERGAMMON).reset(1), folder / "hyper")
    hyper = command(folder, "net=hyper", "anchor=random", "check_games=4")
    assert main([*hyper, "pr=5"]) == 2
    assert "pr is 5, but it is measured on positions of backgammon" in capsys.readouterr().err
    assert main(hyper) == 0
    level = read_level(folder / "weak")[0]
    assert level.measured.rating.games == 4
    assert level.measured.pr is None
    printed = capsys.readouterr().out
    assert "over 4 games against random; no misses" in printed
    assert "PR" not in printed


@pytest.mark.parametrize(("scale", "tolerance"), [(2000.0, 4.0), (400.0, 0.8)])
def test_a_rating_is_reached_as_nearly_on_every_scale(folder, monkeypatch, scale, tolerance):
    asked = []

    def find(measure, wanted, tolerance, rising, start):
        asked.append(tolerance)
        return [Trial(start, wanted, 1.0)]

    monkeypatch.setattr(calibrate, "find_scale", find)
    assert main(command(folder, "rating=900", "check_games=4", f"scale={scale}")) == 0
    assert asked == [pytest.approx(tolerance)]


def test_the_widest_misses_are_nearly_even():
    assert Misses(1.0, WIDEST).weights([1.0, 0.0, -1.0]) == pytest.approx([1, 1, 1], abs=0.03)
