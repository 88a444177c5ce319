"""Generations: complete once their manifest is there, and read without what is unfit."""

import json
import logging
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.training_data import generation, positions, write

from bgrl.data import is_complete, open_generation, publish_generation, shard_path
from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.files import sha256_file


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "gen-0001"
    generation(folder, games=10, shards=3)
    return folder


@pytest.fixture
def folder(published, tmp_path):
    return shutil.copytree(published, tmp_path / "gen-0001")


def test_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    found = open_generation(folder)
    assert found.skipped == ()
    assert (found.rows, found.games) == (manifest["rows"], manifest["games"])
    assert manifest["games"] == 30
    assert [f["name"] for f in manifest["files"]] == [f"part-0000{k}.parquet" for k in range(3)]
    for entry in manifest["files"]:
        path = folder / entry["name"]
        assert entry["sha256"] == sha256_file(path)
        assert entry["bytes"] == path.stat().st_size


def test_unfinished_is_an_error(folder):
    (folder / "manifest.json").unlink()
    assert not is_complete(folder)
    with pytest.raises(BgrlError, match=r"gen-0001: no manifest\.json"):
        open_generation(folder)


def test_p01_unfit_files_are_named_and_left_out(folder, caplog):
    """None of them is fatal, and none is silent."""
    data = shard_path(folder, 1).read_bytes()
    shard_path(folder, 1).write_bytes(data[: len(data) // 2])  # listed, cut short
    (folder / "part-00007.parquet").write_bytes(b"")
    (folder / "_tmp.part-00008.parquet.123").write_bytes(data[:100])
    pq.write_table(pa.table({"x": [1]}), folder / "theirs.parquet")
    (folder / "notes.txt").write_text("hello")
    with caplog.at_level(logging.WARNING):
        found = open_generation(folder)
    assert [s.path.name for s in found.shards] == ["part-00000.parquet", "part-00002.parquet"]
    names = {s.path.name for s in found.skipped}
    assert names == {
        "part-00001.parquet",
        "part-00007.parquet",
        "_tmp.part-00008.parquet.123",
        "theirs.parquet",
        "notes.txt",
    }
    for name in names:
        assert sum(name in record.getMessage() for record in caplog.records) == 1


def test_a_listed_file_that_changed_is_left_out(folder):
    path = shard_path(folder, 0)
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    (skipped,) = open_generation(folder).skipped
    assert "part-00000.parquet" in skipped.reason
    assert "SHA-256" in skipped.reason
    # Without hashes such a change is not seen here.
    assert open_generation(folder, verify=False).skipped == ()


def test_a_listed_file_that_is_gone_is_left_out(folder):
    shard_path(folder, 2).unlink()
    (skipped,) = open_generation(folder).skipped
    assert "part-00002.parquet" in skipped.reason


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", CorruptFile),
        ("[]", CorruptFile),
        ('{"schema": "positions", "version": 1}', CorruptFile),
        ('{"schema": "positions", "version": 9, "files": []}', SchemaMismatch),
        (
            '{"schema": "positions", "version": 1,'
            ' "files": [{"name": "../x", "bytes": 1, "sha256": ""}]}',
            CorruptFile,
        ),
    ],
)
def test_an_unusable_manifest_is_an_error(folder, text, error):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(error, match=r"manifest\.json"):
        open_generation(folder)


def test_publishing_lists_whole_shards_only(tmp_path, caplog):
    write(positions(5), shard_path(tmp_path, 0))
    (tmp_path / "part-00001.parquet").write_bytes(b"PAR1")
    found = publish_generation(tmp_path)
    assert [s.path.name for s in found.shards] == ["part-00000.parquet"]
    assert "part-00001.parquet" in caplog.text


def test_publishing_by_name_lists_those_alone_and_needs_them_whole(tmp_path, caplog):
    for part in (0, 1):
        write(positions(5), shard_path(tmp_path, part))
    found = publish_generation(tmp_path, ["part-00001.parquet"])
    assert [s.path.name for s in found.shards] == ["part-00001.parquet"]
    assert [s.path.name for s in open_generation(tmp_path).shards] == ["part-00001.parquet"]
    assert "part-00000.parquet: not of this generation" in caplog.text
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(BgrlError, match=r"part-00002\.parquet"):
        publish_generation(tmp_path, ["part-00001.parquet", "part-00002.parquet"])
    assert not is_complete(tmp_path)


def test_publishing_nothing_is_an_error(tmp_path):
    with pytest.raises(BgrlError, match="no shard to publish"):
        publish_generation(tmp_path)
    assert list(tmp_path.iterdir()) == []
