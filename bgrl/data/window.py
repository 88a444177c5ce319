"""The replay window: the positions of several generations, split by game."""

import hashlib
import logging
import os
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from bgrl.data.generations import Generation, Skipped, open_generation
from bgrl.data.schema import board_column, target_columns
from bgrl.data.shards import Shard, read_columns
from bgrl.errors import BgrlError, CorruptFile
from bgrl.game.board import SLOTS
from bgrl.game.dice import game_stream, mix
from bgrl.game.outcomes import OUTPUTS
from bgrl.game.variants import get_variant

log = logging.getLogger(__name__)

# Another stream of bgrl.game.dice than that of the dice, so that the split says nothing about them.
# The games that self-play scatters have the same one, but draw only what follows this hash.
_SPLIT = 7


@njit(cache=True, nogil=True)
def held_out(seed, games, percent):
    """Which of `games` (int64[N]) belong to the validation set: bool[N], the same in any process.

    A hash of (seed, game) puts `percent` of a hundred games there, whole.
    """
    out = np.empty(games.shape[0], np.bool_)
    previous, last = np.int64(-1), False
    for i in range(games.shape[0]):
        if games[i] != previous:
            previous = games[i]
            last = mix(game_stream(seed, previous, _SPLIT)) % np.uint64(100) < np.uint64(percent)
        out[i] = last
    return out


class _Rows(NamedTuple):
    """A shard, its game numbers, and the rows and training rows of each of its row groups."""

    shard: Shard
    games: np.ndarray
    groups: list[tuple[int, int]]


class Window:
    """The row groups of some generations, and which rows of them are for training.

    Opening it reads every game number once, to count rows on either side of the split and to find
    games that are there twice: the later shard is then named in a warning and left out, like
    whatever else is unusable (see :func:`open_generation`).

    folders: generation folders. val_percent: games of a hundred held out for validation, 0 to 99.
    verify: check SHA-256 hashes while opening.

    Raises BgrlError when no position is left, or when generations of several variants are mixed.
    """

    def __init__(
        self, folders: Sequence[str | os.PathLike], val_percent: int = 5, verify: bool = True
    ):
        if not 0 <= val_percent < 100:
            raise BgrlError(f"val_percent is {val_percent}, expected 0 to 99")
        self.val_percent = val_percent
        self.generations: list[Generation] = [open_generation(f, verify) for f in folders]
        self.skipped: list[Skipped] = [s for g in self.generations for s in g.skipped]
        found: list[_Rows] = []
        for shard in (shard for generation in self.generations for shard in generation.shards):
            try:
                found.append(_count(shard, val_percent))
            except CorruptFile as error:
                self._leave_out(shard, str(error))
        found = self._without_repeated_games(found)
        self.shards = [counted.shard for counted in found]
        variants = sorted({shard.meta.variant for shard in self.shards})
        if len(variants) > 1:
            raise BgrlError(f"the window mixes variants: {', '.join(variants)}")
        groups = [
            (k, g, rows, train)
            for k, counted in enumerate(found)
            for g, (rows, train) in enumerate(counted.groups)
        ]
        columns = np.array(groups, np.int64).reshape(-1, 4).T
        #: For each row group: its shard, its number there, its rows and how many are for training.
        self.group_shard, self.group_index, self.group_rows, self.group_train_rows = columns
        if not self.train_rows:
            where = ", ".join(str(folder) for folder in folders) or "no folder"
            raise BgrlError(f"no position to train on in {where}")
        self.variant = get_variant(variants[0])

    @property
    def rows(self) -> int:
        """Positions, of both sides of the split."""
        return int(self.group_rows.sum())

    @property
    def train_rows(self) -> int:
        return int(self.group_train_rows.sum())

    @property
    def val_rows(self) -> int:
        return self.rows - self.train_rows

    @cached_property
    def identity(self) -> str:
        """12 hex digits that change with the rows or the split, but not when folders move."""
        digest = hashlib.sha256(str(self.val_percent).encode())
        for k, shard in enumerate(self.shards):
            counts = self.group_train_rows[self.group_shard == k].tolist()
            digest.update(f"{shard.path.name} {shard.meta} {shard.rows} {counts}\n".encode())
        return digest.hexdigest()[:12]

    def load(self, groups: np.ndarray, validation: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Boards int8[N, 2, 26] and targets float32[N, 5] of one side of the split.

        groups: numbers of row groups; their rows follow each other in this order.
        """
        counts = self.group_train_rows[groups]
        if validation:
            counts = self.group_rows[groups] - counts
        boards = np.empty((int(counts.sum()), 2, SLOTS), np.int8)
        targets = np.empty((len(boards), len(OUTPUTS)), np.float32)
        start = 0
        for group, count in zip(groups.tolist(), counts.tolist(), strict=True):
            if not count:
                continue
            shard = self.shards[self.group_shard[group]]
            columns = ["board", *OUTPUTS] + (["game"] if self.val_percent else [])
            table = read_columns(shard, columns, [int(self.group_index[group])])
            rows: slice | np.ndarray = slice(None)
            if self.val_percent:
                val = held_out(_seed(shard), table.column("game").to_numpy(), self.val_percent)
                rows = val if validation else ~val
            found = board_column(table)
            # Kernels index tables by these counts; a negative one shows as a large one.
            if found.view(np.uint8).max() > self.variant.checkers:
                raise CorruptFile(f"{shard.path}: a board with an impossible number of checkers")
            boards[start : start + count] = found[rows]
            targets[start : start + count] = target_columns(table)[rows]
            start += count
        return boards, targets

    def validation(self, limit: int = 131_072) -> tuple[np.ndarray, np.ndarray]:
        """Held-out boards and targets, as for :meth:`load`: all of them, or about `limit`.

        With more than `limit`, whole row groups spread evenly over the window are taken.
        """
        counts = self.group_rows - self.group_train_rows
        groups = np.flatnonzero(counts)
        if self.val_rows > limit:
            wanted = max(1, round(len(groups) * limit / self.val_rows))
            groups = groups[np.linspace(0, len(groups) - 1, wanted).round().astype(np.int64)]
        return self.load(groups, validation=True)

    def _leave_out(self, shard: Shard, reason: str) -> None:
        log.warning("left out: %s", reason)
        self.skipped.append(Skipped(shard.path, reason))

    def _without_repeated_games(self, found: list[_Rows]) -> list[_Rows]:
        """`found` without the shards that repeat a game (seed, number) of an earlier one."""
        repeats: dict[int, tuple[int, int, int]] = {}
        for seed in {counted.shard.meta.seed for counted in found}:
            members = [k for k, counted in enumerate(found) if counted.shard.meta.seed == seed]
            numbers = np.concatenate([found[k].games for k in members])
            owners = np.repeat(members, [len(found[k].games) for k in members])
            order = np.argsort(numbers, kind="stable")
            numbers, owners = numbers[order], owners[order]
            for i in np.flatnonzero(numbers[1:] == numbers[:-1]).tolist():
                repeats.setdefault(int(owners[i + 1]), (seed, int(numbers[i]), int(owners[i])))
        kept = []
        for k, counted in enumerate(found):
            if k in repeats:
                seed, game, earlier = repeats[k]
                path, first = counted.shard.path, found[earlier].shard.path
                self._leave_out(
                    counted.shard, f"{path}: game {game} of seed {seed} is also in {first}"
                )
            else:
                kept.append(counted)
        return kept


def _seed(shard: Shard) -> np.uint64:
    """The seed of a shard's games as the kernels saw it, which wrap a negative one."""
    return np.uint64(shard.meta.seed % (1 << 64))


def _count(shard: Shard, val_percent: int) -> _Rows:
    games = read_columns(shard, ["game"]).column("game").to_numpy()
    train = ~held_out(_seed(shard), games, val_percent)
    groups = []
    start = 0
    for g in range(shard.footer.num_row_groups):
        rows = shard.footer.row_group(g).num_rows
        groups.append((rows, int(np.count_nonzero(train[start : start + rows]))))
        start += rows
    return _Rows(shard, games[np.flatnonzero(np.diff(games, prepend=-1))], groups)
