"""The play generator against a plain one, on positions that play may never reach."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.any_positions import ROLLS, any_positions
from oracles.kernels import kernel_after, kernel_plays, kernel_result, kernel_rows
from oracles.plain_rules import (
    BAR,
    OFF,
    one_checker_moves,
    pips,
    plain_plays,
    plain_result,
)
from oracles.positions import decode_id, position, side, to_board

from bgrl.game.plays import MAX_PLAYS, generate_plays, new_play_buffer


def check_roll(sides, high, low):
    """Everything that must hold for one roll of one position."""
    mover, opponent = sides
    used, expected = plain_plays(sides, high, low)
    rows = kernel_rows(sides, high, low)
    finals = [kernel_after(sides, row) for row in rows]
    assert set(finals) == expected
    assert len(finals) == len(set(finals)), "the same final position twice"
    assert set(kernel_plays(sides, low, high)) == expected

    for row, final in zip(rows, finals, strict=True):
        moves = [(int(row[i]), int(row[i + 1])) for i in range(0, 8, 2) if row[i] >= 0]
        assert len(moves) == used, "not as many dice as can be played"
        assert all(x == -1 for x in row[2 * len(moves) :])
        dice = [high] * 4 if high == low else [high, low]
        orders = {tuple(dice[:used]), tuple(dice[::-1][:used])}
        assert any(playable(sides, moves, order) for order in orders)

        assert sum(final[0]) == sum(mover)
        assert sum(final[1]) == sum(opponent)
        assert min(final[0]) >= 0
        assert min(final[1]) >= 0
        assert not any(final[0][point] and final[1][25 - point] for point in range(1, 25))
        assert pips(mover) - pips(final[0]) == sum(start - to for start, to in moves)
        # R27: the mover's pips fall by the dice, and only bearing off can waste some.
        dice_pips = sum(dice[:used]) if used != 1 else moves[0][0] - moves[0][1]
        if all(to != OFF for _, to in moves):
            assert pips(mover) - pips(final[0]) == dice_pips
        else:
            assert pips(mover) - pips(final[0]) <= dice_pips
        # A hit sends a checker from the mover's point p, the opponent's 25 - p, back to the bar.
        hits = [25 - s for s in range(1, 25) if final[1][s] < opponent[s]]
        assert pips(final[1]) - pips(opponent) == sum(hits)
        assert final[1][BAR] - opponent[BAR] == len(hits)
        assert kernel_result(final) == plain_result(final)


def playable(sides, moves, dice):
    """Whether the moves can be played one after the other with these dice, each one legally."""
    for (start, to), die in zip(moves, dice, strict=True):
        if start - to != die and not (to == OFF and start < die):
            return False
        after = [n for n in one_checker_moves(sides, die) if moved(sides, n, start, to)]
        if not after:
            return False
        (sides,) = after
    return True


def moved(before, after, start, to):
    return before[0][start] - after[0][start] == 1 and after[0][to] - before[0][to] == 1


@settings(max_examples=150, deadline=None)
@given(any_positions())
def test_kernel_equals_plain_generator(sides):
    for high, low in ROLLS:
        check_roll(sides, high, low)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(any_positions())
def test_kernel_equals_plain_generator_long(sides):
    for high, low in ROLLS:
        check_roll(sides, high, low)


@pytest.mark.parametrize("checkers", [3, 15])
def test_random_games(checkers):
    """Positions as play reaches them: whole random games, every roll of every position."""
    start = {3: "AACgAgAAKgAAAA", 15: "4HPwATDgc/ABMA"}[checkers]
    random = np.random.default_rng(checkers)
    for _ in range({3: 5, 15: 1}[checkers]):
        sides = decode_id(start, checkers)
        for _ in range(60):
            for high, low in ROLLS:
                check_roll(sides, high, low)
            dice = random.integers(1, 7, size=2)
            plays = kernel_plays(sides, *dice)
            mover, opponent = plays[random.integers(len(plays))] if plays else sides
            if kernel_result((mover, opponent)):
                break
            sides = opponent, mover


# Found by hill climbing over placings of 15 checkers.
MANY_PLAYS = [3, 4, 6, 7, 9, 11, 12, 14, 15, 17, 18, 20, 21, 23, 24]


@pytest.mark.parametrize(
    ("points", "checkers", "die", "count"),
    [
        (MANY_PLAYS, 15, 1, 2_226),
        (MANY_PLAYS, 15, 2, 2_041),
        (range(1, 25), 24, 1, 9_317),
        ([*range(1, 25)] * 4, 96, 1, 14_950),
    ],
)
def test_long_lists_are_whole(points, checkers, die, count):
    """No truncation: more than 2,151 plays, and far more than any game of 15 checkers has."""
    points = list(points)
    sides = side({p: points.count(p) for p in points}, checkers), side({}, checkers)
    used, expected = plain_plays(sides, die, die)
    plays = kernel_plays(sides, die, die)
    assert used == 4
    assert len(plays) == len(expected) == count <= MAX_PLAYS
    assert set(plays) == expected


def test_buffer_holds_the_longest_possible_list():
    """A final position is a multiset of four starting points among 25: C(28, 4) at most."""
    assert new_play_buffer().shape == (MAX_PLAYS, 8)
    assert MAX_PLAYS == 28 * 27 * 26 * 25 // (4 * 3 * 2)


@pytest.mark.parametrize("roll", ROLLS, ids=str)
def test_nothing_beyond_the_list_is_written(roll):
    """The rows after the last play are untouched, so a caller may trust the count alone."""
    plays = new_play_buffer()
    plays[:] = 77
    sides = decode_id("4HPwATDgc/ABMA")
    n = generate_plays(to_board(sides), *roll, plays)
    assert (plays[:n] < 26).all()
    assert (plays[n:] == 77).all()


def test_read_only_boards_are_accepted():
    """N09: arrays that come out of shared memory or a Position cannot be written to."""
    board = to_board(decode_id("4HPwATDgc/ABMA"))
    plays = new_play_buffer()
    expected = generate_plays(board, 3, 1, plays)
    board.flags.writeable = False
    assert generate_plays(board, 3, 1, plays) == expected == 16


FINISHING = [
    # The game is over when the last checker leaves, yet both dice count where both can be played:
    # with a blot on 2, "4/2*/off" uses two dice and "4/off" one.
    ({4: 1}, {2: 1}, (6, 2), [({}, {"bar": 1})]),
    ({4: 1}, {2: 2}, (6, 2), [({}, {2: 2})]),
    ({1: 1}, {24: 2}, (6, 5), [({}, {24: 2})]),
    ({2: 2}, {24: 2}, (3, 3), [({}, {24: 2})]),
]


@pytest.mark.parametrize(("mover", "opponent", "dice", "finals"), FINISHING)
def test_r32_last_checkers(mover, opponent, dice, finals):
    """R13 and R32: the turn ends with the last checker; the unused dice mean nothing."""
    sides = position(mover, opponent)
    plays = kernel_plays(sides, *dice)
    assert set(plays) == {position(m, o) for m, o in finals} == plain_plays(sides, *dice)[1]
    assert len(plays) == len(finals)


@settings(max_examples=100, deadline=None)
@given(any_positions(), st.sampled_from(ROLLS))
def test_r26_a_turn_keeps_every_checker(sides, roll):
    """R26: playing never changes the board it started from, and neither side gains a checker."""
    board = to_board(sides)
    before = board.copy()
    for final in kernel_plays(sides, *roll):
        assert [sum(one) for one in final] == [sum(one) for one in sides]
    assert np.array_equal(board, before)
