"""What kind of position a board is, by definitions that anyone can check by eye.

The first definition that fits counts. Each looks at the board alone and at both sides alike.
"""

import numpy as np

from bgrl.game import BACKGAMMON
from bgrl.game.board import BAR, HOME, POINTS, is_race

DEFINITIONS = {
    "bear-off": "no contact, and the player on roll has all checkers at home or off",
    "race": "no contact",
    "crashed": "a side has at most 6 checkers that are neither on its 1 and 2 points nor off",
    "opening": "together at most 6 checkers have left their starting places",
    "back game": "a side holds two points or more in the other's home and trails by 20 pips",
    "prime": "a side holds 5 of 6 points in a row, with an opposing checker behind them",
    "blitz": "a side holds at least 3 home points with an opposing checker on the bar or alone on "
    "a point of that home, and without an opposing anchor there",
    "holding": "a side's last checkers hold its 18, 20 or 21 point, others still have to come past "
    "them, and none of those is in the first side's home or on the bar",
    "contact": "any other",
}
KINDS = tuple(DEFINITIONS)

_START = BACKGAMMON.start_board()
_HOLDING = (18, 20, 21)


def kind_of(board: np.ndarray) -> str:
    """One of KINDS for int8[2, 26], of backgammon with 15 checkers."""
    if is_race(board):
        home = board[0, : HOME + 1].sum() == board[0].sum()
        return "bear-off" if home else "race"
    sides = [(board[0], board[1]), (board[1], board[0])]
    if any(side[3:].sum() <= 6 for side, _ in sides):
        return "crashed"
    if np.abs(board.astype(int) - _START).sum() / 2 <= 6:
        return "opening"
    if any(_plays_back_game(mine, theirs) for mine, theirs in sides):
        return "back game"
    if any(_primes(mine, theirs) for mine, theirs in sides):
        return "prime"
    if any(_blitzes(mine, theirs) for mine, theirs in sides):
        return "blitz"
    if any(_holds(mine, theirs) for mine, theirs in sides):
        return "holding"
    return "contact"


def _pips(side: np.ndarray) -> int:
    return int(np.arange(BAR + 1) @ side.astype(int))


def _plays_back_game(mine: np.ndarray, theirs: np.ndarray) -> bool:
    anchors = (mine[POINTS - HOME + 1 : BAR] >= 2).sum()
    return bool(anchors >= 2 and _pips(mine) >= _pips(theirs) + 20)


def _primes(mine: np.ndarray, theirs: np.ndarray) -> bool:
    held = mine[1:BAR] >= 2
    for first in range(1, POINTS - 4):  # the prime's lowest point
        six = held[first - 1 : first + 5]
        # Points below `first` are the opponent's from 26 - first on, his bar included.
        if six.sum() >= 5 and six[0] and theirs[26 - first :].sum() > 0:
            return True
    return False


def _blitzes(mine: np.ndarray, theirs: np.ndarray) -> bool:
    there = theirs[POINTS - HOME + 1 : BAR]  # his checkers in my home
    attacked = theirs[BAR] > 0 or (there == 1).any()
    return bool(attacked and not (there >= 2).any() and (mine[1 : HOME + 1] >= 2).sum() >= 3)


def _holds(mine: np.ndarray, theirs: np.ndarray) -> bool:
    last = int(np.flatnonzero(mine)[-1])
    if last not in _HOLDING or mine[last] < 2:
        return False
    # Behind my last checkers, as he counts, are his slots above 25 - last.
    return theirs[25 - last + 1 :].sum() > 0 and theirs[POINTS - HOME + 1 :].sum() == 0
