"""Self-play as one numba kernel: games by a net against itself, and their λ-returns.

A position's target is its λ-return (Sutton and Barto, 2nd ed., 12.1, without discounting), with
the change of sides at every ply: what the player on roll can expect is what the next one expects,
flipped. From the last position backwards, with V the net's value of the position that was reached,

    G[t] = flip((1 - λ) V[t + 1] + λ G[t + 1]),    G[last] = the outcome.
"""

import numpy as np
from numba import njit

from bgrl.game.board import SLOTS, loss_level
from bgrl.game.dice import game_stream, mix, next_roll, opening_roll
from bgrl.game.outcomes import flip_into, loss_into
from bgrl.nets.kernels import best_play


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


@njit(cache=True, nogil=True)
def play_games(
    net, scratch, start_board, seed, first_game, last_game, lam, max_plies, buffers, game_buffers
):
    """Play games ``first_game`` up to, not including, ``last_game``, while the buffers have room.

    ``buffers`` is (boards int8[M, 2, 26], targets float32[M, 5], outcomes int8[M], games int64[M],
    plies int16[M]); ``game_buffers`` is (boards int8[max_plies + 1, 2, 26], values
    float32[max_plies + 1, 5]). Games of more than ``max_plies`` plies are given up and leave no
    rows. Returns (next game to play, rows written, games given up).
    """
    boards, targets, outcomes, games, plies = buffers
    game_boards, values = game_buffers
    rows = 0
    given_up = 0
    game = first_game
    while game < last_game and rows + max_plies <= boards.shape[0]:
        state = game_stream(seed, game)
        state, die1, die2 = opening_roll(state)
        game_boards[0] = start_board
        n = 0
        level = 0
        while level == 0 and n < max_plies:
            best_play(net, scratch, game_boards[n], die1, die2, game_boards[n + 1])
            n += 1
            level = loss_level(game_boards[n])
            for k in range(5):
                values[n, k] = scratch.outputs[k]
            state, die1, die2 = next_roll(state)
        if level == 0:
            given_up += 1
        else:
            returns_into(values, level, np.float32(lam), targets, rows, n)
            points = net.points[level - 1]
            for t in range(n):
                for side in range(2):
                    for slot in range(SLOTS):
                        boards[rows + t, side, slot] = game_boards[t, side, slot]
                outcomes[rows + t] = points if (n - t) % 2 == 1 else -points
                games[rows + t] = game
                plies[rows + t] = t
            rows += n
        game += 1
    return game, rows, given_up


_KEEP = 7  # the stream of a game that decides which of its positions are kept


@njit(cache=True)
def kept_positions(seed, games, plies, share):
    """Which rows (bool[N]) to keep for about ``share`` of them, from (seed, game, ply) alone.

    ``games`` is int64[N], ``plies`` int16[N].
    """
    kept = np.empty(games.shape[0], np.bool_)
    limit = np.uint64(share * 4294967296.0)
    for i in range(games.shape[0]):
        state = game_stream(seed, games[i], _KEEP)
        kept[i] = mix(state + np.uint64(plies[i])) >> np.uint64(32) < limit
    return kept
