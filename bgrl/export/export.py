"""From nets to a bundle for apps, compared with their sources before it is published."""

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import BgrlError
from bgrl.export.coreml import run_coreml, write_coreml
from bgrl.export.golden import bearoff_golden, golden_vectors, write_golden
from bgrl.export.onnx import write_onnx
from bgrl.export.parity import Parity, compare, largest_differences, tolerance
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
from bgrl.players.style import STYLES
from bgrl.search import Bearoff
from bgrl.search.compact import SUFFIX as BEAROFF_SUFFIX
from bgrl.search.compact import CompactBearoff, write_compact

COREML_SUFFIX = ".mlpackage"
SMALLER_SUFFIX = ".small"
SCHEMA_FOLDER = "schemas"


@dataclass(frozen=True)
class Export:
    """A published bundle, and what the comparisons found.

    parities: by the name of the ONNX file. coreml: by the name of the package, the largest
    difference of a probability; None where Core ML could not be run.
    """

    folder: Path
    parities: dict[str, Parity]
    coreml: dict[str, float | None]

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
        for name, difference in self.coreml.items():
            found = "not run, which takes macOS" if difference is None else f"{difference:.1e}"
            lines.append(f"{name}: numba and Core ML: {found}")
        return "\n".join(lines)


def export_net(
    weights: Weights, folder: str | os.PathLike, positions: int = 1000, seed: int = 1
) -> Export:
    """:func:`export_levels` for one net that always plays its best, as the level ``net``."""
    return export_levels([(Level("net"), weights)], folder, positions, seed)


@dataclass(frozen=True)
class Loss:
    """What a stored net loses against the full one, in points a game, with its standard error."""

    points_a_game: float
    standard_error: float
    games: int
    seed: int


def export_levels(
    levels: Sequence[tuple[Level, Weights]],
    folder: str | os.PathLike,
    positions: int = 1000,
    seed: int = 1,
    coreml: bool = False,
    smaller: Mapping[str, Weights] | None = None,
    pruners: Mapping[str, Weights] | None = None,
) -> Export:
    """Publish levels and their nets as the bundle ``folder``, replacing a bundle that is there.

    Each net is named after the first level that plays as it does by itself, else the first that has
    it. It comes as ONNX and as a flat file, its weights stored as float32, float16 and int8, with
    golden vectors and the bear-off database of its game, and if ``coreml`` is true as a Core ML
    package. ``pruners``: by the name of each level that has one, the net that prunes its search.
    ``smaller``: by the name of a level, a further net that an app may take for the level's own, as
    it may take the pruner. These come in the same files. Every ONNX file is first compared with
    torch and the numba twin, on ``positions`` positions of games and on constructed ones that put
    every count on every slot, and so is the package where it can be run: on macOS.

    Raises BgrlError, and publishes nothing, if they differ by more than rounding, if ``positions``
    is not positive, if two levels share a name, if a level lacks its pruner, if a pruner or a
    smaller net is for no level or another game, or if ``folder`` holds anything but a bundle;
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
    pruners = pruners or {}
    sources = _nets(levels, smaller or {}, pruners)
    net_names = {source.weights.hash: source.name for source in reversed(sources)}
    pruner_names = {name: net_names[weights.hash] for name, weights in pruners.items()}
    parities: dict[str, Parity] = {}
    coreml_found: dict[str, float | None] = {}
    nets: dict[str, dict[str, Any]] = {}
    with atomic_dir(folder) as beside:
        for source in sources:
            bearoff = _write_bearoff(beside, source.weights.variant.checkers)
            found, record = _write_net(source, bearoff, beside, positions, seed)
            if coreml:
                package = f"{source.name}{COREML_SUFFIX}"
                write_coreml(source.weights, beside / package)
                coreml_found[package] = _coreml_difference(
                    beside / package, source.weights, positions, seed
                )
                record["coreml"] = package
            parities |= found
            nets[source.name] = record
        atomic_write_json(
            beside / LEVELS_FILE,
            {
                "format": LEVELS_FORMAT,
                "version": VERSION,
                "levels": [
                    level.to_json()
                    | {"net": net_names[weights.hash], "pruner": pruner_names.get(level.name)}
                    for level, weights in levels
                ],
                "styles": [asdict(style) for style in STYLES.values()],
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
    return Export(folder, parities, coreml_found)


def record_losses(folder: str | os.PathLike, losses: Mapping[tuple[str, str], Loss]) -> None:
    """Write what was measured into a bundle's description, by (net, how it is stored)."""
    path = Path(folder) / BUNDLE_FILE
    record = read_json(path)
    for (net, storage), loss in losses.items():
        record["nets"][net]["stored"][storage]["loss"] = asdict(loss)
    atomic_write_json(path, record)


@dataclass(frozen=True)
class _Source:
    """A net to write: its name, the levels that play it, each with what prunes its search, and the
    net that it is smaller than."""

    name: str
    weights: Weights
    levels: list[tuple[Level, FastNet | None]]
    smaller_than: str | None


def _nets(
    levels: Sequence[tuple[Level, Weights]],
    smaller: Mapping[str, Weights],
    pruners: Mapping[str, Weights],
) -> list[_Source]:
    """The nets of a bundle, each once."""
    playing: dict[str, list[tuple[Level, FastNet | None]]] = {}
    for level, weights in levels:
        pruner = pruners.get(level.name)
        level.check_pruner(pruner)
        small = FastNet(pruner) if pruner else None
        playing.setdefault(weights.hash, []).append((level, small))
    sources: dict[str, _Source] = {}
    for _, weights in levels:
        users = playing[weights.hash]
        named = next((level for level, _ in users if level.plain), users[0][0])
        sources.setdefault(weights.hash, _Source(named.name, weights, users, None))
    by_level = {level.name: sources[weights.hash] for level, weights in levels}
    smaller_sources: dict[str, _Source] = {}
    new = [(name, weights) for name, weights in pruners.items() if weights.hash not in sources]
    for level_name, weights in [*new, *smaller.items()]:
        if level_name not in by_level:
            raise BgrlError(f"a smaller net is for level {level_name!r}, which is not exported")
        full = by_level[level_name]
        if full.weights.variant != weights.variant:
            raise BgrlError(
                f"the smaller net for level {level_name} plays {weights.variant.name}, not "
                f"{full.weights.variant.name}"
            )
        known = smaller_sources.get(full.name)
        if known and known.weights.hash == weights.hash:
            continue
        if weights.hash in sources or known:
            raise BgrlError(f"level {level_name}: its net has a smaller one already, or is that")
        smaller_sources[full.name] = _Source(f"{full.name}{SMALLER_SUFFIX}", weights, [], full.name)
    return [*sources.values(), *smaller_sources.values()]


def _write_bearoff(folder: Path, checkers: int) -> CompactBearoff:
    """Write the database of games with so many checkers a side, and its golden vectors."""
    path = folder / f"bearoff-{checkers}{BEAROFF_SUFFIX}"
    if path.is_file():
        return CompactBearoff.load(path)
    bearoff = CompactBearoff.load(write_compact(path, checkers))
    golden = bearoff_golden(bearoff, checkers, path.name)
    write_golden(golden, folder / f"bearoff-{checkers}.golden.json")
    return bearoff


def _write_net(
    source: _Source, bearoff: Bearoff, folder: Path, positions: int, seed: int
) -> tuple[dict[str, Parity], dict[str, Any]]:
    """Write the files of a net.

    Returns the parities by ONNX file and the bundle's record of the net.
    """
    name, weights = source.name, source.weights
    boards = _boards(weights, positions, seed)
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
                f"{max(parity.differences.values()):.1e} at most, by more than is allowed "
                f"{parity.too_far} times, and in its inputs on {parity.inputs_differ} positions; "
                "nothing was published"
            )
        parities[onnx.name] = parity
        stored[storage] = {
            "net": kept.hash,
            "files": [onnx.name, flat.name],
            "largest_difference": float(np.abs(FastNet(kept).evaluate(boards) - exact).max()),
            "loss": None,
        }
    golden = golden_vectors(weights, boards, source.levels, bearoff)
    write_golden(golden, folder / f"{name}.golden.json")
    record = {
        "variant": weights.variant.name,
        "points": list(weights.variant.points),
        "encoder": weights.encoder.name,
        "hidden": list(weights.hidden),
        "products": weights.products,
        "smaller_than": source.smaller_than,
        "golden": f"{name}.golden.json",
        "bearoff": bearoff.folder.name,
        "stored": stored,
        "made": weights.made,
    }
    return parities, record


def _boards(weights: Weights, positions: int, seed: int) -> np.ndarray:
    """The positions int8[N, 2, 26] that files are compared on."""
    sampled = sampled_positions(FastNet(weights), positions, seed)
    return np.concatenate([sampled, constructed_positions(weights.variant, seed)])


def _coreml_difference(package: Path, weights: Weights, positions: int, seed: int) -> float | None:
    boards = _boards(weights, positions, seed)
    found = run_coreml(package, boards)
    if found is None:
        return None
    apart = largest_differences(found, FastNet(weights).evaluate(boards))
    if (apart >= tolerance(boards)).any():
        raise BgrlError(
            f"the Core ML package of net {weights.hash} differs from it by {apart.max():.1e}, "
            "more than is allowed; nothing was published"
        )
    return float(apart.max())


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
