"""The numba twin: a net's evaluation and greedy play over raw boards, for any depth and encoder.

A net is a tuple of flat float32 arrays (:class:`NetArrays`). Its first layer is a table with a row
for each checker that can stand somewhere: (side, slot, how many are there already). A board's
hidden sums are the bias and a row for each checker, and a move exchanges one row. Later layers run
over a chunk of candidates at a time.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bgrl.game.board import BAR, OFF, SLOTS, loss_level, swap_into
from bgrl.game.outcomes import clamp_to, equity1, loss_into, possible
from bgrl.game.plays import MAX_MOVES, generate_plays, lowest_bit, make_moves, new_play_buffer
from bgrl.nets.simd import (
    LANES,
    TILE_ROWS,
    add_row,
    aligned,
    move_row,
    move_row_product,
    move_row_relu,
    positive_lanes,
    product_copy,
    relu_copy,
    sigmoid_vector,
    tile_1,
    tile_2,
)

CHUNK = 64  # candidates that go through the later layers together; whole tiles

# For kernels that allocate nothing: without it, numba counts references to the arrays of a named
# tuple each time one is taken out, and those atomic operations cost as much as the arithmetic.
lean = njit(cache=True, nogil=True, _nrt=False)


class NetArrays(NamedTuple):
    """What the kernels need of a net; all read-only and shareable between processes.

    ``rows`` is float32[52 * checkers * widths[0]], the first layer's table; ``bias`` float32
    [widths[0]], the hidden sums of an empty board; ``weights`` the later layers one after another,
    each its bias [out] then its matrix [in, out], flat; ``widths`` int64, how many sums every layer
    has, rounded up to whole vectors (the padding computes zeros); ``units`` how many units the
    first one makes of them, as many or half as many, products of two; ``points`` int64[3], what a
    win, a gammon and a backgammon count.
    """

    rows: np.ndarray
    bias: np.ndarray
    weights: np.ndarray
    widths: np.ndarray
    units: int
    checkers: int
    points: np.ndarray


class Scratch(NamedTuple):
    """Working memory of one thread for one net shape."""

    plays: np.ndarray  # int8[MAX_PLAYS, 8]
    sums: np.ndarray  # float32[MAX_MOVES + 1, widths[0]], flat: hidden sums after 0..4 moves
    layer_in: np.ndarray  # float32[CHUNK, widest], flat
    layer_out: np.ndarray  # float32[CHUNK, widest], flat
    used: np.ndarray  # int64[widest]: the inputs that a tile of a later layer takes
    limits: np.ndarray  # int64[CHUNK]: loss level * 16 + what is possible, of each candidate
    outputs: np.ndarray  # float32[5]
    best_board: np.ndarray  # int8[2, 26]
    best_value: np.ndarray  # float32[1]
    no_probabilities: np.ndarray  # float32[0, 5]


def new_scratch(net: NetArrays) -> Scratch:
    """Working memory for ``net``."""
    widest = int(net.widths.max())
    return Scratch(
        new_play_buffer(),
        aligned(np.zeros((MAX_MOVES + 1) * int(net.widths[0]), np.float32)),
        aligned(np.zeros(CHUNK * widest, np.float32)),
        aligned(np.zeros(CHUNK * widest, np.float32)),
        np.zeros(widest, np.int64),
        np.zeros(CHUNK, np.int64),
        np.zeros(5, np.float32),
        np.zeros((2, SLOTS), np.int8),
        np.zeros(1, np.float32),
        np.zeros((0, 5), np.float32),
    )


@njit(cache=True, inline="always")
def _units(net, out, out_at, sums):
    """The first hidden layer's units, from its sums, into ``out[out_at:]``."""
    if net.units == net.widths[0]:
        relu_copy(out, out_at, sums, 0, net.units)
    else:
        product_copy(out, out_at, sums, 0, net.units)


@lean
def _first_sums(net, board, sums):
    """The hidden sums of ``board`` into ``sums[:width]``."""
    width = net.widths[0]
    for h in range(width):
        sums[h] = net.bias[h]
    for side in range(2):
        for slot in range(SLOTS):
            row = (side * SLOTS + slot) * net.checkers
            for k in range(board[side, slot]):
                add_row(sums, net.rows, (row + k) * width, width)


@lean
def _dense(out, x, weights, bias_at, n_in, n_out, n, relu, used):
    """One dense layer of ``n`` rows, by register tiles; writes up to a whole tile of rows.

    After a ReLU most inputs are 0, mostly the same ones for the plays of a roll: a tile leaves
    out those that are 0 in all of its rows. ``used`` (int64[>= n_in]) is for their numbers.
    """
    w_at = bias_at + n_out
    for row in range(0, n, TILE_ROWS):
        x_at = row * n_in
        k = 0
        for first in range(0, n_in, 64):
            positive = 0
            for lane in range(0, min(64, n_in - first), LANES):
                positive |= positive_lanes(x, x_at + first + lane, n_in) << lane
            while positive:
                used[k] = first + lowest_bit(positive)
                positive &= positive - 1
                k += 1
        if k == 0:
            used[0] = 0
            k = 1
        column = 0
        while column < n_out:
            o = row * n_out + column
            w = w_at + column
            b = bias_at + column
            if column + 2 * LANES <= n_out:
                tile_2(out, o, n_out, x, x_at, n_in, weights, w, n_out, b, used, k, relu)
                column += 2 * LANES
            else:
                tile_1(out, o, n_out, x, x_at, n_in, weights, w, n_out, b, used, k, relu)
                column += LANES


@lean
def _later_layers(net, scratch, n):
    """From the hidden activations in ``layer_in`` to probabilities, in :func:`_last_layer`.

    Row ``i`` of the result starts at ``i * LANES``.
    """
    x = scratch.layer_in
    out = scratch.layer_out
    at = 0
    last = net.widths.shape[0] - 1
    for layer in range(1, last + 1):
        n_in = net.widths[layer - 1] if layer > 1 else net.units
        n_out = net.widths[layer]
        _dense(out, x, net.weights, at, n_in, n_out, n, 1 if layer < last else 0, scratch.used)
        at += n_out * (n_in + 1)
        x, out = out, x
    for i in range(n):
        sigmoid_vector(x, i * LANES)


@njit(cache=True, inline="always")
def _last_layer(net, scratch):
    """Where :func:`_later_layers` has left its result."""
    return scratch.layer_in if net.widths.shape[0] % 2 == 1 else scratch.layer_out


@lean
def evaluate_board(net, scratch, board, out):
    """The five probabilities of ``board`` (int8[2, 26]) into ``out`` (float32[5]), clamped.

    A position whose player on roll has just lost gets that certain loss.
    """
    _first_sums(net, board, scratch.sums)
    _from_sums(net, scratch, board, out)


@lean
def _from_sums(net, scratch, board, out):
    """:func:`evaluate_board` where ``sums[:width]`` holds the board's hidden sums already."""
    level = loss_level(board)
    if level > 0:
        loss_into(level, out, 0)
        return
    _units(net, scratch.layer_in, 0, scratch.sums)
    _later_layers(net, scratch, 1)
    x = _last_layer(net, scratch)
    for k in range(5):
        out[k] = x[k]
    clamp_to(out, 0, possible(board))


@lean
def evaluate_boards(net, scratch, boards, out):
    """:func:`evaluate_board` for each of ``boards`` (int8[N, 2, 26]) into ``out`` float32[N, 5]."""
    for start in range(0, boards.shape[0], CHUNK):
        n = min(CHUNK, boards.shape[0] - start)
        for i in range(n):
            _first_sums(net, boards[start + i], scratch.sums)
            _units(net, scratch.layer_in, i * net.units, scratch.sums)
        _later_layers(net, scratch, n)
        x = _last_layer(net, scratch)
        for i in range(n):
            board = boards[start + i]
            p = out[start + i]
            for k in range(5):
                p[k] = x[i * LANES + k]
            level = loss_level(board)
            if level > 0:
                loss_into(level, p, 0)
            else:
                clamp_to(p, 0, possible(board))


@lean
def _play_sums(rows, checkers, width, units, sums, depth, work, frm, to, last, hidden, hidden_at):
    """Make one move of the side not on roll in ``work``, and sum up what it changes.

    ``work`` is seen by the opponent, who will be on roll, so the mover is side 1. The sums after
    ``depth`` moves are at ``sums[depth * width]``; those after this one follow them, or after the
    ``last`` move of a play become units at ``hidden[hidden_at]``. Returns whether a blot was hit.
    """
    base = depth * width
    at = base + width
    row_from = ((SLOTS + frm) * checkers + work[1, frm] - 1) * width
    row_to = ((SLOTS + to) * checkers + work[1, to]) * width
    work[1, frm] -= 1
    work[1, to] += 1
    if to > OFF and work[0, 25 - to] == 1:
        row_blot = (25 - to) * checkers * width
        row_bar = (BAR * checkers + work[0, BAR]) * width
        work[0, 25 - to] = 0
        work[0, BAR] += 1
        move_row(sums, at, sums, base, rows, row_to, row_from, width)
        if last and units < width:
            move_row_product(hidden, hidden_at, sums, at, rows, row_bar, row_blot, units)
        elif last:
            move_row_relu(hidden, hidden_at, sums, at, rows, row_bar, row_blot, width)
        else:
            move_row(sums, at, sums, at, rows, row_bar, row_blot, width)
        return True
    if last and units < width:
        move_row_product(hidden, hidden_at, sums, base, rows, row_to, row_from, units)
    elif last:
        move_row_relu(hidden, hidden_at, sums, base, rows, row_to, row_from, width)
    else:
        move_row(sums, at, sums, base, rows, row_to, row_from, width)
    return False


@lean
def _take_back(work, frm, to, hit):
    work[1, to] -= 1
    work[1, frm] += 1
    if hit:
        work[0, BAR] -= 1
        work[0, 25 - to] = 1


@lean
def evaluate_plays(net, scratch, board, die1, die2, values, probabilities):
    """Value every play of a roll; returns their number, 0 for a dance.

    ``scratch.plays`` then holds the plays; ``values`` (float32[>= n]) gets each play's equity for
    the mover, and ``probabilities`` (float32[>= n, 5], or float32[0, 5] for none) the five for the
    OPPONENT, who is on roll afterwards. If ``values`` is too short (float32[1]), only the best
    play's value is kept, in ``values[0]``. In every case ``scratch.best_board`` gets the position
    after the first play of greatest equity (or the dance) and ``scratch.outputs`` its five
    probabilities for the opponent.
    """
    prepare_rolls(net, scratch, board)
    return evaluate_roll(net, scratch, board, die1, die2, values, probabilities)


@lean
def prepare_rolls(net, scratch, board):
    """What all rolls of ``board`` share, before calls of :func:`evaluate_roll`."""
    swap_into(board, scratch.best_board)
    _first_sums(net, scratch.best_board, scratch.sums)


@lean
def evaluate_roll(net, scratch, board, die1, die2, values, probabilities):
    """:func:`evaluate_plays` once :func:`prepare_rolls` has seen ``board``, for roll after roll."""
    n = generate_plays(board, die1, die2, scratch.plays)
    evaluate_listed(net, scratch, board, scratch.plays, n, values, probabilities)
    return n


@lean
def evaluate_listed(net, scratch, board, plays, n, values, probabilities):
    """:func:`evaluate_roll` of the first ``n`` of ``plays``, which come in the generator's order.

    Without any it is a dance.
    """
    work = scratch.best_board
    swap_into(board, work)
    width = net.widths[0]
    if n == 0:
        _from_sums(net, scratch, work, scratch.outputs)
        return
    keep_values = values.shape[0] >= n
    keep_all = probabilities.shape[0] >= n
    hits = 0
    depth = 0
    best = np.float32(-1e9)
    best_index = 0
    start = 0
    while start < n:
        stop = min(start + CHUNK, n)
        for i in range(start, stop):
            # Plays come grouped by their first moves: take back only what differs.
            common = 0
            if i > 0:
                while (
                    common < depth
                    and plays[i, 2 * common] == plays[i - 1, 2 * common]
                    and plays[i, 2 * common + 1] == plays[i - 1, 2 * common + 1]
                ):
                    common += 1
            while depth > common:
                depth -= 1
                _take_back(
                    work, plays[i - 1, 2 * depth], plays[i - 1, 2 * depth + 1], (hits >> depth) & 1
                )
            last = False
            while not last:
                last = depth + 1 == MAX_MOVES or plays[i, 2 * depth + 2] < 0
                hit = _play_sums(
                    net.rows,
                    net.checkers,
                    width,
                    net.units,
                    scratch.sums,
                    depth,
                    work,
                    plays[i, 2 * depth],
                    plays[i, 2 * depth + 1],
                    last,
                    scratch.layer_in,
                    (i - start) * net.units,
                )
                hits = (hits & ~(1 << depth)) | (int(hit) << depth)
                depth += 1
            scratch.limits[i - start] = loss_level(work) * 16 + possible(work)
        _later_layers(net, scratch, stop - start)
        x = _last_layer(net, scratch)
        for i in range(start, stop):
            at = (i - start) * LANES
            limits = scratch.limits[i - start]
            if limits >= 16:
                loss_into(limits // 16, x, at)
            else:
                clamp_to(x, at, limits)
            value = np.float32(-equity1(x, at, net.points))
            if keep_values:
                values[i] = value
            if keep_all:
                for k in range(5):
                    probabilities[i, k] = x[at + k]
            if value > best:
                best = value
                best_index = i
                for k in range(5):
                    scratch.outputs[k] = x[at + k]
        start = stop
    while depth > 0:
        depth -= 1
        _take_back(work, plays[n - 1, 2 * depth], plays[n - 1, 2 * depth + 1], (hits >> depth) & 1)
    make_moves(work, plays[best_index])
    if not keep_values:
        values[0] = best


@lean
def best_play(net, scratch, board, die1, die2, out):
    """Write the position after the play of greatest equity into ``out`` (int8[2, 26]).

    ``scratch.outputs`` then holds its five probabilities for the opponent, who is on roll. Of
    equal plays the first one generated wins. Returns the number of plays, 0 for a dance.
    """
    n = evaluate_plays(
        net, scratch, board, die1, die2, scratch.best_value, scratch.no_probabilities
    )
    for slot in range(SLOTS):
        out[0, slot] = scratch.best_board[0, slot]
        out[1, slot] = scratch.best_board[1, slot]
    return n
