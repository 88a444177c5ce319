"""Bearing off in plain Python with fractions, and the rounded arithmetic of GNU Backgammon's files.

A home is a tuple of six counts, the ace point first.
"""

from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
from numba import njit

from .plain_rules import plain_plays
from .plain_search import ROLLS

Home = tuple[int, ...]
Chances = tuple[Fraction, ...]  # of exactly 0, 1, 2, ... rolls
NOBODY = (15,) + (0,) * 25


@cache
def homes_after(home: Home, die1: int, die2: int) -> list[Home]:
    _, finals = plain_plays(((15 - sum(home), *home, *(0,) * 19), NOBODY), die1, die2)
    return sorted(mover[1:7] for mover, _ in finals)


def mean(chances: Chances) -> Fraction:
    return sum((t * p for t, p in enumerate(chances)), Fraction(0))


def mix(rows: list[tuple[int, Chances]]) -> Chances:
    """One roll later: the rows weighted by their ways of 36."""
    length = max(len(row) for _, row in rows)
    total = [Fraction(0)] * (length + 1)
    for ways, row in rows:
        for t, p in enumerate(row):
            total[t + 1] += Fraction(ways, 36) * p
    return tuple(total)


@cache
def all_off(home: Home) -> Chances:
    if not any(home):
        return (Fraction(1),)
    return mix(
        [(ways, min(map(all_off, homes_after(home, a, b)), key=mean)) for a, b, ways in ROLLS]
    )


@cache
def first_off(home: Home) -> Chances:
    def ahead(after: Home) -> Chances:
        return (Fraction(1),) if sum(after) < sum(home) else first_off(after)

    if not any(home):
        return (Fraction(1),)
    return mix([(ways, min(map(ahead, homes_after(home, a, b)), key=mean)) for a, b, ways in ROLLS])


@cache
def equity(mine: Home, theirs: Home, cube: str) -> Fraction:
    """For the player on roll, who has decided to roll. cube: none, centred, mine, theirs."""
    if not any(theirs):
        return Fraction(-1)
    total = Fraction(0)
    for a, b, ways in ROLLS:
        best = max(-worth(theirs, after, OTHER[cube]) for after in homes_after(mine, a, b))
        total += Fraction(ways, 36) * best
    return total


OTHER = {"none": "none", "centred": "centred", "mine": "theirs", "theirs": "mine"}


def worth(mine: Home, theirs: Home, cube: str) -> Fraction:
    """For the player on roll, who may still double."""
    value = equity(mine, theirs, cube)
    if cube in ("centred", "mine") and any(theirs):
        value = max(value, min(Fraction(1), 2 * equity(mine, theirs, "theirs")))
    return value


CHOOSE = np.array([[comb(n, k) for k in range(7)] for n in range(21)])


@njit(cache=True)
def home_number(home):
    """The place of a home (int64[6], the ace point first) in a table of homes of 15 checkers."""
    number = 0
    behind = 0
    for k in range(1, 7):
        behind += home[6 - k]
        number += CHOOSE[behind + k - 1, k]
    return number


@njit  # numba's cache crashes on loading a function that calls itself
def gnubg_best(home, dice, played, highest, means, best):
    """The home after the best play of ``dice[played:]``, or ``best`` if none of them has a lower
    mean: the first in GNU Backgammon's order, from the highest point down."""
    if played == len(dice) or not home.any():
        number = home_number(home)
        return number if best < 0 or means[number] < means[best] else best
    die = dice[played]
    for point in range(highest, 0, -1):
        if home[point - 1] == 0 or (point < die and home[point:].any()):
            continue
        home[point - 1] -= 1
        if point > die:
            home[point - die - 1] += 1
        # Of a double, each checker moves from no higher point than the one before.
        below = point if len(dice) > 2 else 6
        best = gnubg_best(home, dice, played + 1, below, means, best)
        if point > die:
            home[point - die - 1] -= 1
        home[point - 1] += 1
    return best


@njit
def gnubg_all_off(rolls, homes):
    """Whole 65535ths int64[N, 32] for ``homes`` int64[N, 6] in the order of their numbers, rounded
    at every position so that a row adds up. The higher die is played first, then the lower one."""
    rows = np.zeros((len(homes), 32), np.int64)
    rows[0, 0] = 65535
    means = np.zeros(len(homes), np.int64)
    for i in range(1, len(homes)):
        total = np.zeros(32, np.int64)
        for high, low, ways in rolls:
            if high == low:
                best = gnubg_best(homes[i], np.full(4, high), 0, 6, means, -1)
            else:
                best = gnubg_best(homes[i], np.array([high, low]), 0, 6, means, -1)
                best = gnubg_best(homes[i], np.array([low, high]), 0, 6, means, best)
            total[1:] += ways * rows[best, :-1]
        rows[i] = (total + 18) // 36
        rows[i, np.argmax(rows[i])] += 65535 - rows[i].sum()
        means[i] = (rows[i] * np.arange(32)).sum()
    return rows


@njit(cache=True)
def gnubg_worth(rolled, away):
    """For the player who may double: it does so if the half of not doubling, rounded to zero, is no
    more than what the opponent's cube leaves, even where that loses a unit."""
    half = rolled // 2 if rolled >= 0 else -(-rolled // 2)
    if away < half:
        return rolled
    return 32767 if away >= 16383 else 2 * away


@njit(cache=True)
def gnubg_two_sided(rolls, firsts, found, n):
    """Signed 16-bit equities: x is (2x + 1) / 65535, its negative is -x - 1, means round to zero.

    int64[n, n, 4]: no cube, own cube, centred, opponent's.
    """
    table = np.zeros((n, n, 4), np.int64)
    for total in range(2, 2 * n - 1):
        for mine in range(max(1, total - n + 1), min(total, n)):
            theirs = total - mine
            sums = np.zeros(4, np.int64)
            for r in range(len(rolls)):
                best = np.full(4, -32768)
                for s in range(firsts[mine * 21 + r], firsts[mine * 21 + r + 1]):
                    after = found[s]
                    if after == 0:
                        best[:] = 32767
                        continue
                    none, own, centred, away = table[theirs, after]
                    best[0] = max(best[0], -none - 1)
                    best[1] = max(best[1], -away - 1)
                    best[2] = max(best[2], -gnubg_worth(centred, away) - 1)
                    best[3] = max(best[3], -gnubg_worth(own, away) - 1)
                sums += rolls[r, 2] * best
            for cube in range(4):
                size = abs(sums[cube]) // 36
                table[mine, theirs, cube] = size if sums[cube] >= 0 else -size
    return table
