"""Our rules against other engines', in small; `bgrl verify rules` does it at length."""

import numpy as np
import pytest

from bgrl.cli.main import main
from bgrl.errors import BgrlError
from bgrl.evaluate.rules import (
    Chunk,
    _compare,
    compare_rules,
    engines_for,
    final_positions,
    load_engine,
)
from bgrl.game import BACKGAMMON, HYPERGAMMON, NACKGAMMON, Position
from bgrl.game.plays import new_play_buffer


def need(*engines):
    packages = {"gnubg": "gnubg_nn", "openspiel": "pyspiel"}
    for name in engines:
        package = packages[name]
        pytest.importorskip(package, reason=f"{package} is not installed: extras gnubg and dev")


CASES = [
    (variant, engine)
    for variant in (BACKGAMMON, NACKGAMMON, HYPERGAMMON)
    for engine in engines_for(variant)
]


@pytest.mark.parametrize(
    ("variant", "engine"), CASES, ids=[f"{variant.name}-{engine}" for variant, engine in CASES]
)
def test_same_plays_as_other_engines(variant, engine):
    """0 differences in the sets of final positions, and in OpenSpiel's final scores."""
    need(engine)
    players = ["random", "pubeval"] if variant == BACKGAMMON else ["random"]
    found = compare_rules(2_000, players, variant, [engine], seed=5, workers=1)
    assert found.differences == 0, found.text(variant)
    assert found.compared.total() == found.positions == 2_000
    for kind in ("two dice", "doubles", "on the bar", "all home", "races", "forced plays"):
        assert found.kinds[kind] > 0, kind
    if engine == "openspiel" and variant == BACKGAMMON:
        assert found.scored.total() > 0


def test_same_result_whatever_the_workers():
    need("gnubg")
    one, two = (
        compare_rules(1_200, ["random"], BACKGAMMON, ["gnubg"], seed=6, workers=workers)
        for workers in (1, 2)
    )
    one.seconds = two.seconds = 0.0
    assert one == two


class Ours:
    """Our own rules as an engine, which a test then breaks."""

    name = "ours"

    def __init__(self):
        self.buffer = new_play_buffer()

    def start(self):
        pass

    def finals(self, board, die1, die2):
        return set(final_positions(board, die1, die2, self.buffer))

    def follow(self, final):
        self.last = np.frombuffer(final, np.int8).reshape(2, 26)

    def points(self):
        loser = self.last[0]
        return 1 if loser[0] else 3 if loser[19:].any() else 2


class ForgetsHits(Ours):
    """The one mistake: a checker that could be hit is never hit."""

    name = "forgets hits"

    def finals(self, board, die1, die2):
        finals = super().finals(board, die1, die2)
        quiet = {one for one in finals if one[25] == board[1, 25]}
        return quiet or finals


class NoGammons(Ours):
    name = "no gammons"

    def points(self):
        return 1


def compare(engine, positions=2_000):
    chunk = Chunk(0, positions, "random", "backgammon", (), 1)
    return _compare(chunk, BACKGAMMON, [engine])


def test_a_right_engine_shows_no_difference():
    found = compare(Ours())
    assert found.differences == 0
    assert found.scored.total() > 0


def test_a_wrong_set_of_plays_is_shown():
    found = compare(ForgetsHits())
    assert found.different["forgets hits"] > 0
    example = min(found.examples, key=lambda one: one.size)
    assert example.size == min(one.size for one in found.examples)
    text = found.text(BACKGAMMON)
    board = np.frombuffer(example.board, np.int8).reshape(2, 26)
    assert Position(board).gnubg_id in text
    assert "roll {}{}".format(*example.dice) in text
    missing = example.ours - example.theirs
    assert missing
    for final in missing:
        assert Position(np.frombuffer(final, np.int8).reshape(2, 26)).gnubg_id in text
    assert "theirs alone: none" in text


def test_a_play_that_we_list_twice_is_shown(monkeypatch):
    twice = lambda *args: final_positions(*args) * 2  # noqa: E731
    engine = Ours()
    monkeypatch.setattr("bgrl.evaluate.rules.final_positions", twice)
    assert compare(engine, 10).different.total() == 10


def test_a_wrong_score_is_shown():
    found = compare(NoGammons())
    assert found.misscored["no gammons"] > 0
    assert found.differences == found.misscored["no gammons"]


def test_the_command_fails_on_a_difference(monkeypatch, capsys):
    monkeypatch.setattr("bgrl.evaluate.rules.load_engine", lambda name, variant: ForgetsHits())
    status = main(["verify", "rules", "positions=600", "players=[random]", "workers=1"])
    out, err = capsys.readouterr()
    assert status != 0
    assert "forgets hits differs: backgammon position" in out
    assert "differences from other engines" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["positions=0"], "positions is 0, expected at least 1"),
        (["players=[]"], "at least one player"),
        (["engines=[xg]"], "no engine 'xg'"),
        (["players=[nobody]", "engines=[gnubg]"], "unknown player 'nobody'"),
        (["variant=nackgammon", "engines=[openspiel]"], "OpenSpiel has no nackgammon"),
        (["variant=chess"], "no variant 'chess'"),
    ],
)
def test_bad_options_are_named(arguments, message, capsys):
    need("gnubg", "openspiel")
    assert main(["verify", "rules", "workers=1", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspiel", None)
    load_engine.cache_clear()
    with pytest.raises(BgrlError, match=r"open-spiel: pip install 'bgrl\[dev\]'"):
        load_engine("openspiel", BACKGAMMON)
