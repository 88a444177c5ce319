"""The replay window: the split by game, repeated games, and what is read."""

import logging
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.training_data import META, generation, positions, write

from bgrl.data import Window, held_out, open_shard, publish_generation, read_positions, shard_path
from bgrl.errors import BgrlError, CorruptFile
from bgrl.game import BACKGAMMON


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    generation(root / "gen-0001", games=60, shards=2)
    generation(root / "gen-0002", games=60, shards=2, first_game=120)
    return [root / "gen-0001", root / "gen-0002"]


def everything(window: Window):
    return [read_positions(shard) for shard in window.shards]


def as_rows(boards, targets):
    return Counter(
        zip(
            (board.tobytes() for board in boards),
            (target.tobytes() for target in targets),
            strict=True,
        )
    )


def test_every_row_is_on_one_side_of_the_split(folders):
    window = Window(folders, val_percent=20)
    groups = np.arange(len(window.group_rows))
    train, val = window.load(groups), window.load(groups, validation=True)
    assert len(train[0]) == window.train_rows
    assert len(val[0]) == window.val_rows > 0
    rows = everything(window)
    assert as_rows(*train) + as_rows(*val) == as_rows(
        np.concatenate([r.boards for r in rows]), np.concatenate([r.targets for r in rows])
    )


def test_the_split_is_by_whole_games(folders):
    window = Window(folders, val_percent=20)
    games = np.concatenate([r.games for r in everything(window)])
    val = held_out(np.uint64(1), games, 20)
    assert val.sum() == window.val_rows
    shares = [val[games == game].mean() for game in range(240)]
    assert set(shares) == {0.0, 1.0}
    assert 0.1 < np.mean(shares) < 0.3


def test_the_split_is_the_asked_share_and_the_same_everywhere():
    games = np.arange(100_000)
    for percent in (0, 1, 5, 50):
        share = held_out(np.uint64(3), games, percent).mean()
        assert abs(share - percent / 100) < 0.005
    # Known values: a game must not change sides from one version or machine to the next.
    assert np.flatnonzero(held_out(np.uint64(1), games[:200], 5)).tolist() == KNOWN
    assert not np.array_equal(held_out(np.uint64(1), games, 5), held_out(np.uint64(2), games, 5))
    # A higher share keeps the games of a lower one.
    assert held_out(np.uint64(1), games, 10)[held_out(np.uint64(1), games, 5)].all()


KNOWN = [25, 68, 75, 98, 133]


def test_nothing_is_held_out_at_0(folders):
    window = Window(folders, val_percent=0)
    assert window.val_rows == 0
    assert len(window.load(np.arange(2))[0]) == window.group_rows[:2].sum()
    assert len(window.validation()[0]) == 0


def test_validation_is_limited(folders):
    window = Window(folders, val_percent=20)
    assert len(window.validation()[0]) == window.val_rows
    few = len(window.validation(limit=window.val_rows // 3)[0])
    assert 0 < few < 0.7 * window.val_rows


def test_t13_a_game_that_is_there_twice_is_left_out(folders, tmp_path, caplog):
    write(positions(20, seed=9, first_game=100), shard_path(tmp_path / "gen-0003", 0))
    write(positions(20, seed=9, first_game=300), shard_path(tmp_path / "gen-0003", 1))
    publish_generation(tmp_path / "gen-0003")
    alone = Window(folders)
    with caplog.at_level(logging.WARNING):
        window = Window([*folders, tmp_path / "gen-0003"])
    (skipped,) = window.skipped
    assert "game 100 of seed 1 is also in" in skipped.reason
    assert skipped.path == shard_path(tmp_path / "gen-0003", 0)
    assert str(skipped.path) in caplog.text
    assert window.rows == alone.rows + open_shard(shard_path(tmp_path / "gen-0003", 1)).rows


def test_the_same_number_with_another_seed_is_another_game(folders, tmp_path):
    path = shard_path(tmp_path / "gen-0003", 0)
    write(positions(20, seed=9, first_game=100), path, replace(META, seed=2))
    publish_generation(tmp_path / "gen-0003")
    assert Window([*folders, tmp_path / "gen-0003"]).skipped == []


def test_the_same_folder_twice_counts_once(folders):
    window = Window([folders[0], folders[0]])
    assert window.rows == Window(folders[:1]).rows
    assert len(window.skipped) == 2


def test_no_position_is_an_error(folders, tmp_path):
    write(positions(1), shard_path(tmp_path, 0))
    publish_generation(tmp_path)
    shard_path(tmp_path, 0).unlink()
    with pytest.raises(BgrlError, match="no position to train on in"):
        Window([tmp_path])
    with pytest.raises(BgrlError, match="val_percent is 100"):
        Window(folders, val_percent=100)


def test_variants_do_not_mix(folders, tmp_path):
    write(
        positions(5, first_game=900), shard_path(tmp_path, 0), replace(META, variant="nackgammon")
    )
    publish_generation(tmp_path)
    assert Window(folders).variant == BACKGAMMON
    with pytest.raises(BgrlError, match="mixes variants: backgammon, nackgammon"):
        Window([*folders, tmp_path])


def test_boards_that_kernels_could_not_index_are_refused(tmp_path):
    path = shard_path(tmp_path, 0)
    write(positions(5), path)
    table = pq.read_table(path)
    rows = table.to_pydict()
    rows["board"][3] = b"\xff" + rows["board"][3][1:]
    schema = table.schema.with_metadata(open_shard(path).footer.metadata)
    pq.write_table(pa.table(rows, schema=schema), path)
    publish_generation(tmp_path)
    with pytest.raises(CorruptFile, match=r"part-00000\.parquet: a board"):
        Window([tmp_path]).load(np.arange(1))


def test_identity_follows_the_rows_and_the_split(folders, tmp_path):
    window = Window(folders)
    assert window.identity == Window(folders).identity
    assert window.identity != Window(folders[:1]).identity
    assert window.identity != Window(folders, val_percent=6).identity


def test_games_of_a_negative_seed_are_split_as_the_kernels_saw_it(tmp_path):
    folder = tmp_path / "gen-0001"
    write(positions(40), shard_path(folder, 0), replace(META, seed=-1))
    publish_generation(folder)
    window = Window([folder], val_percent=20)
    (rows,) = everything(window)
    assert window.val_rows == held_out(np.uint64(2**64 - 1), rows.games, 20).sum() > 0
    assert len(window.validation()[0]) == window.val_rows
