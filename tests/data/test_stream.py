"""The stream: every row once an epoch, in an order that seed and step alone decide."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from oracles.training_data import generation

from bgrl.data import Prefetcher, Window, WindowStream, shard_path
from bgrl.errors import BgrlError, CorruptFile


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    generation(root / "gen-0001", games=50, shards=3)
    generation(root / "gen-0002", games=50, shards=3, first_game=150)
    return Window([root / "gen-0001", root / "gen-0002"], val_percent=10)


def keys(batches):
    return [row.tobytes() for batch in batches for row in batch.boards]


def same(a, b):
    return np.array_equal(a.boards, b.boards) and np.array_equal(a.targets, b.targets)


# From one chunk to many that are smaller than a batch.
@pytest.mark.parametrize("chunk_rows", [10**6, 9000, 2048, 500])
def test_an_epoch_has_every_row_once(window, chunk_rows):
    stream = WindowStream(window, 1000, seed=1, chunk_rows=chunk_rows)
    assert stream.steps_per_epoch == window.train_rows // 1000
    batches = list(islice(stream.batches(), stream.steps_per_epoch))
    assert {batch.boards.shape for batch in batches} == {(1000, 2, 26)}
    assert {batch.boards.dtype for batch in batches} == {np.dtype(np.int8)}
    assert {batch.targets.dtype for batch in batches} == {np.dtype(np.float32)}
    boards, _ = window.load(np.arange(len(window.group_rows)))
    missing = Counter(b.tobytes() for b in boards)
    missing.subtract(keys(batches))
    assert min(missing.values()) >= 0
    assert missing.total() == window.train_rows % 1000


def test_boards_keep_their_targets(window):
    boards, targets = window.load(np.arange(len(window.group_rows)))
    wanted = {b.tobytes(): t for b, t in zip(boards, targets, strict=True)}
    for batch in islice(WindowStream(window, 500, seed=1, chunk_rows=5000).batches(), 40):
        for board, target in zip(batch.boards, batch.targets, strict=True):
            np.testing.assert_array_equal(target, wanted[board.tobytes()])


def test_p07_epochs_differ_and_the_seed_repeats_them(window):
    def epochs(seed):
        stream = WindowStream(window, 1000, seed, chunk_rows=9000)
        n = stream.steps_per_epoch
        batches = list(islice(stream.batches(), 2 * n))
        return keys(batches[:n]), keys(batches[n:])

    first, second = epochs(1)
    assert first != second
    assert (first, second) == epochs(1)
    assert first != epochs(2)[0]


def test_any_step_is_reached_directly(window):
    stream = WindowStream(window, 777, seed=1, chunk_rows=5000)
    n = stream.steps_per_epoch
    batches = list(islice(stream.batches(), 2 * n + 3))
    for step in (0, 1, 5, n - 1, n, n + 7, 2 * n + 2):
        assert same(next(stream.batches(step)), batches[step])


def test_a_batch_mixes_shards_and_games(window):
    """Rows next to each other in a file must not come together."""
    batch = next(WindowStream(window, 2000, seed=1).batches())
    boards, _ = window.load(np.arange(len(window.group_rows)))
    place = {b.tobytes(): k for k, b in enumerate(boards)}
    at = np.array([place[row] for row in keys([batch])])
    assert abs(np.corrcoef(at, np.arange(len(at)))[0, 1]) < 0.1
    assert len(np.unique(at * 12 // len(boards))) == 12


def test_a_window_smaller_than_a_batch(window):
    stream = WindowStream(window, 10**6, seed=1)
    assert stream.steps_per_epoch == 1
    first, second = islice(stream.batches(), 2)
    assert len(first.boards) == window.train_rows
    assert Counter(keys([first])) == Counter(keys([second]))


def test_prefetching_changes_nothing(window):
    stream = WindowStream(window, 500, seed=1, chunk_rows=4000)
    with Prefetcher(stream, step=17) as ahead:
        fetched = list(islice(ahead, 60))
        assert ahead.wait_seconds >= 0
    for got, wanted in zip(fetched, stream.batches(17), strict=False):
        assert same(got, wanted)


def test_an_error_while_prefetching_reaches_the_reader(tmp_path):
    generation(tmp_path, games=20, shards=1)
    stream = WindowStream(Window([tmp_path]), 100, seed=1)
    path = shard_path(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:500])
    with Prefetcher(stream) as ahead:
        for _ in range(2):
            with pytest.raises(CorruptFile, match=r"part-00000\.parquet"):
                next(ahead)


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"batch": -5}, {"seed": -1}, {"chunk_rows": 0}])
def test_arguments_out_of_range_are_named(window, wrong):
    (name,) = wrong
    with pytest.raises(BgrlError, match=f"{name} is {wrong[name]}, expected at least"):
        WindowStream(window, **{"batch": 100, "seed": 1, **wrong})
