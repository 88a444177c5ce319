"""From a net to a folder for apps: an ONNX file and golden vectors, compared first."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bgrl.errors import BgrlError
from bgrl.export.golden import golden_vectors, write_golden
from bgrl.export.onnx import write_onnx
from bgrl.export.parity import TOLERANCE, Parity, compare
from bgrl.export.positions import constructed_positions, sampled_positions
from bgrl.files import atomic_dir
from bgrl.nets import FastNet, Weights

ONNX_FILE = "net.onnx"
GOLDEN_FILE = "golden.json"
PUBLISHED = (ONNX_FILE, GOLDEN_FILE)


@dataclass(frozen=True)
class Export:
    """An exported folder and what the comparison found."""

    folder: Path
    net: str
    golden_cases: int
    parity: Parity

    @property
    def onnx(self) -> Path:
        """The ONNX file."""
        return self.folder / ONNX_FILE

    def __str__(self) -> str:
        size = self.onnx.stat().st_size
        return (
            f"{self.onnx}: net {self.net}, {size:,} bytes\n"
            f"{self.folder / GOLDEN_FILE}: {self.golden_cases} positions with inputs and outputs\n"
            f"{self.parity}"
        )


def export_net(
    weights: Weights, folder: str | os.PathLike, positions: int = 1000, seed: int = 1
) -> Export:
    """Publish ``weights`` in ``folder``, replacing an export that is there.

    The file is first compared with torch and the numba twin, on ``positions`` positions of games
    and on constructed ones that put every count on every slot.

    Raises BgrlError, and publishes nothing, if they differ by 1e-5 or more, if ``positions`` is
    not positive, or if ``folder`` holds anything but an export; MissingExtra without the extra.
    """
    folder = Path(folder)
    if positions < 1:
        raise BgrlError(f"an export is compared on at least 1 position, not {positions}")
    _refuse_foreign(folder)
    sampled = sampled_positions(FastNet(weights), positions, seed)
    boards = np.concatenate([sampled, constructed_positions(weights.variant, seed)])
    golden = golden_vectors(weights, boards)
    with atomic_dir(folder) as beside:
        file = write_onnx(weights, beside / ONNX_FILE)
        parity = compare(weights, file, boards)
        if not parity.holds:
            raise BgrlError(
                f"the exported net {weights.hash} differs from its source by "
                f"{max(parity.differences.values()):.1e} (allowed: below {TOLERANCE:g}), "
                f"and in its inputs on {parity.inputs_differ} positions; nothing was published"
            )
        write_golden(golden, beside / GOLDEN_FILE)
    return Export(folder, weights.hash, len(golden["cases"]), parity)


def _refuse_foreign(folder: Path) -> None:
    """An export replaces its folder, so it must hold nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BgrlError(f"{folder} is a file, not a folder for an export")
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in PUBLISHED)
    if foreign:
        raise BgrlError(f"{folder} holds {foreign[0]}, which is no part of an export")
