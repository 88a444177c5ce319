"""run.json: what a run was started with, so that it can be understood and repeated."""

import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from bgrl.cli.compose import Launch
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import LOCK, atomic_write_json, exclusive, read_json

RUN_FILE = "run.json"
RUN_FORMAT, RUN_VERSION = "bgrl.run", 1
# Keys that change how fast a run goes but not what it makes, so a resumed run may have others.
FREE_KEYS = ("workers",)
ADVICE = "give this run another name, or delete that folder"


@contextmanager
def run_folder(
    folder: Path, launch: Launch, seed: int | None = None, read: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Work in a run folder, alone: makes it and its run.json, or adds this launch to the one there.

    folder: the run folder; launch: the composed command line; seed: the run's seed; read: hashes
    of what the run reads, by name. A run that fails before it has made anything leaves nothing.

    Raises BgrlError when another process works in the folder, or when it holds a run of another
    stage or config, or of other files than are there now, which the same command would not go on
    with; CorruptFile or SchemaMismatch when its run.json is unreadable.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with exclusive(folder):
            _record(folder, launch, seed, dict(read or {}))
            yield
    except BgrlError:
        if missing and {path.name for path in folder.iterdir()} <= {RUN_FILE, LOCK}:
            for name in (RUN_FILE, LOCK):
                (folder / name).unlink(missing_ok=True)
            for path in missing:
                path.rmdir()
        raise


def _record(folder: Path, launch: Launch, seed: int | None, read: dict[str, str]) -> None:
    path = folder / RUN_FILE
    this_launch = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "overrides": list(launch.overrides),
        "git": git_state(Path(__file__).resolve().parents[2]),
        "packages": {d.name: d.version for d in sorted(distributions(), key=lambda d: d.name)},
        "python": sys.version.split()[0],
        "platform": platform.platform(),
    }
    if path.exists():
        record = read_record(path)
        _check_same(folder, record, launch, read)
        record["launches"].append(this_launch)
    else:
        record = {
            "format": RUN_FORMAT,
            "version": RUN_VERSION,
            "stage": launch.stage,
            "config": launch.resolved,
            "seed": seed,
            "read": read,
            "launches": [this_launch],
        }
    atomic_write_json(path, record)


def read_record(path: Path) -> dict[str, Any]:
    """The content of a run.json.

    Raises SchemaMismatch when the file is something else or of another version, and CorruptFile
    when it lacks what every run.json has.
    """
    record = read_json(path)
    if not isinstance(record, dict) or (record.get("format"), record.get("version")) != (
        RUN_FORMAT,
        RUN_VERSION,
    ):
        raise SchemaMismatch(f"{path}: not {RUN_FORMAT} version {RUN_VERSION}")
    for key, kind in (("stage", str), ("config", dict), ("read", dict), ("launches", list)):
        if not isinstance(record.get(key), kind):
            raise CorruptFile(f"{path}: its {key} is {record.get(key)!r}")
    return record


def git_state(root: Path) -> dict[str, str] | None:
    """{"commit", "diff"} of the checkout at `root`, or None where there is none (a wheel)."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    try:
        if Path(git("rev-parse", "--show-toplevel").strip()) != root:
            return None
        return {"commit": git("rev-parse", "HEAD").strip(), "diff": git("diff", "HEAD")}
    except (OSError, subprocess.CalledProcessError):
        return None


def _check_same(folder: Path, record: dict[str, Any], launch: Launch, read: dict[str, str]) -> None:
    if record["stage"] != launch.stage:
        raise BgrlError(f"{folder} is a run of {record['stage']!r}, not of {launch.stage!r}")
    was, now = _flat(record["config"]), _flat(launch.resolved)
    for key in sorted(was.keys() | now.keys()):
        if key not in FREE_KEYS and was.get(key) != now.get(key):
            raise BgrlError(
                f"{folder} was started with {key}={was.get(key)}, not {now.get(key)}: {ADVICE}"
            )
    # The same path may hold something else by now, of which the run's record would not be true.
    for name in sorted(record["read"].keys() | read.keys()):
        before, after = record["read"].get(name), read.get(name)
        if before is None:
            raise BgrlError(f"{folder} was started without {name}, which is there now: {ADVICE}")
        if before != after:
            gone = "no longer there" if after is None else f"now {after[:12]}"
            raise BgrlError(
                f"{folder} was started with {name} {str(before)[:12]}, which is {gone}: {ADVICE}"
            )


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
