"""Dice: the right distribution, and the same ones wherever a game is played."""

import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from scipy.stats import chisquare

from bgrl.game.dice import ROLLS, Dice, game_stream, next_below, next_roll, opening_roll

N = 100_000
# A fixed seed makes the tests below certain; a chance of 1e-4 would be bad luck, not a bug.
P_VALUE = 1e-4


@njit
def deal(seed, game, n):
    """The opening roll and n - 1 rolls after it, as int64[n, 2]."""
    out = np.empty((n, 2), np.int64)
    state = game_stream(seed, game)
    state, out[0, 0], out[0, 1] = opening_roll(state)
    for i in range(1, n):
        state, out[i, 0], out[i, 1] = next_roll(state)
    return out


@njit
def openings(seed, n):
    """The opening rolls of games 0 to n - 1, as int64[n, 2]."""
    out = np.empty((n, 2), np.int64)
    for game in range(n):
        _, out[game, 0], out[game, 1] = opening_roll(game_stream(seed, game))
    return out


def counts(rolls):
    """int64[6, 6]: how often each ordered pair came."""
    assert rolls.min() >= 1
    assert rolls.max() <= 6
    return np.bincount((rolls[:, 0] - 1) * 6 + rolls[:, 1] - 1, minlength=36).reshape(6, 6)


def test_r31_opening_rolls():
    """R31: no doubles, each of the 15 rolls equally often, either seat starts half the time."""
    seen = counts(openings(1, N))
    assert np.trace(seen) == 0
    both_ways = (seen + seen.T)[np.triu_indices(6, 1)]
    assert len(both_ways) == 15
    assert chisquare(both_ways).pvalue > P_VALUE
    seat0_starts = np.tril(seen, -1).sum()
    assert chisquare([seat0_starts, N - seat0_starts]).pvalue > P_VALUE


def test_r31_later_rolls():
    """R31: the 36 ordered rolls are equally likely, so doubles come once in six."""
    seen = counts(deal(2, 0, N + 1)[1:])
    assert chisquare(seen.ravel()).pvalue > P_VALUE
    assert chisquare([np.trace(seen), N - np.trace(seen)], [N / 6, N * 5 / 6]).pvalue > P_VALUE


def test_first_rolls_across_games():
    """Neighbouring games are as independent as neighbouring rolls: the streams do not overlap."""
    second = np.array([deal(3, game, 2)[1] for game in range(20_000)])
    assert chisquare(counts(second).ravel()).pvalue > P_VALUE
    faces = np.array([deal(3, game, 40)[1:].sum() for game in range(5_000)], float)
    correlation = np.corrcoef(faces[:-1], faces[1:])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(faces))


def test_successive_rolls_are_independent():
    """One roll says nothing about the next: all 36 x 36 pairs are equally likely."""
    rolls = deal(4, 0, 20 * N + 1)[1:]
    index = (rolls[:, 0] - 1) * 6 + rolls[:, 1] - 1
    pairs = np.bincount(index[:-1] * 36 + index[1:], minlength=36 * 36)
    assert chisquare(pairs).pvalue > P_VALUE


@pytest.mark.parametrize("other", [(6, 0), (5, 1), (2**63, 0), (5, 2**40)])
def test_n03_seed_and_game_each_make_another_stream(other):
    """N03: no two games of a run, and no two runs, are dealt the same dice."""
    assert not np.array_equal(deal(5, 0, 40), deal(*map(np.uint64, other), 40))


def test_many_games_are_all_different():
    dealt = {deal(7, game, 40).tobytes() for game in range(5_000)}
    assert len(dealt) == 5_000


def test_other_purposes_have_their_own_stream():
    """A player's own choices must not follow the dice."""
    state, other = game_stream(1, 2), game_stream(1, 2, 1)
    assert state != other
    assert state == game_stream(1, 2, 0)


def test_kernel_and_class_deal_the_same():
    dice = Dice(11, 12)
    expected = deal(11, 12, 50).tolist()
    assert list(dice.opening_roll()) == expected[0]
    assert [list(dice.roll()) for _ in range(49)] == expected[1:]


def test_same_dice_in_another_process():
    """The dice depend on (seed, game) alone: a new interpreter, even with another hash seed."""
    code = (
        "from bgrl.game.dice import Dice; d = Dice(2**40 + 3, 99);"
        "print([d.opening_roll()] + [d.roll() for _ in range(20)])"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    d = Dice(2**40 + 3, 99)
    assert there.stdout.strip() == str([d.opening_roll()] + [d.roll() for _ in range(20)])


GOLDEN = [(6, 2), (3, 1), (2, 4), (6, 2), (1, 2), (2, 4), (3, 4), (3, 3), (4, 6), (1, 3)]


def test_the_dice_stay_what_they_were():
    """A change here changes every seeded game ever recorded, so it must be meant."""
    dice = Dice(1, 0)
    assert [dice.opening_roll()] + [dice.roll() for _ in range(9)] == GOLDEN


def test_n01_numpys_own_generator_has_no_say():
    """N01: neither seeding nor using numpy's global generator changes the dice."""
    first = deal(8, 0, 20)
    np.random.seed(1)  # noqa: NPY002
    np.random.random()  # noqa: NPY002
    assert np.array_equal(first, deal(8, 0, 20))


@pytest.mark.parametrize("n", [1, 2, 7, 36, 20_475])
def test_next_below_stays_below(n):
    state, seen = np.uint64(game_stream(9, 9)), set()
    for _ in range(300):
        state, value = next_below(np.uint64(state), n)
        seen.add(value)
    assert min(seen) >= 0
    assert max(seen) < n
    assert len(seen) >= min(n, 30)


def test_distinct_rolls_and_their_ways():
    assert ROLLS.shape == (21, 3)
    assert ROLLS[:, 2].sum() == 36
    assert {(int(a), int(b)) for a, b, _ in ROLLS} == {
        (a, b) for a in range(1, 7) for b in range(1, a + 1)
    }
    assert all(ways == (1 if a == b else 2) for a, b, ways in ROLLS)
