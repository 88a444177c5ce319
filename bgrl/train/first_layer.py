"""A net's first layer straight from boards, for training on the CPU.

Every input of an encoder looks at one slot, so the first layer's sums are a bias plus one table row
for each (slot, count), and only a dozen slots of a board are occupied. Adding those rows costs a
tenth of multiplying the inputs by the weights, and the inputs are never written to memory. The
gradient goes the same way back: a position adds the gradient of its hidden sums to the same rows.
"""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from bgrl.encoding import Encoder
from bgrl.game.board import SLOTS

_N_SLOTS = 2 * SLOTS


@njit(cache=True, nogil=True, inline="always")
def _occupied(board, counts, rows):
    """Write the table rows of the occupied slots of `board` (int8[52]); returns how many."""
    n = np.uint32(0)
    for slot in range(_N_SLOTS):
        # No branch: which slots are occupied cannot be predicted.
        rows[n] = np.uint32(slot * counts + board[slot])
        n += np.uint32(board[slot] != 0)
    return n


@njit(cache=True, nogil=True)
def _build_table(slots, ramps, weight, bias, counts, table, base):
    """Row slot * counts + n of `table`: what n checkers add to an empty slot; `base`: the rest."""
    width = base.shape[0]
    table[:] = np.float32(0)
    base[:] = bias
    for i in range(slots.shape[0]):
        column = weight[i]
        empty = ramps[i, 0]
        if empty != 0:
            for h in range(width):
                base[h] += empty * column[h]
        for n in range(1, counts):
            rise = ramps[i, n] - empty
            if rise != 0:
                row = table[slots[i] * counts + n]
                for h in range(width):
                    row[h] += rise * column[h]


@njit(cache=True, nogil=True)
def _forward(boards, counts, table, base, out):
    """out[i] = relu(base + the rows of board i)."""
    width = base.shape[0]
    rows = np.zeros(_N_SLOTS + 4, np.uint32)
    for i in range(boards.shape[0]):
        n = _occupied(boards[i], counts, rows)
        # Row 0, an empty slot, is all zeros: it fills up the last four.
        rows[n] = 0
        rows[n + 1] = 0
        rows[n + 2] = 0
        sums = out[i]
        for h in range(width):
            sums[h] = base[h]
        for j in range(0, n, 4):
            a, b = table[rows[j]], table[rows[j + 1]]
            c, d = table[rows[j + 2]], table[rows[j + 3]]
            for h in range(width):
                sums[h] += (a[h] + b[h]) + (c[h] + d[h])
        for h in range(width):
            # Written so that NaN stays NaN and is noticed.
            sums[h] = np.float32(0) if sums[h] < 0 else sums[h]


@njit(cache=True, nogil=True)
def _backward(boards, counts, out, gradient, table_gradient, base_gradient):
    """Add every board's gradient, where its ReLU is open, to its rows and to the base."""
    width = base_gradient.shape[0]
    rows = np.zeros(_N_SLOTS + 4, np.uint32)
    open_ = np.empty(width, np.float32)
    for i in range(boards.shape[0]):
        n = _occupied(boards[i], counts, rows)
        for h in range(width):
            open_[h] = gradient[i, h] if out[i, h] > 0 else np.float32(0)
            base_gradient[h] += open_[h]
        for j in range(n):
            row = table_gradient[rows[j]]
            for h in range(width):
                row[h] += open_[h]


@njit(cache=True, nogil=True)
def _weight_gradient(slots, ramps, counts, table_gradient, base_gradient, out):
    """The weights' gradient [inputs, width] from the table's: the adjoint of _build_table."""
    width = base_gradient.shape[0]
    for i in range(slots.shape[0]):
        column = out[i]
        empty = ramps[i, 0]
        for h in range(width):
            column[h] = empty * base_gradient[h]
        for n in range(1, counts):
            rise = ramps[i, n] - empty
            if rise != 0:
                row = table_gradient[slots[i] * counts + n]
                for h in range(width):
                    column[h] += rise * row[h]


class FirstLayer:
    """relu(weight @ inputs + bias) of boards, differentiable in weight and bias.

    checkers: the most that a slot can hold. May be called by several threads at once.
    """

    def __init__(self, encoder: Encoder, checkers: int):
        self._slots = encoder.slots
        self._counts = checkers + 1
        counts = np.arange(self._counts, dtype=np.float32)
        ramps = (counts - encoder.shift[:, None]) * encoder.scale[:, None]
        self._ramps = np.minimum(np.maximum(ramps, np.float32(0)), encoder.cap[:, None])

    def __call__(self, weight: Tensor, bias: Tensor, boards: np.ndarray) -> Tensor:
        """float32[N, width] of boards int8[N, 2, 26]; weight [width, inputs], bias [width].

        Counts must lie between 0 and `checkers`: they are not checked here.
        """
        return _Apply.apply(weight, bias, self, boards.reshape(len(boards), _N_SLOTS))

    def forward(self, weight: np.ndarray, bias: np.ndarray, boards: np.ndarray) -> np.ndarray:
        """:meth:`__call__` for arrays; boards int8[N, 52]."""
        table = np.empty((_N_SLOTS * self._counts, len(bias)), np.float32)
        base = np.empty(len(bias), np.float32)
        columns = np.ascontiguousarray(weight.T)
        _build_table(self._slots, self._ramps, columns, bias, self._counts, table, base)
        out = np.empty((len(boards), len(bias)), np.float32)
        _forward(boards, self._counts, table, base, out)
        return out

    def backward(
        self, boards: np.ndarray, out: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of weight and bias, given that of `out`, which :meth:`forward` returned."""
        table = np.zeros((_N_SLOTS * self._counts, out.shape[1]), np.float32)
        base = np.zeros(out.shape[1], np.float32)
        _backward(boards, self._counts, out, gradient, table, base)
        weight = np.empty((len(self._slots), out.shape[1]), np.float32)
        _weight_gradient(self._slots, self._ramps, self._counts, table, base, weight)
        # In the weights' own layout: the fused optimizer takes that for granted.
        return np.ascontiguousarray(weight.T), base


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, bias, layer, boards):
        out = torch.from_numpy(
            layer.forward(weight.detach().numpy(), bias.detach().numpy(), boards)
        )
        ctx.save_for_backward(out)
        ctx.layer, ctx.boards = layer, boards
        return out

    @staticmethod
    def backward(ctx, gradient):
        (out,) = ctx.saved_tensors
        weight, bias = ctx.layer.backward(ctx.boards, out.numpy(), gradient.contiguous().numpy())
        return torch.from_numpy(weight), torch.from_numpy(bias), None, None
