"""Training targets: λ-returns of self-play games, with the luck of the dice or without.

A position's λ-return (Sutton and Barto, 2nd ed., 12.1, without discounting) mixes what the next
positions are worth by the net and how the game ended, with the change of sides at every ply: what
the player on roll can expect is what the next one expects, flipped. From the last position
backwards, with V the net's value of the position that was reached,

    G[t] = flip((1 - λ) V[t + 1] + λ G[t + 1]),    G[last] = the outcome.

Most of what is random in it is the luck of the dice, and where B[t], the exact mean over all 21
rolls, is at hand, it can be taken off (the control variate of luck-adjusted matches): with the net
playing its best, flip(V[t + 1]) is B[t] in the mean, so their difference is luck. Without it,

    G[t] = B[t] + λ flip(G[t + 1] - V[t + 1]),    G[last] = B[last].

Its mean is that of the λ-return. At λ = 0 it is the exact backup, at λ = 1 the luck-adjusted
result of the game.
"""

import numpy as np
from numba import njit

from bgrl.game.outcomes import clamp_to, flip_into, loss_into, possible
from bgrl.nets import FastNet
from bgrl.search import Bearoff, Pruner, Searcher


@njit(cache=True)
def returns_into(values, level, lam, targets, start, n):
    """Write the λ-returns of one game into ``targets[start : start + n]``.

    ``values`` float32[>= n, 5]: row t is the net's value of position t for its player on roll (row
    0 is not used); ``level`` how the player on roll after position n - 1 lost (1, 2 or 3);
    ``lam`` is λ.
    """
    ahead = np.empty(5, np.float32)
    loss_into(level, ahead, 0)
    for t in range(n - 1, -1, -1):
        target = targets[start + t]
        flip_into(ahead, target)
        if t > 0:
            for k in range(5):
                ahead[k] = (np.float32(1.0) - lam) * values[t, k] + lam * target[k]


@njit(cache=True)
def _without_luck(boards, values, backups, games, lam, targets):
    ahead = np.zeros(5)  # G - V of the next position, for its player on roll
    for t in range(games.shape[0] - 1, -1, -1):
        if t + 1 == games.shape[0] or games[t + 1] != games[t]:
            ahead[:] = 0.0
        # Who wins more loses less; gammons change sides.
        ahead[0] = -ahead[0]
        ahead[1], ahead[3] = ahead[3], ahead[1]
        ahead[2], ahead[4] = ahead[4], ahead[2]
        for k in range(5):
            found = backups[t, k] + lam * ahead[k]
            targets[t, k] = found
            ahead[k] = found - values[t, k]
        clamp_to(targets[t], 0, possible(boards[t]))


def returns_without_luck(
    net: FastNet,
    boards: np.ndarray,
    games: np.ndarray,
    lam: float,
    bearoff: Bearoff | None = None,
    pruner: Pruner | None = None,
) -> np.ndarray:
    """The λ-returns float32[N, 5] of whole games that ``net`` played, without the dice's luck.

    ``boards`` int8[N, 2, 26] are the positions game by game, each game's in the order of play;
    ``games`` int64[N] its number; ``lam`` is λ. A position in the ``bearoff`` databases gets what
    they say. ``pruner`` leaves out of the exact means what it thinks little of. Clamped to what is
    possible, which a return can leave by a little.
    """
    one_ply = Searcher(net, 1, bearoff=bearoff, cache=0, pruner=pruner)
    targets = np.empty((len(boards), 5), np.float32)
    values, backups = one_ply.evaluate(boards, 0), one_ply.evaluate(boards)
    _without_luck(boards, values, backups, games, lam, targets)
    return targets
