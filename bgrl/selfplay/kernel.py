"""Self-play as one numba kernel: games by a net against itself, and their λ-returns."""

import numpy as np
from numba import njit

from bgrl.game.board import SLOTS, loss_level
from bgrl.game.dice import game_stream, next_roll, opening_roll
from bgrl.nets.kernels import best_play
from bgrl.selfplay.returns import returns_into


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
