"""The five cumulative probabilities, in gnubg's order, and their equity.

``float32[5]``: win, win a gammon or better, win a backgammon, lose a gammon or better, lose a
backgammon; for the player on roll before the dice are thrown.
"""

import numpy as np
from numba import njit

from bgrl.game.board import BAR, HOME, OFF, POINTS

OUTPUTS = ("win", "win_gammon", "win_backgammon", "lose_gammon", "lose_backgammon")


@njit(cache=True, inline="always")
def flip_into(p, out):
    """Write ``p`` (float[5]) into ``out`` as the other player sees it; ``out`` may not be ``p``."""
    out[0] = np.float32(1.0) - p[0]
    out[1] = p[3]
    out[2] = p[4]
    out[3] = p[1]
    out[4] = p[2]


def flip(p: np.ndarray) -> np.ndarray:
    """``p`` (float[..., 5]) as the other player sees it, a new array of the same dtype."""
    out = np.asarray(p)[..., [0, 3, 4, 1, 2]].copy()
    out[..., 0] = 1 - out[..., 0]
    return out


@njit(cache=True, inline="always")
def equity1(p, at, points):
    """Cubeless equity of ``p[at : at + 5]``; ``points`` as for :func:`equity`."""
    return (
        points[0] * (2 * p[at] - 1)
        + (points[1] - points[0]) * (p[at + 1] - p[at + 3])
        + (points[2] - points[1]) * (p[at + 2] - p[at + 4])
    )


def equity(p: np.ndarray, points: tuple[int, int, int] = (1, 2, 3)) -> np.ndarray:
    """Cubeless equity in points, float[...], of ``p`` (float[..., 5]).

    ``points`` is what a single game, a gammon and a backgammon count.
    """
    p = np.asarray(p)
    return (
        points[0] * (2 * p[..., 0] - 1)
        + (points[1] - points[0]) * (p[..., 1] - p[..., 3])
        + (points[2] - points[1]) * (p[..., 2] - p[..., 4])
    )


@njit(cache=True, inline="always")
def possible(board):
    """What can still happen from ``board`` (int8[2, 26]), as bits for :func:`clamp_to`.

    Bit k - 1 stands for output k (1 win gammon .. 4 lose backgammon). There is no gammon against
    a side that has borne off, and in a race no backgammon against a side that has left the
    other's home.
    """
    rearmost0 = BAR
    while rearmost0 > 0 and board[0, rearmost0] == 0:
        rearmost0 -= 1
    rearmost1 = BAR
    while rearmost1 > 0 and board[1, rearmost1] == 0:
        rearmost1 -= 1
    contact = rearmost0 + rearmost1 >= BAR
    bits = 0
    if board[1, OFF] == 0:
        bits |= 1
        if contact or rearmost1 > POINTS - HOME:
            bits |= 2
    if board[0, OFF] == 0:
        bits |= 4
        if contact or rearmost0 > POINTS - HOME:
            bits |= 8
    return bits


@njit(cache=True, inline="always")
def clamp_to(p, at, bits):
    """Make ``p[at : at + 5]`` nested and free of what ``bits`` (:func:`possible`) excludes.

    Nested: 0 <= backgammon <= gammon <= win, on both sides.
    """
    zero = np.float32(0.0)
    win = min(max(p[at], zero), np.float32(1.0))
    p[at] = win
    p[at + 1] = min(max(p[at + 1], zero), win) if bits & 1 else zero
    p[at + 2] = min(max(p[at + 2], zero), p[at + 1]) if bits & 2 else zero
    p[at + 3] = min(max(p[at + 3], zero), np.float32(1.0) - win) if bits & 4 else zero
    p[at + 4] = min(max(p[at + 4], zero), p[at + 3]) if bits & 8 else zero


@njit(cache=True)
def clamp(p, boards):
    """Make ``p`` (float32[N, 5], changed in place) possible for ``boards`` (int8[N, 2, 26])."""
    for i in range(len(boards)):
        clamp_to(p[i], 0, possible(boards[i]))


@njit(cache=True, inline="always")
def loss_into(level, p, at):
    """Write the certain loss of ``level`` (1 single, 2 gammon, 3 backgammon) into ``p[at:]``."""
    p[at] = 0.0
    p[at + 1] = 0.0
    p[at + 2] = 0.0
    p[at + 3] = 1.0 if level >= 2 else 0.0
    p[at + 4] = 1.0 if level >= 3 else 0.0
