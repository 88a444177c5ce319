"""Whether an exported file computes what the net that it came from computes."""

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np

from bgrl.export.onnx import ENCODED, OnnxNet, read_model, with_encoded_output
from bgrl.export.positions import KINDS, kind_of
from bgrl.game.board import HOME
from bgrl.nets import FastNet, Weights

TOLERANCE = 1e-5
# Stacks that hardly occur in play make the sums inside a wide net so large that rounding shows.
STACKED_TOLERANCE = 5e-5
STACK = 10
BATCHES = (1, 7, 512)
MOST_BATCHES = 100


@dataclass(frozen=True)
class Parity:
    """What a comparison on some positions found.

    positions: how many there were of each kind. differences: the largest absolute difference of a
    probability, by the pair compared. too_far: how many boards differ by :func:`tolerance` or more
    in any pair, counted once a pair. inputs_differ: positions of which the graph's encoder gives
    other bits than bgrl's.
    """

    positions: dict[str, int]
    differences: dict[str, float]
    too_far: int
    inputs_differ: int

    @property
    def holds(self) -> bool:
        """Whether every difference is below the tolerance, and no input differs at all."""
        return self.inputs_differ == 0 and self.too_far == 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.positions.items())
        total = sum(self.positions.values())
        lines = [f"{total:,} positions ({kinds}): largest difference of a probability"]
        lines += [f"  {pair:<35} {value:.1e}" for pair, value in self.differences.items()]
        lines.append(f"  {'inputs, graph and bgrl':<35} {self.inputs_differ} positions differ")
        return "\n".join(lines)


def tolerance(boards: np.ndarray) -> np.ndarray:
    """float64[N]: below what the probabilities of ``boards`` int8[N, 2, 26] may differ.

    1e-5, or 5e-5 where a side has ten checkers or more on a point beyond its home or on the bar.
    """
    stacked = (boards[:, :, HOME + 1 :] >= STACK).any(axis=(1, 2))
    return np.where(stacked, STACKED_TOLERANCE, TOLERANCE)


def compare(weights: Weights, path: str | os.PathLike, boards: np.ndarray) -> Parity:
    """Compare torch, the numba twin and ONNX Runtime on ``boards`` int8[N, 2, 26].

    ``path`` is the exported file of ``weights``, run on all of them at once, and on up to 100
    batches of 1, 7 and 512. Finished games are left out where torch is one of the two, since it
    does not look for them. Raises as :class:`bgrl.export.onnx.OnnxNet` and
    :func:`bgrl.export.onnx.read_model` do.
    """
    import torch

    from bgrl.nets import Net, boards_tensor

    exported = OnnxNet(path)
    twin = FastNet(weights).evaluate(boards)
    with torch.no_grad():
        reference = Net.from_weights(weights)(boards_tensor(boards)).numpy()
    onnx = exported.evaluate(boards)
    kinds = np.array([kind_of(board) for board in boards])
    going_on = kinds != "over"
    apart = {
        "torch and numba": np.where(going_on, largest_differences(reference, twin), 0.0),
        "torch and ONNX Runtime": np.where(going_on, largest_differences(reference, onnx), 0.0),
        "numba and ONNX Runtime": largest_differences(twin, onnx),
    }
    for size in BATCHES:
        some = boards[: MOST_BATCHES * size]
        batches = np.split(some, range(size, len(some), size))
        by_batch = np.concatenate([exported.evaluate(batch) for batch in batches])
        apart[f"numba and ONNX Runtime, batch {size}"] = largest_differences(
            twin[: len(some)], by_batch
        )
    allowed = tolerance(boards)
    too_far = sum(int((found >= allowed[: len(found)]).sum()) for found in apart.values())
    differences = {pair: float(found.max(initial=0.0)) for pair, found in apart.items()}
    encoder = OnnxNet(with_encoded_output(read_model(path)))
    same = encoder.run(boards, ENCODED) == weights.encoder.encode(boards)
    counts = Counter(kinds.tolist())
    positions = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return Parity(positions, differences, too_far, int((~same.all(axis=1)).sum()))


def largest_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[N]: by how much the rows of ``a`` and ``b`` [N, 5] differ at most."""
    difference = np.abs(a.astype(np.float64) - b)
    # A NaN must not compare as small.
    return np.nan_to_num(difference, nan=np.inf).max(axis=1)
