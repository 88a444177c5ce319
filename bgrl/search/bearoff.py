"""Bear-off databases: how many rolls a side needs, and exact equities of short races.

One-sided: for every way to have up to so many checkers in one's home, the distribution of the
number of rolls that bear all of them off, by the plays that make its mean least, and that of the
rolls until the first one is off, by the plays that make *that* mean least. Two sides that race
each play on their own, so chances to win and to win a gammon follow from two rows. That is not
exact, since a side that is behind would take chances that cost it rolls on average: where the
two-sided table can tell, the chance to win is off by .0009 in the mean and .014 at most.

Two-sided: for up to so many checkers a side, the exact equity of the player on roll in points of
the present cube, without a cube and with the cube where it may stand.

A home's checkers are numbered so that every movement lowers the number: with s[k] the checkers on
points 7 - k and above, the sum of C(s[k] + k - 1, k) for k = 1 to 6, a combinatorial number system
(Knuth, The Art of Computer Programming, 7.2.1.3). Homes of fewer checkers come first, so that a
database of n checkers begins with that of n - 1.
"""

import hashlib
import math
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import atomic_dir, atomic_write_json, read_json, sha256_file, temporary_path
from bgrl.game.board import HOME, OFF, SLOTS, loss_level
from bgrl.game.dice import ROLLS
from bgrl.game.outcomes import clamp_to, loss_into
from bgrl.game.plays import generate_plays, new_play_buffer
from bgrl.nets.kernels import lean

FORMAT = "bgrl.bearoff"
VERSION = 1
DESCRIPTION_FILE = "bearoff.json"
DEFAULT_FOLDER = Path("data") / "bearoff"
MAX_ROLLS = 32  # columns of a distribution: 15 checkers on the 6 point never need more than 30

# What the cube does in each of a two-sided database's tables, for the player on roll.
NO_CUBE, CENTRED, OWNED, OPPONENTS = range(4)
CUBES = ("none", "centred", "owned", "opponent's")

_CHOOSE = np.array([[math.comb(n, k) for k in range(HOME + 1)] for n in range(32)], np.int64)


def positions_of(checkers: int) -> int:
    """How many homes hold up to ``checkers``: C(checkers + 6, 6)."""
    return math.comb(checkers + HOME, HOME)


@njit(cache=True, inline="always")
def home_index(board, side):
    """The number of the checkers that ``side`` has in its home on ``board`` (int8[2, 26])."""
    index = 0
    behind = 0
    for k in range(1, HOME + 1):
        behind += board[side, HOME + 1 - k]
        index += _CHOOSE[behind + k - 1, k]
    return index


@njit(cache=True)
def home_counts(index, row):
    """Write into ``row`` (int8[>= 7], point 0 is left alone) the home whose number is ``index``."""
    above = 0
    for k in range(HOME, 0, -1):
        behind = 0
        while _CHOOSE[behind + k, k] <= index:
            behind += 1
        index -= _CHOOSE[behind + k - 1, k]
        if k < HOME:
            row[HOME - k] = above - behind
        above = behind
    row[HOME] = above


@njit(cache=True)
def _successors(rolls, n, firsts, found, plays):
    """Every home that each roll leads to: those of (index, roll) are
    ``found[firsts[index * 21 + roll] : firsts[index * 21 + roll + 1]]``, none for index 0.
    Counts only, if ``found`` is too short. Returns their number."""
    board = np.zeros((2, SLOTS), np.int8)
    count = 0
    for index in range(n):
        home_counts(index, board[0])
        for r in range(rolls.shape[0]):
            firsts[index * rolls.shape[0] + r] = count
            m = generate_plays(board, rolls[r, 0], rolls[r, 1], plays)
            if count + m <= found.shape[0]:
                for p in range(m):
                    for i in range(0, 8, 2):
                        if plays[p, i] >= 0:
                            board[0, plays[p, i]] -= 1
                            board[0, plays[p, i + 1]] += 1
                    found[count + p] = home_index(board, 0)
                    for i in range(0, 8, 2):
                        if plays[p, i] >= 0:
                            board[0, plays[p, i]] += 1
                            board[0, plays[p, i + 1]] -= 1
            count += m
    firsts[n * rolls.shape[0]] = count
    return count


def _all_successors(checkers: int) -> tuple[np.ndarray, np.ndarray]:
    n = positions_of(checkers)
    plays = new_play_buffer()
    firsts = np.empty(n * len(ROLLS) + 1, np.int64)
    count = _successors(ROLLS, n, firsts, np.empty(0, np.int32), plays)
    found = np.empty(count, np.int32)
    _successors(ROLLS, n, firsts, found, plays)
    return firsts, found


@njit(cache=True)
def _one_sided(rolls, firsts, found, totals, distribution, first_off):
    n = distribution.shape[0]
    mean = np.zeros(n)
    mean_first = np.zeros(n)
    distribution[0, 0] = 1.0
    first_off[0, 0] = 1.0
    for index in range(1, n):
        for r in range(rolls.shape[0]):
            best = -1
            best_first = -1
            off = False
            for s in range(firsts[index * 21 + r], firsts[index * 21 + r + 1]):
                after = found[s]
                if best < 0 or mean[after] < mean[best]:
                    best = after
                if totals[after] < totals[index]:
                    off = True
                elif best_first < 0 or mean_first[after] < mean_first[best_first]:
                    best_first = after
            share = rolls[r, 2] / 36.0
            for t in range(distribution.shape[1] - 1):
                distribution[index, t + 1] += share * distribution[best, t]
            if off:
                first_off[index, 1] += share
            else:
                for t in range(distribution.shape[1] - 1):
                    first_off[index, t + 1] += share * first_off[best_first, t]
        for t in range(distribution.shape[1]):
            mean[index] += t * distribution[index, t]
            mean_first[index] += t * first_off[index, t]


def build_one_sided(checkers: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """(all off, first off), each float32[C(checkers + 6, 6), 32].

    Row i, column t: the chance that home number i needs exactly t rolls to bear off all its
    checkers, and the first of them. The empty home needs none.
    """
    firsts, found = _all_successors(checkers)
    totals = _totals(checkers)
    shape = (len(totals), MAX_ROLLS)
    distribution, first_off = np.zeros(shape), np.zeros(shape)
    _one_sided(ROLLS, firsts, found, totals, distribution, first_off)
    return distribution.astype(np.float32), first_off.astype(np.float32)


def _totals(checkers: int) -> np.ndarray:
    """The number of checkers of each home."""
    sizes = [math.comb(total + HOME - 1, HOME - 1) for total in range(checkers + 1)]
    return np.repeat(np.arange(checkers + 1), sizes)


@njit(cache=True)
def _two_sided(rolls, firsts, found, equities):
    n = equities.shape[1]
    equities[:, :, 0] = -1.0  # the opponent has just borne off the last checker
    equities[:, 0, 1:] = 1.0
    # A roll lowers the mover's number, so in order of the sum all that is needed is there.
    for total in range(2, 2 * n - 1):
        for mine in range(max(1, total - n + 1), min(total, n)):
            theirs = total - mine
            none = 0.0
            centred = 0.0
            owned = 0.0
            away = 0.0
            for r in range(rolls.shape[0]):
                best_none = -2.0
                best_centred = -2.0
                best_owned = -2.0
                best_away = -2.0
                for s in range(firsts[mine * 21 + r], firsts[mine * 21 + r + 1]):
                    after = found[s]
                    best_none = max(best_none, -equities[0, theirs, after])
                    best_owned = max(best_owned, -equities[3, theirs, after])
                    # Doubling gives the cube away at twice the stake, or wins a point.
                    doubled = min(1.0, 2.0 * equities[3, theirs, after])
                    best_centred = max(best_centred, -max(equities[1, theirs, after], doubled))
                    best_away = max(best_away, -max(equities[2, theirs, after], doubled))
                ways = rolls[r, 2] / 36.0
                none += ways * best_none
                centred += ways * best_centred
                owned += ways * best_owned
                away += ways * best_away
            equities[0, mine, theirs] = none
            equities[1, mine, theirs] = centred
            equities[2, mine, theirs] = owned
            equities[3, mine, theirs] = away


def build_two_sided(checkers: int = 6) -> np.ndarray:
    """float32[4, n, n] with n = C(checkers + 6, 6): the equity of the player on roll.

    First index: NO_CUBE, CENTRED, OWNED (by the player on roll), OPPONENTS; then the number of the
    own home and of the opponent's. In points of the present cube, of money play without gammons,
    if the player on roll rolls at once. Later doubles, passes and plays are all the best for where
    the cube stands. To double now is worth min(1, 2 * OPPONENTS).
    """
    firsts, found = _all_successors(checkers)
    n = positions_of(checkers)
    equities = np.zeros((4, n, n))
    _two_sided(ROLLS, firsts, found, equities)
    return equities.astype(np.float32)


class BearoffArrays(NamedTuple):
    """What the kernels need of the databases; all read-only."""

    all_off: np.ndarray  # float32[N, 32], see build_one_sided
    first_off: np.ndarray  # float32[N, 32]
    equities: np.ndarray  # float32[4, M, M], see build_two_sided


def _nothing() -> BearoffArrays:
    """Databases that know no position, of the type of those on disk."""
    arrays = BearoffArrays(
        np.empty((0, MAX_ROLLS), np.float32),
        np.empty((0, MAX_ROLLS), np.float32),
        np.empty((len(CUBES), 0, 0), np.float32),
    )
    for array in arrays:
        array.flags.writeable = False
    return arrays


NO_BEAROFF = _nothing()


@lean
def in_database(db, board):
    """Whether ``db`` knows ``board`` (int8[2, 26]): both sides home, with few enough checkers."""
    n = db.all_off.shape[0]
    if n == 0:
        return False
    for slot in range(HOME + 1, SLOTS):
        if board[0, slot] > 0 or board[1, slot] > 0:
            return False
    return home_index(board, 0) < n and home_index(board, 1) < n


@lean
def bearoff_into(db, board, out):
    """The five probabilities of ``board`` into ``out`` (float32[5]), if :func:`in_database`.

    Exact where the two-sided table reaches and no gammon is possible; otherwise each side plays on
    its own. A player on roll who has just lost gets that certain loss.
    """
    mine = home_index(board, 0)
    theirs = home_index(board, 1)
    if theirs == 0:
        loss_into(loss_level(board), out, 0)
        return
    out[1:] = 0.0
    if board[0, OFF] > 0 and board[1, OFF] > 0:
        m = db.equities.shape[1]
        if mine < m and theirs < m:
            out[0] = np.float32(0.5) + np.float32(0.5) * db.equities[NO_CUBE, mine, theirs]
            return
    win = np.float32(0.0)
    win_gammon = np.float32(0.0)
    lose_gammon = np.float32(0.0)
    not_off = np.float32(0.0)  # the chance that the opponent needs t rolls or more
    none_off = np.float32(0.0)  # that none of the opponent's is off before the t-th
    mine_none_off = np.float32(0.0)  # that none of mine is off after t rolls
    for t in range(MAX_ROLLS - 1, 0, -1):
        not_off += db.all_off[theirs, t]
        win += db.all_off[mine, t] * not_off
        none_off += db.first_off[theirs, t]
        win_gammon += db.all_off[mine, t] * none_off
        lose_gammon += db.all_off[theirs, t] * mine_none_off
        mine_none_off += db.first_off[mine, t]
    out[0] = win
    out[1] = win_gammon
    out[3] = lose_gammon
    clamp_to(out, 0, (1 if board[1, OFF] == 0 else 0) | (4 if board[0, OFF] == 0 else 0))


@njit(cache=True, nogil=True)
def _evaluate(db, boards, out):
    for i in range(boards.shape[0]):
        if in_database(db, boards[i]):
            bearoff_into(db, boards[i], out[i])
        else:
            out[i] = np.nan


class Bearoff:
    """The databases of one folder, memory-mapped. Pickles as the folder's name."""

    def __init__(self, arrays: BearoffArrays, description: dict, folder: Path):
        self.arrays = arrays
        self.description = description
        self.folder = folder

    def __reduce__(self) -> tuple:
        return type(self).load, (self.folder,)

    @classmethod
    def open(cls, folder: str | os.PathLike = DEFAULT_FOLDER) -> "Bearoff":
        """The databases in ``folder``; built there first, in a few seconds, if it is absent."""
        folder = Path(folder)
        if not folder.exists():
            beside = build(temporary_path(folder))
            try:
                os.rename(beside, folder)
            except OSError:  # another process has been faster, and may be reading already
                shutil.rmtree(beside)
        return cls.load(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Bearoff":
        """The databases in ``folder``.

        Raises BgrlError if there are none, SchemaMismatch if they are of another kind or version,
        CorruptFile if a file is not the one described.
        """
        folder = Path(folder)
        path = folder / DESCRIPTION_FILE
        if not path.is_file():
            raise BgrlError(f"{folder} holds no bear-off databases: it has no {DESCRIPTION_FILE}")
        description = read_json(path)
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise SchemaMismatch(f"{path} does not describe bear-off databases")
        if description.get("version") != VERSION:
            raise SchemaMismatch(
                f"{path} has version {description.get('version')!r}; this bgrl reads {VERSION}"
            )
        arrays = {}
        for name in BearoffArrays._fields:
            file = folder / f"{name}.npy"
            if sha256_file(file) != description.get("sha256", {}).get(name):
                raise CorruptFile(f"{file} is not the file that {DESCRIPTION_FILE} describes")
            arrays[name] = np.load(file, mmap_mode="r", allow_pickle=False)
        return cls(BearoffArrays(**arrays), description, folder.absolute())

    @property
    def hash(self) -> str:
        """12 hex digits of the SHA-256 of the databases' files: their name."""
        digests = (self.description["sha256"][name] for name in BearoffArrays._fields)
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:12]

    def covers(self, board: np.ndarray) -> bool:
        """Whether ``board`` (int8[2, 26]) is in the databases."""
        return bool(in_database(self.arrays, np.ascontiguousarray(board, dtype=np.int8)))

    def evaluate(self, boards: np.ndarray) -> np.ndarray:
        """The five probabilities float32[N, 5] of ``boards`` int8[N, 2, 26] (or of one board).

        NaN for a board that is not in the databases.
        """
        boards = np.ascontiguousarray(boards, dtype=np.int8)
        flat = boards.reshape(-1, 2, SLOTS)
        out = np.empty((len(flat), 5), np.float32)
        _evaluate(self.arrays, flat, out)
        return out[0] if boards.ndim == 2 else out

    def rolls(self, side: np.ndarray) -> np.ndarray:
        """float32[32]: the chance that ``side`` (int8[26], all home) needs exactly so many rolls.

        Raises BgrlError if it isn't home or has more checkers than the databases.
        """
        return self.arrays.all_off[self._index(side)]

    def rolls_to_first(self, side: np.ndarray) -> np.ndarray:
        """float32[32]: the same for the first of the checkers that ``side`` has on its points."""
        return self.arrays.first_off[self._index(side)]

    def cube_equities(self, board: np.ndarray) -> np.ndarray | None:
        """float32[4], the exact equities by :data:`CUBES` for the player on roll.

        None if the two-sided table doesn't reach ``board`` (int8[2, 26]) or a gammon is possible.
        """
        if not self.covers(board) or not board[:, OFF].all():
            return None
        mine, theirs = (home_index(board, side) for side in (0, 1))
        if max(mine, theirs) >= self.arrays.equities.shape[1]:
            return None
        return self.arrays.equities[:, mine, theirs]

    def _index(self, side: np.ndarray) -> int:
        index = home_index(np.asarray(side)[None, :], 0)
        if np.any(side[HOME + 1 :]) or index >= len(self.arrays.all_off):
            raise BgrlError(f"not in the bear-off database: {[int(n) for n in side]}")
        return int(index)


def build(folder: str | os.PathLike, checkers: int = 15, pair_checkers: int = 6) -> Path:
    """Build the one-sided database of ``checkers`` and the two-sided one of ``pair_checkers``.

    Seconds of work and 27 MB at the default sizes; published whole, or not at all.
    Raises BgrlError for sizes out of range (1 to 15, and 0 to 10), and for a folder that holds
    anything else than the databases to replace.
    """
    if not 1 <= checkers <= 15 or not 0 <= pair_checkers <= 10:
        raise BgrlError(
            f"bear-off databases of {checkers} and {pair_checkers} checkers: "
            "the first may be 1 to 15, the second 0 to 10"
        )
    folder = Path(folder)
    _check_replaceable(folder)
    start = time.perf_counter()
    all_off, first_off = build_one_sided(checkers)
    middle = time.perf_counter()
    arrays = BearoffArrays(all_off, first_off, build_two_sided(pair_checkers))
    end = time.perf_counter()
    with atomic_dir(folder) as beside:
        for name, array in arrays._asdict().items():
            np.save(beside / f"{name}.npy", array, allow_pickle=False)
        description = {
            "format": FORMAT,
            "version": VERSION,
            "points": HOME,
            "one_sided": {
                "checkers": checkers,
                "positions": positions_of(checkers),
                "seconds": round(middle - start, 2),
            },
            "two_sided": {
                "checkers": pair_checkers,
                "positions": positions_of(pair_checkers),
                "cubes": list(CUBES),
                "seconds": round(end - middle, 2),
            },
            "sha256": {name: sha256_file(beside / f"{name}.npy") for name in BearoffArrays._fields},
        }
        atomic_write_json(beside / DESCRIPTION_FILE, description)
    return folder


def _check_replaceable(folder: Path) -> None:
    """Raise BgrlError unless ``folder`` is absent, empty, or holds databases and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BgrlError(f"{folder} is not a folder")
    own = {DESCRIPTION_FILE, *(f"{name}.npy" for name in BearoffArrays._fields)}
    there = {entry.name for entry in folder.iterdir()}
    foreign = there - own if DESCRIPTION_FILE in there else there
    if foreign:
        raise BgrlError(
            f"{folder} holds something other than bear-off databases: {min(foreign)}; "
            "nothing is replaced"
        )
