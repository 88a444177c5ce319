"""The one board representation, and what is read off it.

A board is an ``int8[2, 26]`` array: row 0 belongs to the player on roll, row 1 to the opponent.
Each row is seen by its owner, and the index is the number of pips that a checker there still has
to go: 0 is borne off, 1 to 24 are the points, 25 is the bar. My point ``p`` is therefore the
opponent's point ``25 - p``, and handing over the turn swaps the rows.

Every checker is counted, those borne off too, so nothing here knows how many a side has.
"""

import numpy as np
from numba import njit

SLOTS = 26
OFF = 0
BAR = 25
POINTS = 24
HOME = 6


def empty_board() -> np.ndarray:
    """An ``int8[2, 26]`` board without a checker."""
    return np.zeros((2, SLOTS), dtype=np.int8)


@njit(cache=True, inline="always")
def swap_into(board, out):
    """Write ``board`` (int8[2, 26]) into ``out`` with the other player on roll."""
    for slot in range(SLOTS):
        out[0, slot] = board[1, slot]
        out[1, slot] = board[0, slot]


@njit(cache=True)
def pip_count(board, side):
    """Pips that ``side`` (0 on roll, 1 opponent) of ``board`` still has to go."""
    pips = 0
    for slot in range(1, SLOTS):
        pips += slot * board[side, slot]
    return pips


@njit(cache=True)
def is_race(board):
    """Whether no checker of either side can be hit any more (bars included)."""
    mine = BAR
    while mine > 0 and board[0, mine] == 0:
        mine -= 1
    theirs = BAR
    while theirs > 0 and board[1, theirs] == 0:
        theirs -= 1
    return mine + theirs < 25


@njit(cache=True)
def loss_level(board):
    """How the player on roll has just lost: 0 not at all, 1 single, 2 gammon, 3 backgammon.

    The game is over once the opponent has no checker left to bear off. It is a gammon if the
    loser has borne off none, and a backgammon if one of the loser's checkers is also on the bar
    or in the winner's home.
    """
    for slot in range(1, SLOTS):
        if board[1, slot] > 0:
            return 0
    if board[0, OFF] > 0:
        return 1
    for slot in range(POINTS - HOME + 1, SLOTS):
        if board[0, slot] > 0:
            return 3
    return 2
