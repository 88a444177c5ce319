"""From nets to a bundle for apps, compared with their sources before it is published."""

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import BgrlError
from bgrl.export.coreml import write_coreml
from bgrl.export.golden import golden_vectors, write_golden
from bgrl.export.onnx import write_onnx
from bgrl.export.parity import TOLERANCE, Parity, compare
from bgrl.export.positions import constructed_positions, sampled_positions
from bgrl.files import atomic_dir, atomic_write_json, read_json, sha256_file
from bgrl.nets import FastNet, Weights
from bgrl.nets.flat import STORAGE, rounded, write_flat
from bgrl.players.bundle import (
    BUNDLE_FILE,
    FLAT_SUFFIX,
    FORMAT,
    LEVELS_FILE,
    LEVELS_FORMAT,
    VERSION,
    open_bundle,
)
from bgrl.players.level import Level

COREML_SUFFIX = ".mlpackage"
SCHEMA_FOLDER = "schemas"


@dataclass(frozen=True)
class Export:
    """A published bundle, and what the comparisons found, by name of the ONNX file."""

    folder: Path
    parities: dict[str, Parity]

    @property
    def onnx(self) -> Path:
        """The first net as ONNX."""
        return self.folder / next(iter(self.parities))

    @property
    def parity(self) -> Parity:
        """What the comparison of :attr:`onnx` found."""
        return self.parities[self.onnx.name]

    def __str__(self) -> str:
        lines = [f"{self.folder}:"]
        for path in sorted(self.folder.iterdir()):
            whole = [path, *path.rglob("*")]
            size = sum(file.stat().st_size for file in whole if file.is_file())
            lines.append(f"  {path.name:<24} {size:>10,} bytes")
        lines.append(f"{self.onnx.name}: {self.parity}")
        for name, parity in list(self.parities.items())[1:]:
            lines.append(f"{name}: the same, at most {max(parity.differences.values()):.1e}")
        return "\n".join(lines)


def export_net(
    weights: Weights, folder: str | os.PathLike, positions: int = 1000, seed: int = 1
) -> Export:
    """:func:`export_levels` for one net that always plays its best, as the level ``net``."""
    return export_levels([(Level("net"), weights)], folder, positions, seed)


def export_levels(
    levels: Sequence[tuple[Level, Weights]],
    folder: str | os.PathLike,
    positions: int = 1000,
    seed: int = 1,
    coreml: bool = False,
) -> Export:
    """Publish levels and their nets as the bundle ``folder``, replacing a bundle that is there.

    Each net is named after the first level that plays it, and comes as ONNX and as a flat file,
    its weights stored as float32, float16 and int8, with golden vectors, and if ``coreml`` is true
    as a Core ML package (which is not run: that takes macOS). Every ONNX file is first
    compared with torch and the numba twin, on ``positions`` positions of games and on constructed
    ones that put every count on every slot.

    Raises BgrlError, and publishes nothing, if they differ by 1e-5 or more, if ``positions`` is
    not positive, if two levels share a name, or if ``folder`` holds anything but a bundle;
    MissingExtra without the extra.
    """
    folder = Path(folder)
    names = [level.name for level, _ in levels]
    if positions < 1:
        raise BgrlError(f"an export is compared on at least 1 position, not {positions}")
    if not names or len(set(names)) < len(names):
        raise BgrlError(f"a bundle needs levels of different names, not {names}")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise BgrlError(f"level {name!r} cannot name a file: letters, digits, - and _ can")
    _refuse_foreign(folder)
    net_names: dict[str, str] = {}
    parities: dict[str, Parity] = {}
    nets: dict[str, dict[str, Any]] = {}
    with atomic_dir(folder) as beside:
        for level, weights in levels:
            if weights.hash not in net_names:
                net_names[weights.hash] = level.name
                playing = [one for one, net in levels if net.hash == weights.hash]
                found, record = _write_net(weights, playing, beside, positions, seed)
                if coreml:
                    write_coreml(weights, beside / f"{level.name}{COREML_SUFFIX}")
                    record["coreml"] = f"{level.name}{COREML_SUFFIX}"
                parities |= found
                nets[level.name] = record
        atomic_write_json(
            beside / LEVELS_FILE,
            {
                "format": LEVELS_FORMAT,
                "version": VERSION,
                "levels": [
                    level.to_json() | {"net": net_names[weights.hash]} for level, weights in levels
                ],
            },
        )
        (beside / SCHEMA_FOLDER).mkdir()
        for schema in sorted((Path(__file__).parent / SCHEMA_FOLDER).glob("*.json")):
            shutil.copyfile(schema, beside / SCHEMA_FOLDER / schema.name)
        atomic_write_json(
            beside / BUNDLE_FILE,
            {
                "format": FORMAT,
                "version": VERSION,
                "bgrl": metadata("bgrl")["Version"],
                "licence": _licence(),
                "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "nets": nets,
                "files": {
                    path.relative_to(beside).as_posix(): {
                        "bytes": path.stat().st_size,
                        "sha256": sha256_file(path),
                    }
                    for path in sorted(beside.rglob("*"))
                    if path.is_file()
                },
            },
        )
        open_bundle(beside)
    return Export(folder, parities)


def _write_net(
    weights: Weights, levels: Sequence[Level], folder: Path, positions: int, seed: int
) -> tuple[dict[str, Parity], dict[str, Any]]:
    """Write the files of the net of ``levels``, named after the first.

    Returns the parities by ONNX file and the bundle's record of the net.
    """
    name = levels[0].name
    sampled = sampled_positions(FastNet(weights), positions, seed)
    boards = np.concatenate([sampled, constructed_positions(weights.variant, seed)])
    exact = FastNet(weights).evaluate(boards)
    parities = {}
    stored = {}
    for storage in STORAGE:
        stem = name if storage == "float32" else f"{name}.{storage}"
        onnx = write_onnx(weights, folder / f"{stem}.onnx", storage)
        flat = write_flat(weights, folder / f"{stem}{FLAT_SUFFIX}", storage)
        kept = rounded(weights, storage)
        parity = compare(kept, onnx, boards)
        if not parity.holds:
            raise BgrlError(
                f"the exported net {kept.hash} ({storage}) differs from its source by "
                f"{max(parity.differences.values()):.1e} (allowed: below {TOLERANCE:g}), "
                f"and in its inputs on {parity.inputs_differ} positions; nothing was published"
            )
        parities[onnx.name] = parity
        stored[storage] = {
            "net": kept.hash,
            "files": [onnx.name, flat.name],
            "largest_difference": float(np.abs(FastNet(kept).evaluate(boards) - exact).max()),
        }
    write_golden(golden_vectors(weights, boards, levels), folder / f"{name}.golden.json")
    record = {
        "variant": weights.variant.name,
        "encoder": weights.encoder.name,
        "hidden": list(weights.hidden),
        "golden": f"{name}.golden.json",
        "stored": stored,
        "made": weights.made,
    }
    return parities, record


def _licence() -> str:
    """The licence that the package states."""
    stated = metadata("bgrl").get_all("License-Expression")
    return stated[0] if stated else "not stated"


def _refuse_foreign(folder: Path) -> None:
    """An export replaces its folder, so it must hold nothing but a bundle."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BgrlError(f"{folder} is a file, not a folder for an export")
    record = folder / BUNDLE_FILE
    files = [BUNDLE_FILE, *read_json(record)["files"]] if record.is_file() else []
    ours = {Path(name).parts[0] for name in files}
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if foreign:
        raise BgrlError(f"{folder} holds {foreign[0]}, which is no part of an export")
