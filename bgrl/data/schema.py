"""What a shard of training positions is: its columns, their types, and its metadata.

One row is one position before the dice are thrown, seen by the player on roll:

=================  =======================  ====================================================
column             type                     meaning
=================  =======================  ====================================================
board              fixed_size_binary(52)    the ``int8[2, 26]`` board, row-major
win … lose_…       float32 (five)           the training target, cumulative probabilities in the
                                            order of :data:`bgrl.game.outcomes.OUTPUTS`
outcome            int8                     points this player won (+) or lost (-) in the end
game               int64                    game number, unique with the seed
ply                int16                    plies played before this position
=================  =======================  ====================================================

Targets are rounded to multiples of 2**-16, far below their noise, which halves their size on disk.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from bgrl.errors import BgrlError, SchemaMismatch
from bgrl.game.board import SLOTS
from bgrl.game.outcomes import OUTPUTS

NAME = "positions"
VERSION = 1
BOARD_BYTES = 2 * SLOTS
TARGET_STEP = 2.0**-16
ROW_GROUP_ROWS = 65_536
SUFFIX = ".parquet"

SCHEMA = pa.schema(
    [pa.field("board", pa.binary(BOARD_BYTES), nullable=False)]
    + [pa.field(name, pa.float32(), nullable=False) for name in OUTPUTS]
    + [
        pa.field("outcome", pa.int8(), nullable=False),
        pa.field("game", pa.int64(), nullable=False),
        pa.field("ply", pa.int16(), nullable=False),
    ]
)

# Measured on 224,000 positions of gnubg 0-ply games: a board's bytes split by place cost 3.8 bytes
# under zstd 3 (6.8 in a row, 5.9 as 52 columns that take five times as long to read), a position
# 11.8 bytes in all.
PARQUET_OPTIONS: dict = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": ["outcome"],
    "column_encoding": {
        "board": "BYTE_STREAM_SPLIT",
        **dict.fromkeys(OUTPUTS, "BYTE_STREAM_SPLIT"),
        "game": "DELTA_BINARY_PACKED",
        "ply": "DELTA_BINARY_PACKED",
    },
    "write_statistics": ["game"],
}


@dataclass(frozen=True)
class ShardMeta:
    """Where the positions of one shard come from.

    net: hash of the net that played; generation: its number; variant: name of the game played;
    seed: the run's seed, which with a game number determines the dice; lam: λ of the λ-returns;
    created: ISO 8601 time, UTC; exact: whether the luck of the dice has been taken off the returns,
    by exact means over all 21 rolls; scatter: share of the games that began with random plies;
    pruner: hash of the net that chose the plays looked at in those means, or None.
    """

    net: str
    generation: int
    variant: str
    seed: int
    lam: float
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    exact: bool = False
    scatter: float = 0.0
    pruner: str | None = None


def file_metadata(meta: ShardMeta) -> dict[bytes, bytes]:
    """The key-value metadata of a shard."""
    return {
        b"bgrl.schema": NAME.encode(),
        b"bgrl.version": str(VERSION).encode(),
        b"bgrl.meta": json.dumps(asdict(meta), allow_nan=False).encode(),
    }


def parse_metadata(schema: pa.Schema, path: object) -> ShardMeta:
    """The :class:`ShardMeta` of a shard with this Arrow schema.

    Raises SchemaMismatch, naming `path`, when it is not a shard of this schema and version.
    """
    metadata = schema.metadata or {}
    name = metadata.get(b"bgrl.schema", b"").decode(errors="replace")
    version = metadata.get(b"bgrl.version", b"").decode(errors="replace")
    if not name:
        raise SchemaMismatch(f"{path}: not a bgrl shard")
    if (name, version) != (NAME, str(VERSION)):
        raise SchemaMismatch(
            f"{path}: schema {name} version {version}, expected {NAME} version {VERSION}"
        )
    if not schema.equals(SCHEMA):
        wrong = [
            f.name
            for f in SCHEMA
            if f.name not in schema.names or not schema.field(f.name).equals(f)
        ] or [n for n in schema.names if n not in SCHEMA.names]
        raise SchemaMismatch(
            f"{path}: column {', '.join(wrong) or 'order'} is not as in the schema"
        )
    try:
        return ShardMeta(**json.loads(metadata[b"bgrl.meta"]))
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaMismatch(f"{path}: unreadable bgrl.meta: {error}") from error


@dataclass(frozen=True)
class Positions:
    """Columns of positions, one row each.

    boards int8[N, 2, 26], targets float32[N, 5], outcomes int8[N], games int64[N], plies int16[N].
    """

    boards: np.ndarray
    targets: np.ndarray
    outcomes: np.ndarray
    games: np.ndarray
    plies: np.ndarray

    def __len__(self) -> int:
        return len(self.boards)


def check_positions(rows: Positions) -> Positions:
    """`rows` with the schema's types and rounded targets.

    Raises BgrlError naming the column, and the game where there is one, when a value is missing,
    not finite, not a possible probability, or outside its column's range.
    """
    n = len(rows.boards)
    for name, shape in (
        ("boards", (n, 2, SLOTS)),
        ("targets", (n, len(OUTPUTS))),
        ("outcomes", (n,)),
        ("games", (n,)),
        ("plies", (n,)),
    ):
        if np.shape(getattr(rows, name)) != shape:
            raise BgrlError(f"{name} has shape {np.shape(getattr(rows, name))}, expected {shape}")
    games = _integers("game", rows.games, np.int64, 0)
    targets = np.asarray(rows.targets, dtype=np.float32)
    # One comparison that NaN fails, too. The slack is for sums made in float32.
    win, win_gammon, win_backgammon, lose_gammon, lose_backgammon = targets.T
    slack = np.float32(1e-5)
    possible = (win >= -slack) & (win <= 1 + slack)
    possible &= (win_backgammon >= -slack) & (win_backgammon <= win_gammon + slack)
    possible &= win_gammon <= win + slack
    possible &= (lose_backgammon >= -slack) & (lose_backgammon <= lose_gammon + slack)
    possible &= lose_gammon <= 1 - win + slack
    if not possible.all():
        row = int(np.argmin(possible))
        raise BgrlError(f"impossible target {targets[row].tolist()} in game {games[row]}")
    outcomes = _integers("outcome", rows.outcomes, np.int8, -np.inf)
    if n and not outcomes.all():
        raise BgrlError(f"outcome 0 in game {games[int(np.argmin(outcomes != 0))]}")
    return Positions(
        _integers("board", rows.boards, np.int8, 0),
        np.round(np.clip(targets, 0, 1) / TARGET_STEP).astype(np.float32) * np.float32(TARGET_STEP),
        outcomes,
        games,
        _integers("ply", rows.plies, np.int16, 0),
    )


def _integers(name: str, values: np.ndarray, dtype: type, lowest: float) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind not in "iu":
        raise BgrlError(f"column {name} has type {values.dtype}, expected integers")
    if values.size:
        low, high = int(values.min()), int(values.max())
        limits = np.iinfo(dtype)
        if low < max(lowest, limits.min) or high > limits.max:
            raise BgrlError(f"column {name} runs from {low} to {high}, outside its range")
    return np.ascontiguousarray(values, dtype=dtype)


def to_table(rows: Positions) -> pa.Table:
    """An Arrow table of checked `rows`; boards are not copied."""
    n = len(rows)
    boards = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(BOARD_BYTES), n, [None, pa.py_buffer(rows.boards)]
    )
    columns = [boards, *(pa.array(np.ascontiguousarray(t)) for t in rows.targets.T)]
    columns += [pa.array(rows.outcomes), pa.array(rows.games), pa.array(rows.plies)]
    return pa.table(columns, schema=SCHEMA)


def board_column(table: pa.Table) -> np.ndarray:
    """The boards of `table`, int8[N, 2, 26], read-only."""
    chunks = [_board_chunk(chunk) for chunk in table.column("board").chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.empty((0, 2, SLOTS), np.int8)


def _board_chunk(chunk: pa.FixedSizeBinaryArray) -> np.ndarray:
    n, start = len(chunk), chunk.offset * BOARD_BYTES
    flat = np.frombuffer(chunk.buffers()[1], np.int8, n * BOARD_BYTES, start)
    return flat.reshape(n, 2, SLOTS)


def target_columns(table: pa.Table) -> np.ndarray:
    """The targets of `table`, float32[N, 5]."""
    out = np.empty((table.num_rows, len(OUTPUTS)), np.float32)
    for k, name in enumerate(OUTPUTS):
        out[:, k] = table.column(name).to_numpy()
    return out
