"""Files that are either whole or absent: written beside their place, then renamed into it.

A temporary name starts with `_tmp.`, which Parquet readers ignore; whatever a killed process leaves
under such a name is rubbish that anyone may delete.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard

from bgrl.errors import BgrlError, CorruptFile

TEMPORARY_PREFIX = "_tmp."
LOCK = ".lock"


def temporary_path(path: str | os.PathLike) -> Path:
    """The name beside `path` under which this process writes what will become `path`."""
    path = Path(path)
    return path.with_name(f"{TEMPORARY_PREFIX}{path.name}.{os.getpid()}")


def fsync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut (a no-op where folders can't be synced)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


@contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it becomes `path`, replacing what was there.

    For writers that need a file name of their own (Parquet, safetensors, ONNX). When the body
    raises, the temporary file is deleted and `path` is as it was; an OSError that names no file
    gets `path` as its file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # What fails to write, as on a full disk, does not say to which file.
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    fsync_folder(path.parent)


def atomic_write_bytes(path: str | os.PathLike, data: bytes) -> None:
    """Write `data` so that `path` holds either all of it or what it held before."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(data)


def atomic_write_json(path: str | os.PathLike, obj: Any) -> None:
    """Write `obj` as indented JSON, atomically. Raises ValueError for NaN and infinities."""
    text = json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False)
    atomic_write_bytes(path, (text + "\n").encode())


@contextmanager
def atomic_dir(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a new empty folder; at the end it becomes `path`, replacing a folder already there.

    When the body raises, the new folder is deleted and `path` is as it was. Replacing takes two
    renames, since a folder can't be renamed over a full one: between them `path` is absent.
    """
    path = Path(path)
    temporary = temporary_path(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        if path.exists():
            old = path.with_name(f"{TEMPORARY_PREFIX}old.{path.name}.{os.getpid()}")
            shutil.rmtree(old, ignore_errors=True)
            os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    fsync_folder(path.parent)


def remove_temporaries(folder: str | os.PathLike) -> list[Path]:
    """Delete what killed writers left directly inside `folder`; returns the paths deleted.

    Call it only where no other process is writing into `folder`.
    """
    leftovers = sorted(Path(folder).glob(f"{TEMPORARY_PREFIX}*"))
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return leftovers


@contextmanager
def exclusive(folder: str | os.PathLike) -> Iterator[None]:
    """Keep other processes that ask the same out of `folder` (made if absent) while the body runs.

    The lock goes with the process, however it ends. Raises BgrlError when another process holds it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "wb") as file:
        try:
            # Where there is no fcntl (Windows) nothing is locked.
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError as error:
            raise BgrlError(f"{folder} is in use by another process") from error
        yield


def sha256_file(path: str | os.PathLike) -> str:
    """The SHA-256 of a file's bytes as 64 hex digits. Raises BgrlError if it can't be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror}") from error


def read_json(path: str | os.PathLike) -> Any:
    """The content of a JSON file.

    Raises BgrlError when the file is absent or unreadable, and CorruptFile, with the line and
    column, when it is not JSON.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror}") from error
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptFile(f"{path}: not JSON: not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise CorruptFile(f"{path}: not JSON: {error.msg} at {where}") from error


def read_object(path: str | os.PathLike) -> dict[str, Any]:
    """The content of a JSON file that holds an object.

    Raises as :func:`read_json` does, and CorruptFile when it holds something else.
    """
    data = read_json(path)
    if not isinstance(data, dict):
        raise CorruptFile(f"{path}: not a JSON object")
    return data


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is an integer; true and false, which are ints to Python, are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that a float can hold; NaN and infinities, which Python
    reads, are none."""
    number = is_integer(value) or isinstance(value, float)
    return number and abs(value) <= sys.float_info.max


def shipped(name: str) -> Path:
    """The folder `name` ("configs", "checkpoints") that ships with bgrl, as an absolute path.

    A wheel carries it inside the package; in a checkout it stands beside the package.
    """
    package = Path(__file__).resolve().parent
    inside = package / "shipped" / name
    return inside if inside.is_dir() else package.parent / name
