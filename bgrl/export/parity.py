"""Whether an exported file computes what the net that it came from computes."""

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np

from bgrl.export.onnx import ENCODED, OnnxNet, read_model, with_encoded_output
from bgrl.export.positions import KINDS, kind_of
from bgrl.nets import FastNet, Weights

TOLERANCE = 1e-5
BATCHES = (1, 7, 512)
MOST_BATCHES = 100


@dataclass(frozen=True)
class Parity:
    """What a comparison on some positions found.

    positions: how many there were of each kind. differences: the largest absolute difference of a
    probability, by the pair compared. inputs_differ: positions of which the graph's encoder gives
    other bits than bgrl's.
    """

    positions: dict[str, int]
    differences: dict[str, float]
    inputs_differ: int

    @property
    def holds(self) -> bool:
        """Whether every difference is below the tolerance, and no input differs at all."""
        return self.inputs_differ == 0 and max(self.differences.values()) < TOLERANCE

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.positions.items())
        total = sum(self.positions.values())
        lines = [f"{total:,} positions ({kinds}): largest difference of a probability"]
        lines += [f"  {pair:<35} {value:.1e}" for pair, value in self.differences.items()]
        lines.append(f"  {'inputs, graph and bgrl':<35} {self.inputs_differ} positions differ")
        return "\n".join(lines)


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
    differences = {
        "torch and numba": _largest(reference, twin, going_on),
        "torch and ONNX Runtime": _largest(reference, onnx, going_on),
        "numba and ONNX Runtime": _largest(twin, onnx),
    }
    for size in BATCHES:
        some = boards[: MOST_BATCHES * size]
        batches = np.split(some, range(size, len(some), size))
        by_batch = np.concatenate([exported.evaluate(batch) for batch in batches])
        differences[f"numba and ONNX Runtime, batch {size}"] = _largest(twin[: len(some)], by_batch)
    encoder = OnnxNet(with_encoded_output(read_model(path)))
    same = encoder.run(boards, ENCODED) == weights.encoder.encode(boards)
    counts = Counter(kinds.tolist())
    positions = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return Parity(positions, differences, int((~same.all(axis=1)).sum()))


def _largest(a: np.ndarray, b: np.ndarray, where: np.ndarray | slice = slice(None)) -> float:
    difference = np.abs(a[where].astype(np.float64) - b[where])
    # A NaN must not compare as small.
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))
