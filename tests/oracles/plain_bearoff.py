"""Bearing off in plain Python with fractions, and the rounded arithmetic of GNU Backgammon's files.

A home is a tuple of six counts, the ace point first.
"""

from fractions import Fraction
from functools import cache

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


@njit(cache=True)
def gnubg_all_off(rolls, firsts, found, n):
    """Whole 65535ths, rounded at every position so that a row adds up; the last best play wins."""
    rows = np.zeros((n, 32), np.int64)
    rows[0, 0] = 65535
    means = np.zeros(n, np.int64)
    for i in range(1, n):
        total = np.zeros(32, np.int64)
        for r in range(len(rolls)):
            best = -1
            for s in range(firsts[i * 21 + r], firsts[i * 21 + r + 1]):
                if best < 0 or means[found[s]] <= means[best]:
                    best = found[s]
            total[1:] += rolls[r, 2] * rows[best, :-1]
        rows[i] = (total + 18) // 36
        rows[i, np.argmax(rows[i])] += 65535 - rows[i].sum()
        means[i] = (rows[i] * np.arange(32)).sum()
    return rows


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
                    doubled = 32767 if away >= 16383 else 2 * away
                    best[0] = max(best[0], -none - 1)
                    best[1] = max(best[1], -away - 1)
                    best[2] = max(best[2], -max(centred, doubled) - 1)
                    best[3] = max(best[3], -max(own, doubled) - 1)
                sums += rolls[r, 2] * best
            for cube in range(4):
                size = abs(sums[cube]) // 36
                table[mine, theirs, cube] = size if sums[cube] >= 0 else -size
    return table
