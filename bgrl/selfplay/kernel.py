"""Self-play as one numba kernel: games by a net against itself, and their λ-returns."""

import numpy as np
from numba import njit

from bgrl.game.board import SLOTS, loss_level, swap_into
from bgrl.game.dice import game_stream, next_below, next_roll, opening_roll
from bgrl.game.plays import apply_play, generate_plays
from bgrl.nets.kernels import best_play
from bgrl.selfplay.returns import returns_into

MAX_SCATTER_PLIES = 12
_SCATTER = 7  # the stream of a game that scatters its beginning


@njit(cache=True)
def _random_play(state, scratch, board, die1, die2, out):
    """Like ``best_play`` for any of the plays; returns the new state of the stream."""
    n = generate_plays(board, die1, die2, scratch.plays)
    if n == 0:
        swap_into(board, out)
        return state
    state, pick = next_below(state, n)
    apply_play(board, scratch.plays[pick], out)
    return state


@njit(cache=True)
def _scatter_plies(seed, game, scatter):
    """(state of the stream, number of random plies that the game begins with)."""
    state = game_stream(seed, game, _SCATTER)
    state, chance = next_below(state, 1 << 16)
    if chance >= scatter * (1 << 16):
        return state, 0
    state, plies = next_below(state, MAX_SCATTER_PLIES)
    return state, plies + 1


@njit(cache=True, nogil=True)
def play_games(
    net,
    scratch,
    start_board,
    seed,
    first_game,
    last_game,
    lam,
    scatter,
    max_plies,
    buffers,
    game_buffers,
):
    """Play games ``first_game`` up to, not including, ``last_game``, while the buffers have room.

    So large a share of them as ``scatter`` begins with 1 to MAX_SCATTER_PLIES random plies, before
    which no position is kept: their returns would be of play that the net does not mean.
    ``buffers`` is (boards int8[M, 2, 26], targets float32[M, 5], outcomes int8[M], games int64[M],
    plies int16[M]); ``game_buffers`` is (boards int8[max_plies + 1, 2, 26], values
    float32[max_plies + 1, 5]). Games of more than ``max_plies`` plies are given up and leave no
    rows, and so are those that end within their random plies. Returns (next game to play, rows
    written, games given up).
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
        chance, first = _scatter_plies(seed, game, scatter)
        n = 0
        level = 0
        while level == 0 and n < max_plies:
            if n < first:
                chance = _random_play(
                    chance, scratch, game_boards[n], die1, die2, game_boards[n + 1]
                )
            else:
                best_play(net, scratch, game_boards[n], die1, die2, game_boards[n + 1])
            n += 1
            level = loss_level(game_boards[n])
            for k in range(5):
                values[n, k] = scratch.outputs[k]
            state, die1, die2 = next_roll(state)
        if level == 0 or n <= first:
            given_up += 1
        else:
            returns_into(values[first:], level, np.float32(lam), targets, rows, n - first)
            points = net.points[level - 1]
            for t in range(first, n):
                for side in range(2):
                    for slot in range(SLOTS):
                        boards[rows, side, slot] = game_boards[t, side, slot]
                outcomes[rows] = points if (n - t) % 2 == 1 else -points
                games[rows] = game
                plies[rows] = t
                rows += 1
        game += 1
    return game, rows, given_up
