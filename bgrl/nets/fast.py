"""FastNet: the numba twin of a torch net, for use from Python."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from bgrl.game.board import SLOTS
from bgrl.nets.kernels import NetArrays, evaluate_boards, evaluate_plays, new_scratch
from bgrl.nets.simd import aligned, pad
from bgrl.nets.weights import Weights

if TYPE_CHECKING:
    from bgrl.nets.net import Net

MAX_PLAYS_PER_CALL = 4096


class FastNet:
    """A net as the kernels' arrays, with the scratch memory of one thread."""

    def __init__(self, weights: Weights):
        self.arrays = pack(weights)
        self.hash = weights.hash
        self.variant = weights.variant
        self.scratch = new_scratch(self.arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "scratch"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.arrays = self.arrays._replace(
            rows=aligned(self.arrays.rows),
            bias=aligned(self.arrays.bias),
            weights=aligned(self.arrays.weights),
        )
        self.scratch = new_scratch(self.arrays)

    @classmethod
    def from_net(cls, net: "Net") -> "FastNet":
        """The twin of a torch net; later changes of that net do not reach it."""
        return cls(net.weights())

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "FastNet":
        """The net of a checkpoint folder; raises as :meth:`Weights.load`. Needs no torch."""
        return cls(Weights.load(folder))

    def evaluate(self, boards: np.ndarray) -> np.ndarray:
        """The five probabilities float32[N, 5] of ``boards`` int8[N, 2, 26], clamped.

        Takes one board int8[2, 26] too. A finished game gets its certain result.
        """
        boards = np.ascontiguousarray(boards, dtype=np.int8)
        flat = boards.reshape(-1, 2, SLOTS)
        out = np.empty((len(flat), 5), np.float32)
        evaluate_boards(self.arrays, self.scratch, flat, out)
        return out[0] if boards.ndim == 2 else out

    def plays(self, board: np.ndarray, die1: int, die2: int) -> tuple[np.ndarray, ...]:
        """(plays int8[n, 8], equities float32[n], opponent's probabilities float32[n, 5])."""
        board = np.ascontiguousarray(board, dtype=np.int8)
        size = MAX_PLAYS_PER_CALL
        while True:
            values = np.empty(size, np.float32)
            probabilities = np.empty((size, 5), np.float32)
            n = evaluate_plays(self.arrays, self.scratch, board, die1, die2, values, probabilities)
            if n <= size:
                return self.scratch.plays[:n].copy(), values[:n], probabilities[:n]
            size = n


def pack(weights: Weights) -> NetArrays:
    """The kernels' arrays of ``weights``."""
    checkers = weights.variant.checkers
    hidden = weights.hidden[0]
    units = pad(hidden)
    factors = len(weights.layers[0][1]) // hidden
    widths = np.array(
        [factors * units, *(pad(len(bias)) for _, bias in weights.layers[1:])], np.int64
    )
    first, first_bias = weights.layers[0]
    table = weights.encoder.table(checkers).astype(np.float64)
    sums = table @ first.astype(np.float64).T  # [52, checkers + 1, out]
    rows = np.zeros((len(sums), checkers, widths[0]), np.float32)
    bias = np.zeros(widths[0], np.float32)
    for k in range(factors):
        old, new = slice(k * hidden, (k + 1) * hidden), slice(k * units, k * units + hidden)
        rows[:, :, new] = np.diff(sums[:, :, old], axis=1)
        bias[new] = first_bias[old] + sums[:, 0, old].sum(0)
    later = []
    for i, (weight, layer_bias) in enumerate(weights.layers[1:]):
        padded = np.zeros(((widths[i] if i else units) + 1, widths[i + 1]), np.float32)
        padded[0, : len(layer_bias)] = layer_bias
        padded[1 : weight.shape[1] + 1, : weight.shape[0]] = weight.T
        later.append(padded.ravel())
    points = np.array(weights.variant.points, np.int64)
    return NetArrays(
        aligned(rows.ravel()),
        aligned(bias),
        aligned(np.concatenate(later)),
        widths,
        units,
        checkers,
        points,
    )
