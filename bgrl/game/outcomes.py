"""The five cumulative probabilities, in gnubg's order, and their equity.

``float32[5]``: win, win a gammon or better, win a backgammon, lose a gammon or better, lose a
backgammon; for the player on roll before the dice are thrown.
"""

import numpy as np
from numba import njit

from bgrl.game.board import BAR, HOME, OFF, POINTS, is_race

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
def equity1(p, points):
    """Cubeless equity of one ``p`` (float[5]); ``points`` as for :func:`equity`."""
    return (
        points[0] * (2 * p[0] - 1)
        + (points[1] - points[0]) * (p[1] - p[3])
        + (points[2] - points[1]) * (p[2] - p[4])
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


@njit(cache=True)
def clamp(p, board):
    """Make ``p`` (float[5], changed in place) possible for ``board`` (int8[2, 26]).

    Probabilities are nested (0 <= backgammon <= gammon <= win), there is no gammon against a side
    that has borne off, and in a race no backgammon against a side that has left the other's home.
    """
    one = np.float32(1.0)
    zero = np.float32(0.0)
    win = min(max(p[0], zero), one)
    p[0] = win
    p[1] = min(max(p[1], zero), win)
    p[2] = min(max(p[2], zero), p[1])
    p[3] = min(max(p[3], zero), one - win)
    p[4] = min(max(p[4], zero), p[3])
    if board[1, OFF] > 0:
        p[1] = zero
        p[2] = zero
    if board[0, OFF] > 0:
        p[3] = zero
        p[4] = zero
    if p[2] > zero or p[4] > zero:
        if is_race(board):
            if not _in_enemy_home(board, 1):
                p[2] = zero
            if not _in_enemy_home(board, 0):
                p[4] = zero


@njit(cache=True)
def _in_enemy_home(board, side):
    for slot in range(POINTS - HOME + 1, BAR + 1):
        if board[side, slot] > 0:
            return True
    return False


@njit(cache=True)
def loss_into(level, out):
    """Write the certain loss of ``level`` (1 single, 2 gammon, 3 backgammon) into ``out``."""
    out[0] = 0.0
    out[1] = 0.0
    out[2] = 0.0
    out[3] = 1.0 if level >= 2 else 0.0
    out[4] = 1.0 if level >= 3 else 0.0
