"""Exact backups: what a position is worth by the net's best play of each of the 21 rolls.

The mean over all rolls instead of one sampled roll takes the luck of the dice out of a training
target.
"""

import numpy as np

from bgrl.nets import FastNet
from bgrl.search.bearoff import Bearoff
from bgrl.search.nply import Searcher


def backup_targets(net: FastNet, boards: np.ndarray, bearoff: Bearoff | None = None) -> np.ndarray:
    """The exact backups float32[N, 5] of ``boards`` int8[N, 2, 26] (or of one int8[2, 26]).

    For the player on roll before the dice: the mean, over the 21 rolls by their ways, of the five
    probabilities after the play that ``net`` likes best, its 1-ply evaluation. A finished game
    gets its certain result, and a position in the ``bearoff`` databases what they say.
    """
    return Searcher(net, 1, bearoff=bearoff, cache=0).evaluate(boards)
