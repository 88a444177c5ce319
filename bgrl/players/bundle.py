"""Bundles: levels and their nets as files for apps, read back and checked.

A bundle is a folder with ``bundle.json``, which names every other file with its size and SHA-256,
``levels.json``, each net as ONNX, as a flat file (:mod:`bgrl.nets.flat`) and with golden vectors,
and the bear-off database of its game (:mod:`bgrl.search.compact`).
:func:`bgrl.export.export_levels` writes one.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import read_json, sha256_file
from bgrl.game import Variant
from bgrl.nets import FastNet, Weights
from bgrl.nets.flat import read_flat
from bgrl.players.level import Level, level_player
from bgrl.players.net import NetPlayer
from bgrl.players.player import EquityPlayer
from bgrl.search.compact import CompactBearoff

FORMAT = "bgrl.bundle"
LEVELS_FORMAT = "bgrl.levels"
VERSION = 1
BUNDLE_FILE = "bundle.json"
LEVELS_FILE = "levels.json"
FLAT_SUFFIX = ".bgnet"


@dataclass(frozen=True)
class Bundle:
    """A whole bundle: its folder, its description, and its levels with the net of each and the one
    that prunes its search, if any."""

    folder: Path
    record: dict[str, Any]
    levels: dict[str, Level]
    nets: dict[str, str]
    pruners: dict[str, str | None]

    def weights(self, level: str) -> Weights:
        """The net of a level, from its flat file; raises BgrlError for an unknown level."""
        if level not in self.levels:
            known = ", ".join(self.levels)
            raise BgrlError(f"{self.folder} has no level {level!r}; it has {known}")
        return self._flat(self.nets[level])

    def pruner(self, level: str) -> Weights | None:
        """The net that prunes a level's search, likewise."""
        pruner = self.pruners[level]
        return self._flat(pruner) if pruner else None

    def _flat(self, net: str) -> Weights:
        return read_flat(self.folder / f"{net}{FLAT_SUFFIX}")

    def player(self, level: str, variant: Variant | None = None) -> EquityPlayer:
        """The player of a level; raises BgrlError if its net plays another variant."""
        weights = self.weights(level)
        if variant is not None and weights.variant != variant:
            raise BgrlError(
                f"{self.folder}: level {level} plays {weights.variant.name}, not {variant.name}"
            )
        pruner = self.pruner(level)
        return level_player(
            self.levels[level],
            FastNet(weights),
            self.bearoff(level),
            FastNet(pruner) if pruner else None,
        )

    def bearoff(self, level: str) -> CompactBearoff:
        """The bear-off database that a level looks into."""
        return CompactBearoff.load(self.folder / self.record["nets"][self.nets[level]]["bearoff"])


def load_exported(path: Path, variant: Variant | None = None) -> EquityPlayer:
    """The player of BUNDLE/LEVEL, of a bundle with one level, or of a flat net.

    Raises as :func:`open_bundle` and :func:`bgrl.nets.flat.read_flat` do, and BgrlError if several
    levels fit or the net plays another variant.
    """
    if path.suffix == FLAT_SUFFIX:
        weights = read_flat(path)
        if variant is not None and weights.variant != variant:
            raise BgrlError(f"{path}: the net plays {weights.variant.name}, not {variant.name}")
        return NetPlayer(FastNet(weights), path.stem)
    if not (path / BUNDLE_FILE).is_file():
        return open_bundle(path.parent).player(path.name, variant)
    bundle = open_bundle(path)
    if len(bundle.levels) > 1:
        raise BgrlError(f"{path} has several levels: {', '.join(bundle.levels)}; name one of them")
    return bundle.player(next(iter(bundle.levels)), variant)


def open_bundle(folder: str | os.PathLike) -> Bundle:
    """The bundle in ``folder``, every file of it checked against its size and SHA-256.

    Raises BgrlError if there is none, SchemaMismatch for another kind or version, CorruptFile,
    naming the file, for one that is missing, cut short, altered or malformed.
    """
    folder = Path(folder)
    if not (folder / BUNDLE_FILE).is_file():
        raise BgrlError(f"{folder} is no bundle: it has no {BUNDLE_FILE}")
    record = _checked(folder / BUNDLE_FILE, FORMAT)
    files = record.get("files")
    if not isinstance(files, dict) or LEVELS_FILE not in files:
        raise CorruptFile(f"{folder / BUNDLE_FILE}: does not name {LEVELS_FILE}")
    for name, facts in files.items():
        path = folder / name
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or not isinstance(facts, dict):
            raise CorruptFile(f"{folder / BUNDLE_FILE}: {name!r} is no file of a bundle")
        if not path.is_file():
            raise CorruptFile(f"{path}: missing from the bundle")
        size = path.stat().st_size
        if size != facts.get("bytes"):
            raise CorruptFile(f"{path}: has {size:,} bytes, not {facts.get('bytes')}")
        if sha256_file(path) != facts.get("sha256"):
            raise CorruptFile(f"{path}: its SHA-256 is not the one in {BUNDLE_FILE}")
    where = folder / LEVELS_FILE
    entries = _checked(where, LEVELS_FORMAT).get("levels")
    if not isinstance(entries, list) or not entries:
        raise CorruptFile(f"{where}: holds no levels")
    levels = [Level.from_json(entry, str(where)) for entry in entries]
    nets = {level.name: str(entry.get("net")) for level, entry in zip(levels, entries, strict=True)}
    pruners = {
        level.name: None if level.keep is None else str(entry.get("pruner"))
        for level, entry in zip(levels, entries, strict=True)
    }
    described = record.get("nets")
    for net in [*nets.values(), *filter(None, pruners.values())]:
        if f"{net}{FLAT_SUFFIX}" not in files or not isinstance(described, dict):
            raise CorruptFile(f"{where}: names the net {net}, which {BUNDLE_FILE} does not")
        facts = described.get(net)
        if not isinstance(facts, dict) or facts.get("bearoff") not in files:
            raise CorruptFile(
                f"{folder / BUNDLE_FILE}: names no bear-off database for the net {net}"
            )
    return Bundle(folder, record, {level.name: level for level in levels}, nets, pruners)


def _checked(path: Path, wanted: str) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or record.get("format") != wanted:
        raise SchemaMismatch(f"{path}: its format is not {wanted!r}")
    if record.get("version") != VERSION:
        raise SchemaMismatch(
            f"{path} has version {record.get('version')!r}; this bgrl reads {VERSION}"
        )
    return record
