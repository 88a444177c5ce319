"""The level that suits a player."""

from dataclasses import replace

import pytest

from bgrl.errors import BgrlError
from bgrl.players import load_player
from bgrl.players.adaptive import adapt
from bgrl.players.level import Level, Measured, MeasuredPr, Misses


def measured(name, pr, net="aaaa", **parts):
    found = Measured(net, "", "", pr=MeasuredPr(pr, 0.1, 10080, "judge"))
    return Level(name, measured=found, **parts), net


LEVELS = [
    measured("easy", 14.0, misses=Misses(1.0, 0.1)),
    measured("master", 3.0, plies=2),
    measured("hard", 4.0),
    measured("medium", 8.0, misses=Misses(1.0, 0.04)),
    (Level("unmeasured", misses=Misses(1.0, 5.0)), "aaaa"),
]


def scale(pr):
    level, _ = adapt(pr, LEVELS)
    return level.misses.scale if level.misses else 0.0


def test_the_measured_levels_are_met():
    for level, net in LEVELS[:4]:
        found, its_net = adapt(level.measured.pr.value, LEVELS)
        assert (found, its_net) == (replace(level, name="adaptive", measured=None), net)


def test_a_player_who_errs_more_meets_a_weaker_level():
    strengths = []
    for pr in [x / 10 for x in range(300)]:
        level, _ = adapt(pr, LEVELS)
        strengths.append((-level.plies, scale(pr)))
    assert strengths == sorted(strengths)
    assert len(set(strengths)) > 90
    assert scale(6.0) == pytest.approx(0.02)
    assert scale(11.0) == pytest.approx(0.07)


def test_nothing_is_beyond_the_levels():
    assert adapt(0, LEVELS)[0].plies == 2
    assert scale(100) == 0.1


def test_levels_that_differ_otherwise_are_not_mixed():
    assert adapt(3.4, LEVELS)[0].plies == 2
    assert adapt(3.6, LEVELS)[0].plies == 0
    others = [measured("hard", 4.0), measured("easy", 14.0, "bbbb", misses=Misses(1.0, 0.1))]
    assert adapt(8.9, others) == (Level("adaptive"), "aaaa")
    assert adapt(9.1, others) == (Level("adaptive", misses=Misses(1.0, 0.1)), "bbbb")


def test_what_cannot_be_adapted_to_is_refused():
    for pr in (-1, float("nan")):
        with pytest.raises(BgrlError, match="a PR is 0 or more"):
            adapt(pr, LEVELS)
    with pytest.raises(BgrlError, match="levels with a measured PR"):
        adapt(5, LEVELS[4:])


def test_by_name():
    weak, strong = load_player("adaptive@13"), load_player("adaptive@6.5")
    assert (weak.name, strong.name) == ("adaptive@13", "adaptive@6.5")
    assert weak.level.misses.scale > strong.level.misses.scale > 0
