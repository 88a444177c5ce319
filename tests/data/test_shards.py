"""Shards: the schema, what may be written, and files that are whole or absent."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.training_data import META, positions, write

from bgrl.data import Positions, ShardWriter, open_shard, read_positions
from bgrl.data.schema import TARGET_STEP
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch

COLUMNS = ("boards", "targets", "outcomes", "games", "plies")


@pytest.fixture(scope="module")
def rows() -> Positions:
    return positions(30)


def test_schema_is_the_published_one(rows, tmp_path):
    """A change here is a new version: files that exist must stay readable or be refused by name."""
    write(rows, tmp_path / "a.parquet")
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert [(f.name, str(f.type), f.nullable) for f in schema] == [
        ("board", "fixed_size_binary[52]", False),
        ("win", "float", False),
        ("win_gammon", "float", False),
        ("win_backgammon", "float", False),
        ("lose_gammon", "float", False),
        ("lose_backgammon", "float", False),
        ("outcome", "int8", False),
        ("game", "int64", False),
        ("ply", "int16", False),
    ]
    assert schema.metadata[b"bgrl.schema"] == b"positions"
    assert schema.metadata[b"bgrl.version"] == b"1"


def test_what_is_written_is_read(rows, tmp_path):
    write(rows, tmp_path / "a.parquet", row_group_rows=1000)
    shard = open_shard(tmp_path / "a.parquet")
    assert (shard.rows, shard.games, shard.truncated_games) == (len(rows), 30, 0)
    assert shard.meta == META
    back = read_positions(shard)
    for name in COLUMNS:
        got, wanted = getattr(back, name), getattr(rows, name)
        assert got.dtype == wanted.dtype
        if name == "targets":
            np.testing.assert_allclose(got, wanted, atol=TARGET_STEP / 2)
            assert (got / TARGET_STEP % 1 == 0).all()
        else:
            np.testing.assert_array_equal(got, wanted)


def test_p05_many_small_writes_give_few_large_row_groups(rows, tmp_path):
    path = tmp_path / "a.parquet"
    with ShardWriter(path, META, row_group_rows=1000) as writer:
        for game in range(30):
            mine = rows.games == game
            writer.write(*(getattr(rows, name)[mine] for name in COLUMNS))
    footer = open_shard(path).footer
    sizes = [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]
    assert sizes[:-1] == [1000] * (len(rows) // 1000)
    assert sum(sizes) == len(rows)
    np.testing.assert_array_equal(read_positions(open_shard(path)).boards, rows.boards)


def test_the_caller_may_reuse_its_arrays(rows, tmp_path):
    buffers = [getattr(rows, name).copy() for name in COLUMNS]
    with ShardWriter(tmp_path / "a.parquet", META) as writer:
        writer.write(*buffers)
        for buffer in buffers:
            buffer[:] = 1
    np.testing.assert_array_equal(
        read_positions(open_shard(tmp_path / "a.parquet")).boards, rows.boards
    )


def test_p03_types_are_fixed_when_written(rows, tmp_path):
    narrow = replace(rows, games=rows.games.astype(np.int32), plies=rows.plies.astype(np.int64))
    wide = replace(rows, games=rows.games + 2**40)
    write(narrow, tmp_path / "a.parquet")
    write(wide, tmp_path / "b.parquet")
    both = pq.read_table([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert both.schema.field("game").type == pa.int64()
    assert max(both["game"].to_pylist()) == 29 + 2**40


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("targets", np.nan, "impossible target .*nan.* in game 3"),
        ("targets", np.inf, "impossible target"),
        ("targets", 1.5, "impossible target"),
        ("targets", -0.1, "impossible target"),
        ("boards", -1, "column board runs from -1"),
        ("outcomes", 0, "outcome 0 in game 3"),
        ("games", -7, "column game runs from -7"),
        ("plies", -1, "column ply runs from -1"),
    ],
)
def test_values_that_cannot_be_are_refused(rows, tmp_path, column, value, message):
    bad = getattr(rows, column).copy()
    at = int(np.flatnonzero(rows.games == 3)[5])
    bad[(at, 0) if column == "targets" else (at, 0, 0) if column == "boards" else at] = value
    with pytest.raises(BgrlError, match=message):
        write(replace(rows, **{column: bad}), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target", [[0.3, 0.35, 0, 0, 0], [0.5, 0.2, 0.3, 0, 0], [0.8, 0, 0, 0.3, 0]]
)
def test_probabilities_are_nested(rows, tmp_path, target):
    targets = rows.targets.copy()
    targets[7] = target
    with pytest.raises(BgrlError, match="impossible target"):
        write(replace(rows, targets=targets), tmp_path / "a.parquet")


def test_other_types_and_shapes_are_refused(rows, tmp_path):
    for change, message in (
        ({"games": rows.games.astype(float)}, "column game has type float64"),
        ({"plies": rows.plies.astype(np.int64) + 40_000}, "column ply runs from 40000"),
        ({"boards": rows.boards[:, :, :25]}, "boards has shape"),
        ({"outcomes": rows.outcomes[1:]}, "outcomes has shape"),
    ):
        with pytest.raises(BgrlError, match=message):
            write(replace(rows, **change), tmp_path / "a.parquet")


def test_a_game_comes_once(rows, tmp_path):
    with ShardWriter(tmp_path / "a.parquet", META) as writer:
        for game in (3, 4, 5):
            mine = rows.games == game
            writer.write(*(getattr(rows, name)[mine] for name in COLUMNS))
        mine = rows.games == 4
        with pytest.raises(BgrlError, match="game 4 is written twice"):
            writer.write(*(getattr(rows, name)[mine] for name in COLUMNS))
    assert open_shard(tmp_path / "a.parquet").games == 3


def test_nothing_is_there_before_it_is_whole(rows, tmp_path):
    path = tmp_path / "a.parquet"
    writer = ShardWriter(path, META)
    writer.write(*(getattr(rows, name) for name in COLUMNS))
    assert not path.exists()
    assert all(p.name.startswith("_tmp.") for p in tmp_path.iterdir())
    writer.truncated_games = 2
    shard = writer.close()
    assert (shard.rows, shard.truncated_games) == (len(rows), 2)
    assert list(tmp_path.iterdir()) == [path]


def test_an_exception_leaves_the_old_file(rows, tmp_path):
    path = tmp_path / "a.parquet"
    write(rows, path)
    before = path.read_bytes()
    with suppress(ZeroDivisionError), ShardWriter(path, META) as writer:
        writer.write(*(getattr(rows, name)[:100] for name in COLUMNS))
        raise ZeroDivisionError
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_other_files_are_told_apart(rows, tmp_path):
    whole = tmp_path / "whole.parquet"
    write(rows, whole)
    data = whole.read_bytes()
    table = pq.read_table(whole)

    def refused(name: str, error: type[BgrlError], message: str) -> None:
        with pytest.raises(error, match=message) as caught:
            open_shard(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)

    (tmp_path / "half").write_bytes(data[: len(data) // 2])
    refused("half", CorruptFile, "not a whole Parquet file")
    (tmp_path / "empty").write_bytes(b"")
    refused("empty", CorruptFile, "empty file")
    refused("absent", BgrlError, "cannot read")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "foreign")
    refused("foreign", SchemaMismatch, "not a bgrl shard")
    later = {**table.schema.metadata, b"bgrl.version": b"2"}
    pq.write_table(table.replace_schema_metadata(later), tmp_path / "later")
    refused("later", SchemaMismatch, "version 2, expected positions version 1")
    narrow = table.set_column(7, "game", table["game"].cast(pa.int32()))
    pq.write_table(narrow.replace_schema_metadata(table.schema.metadata), tmp_path / "narrow")
    refused("narrow", SchemaMismatch, "column game")


def test_bytes_a_position(tmp_path):
    """Twice the 11.8 bytes of real games; random ones are less alike."""
    rows = positions(300)
    write(rows, tmp_path / "a.parquet", row_group_rows=65_536)
    assert (tmp_path / "a.parquet").stat().st_size / len(rows) < 24
