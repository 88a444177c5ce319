"""How a game ends: single, gammon or backgammon."""

import pytest
from oracles.kernels import kernel_plays, kernel_result
from oracles.plain_rules import plain_result
from oracles.positions import decode_id, side

SCORES = [
    ({1: 14}, 1, "/z8AAIAAAAAAAA"),
    ({6: 15}, 2, "4P8PAAABAAAAAA"),
    ({6: 14, "bar": 1}, 3, "4P8HAEABAAAAAA"),
    ({6: 14, 19: 1}, 3, "4P8HAAEBAAAAAA"),
    ({6: 14, 18: 1}, 2, "4P8HgAABAAAAAA"),
    ({6: 13, "bar": 1}, 1, "4P8DAKAAAAAAAA"),
    ({6: 13, 23: 1}, 1, "4P8DAIgAAAAAAA"),
    ({23: 15}, 3, "AADA/x8BAAAAAA"),
]


@pytest.mark.parametrize(("loser", "points", "position_id"), SCORES, ids=lambda value: str(value))
def test_s01_winning_roll(loser, points, position_id):
    """S01: the last checker goes off; a loser with a checker off never loses a gammon."""
    sides = side({1: 1}), side(loser)
    assert decode_id(position_id) == sides
    assert kernel_result(sides) == plain_result(sides) == 0
    (after,) = kernel_plays(sides, 2, 1)
    assert kernel_result(after) == plain_result(after) == points


@pytest.mark.parametrize(("loser", "points", "position_id"), SCORES, ids=lambda value: str(value))
def test_r32_nothing_to_play_after_the_end(loser, points, position_id):
    """R32: for the winner every roll of a finished game is empty, and so the turn cannot go on."""
    finished = side({}), side(loser)
    for die1 in range(1, 7):
        for die2 in range(1, 7):
            assert kernel_plays(finished, die1, die2) == []


def test_no_plays_without_checkers():
    """Zero checkers are a number like any other: nothing to play, no exception."""
    empty = side({}, 0), side({}, 0)
    assert kernel_plays(empty, 6, 6) == kernel_plays(empty, 2, 1) == []


@pytest.mark.parametrize("checkers", [1, 3, 15, 20])
def test_s04_scoring_counts_from_the_variants_own_checkers(checkers):
    """A side of any size loses a gammon only with all of its checkers still there."""
    won = side({}, checkers)
    assert kernel_result((won, side({6: checkers}, checkers))) == 2
    assert kernel_result((won, side({6: checkers - 1}, checkers))) == 1
    assert kernel_result((won, side({20: checkers}, checkers))) == 3
    assert kernel_result((won, side({"bar": checkers}, checkers))) == 3
    assert kernel_result((won, side({18: checkers}, checkers))) == 2
