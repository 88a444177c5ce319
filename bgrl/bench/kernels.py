"""Kernels that play games to be timed, or to be looked at in parts."""

import numpy as np

from bgrl.game.board import SLOTS, loss_level, swap_into
from bgrl.game.dice import game_stream, next_below, next_roll, opening_roll
from bgrl.game.outcomes import clamp_to, equity1, possible
from bgrl.game.plays import apply_play, generate_plays
from bgrl.nets.kernels import CHUNK, _later_layers, best_play, lean


@lean
def _copy(board, out):
    for side in range(2):
        for slot in range(SLOTS):
            out[side, slot] = board[side, slot]


@lean
def play_random(start, seed, first, last, plays, board, after):
    """Play games `first` to `last` - 1 of random plays; returns the plies.

    Every distinct final position of a roll is as likely. `plays` is a play buffer; `board` and
    `after`, int8[2, 26], are scratch.
    """
    plies = 0
    for game in range(first, last):
        state, die1, die2 = opening_roll(game_stream(seed, game))
        _copy(start, board)
        level = 0
        while level == 0:
            n = generate_plays(board, die1, die2, plays)
            if n == 0:
                swap_into(board, after)
            else:
                state, pick = next_below(state, n)
                apply_play(board, plays[pick], after)
            level = loss_level(after)
            _copy(after, board)
            state, die1, die2 = next_roll(state)
            plies += 1
    return plies


@lean
def play_net(net, scratch, start, seed, first, last, max_plies, boards, dice):
    """Play games `first` to `last` - 1 of a net with itself; returns (plies, evaluations).

    Every play of a roll is an evaluation, and so is the position after a dance. Games end after
    `max_plies` at the latest. Row p % T of `boards` int8[T, 2, 26] and `dice` int64[T, 2] gets the
    position and roll of ply p; T is at least 2.
    """
    plies = evaluations = 0
    for game in range(first, last):
        state, die1, die2 = opening_roll(game_stream(seed, game))
        at = plies % boards.shape[0]
        _copy(start, boards[at])
        for _ in range(max_plies):
            dice[at, 0] = die1
            dice[at, 1] = die2
            plies += 1
            then = plies % boards.shape[0]
            evaluations += max(1, best_play(net, scratch, boards[at], die1, die2, boards[then]))
            if loss_level(boards[then]) > 0:
                break
            at = then
            state, die1, die2 = next_roll(state)
    return plies, evaluations


@lean
def candidates(boards, dice, plays, out):
    """Write the position after every play of every roll into `out` while it has room.

    boards int8[N, 2, 26], dice int64[N, 2], out int8[M, 2, 26]; returns the rows written.
    """
    rows = 0
    for k in range(boards.shape[0]):
        n = generate_plays(boards[k], dice[k, 0], dice[k, 1], plays)
        for i in range(min(n, out.shape[0] - rows)):
            apply_play(boards[k], plays[i], out[rows])
            rows += 1
    return rows


@lean
def time_best(net, scratch, boards, dice, out):
    """The whole of it: :func:`best_play` in every position."""
    for k in range(boards.shape[0]):
        best_play(net, scratch, boards[k], dice[k, 0], dice[k, 1], out)


@lean
def time_generation(boards, dice, plays, counts):
    """The plays alone; their numbers go into `counts` int64[N]."""
    for k in range(boards.shape[0]):
        counts[k] = generate_plays(boards[k], dice[k, 0], dice[k, 1], plays)


@lean
def time_later_layers(net, scratch, counts):
    """The layers after the first, and the sigmoids, in the same portions as when playing."""
    for k in range(counts.shape[0]):
        left = max(1, counts[k])
        while left > 0:
            _later_layers(net, scratch, min(left, CHUNK))
            left -= CHUNK


@lean
def time_choice(afters, probabilities, points):
    """What is possible in each position, the clamping, the equity and the comparison."""
    best = np.float32(-1e9)
    for i in range(afters.shape[0]):
        level = loss_level(afters[i])
        clamp_to(probabilities, 5 * i, possible(afters[i]))
        value = np.float32(-equity1(probabilities, 5 * i, points)) + np.float32(level)
        if value > best:
            best = value
    return best
