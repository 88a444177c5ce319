"""Exact backups: what a position is worth by the net's best play of each of the 21 rolls.

The mean over all rolls instead of one sampled roll takes the luck of the dice out of a training
target. It equals the net's 1-ply evaluation, counted as GNU Backgammon counts plies.
"""

import numpy as np
from numba import njit

from bgrl.game.board import SLOTS, loss_level
from bgrl.game.dice import ROLLS
from bgrl.game.outcomes import clamp_to, loss_into, possible
from bgrl.nets import FastNet
from bgrl.nets.kernels import evaluate_roll, prepare_rolls


@njit(cache=True, nogil=True)
def backup_boards(net, scratch, rolls, boards, out):
    """:func:`backup_targets` into ``out`` float32[N, 5]; ``rolls`` is ``bgrl.game.dice.ROLLS``."""
    total = np.empty(5)
    for i in range(boards.shape[0]):
        board = boards[i]
        level = loss_level(board)
        if level > 0:
            loss_into(level, out[i], 0)
            continue
        total[:] = 0.0
        prepare_rolls(net, scratch, board)
        for r in range(rolls.shape[0]):
            evaluate_roll(
                net,
                scratch,
                board,
                rolls[r, 0],
                rolls[r, 1],
                scratch.best_value,
                scratch.no_probabilities,
            )
            theirs = scratch.outputs
            ways = rolls[r, 2]
            total[0] += ways * (1.0 - theirs[0])
            total[1] += ways * theirs[3]
            total[2] += ways * theirs[4]
            total[3] += ways * theirs[1]
            total[4] += ways * theirs[2]
        for k in range(5):
            out[i, k] = total[k] / 36.0
        clamp_to(out[i], 0, possible(board))


def backup_targets(net: FastNet, boards: np.ndarray) -> np.ndarray:
    """The exact backups float32[N, 5] of ``boards`` int8[N, 2, 26] (or of one int8[2, 26]).

    For the player on roll before the dice: the mean, over the 21 rolls by their ways, of the five
    probabilities after the play that ``net`` likes best. A finished game gets its certain result.
    """
    boards = np.ascontiguousarray(boards, dtype=np.int8)
    flat = boards.reshape(-1, 2, SLOTS)
    out = np.empty((len(flat), 5), np.float32)
    backup_boards(net.arrays, net.scratch, ROLLS, flat, out)
    return out[0] if boards.ndim == 2 else out
