"""Generations: a folder of shards that is complete once its manifest is there.

``gen-0003/part-00000.parquet … manifest.json``. The manifest lists every shard with its rows, games
and SHA-256, and is renamed into place last.
"""

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bgrl.data.schema import NAME, SUFFIX, VERSION
from bgrl.data.shards import Shard, open_shard
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import atomic_write_json, read_json, sha256_file

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why, as one line that names it."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Generation:
    """The usable shards of one generation, and what was left out."""

    folder: Path
    shards: tuple[Shard, ...]
    skipped: tuple[Skipped, ...]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def games(self) -> int:
        return sum(shard.games for shard in self.shards)

    @property
    def truncated_games(self) -> int:
        return sum(shard.truncated_games for shard in self.shards)


def publish_generation(
    folder: str | os.PathLike, names: Collection[str] | None = None
) -> Generation:
    """Write the manifest of the shards in `folder`, which makes them a complete generation.

    names: the files that it is made of, all of which must be there; None takes every whole shard.
    What is left out is named in a warning. Raises BgrlError when there is no shard, and as
    :func:`open_shard` does for one of `names`.
    """
    folder = Path(folder)
    shards, skipped = [], []
    for path in _entries(folder) if names is None else sorted(folder / name for name in names):
        try:
            shards.append(open_shard(path))
        except BgrlError as error:
            if names is not None:
                raise
            skipped.append(_skip(path, str(error)))
    if not shards:
        raise BgrlError(f"{folder}: no shard to publish")
    if names is not None:
        for path in _entries(folder):
            if path.name not in names:
                skipped.append(_skip(path, f"{path}: not of this generation"))
    generation = Generation(folder, tuple(shards), tuple(skipped))
    manifest = {
        "schema": NAME,
        "version": VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": generation.rows,
        "games": generation.games,
        "truncated_games": generation.truncated_games,
        "files": [
            {
                "name": shard.path.name,
                "rows": shard.rows,
                "games": shard.games,
                "bytes": shard.path.stat().st_size,
                "sha256": sha256_file(shard.path),
            }
            for shard in shards
        ],
    }
    atomic_write_json(folder / MANIFEST, manifest)
    return generation


def is_complete(folder: str | os.PathLike) -> bool:
    """Whether `folder` has been published."""
    return (Path(folder) / MANIFEST).is_file()


def open_generation(folder: str | os.PathLike, verify: bool = True) -> Generation:
    """The shards that the manifest of `folder` lists and that are as it says.

    A file that is missing, foreign, cut short, of another schema or not the one that was listed is
    named in a warning, left out, and kept in `skipped`. verify: compare SHA-256 hashes too, which
    reads every byte.

    Raises BgrlError when there is no manifest (the generation is unfinished), CorruptFile or
    SchemaMismatch when the manifest itself is unusable.
    """
    folder = Path(folder)
    if not is_complete(folder):
        raise BgrlError(f"{folder}: no {MANIFEST}: not a finished generation")
    listed = _listed(folder / MANIFEST)
    shards, skipped = [], []
    for name, entry in listed.items():
        path = folder / name
        try:
            if path.is_file() and path.stat().st_size != entry["bytes"]:
                size = path.stat().st_size
                raise CorruptFile(f"{path}: {size} bytes, its manifest says {entry['bytes']}")
            if verify and sha256_file(path) != entry["sha256"]:
                raise CorruptFile(f"{path}: its SHA-256 is not the manifest's")
            shards.append(open_shard(path))
        except BgrlError as error:
            skipped.append(_skip(path, str(error)))
    for path in _entries(folder):
        if path.name not in listed:
            skipped.append(_skip(path, f"{path}: not in {MANIFEST}"))
    return Generation(folder, tuple(shards), tuple(skipped))


def _listed(path: Path) -> dict[str, dict]:
    manifest = read_json(path)
    try:
        schema, version = manifest["schema"], manifest["version"]
        if (schema, version) != (NAME, VERSION):
            raise SchemaMismatch(
                f"{path}: schema {schema} version {version}, expected {NAME} version {VERSION}"
            )
        files = {
            str(f["name"]): {"bytes": int(f["bytes"]), "sha256": f["sha256"]}
            for f in manifest["files"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path}: not a manifest: {type(error).__name__} {error}") from error
    # A name from a file must not lead outside the folder.
    for name in files:
        if Path(name).name != name:
            raise CorruptFile(f"{path}: bad file name {name!r}")
    return files


def _entries(folder: Path) -> list[Path]:
    """What is in `folder` beside its manifest, in the order of names."""
    if not folder.is_dir():
        raise BgrlError(f"{folder}: no such folder")
    return sorted(path for path in folder.iterdir() if path.name != MANIFEST)


def _skip(path: Path, reason: str) -> Skipped:
    log.warning("left out: %s", reason)
    return Skipped(path, reason)


def shard_path(folder: str | os.PathLike, part: int) -> Path:
    """Where part number `part` of a generation goes."""
    return Path(folder) / f"part-{part:05d}{SUFFIX}"
