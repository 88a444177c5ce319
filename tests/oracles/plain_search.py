"""Nets and lookahead in plain Python and float64, every play of every roll at every ply.

Nothing here shares code, or an idea for speed, with the package: inputs are read off the encoder's
definition, plays come from :mod:`oracles.plain_rules`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from .plain_rules import Sides, plain_plays, plain_result

Five = np.ndarray  # float64[5]: win, gammon, backgammon, lose gammon, lose backgammon

ROLLS = [(a, b, 1 if a == b else 2) for a in range(1, 7) for b in range(1, a + 1)]


def flipped(p: Five) -> Five:
    return np.array([1 - p[0], p[3], p[4], p[1], p[2]])


def money(p: Five) -> float:
    return 2 * p[0] - 1 + p[1] + p[2] - p[3] - p[4]


def lost(points: int) -> Five:
    """The certain loss of so many points."""
    return np.array([0.0, 0.0, 0.0, float(points >= 2), float(points >= 3)])


def possible_only(p: Five, sides: Sides) -> Five:
    """`p` nested, without gammons or backgammons that the position rules out."""
    far = [max(slot for slot in range(26) if slot == 0 or s[slot]) for s in sides]
    contact = far[0] + far[1] >= 25
    win = min(max(p[0], 0.0), 1.0)
    out = [win]
    for loser, first, most in ((1, 1, win), (0, 3, 1 - win)):
        gammon = 0.0 if sides[loser][0] > 0 else min(max(p[first], 0.0), most)
        backgammon = min(max(p[first + 1], 0.0), gammon)
        if not contact and far[loser] < 19:
            backgammon = 0.0
        out += [gammon, backgammon]
    return np.array(out)


def plain_net(weights) -> Callable[[Sides], Five]:
    """The 0-ply evaluation by ``weights`` (bgrl.nets.Weights)."""
    encoder = weights.encoder

    def evaluate(sides: Sides) -> Five:
        counts = np.array(sides, dtype=np.float64).ravel()
        x = np.minimum(
            np.maximum((counts[encoder.slots] - encoder.shift) * encoder.scale, 0), encoder.cap
        )
        for i, (weight, bias) in enumerate(weights.layers):
            x = weight.astype(np.float64) @ x + bias
            if i < len(weights.layers) - 1:
                x = np.maximum(x, 0)
        return possible_only(1 / (1 + np.exp(-x)), sides)

    return evaluate


def after_plays(sides: Sides, die1: int, die2: int) -> list[Sides]:
    """What the opponent, now first, can face; the sides swapped after a dance."""
    _, finals = plain_plays(sides, die1, die2)
    return [(opponent, mover) for mover, opponent in sorted(finals or {sides})]


def plain_value(
    evaluate: Callable[[Sides], Five],
    sides: Sides,
    plies: int,
    best_reply: bool = False,
    exact: Callable[[Sides], Five | None] = lambda sides: None,
) -> Five:
    """The n-ply value, 0 the net's own.

    After each roll comes the play that is best at n - 1 plies; with ``best_reply`` the one that is
    best at 0 plies, and its value at n - 1. ``exact`` gives the value of a position that needs no
    looking ahead, or None.
    """

    @cache
    def value(sides: Sides, plies: int) -> Five:
        mover, opponent = sides
        if points := plain_result((opponent, mover)):
            return lost(points)
        known = exact(sides)
        if known is not None:
            return known
        if plies == 0:
            return evaluate(sides)
        total = np.zeros(5)
        for die1, die2, ways in ROLLS:
            after = after_plays(sides, die1, die2)
            if best_reply:
                after = [min(after, key=lambda sides: money(value(sides, 0)))]
            total += ways * flipped(min((value(a, plies - 1) for a in after), key=money))
        return total / 36

    return value(sides, plies)
