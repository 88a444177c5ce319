"""Shards: Parquet files of positions, written whole or not at all."""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bgrl.data.schema import (
    PARQUET_OPTIONS,
    ROW_GROUP_ROWS,
    SCHEMA,
    Positions,
    ShardMeta,
    board_column,
    check_positions,
    file_metadata,
    parse_metadata,
    target_columns,
    to_table,
)
from bgrl.errors import BgrlError, CorruptFile
from bgrl.files import atomic_file


@dataclass(frozen=True)
class Shard:
    """A readable shard: where it is and what its footer says."""

    path: Path
    meta: ShardMeta
    rows: int
    games: int
    truncated_games: int
    footer: pq.FileMetaData = field(repr=False, compare=False)

    @property
    def numbers(self) -> tuple[int, int] | None:
        """The first and the last of its games' numbers; None without rows or their statistics."""
        column = SCHEMA.get_field_index("game")
        groups = [
            self.footer.row_group(group).column(column).statistics
            for group in range(self.footer.num_row_groups)
        ]
        if not groups or any(group is None for group in groups):
            return None
        return min(group.min for group in groups), max(group.max for group in groups)


class ShardWriter:
    """Writes positions to one shard, which appears at `path` complete when the writer is closed.

    A game's rows are written together, in one piece or several, and all in this shard. Games that
    were cut short have no label and so no rows; count them in `truncated_games`. Used as a context
    manager, an exception in the body leaves no file.
    """

    def __init__(
        self, path: str | os.PathLike, meta: ShardMeta, row_group_rows: int = ROW_GROUP_ROWS
    ):
        self.path = Path(path)
        self.truncated_games = 0
        self.rows = 0
        self._row_group_rows = row_group_rows
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._games: set[int] = set()
        self._last_game = -1
        self._stack = ExitStack()
        temporary = self._stack.enter_context(atomic_file(self.path))
        schema = SCHEMA.with_metadata(file_metadata(meta))
        self._writer = pq.ParquetWriter(temporary, schema, **PARQUET_OPTIONS)

    def write(
        self,
        boards: np.ndarray,
        targets: np.ndarray,
        outcomes: np.ndarray,
        games: np.ndarray,
        plies: np.ndarray,
    ) -> None:
        """Add rows; arrays as in :class:`Positions`, which are copied.

        Raises BgrlError, having added none of them, on a value that the schema does not allow and
        on a game number that came before.
        """
        rows = check_positions(Positions(boards, targets, outcomes, games, plies))
        if not len(rows):
            return
        starts = np.flatnonzero(np.diff(rows.games, prepend=self._last_game))
        new = rows.games[starts].tolist()
        distinct = set(new)
        if len(distinct) < len(new) or not distinct.isdisjoint(self._games):
            seen: set[int] = set(self._games)
            repeated = next(game for game in new if game in seen or seen.add(game))  # type: ignore[func-returns-value]
            raise BgrlError(f"{self.path}: game {repeated} is written twice")
        self._games |= distinct
        self._last_game = int(rows.games[-1])
        # The caller may fill the same buffer again: Arrow would otherwise only point to it.
        rows = Positions(
            rows.boards.copy(),
            rows.targets,
            rows.outcomes.copy(),
            rows.games.copy(),
            rows.plies.copy(),
        )
        self._pending.append(to_table(rows))
        self._pending_rows += len(rows)
        self.rows += len(rows)
        if self._pending_rows >= self._row_group_rows:
            self._flush(whole_groups=True)

    def _flush(self, whole_groups: bool) -> None:
        table = pa.concat_tables(self._pending)
        rows = table.num_rows
        if whole_groups:
            rows -= rows % self._row_group_rows
        self._writer.write_table(table.slice(0, rows), self._row_group_rows)
        self._pending = [table.slice(rows)]
        self._pending_rows = table.num_rows - rows

    def close(self) -> Shard:
        """Publish the file and return it as it can now be read."""
        try:
            if self._pending_rows:
                self._flush(whole_groups=False)
            self._writer.add_key_value_metadata(
                {"bgrl.games": str(len(self._games)), "bgrl.truncated": str(self.truncated_games)}
            )
            self._writer.close()
        except BaseException:
            self.discard()
            raise
        self._stack.close()
        return open_shard(self.path)

    def discard(self) -> None:
        """Delete what was written; `path` is as it was before."""
        self._writer.close()
        self._pending = []
        error = BgrlError(f"{self.path}: discarded")
        try:
            # Leaving the temporary file's context by an exception is what deletes it.
            self._stack.__exit__(type(error), error, None)
        except BgrlError as raised:
            if raised is not error:
                raise

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()


def open_shard(path: str | os.PathLike) -> Shard:
    """Read a shard's footer.

    Raises BgrlError when there is no such file, CorruptFile when it is no Parquet file or cut
    short, and SchemaMismatch when it holds anything but positions of this schema version.
    """
    path = Path(path)
    try:
        if not path.stat().st_size:
            raise CorruptFile(f"{path}: empty file")
        with pq.ParquetFile(path) as file:
            footer, schema = file.metadata, file.schema_arrow
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror or one_line(error)}") from error
    except pa.ArrowException as error:
        raise CorruptFile(f"{path}: not a whole Parquet file: {one_line(error)}") from error
    meta = parse_metadata(schema, path)
    try:
        games = int(footer.metadata[b"bgrl.games"])
        truncated = int(footer.metadata[b"bgrl.truncated"])
    except (KeyError, ValueError) as error:
        raise CorruptFile(f"{path}: its footer lacks the number of games") from error
    return Shard(path, meta, footer.num_rows, games, truncated, footer)


def read_columns(shard: Shard, columns: list[str], groups: list[int] | None = None) -> pa.Table:
    """Some columns of a shard's row groups (all unless given). CorruptFile names the file."""
    try:
        with pq.ParquetFile(shard.path, metadata=shard.footer) as file:
            wanted = range(file.num_row_groups) if groups is None else groups
            return file.read_row_groups(list(wanted), columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise CorruptFile(f"{shard.path}: unreadable rows: {one_line(error)}") from error


def read_positions(shard: Shard) -> Positions:
    """All rows of a shard."""
    table = read_columns(shard, SCHEMA.names)
    return Positions(
        board_column(table),
        target_columns(table),
        *(table.column(name).to_numpy() for name in ("outcome", "game", "ply")),
    )


def one_line(error: BaseException) -> str:
    """The first line of an exception's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
