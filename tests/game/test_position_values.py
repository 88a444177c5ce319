"""Positions and rolls given as Python values: what is no whole number or no roll is refused."""

import numpy as np
import pytest

from bgrl.errors import BgrlError, InvalidPosition
from bgrl.game import Position, legal_plays, parse_play

THEIRS = {6: 15}


@pytest.mark.parametrize("count", [1.9, 1.0, "1", None, (1,), -1, 2**62, 2**70, float("nan")])
def test_counts_of_checkers_are_whole_and_few(count):
    with pytest.raises(InvalidPosition, match=r"the player on roll has .* checkers on slot 6"):
        Position.from_points({6: count}, THEIRS)
    with pytest.raises(InvalidPosition, match=r"the opponent has .* checkers on slot 6"):
        Position.from_points(THEIRS, {6: count})


@pytest.mark.parametrize("slot", [6.0, 6.5, "6", None, -1, 26, 2**70])
def test_slots_are_those_of_the_board(slot):
    with pytest.raises(InvalidPosition, match="the player on roll has no slot"):
        Position.from_points({slot: 1}, THEIRS)


def test_whole_numbers_of_numpy_are_whole():
    given = {np.int8(6): np.int64(15)}
    assert Position.from_points(given, given) == Position.from_points(THEIRS, THEIRS)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize(("extra", "slots"), [(2**62, 4), (2**61, 8), (2**32, 1)])
def test_counts_whose_sum_wraps_around_are_refused(dtype, extra, slots):
    board = Position.start().board.astype(dtype)
    board[0, 1 : 1 + slots] += np.array(extra, dtype)
    with pytest.raises(InvalidPosition, match=r"the player on roll has .* checkers on slot 1"):
        Position(board)


@pytest.mark.parametrize("dice", [{3, 1}, frozenset({3, 1}), {3: 1, 1: 3}, {3: 0, 1: 0}.keys()])
def test_a_roll_has_an_order(dice):
    start = Position.start()
    with pytest.raises(BgrlError, match="dice are two numbers from 1 to 6 in an order"):
        legal_plays(start, dice)
    with pytest.raises(BgrlError, match="dice are two numbers from 1 to 6 in an order"):
        parse_play(start, dice, "8/5 6/5")


@pytest.mark.parametrize("dice", [(3, 1), [3, 1], np.array([3, 1]), np.array([3, 1], np.int8)])
def test_two_numbers_in_any_sequence_are_a_roll(dice):
    assert legal_plays(Position.start(), dice) == legal_plays(Position.start(), (3, 1))
