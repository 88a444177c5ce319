"""One-sided bear-off databases as one small file, for apps.

A file holds, for every way to have up to so many checkers in one's home, the chances to need so
many rolls for bearing all of them off, and, for homes of all the checkers, for bearing off the
first: gammons hang on nothing else. Chances are in 65535ths, and each home's add up to 65535. That
costs 3e-5 in a chance to win, where playing each side on its own costs .0009 in the mean
(:mod:`bgrl.search.bearoff`). With 15 checkers it takes 1.1 MB in place of 14 MB.

Everything is little-endian. With c checkers, N = C(c + 6, 6) homes of up to c checkers, the last
M = C(c + 5, 5) of which are those of exactly c, and R = N + M runs of chances:

    offset       type        content
    0            8 bytes     the letters BGRLOFF and a zero byte
    8            uint32      version of this layout: 1
    12           uint32      c
    16           uint8[R]    the number of rolls that each run begins with
    16 + R       uint8[R]    how many chances it has
    16 + 2 R     uint16[...] the runs' chances, one run after the other
                 32 bytes    SHA-256 of all before

Run i < N belongs to home number i and all of its checkers; run N + j to home number N - M + j and
the first of them. The chance of run i for t rolls is its number t - (what it begins with), counted
from 0, and 0 outside.

The number of a home: with s[k] the checkers on points 7 - k and above (s[1] on the 6 point, s[6] on
all six), the sum of C(s[k] + k - 1, k) for k = 1 to 6.
"""

import hashlib
import math
import os
import struct
from pathlib import Path

import numpy as np

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import atomic_write_bytes
from bgrl.game.board import HOME
from bgrl.search.bearoff import (
    CUBES,
    MAX_ROLLS,
    Bearoff,
    BearoffArrays,
    build_one_sided,
    positions_of,
)

MAGIC = b"BGRLOFF\0"
VERSION = 1
SUFFIX = ".bgoff"
WHOLE = 65535
_HEADER = struct.Struct("<8sII")
_CHECKSUM = 32
_MOST_CHECKERS = 15


class CompactBearoff(Bearoff):
    """The databases of one file; they have no two-sided table. Pickles as the file's name."""

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "CompactBearoff":
        """The databases of the file ``folder``.

        Raises BgrlError if it can't be read, SchemaMismatch if it is of another kind or version,
        CorruptFile if it is cut short or altered.
        """
        path = Path(folder)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BgrlError(f"cannot read {path}: {error.strerror}") from error
        if data[: len(MAGIC)] != MAGIC:
            raise SchemaMismatch(f"{path} is no bear-off database: it does not start with BGRLOFF")
        if len(data) < _HEADER.size + _CHECKSUM:
            raise CorruptFile(f"{path}: cut short: {len(data)} bytes")
        _, version, checkers = _HEADER.unpack_from(data)
        if version != VERSION:
            raise SchemaMismatch(f"{path} has version {version}; this bgrl reads {VERSION}")
        if hashlib.sha256(data[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
            raise CorruptFile(
                f"{path}: cut short or altered: its SHA-256 is not the one at its end"
            )
        if not 1 <= checkers <= _MOST_CHECKERS:
            raise CorruptFile(f"{path}: is for {checkers} checkers, not 1 to {_MOST_CHECKERS}")
        n, full = positions_of(checkers), _full_homes(checkers)
        runs = n + full
        start = _HEADER.size + 2 * runs
        if len(data) < start + _CHECKSUM:
            raise CorruptFile(f"{path}: cut short: {len(data)} bytes")
        begins = np.frombuffer(data, np.uint8, runs, _HEADER.size).astype(np.int64)
        lengths = np.frombuffer(data, np.uint8, runs, _HEADER.size + runs).astype(np.int64)
        values = np.frombuffer(data[:-_CHECKSUM], "<u2", offset=start)
        if len(values) != lengths.sum() or (begins + lengths > MAX_ROLLS).any():
            raise CorruptFile(f"{path}: its runs of chances do not fit its size")
        chances = np.zeros((runs, MAX_ROLLS), np.float32)
        rows = np.repeat(np.arange(runs), lengths)
        within = np.arange(len(values)) - np.repeat(lengths.cumsum() - lengths, lengths)
        chances[rows, np.repeat(begins, lengths) + within] = values / np.float32(WHOLE)
        # Of homes with fewer checkers the first one off is not known, and never asked for.
        first_off = np.zeros((n, MAX_ROLLS), np.float32)
        first_off[n - full :] = chances[n:]
        arrays = BearoffArrays(
            np.ascontiguousarray(chances[:n]), first_off, np.empty((len(CUBES), 0, 0), np.float32)
        )
        for array in arrays:
            array.flags.writeable = False
        description = {"checkers": checkers, "sha256": data[-_CHECKSUM:].hex()}
        return cls(arrays, description, path.absolute())

    @property
    def hash(self) -> str:
        """12 hex digits of the SHA-256 at the file's end: the databases' name."""
        return self.description["sha256"][:12]


def write_compact(path: str | os.PathLike, checkers: int = 15) -> Path:
    """Build the one-sided database of ``checkers`` (1 to 15) and publish it as one file.

    Raises BgrlError for another number.
    """
    if not 1 <= checkers <= _MOST_CHECKERS:
        raise BgrlError(f"a bear-off database has 1 to {_MOST_CHECKERS} checkers, not {checkers}")
    all_off, first_off = build_one_sided(checkers)
    chances = _whole(np.concatenate([all_off, first_off[-_full_homes(checkers) :]]))
    some = chances > 0
    begins = some.argmax(axis=1)
    lengths = MAX_ROLLS - some[:, ::-1].argmax(axis=1) - begins
    rolls = np.arange(MAX_ROLLS)
    inside = (rolls >= begins[:, None]) & (rolls < (begins + lengths)[:, None])
    data = b"".join(
        (
            _HEADER.pack(MAGIC, VERSION, checkers),
            begins.astype(np.uint8).tobytes(),
            lengths.astype(np.uint8).tobytes(),
            chances[inside].astype("<u2").tobytes(),
        )
    )
    atomic_write_bytes(path, data + hashlib.sha256(data).digest())
    return Path(path)


def _full_homes(checkers: int) -> int:
    """How many homes hold exactly ``checkers``."""
    return math.comb(checkers + HOME - 1, HOME - 1)


def _whole(chances: np.ndarray) -> np.ndarray:
    """Each row of ``chances`` float32[N, T] in 65535ths int64[N, T] that add up to 65535.

    Rounded down, and the largest remainders up.
    """
    exact = chances.astype(np.float64)
    exact *= WHOLE / exact.sum(axis=1, keepdims=True)
    down = np.floor(exact).astype(np.int64)
    missing = WHOLE - down.sum(axis=1)
    order = np.argsort(down - exact, axis=1, kind="stable")
    down += np.argsort(order, axis=1, kind="stable") < missing[:, None]
    return down
