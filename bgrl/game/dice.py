"""Dice as a function of (seed, game number), so that any process deals the same games.

The stream is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014), started from a mix of both numbers.
"""

import numpy as np
from numba import njit

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, inline="always")
def mix(x):
    """SplitMix64's finaliser: a bijection of uint64 that scatters every bit."""
    x = (x ^ (x >> np.uint64(30))) * _MIX1
    x = (x ^ (x >> np.uint64(27))) * _MIX2
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def game_stream(seed, game, purpose=0):
    """State (uint64) of the stream of game number ``game`` of a run with ``seed``.

    ``purpose`` 0 is the dice; other numbers give streams independent of them, such as a player's
    own choices.
    """
    state = mix(np.uint64(seed) + _GAMMA)
    state = mix(state ^ (np.uint64(game) * _GAMMA + np.uint64(purpose) * _MIX2 + _MIX1))
    return state


@njit(cache=True, inline="always")
def next_below(state, n):
    """(new state, an integer of 0 to n - 1). For n < 2**16 the bias is below 2**-16 / 2**32."""
    state = state + _GAMMA
    high = mix(state) >> np.uint64(32)
    return state, np.int64((high * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def next_roll(state):
    """(new state, die 1, die 2), each 1 to 6."""
    state, roll = next_below(state, 36)
    return state, roll // 6 + 1, roll % 6 + 1


@njit(cache=True)
def opening_roll(state):
    """(new state, seat 0's die, seat 1's die), never equal: the higher one starts with both."""
    while True:
        state, die1, die2 = next_roll(state)
        if die1 != die2:
            return state, die1, die2


# The 21 distinct rolls as (die 1, die 2, ways of 36).
ROLLS = np.array(
    [(a, b, 1 if a == b else 2) for a in range(1, 7) for b in range(1, a + 1)], dtype=np.int64
)


class Dice:
    """The dice of one game, for use from Python: the same rolls as the kernels'."""

    def __init__(self, seed: int, game: int, purpose: int = 0):
        self._state = np.uint64(game_stream(seed, game, purpose))

    def _take(self, result: tuple[int, int, int]) -> tuple[int, int]:
        self._state = np.uint64(result[0])
        return result[1], result[2]

    def opening_roll(self) -> tuple[int, int]:
        """(seat 0's die, seat 1's die), never equal."""
        return self._take(opening_roll(self._state))

    def roll(self) -> tuple[int, int]:
        """(die 1, die 2)."""
        return self._take(next_roll(self._state))

    def below(self, n: int) -> int:
        """An integer of 0 to n - 1."""
        state, value = next_below(self._state, n)
        self._state = np.uint64(state)
        return value
