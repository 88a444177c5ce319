"""One-sided databases as one small file."""

import hashlib
import pickle

import numpy as np
import pytest

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.game.board import OFF
from bgrl.game.dice import ROLLS
from bgrl.search import bearoff
from bgrl.search.bearoff import NO_CUBE, build_one_sided, build_two_sided, positions_of
from bgrl.search.compact import CompactBearoff, write_compact


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_compact(tmp_path_factory.mktemp("compact") / "five.bgoff", checkers=5)


def with_checksum(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def boards_of(checkers: int, count: int) -> np.ndarray:
    """Random boards of both sides home, in half of them all checkers still on the points."""
    random = np.random.default_rng(2)
    boards = np.zeros((count, 2, 26), np.int8)
    for board in boards:
        for row in board:
            left = checkers if random.random() < 0.5 else int(random.integers(1, checkers + 1))
            np.add.at(row, random.integers(1, 7, left), 1)
            row[OFF] = checkers - left
    return boards


def test_chances_come_back_within_half_a_65535th(file):
    database = CompactBearoff.load(file)
    all_off, first_off = build_one_sided(5)
    assert np.abs(database.arrays.all_off - all_off).max() < 1 / 65535
    full = slice(positions_of(4), None)
    assert np.abs(database.arrays.first_off - first_off)[full].max() < 1 / 65535
    assert np.abs(database.arrays.all_off.sum(axis=1) - 1).max() < 1e-6


def test_boards_have_nearly_the_values_of_the_one_sided_database(file):
    boards = boards_of(5, 2000)
    compact = CompactBearoff.load(file)
    arrays = compact.arrays
    all_off, first_off = build_one_sided(5)
    exact = CompactBearoff(arrays._replace(all_off=all_off, first_off=first_off), {}, file)
    assert np.abs(compact.evaluate(boards) - exact.evaluate(boards)).max() < 5e-5
    assert (compact.evaluate(boards)[:, 1] > 0).any()


def test_it_pickles_as_its_file(file):
    again = pickle.loads(pickle.dumps(CompactBearoff.load(file)))
    assert isinstance(again, CompactBearoff)
    board = boards_of(5, 1)[0]
    np.testing.assert_array_equal(again.evaluate(board), CompactBearoff.load(file).evaluate(board))


def test_its_hash_names_the_content(file, tmp_path):
    other = CompactBearoff.load(write_compact(tmp_path / "two.bgoff", checkers=2))
    found = CompactBearoff.load(file).hash
    assert found == hashlib.sha256(file.read_bytes()[:-32]).hexdigest()[:12]
    assert found != other.hash


def test_one_checker_on_the_ace_point_needs_one_roll(file):
    side = np.zeros(26, np.int8)
    side[1] = 1
    assert CompactBearoff.load(file).rolls(side)[1] == 1


def test_other_files_and_damage_are_refused_by_name(file, tmp_path):
    data = file.read_bytes()
    bad = tmp_path / "bad.bgoff"

    def refused(content: bytes, error: type[BgrlError], message: str) -> None:
        bad.write_bytes(content)
        with pytest.raises(error, match=rf"bad\.bgoff.*{message}"):
            CompactBearoff.load(bad)

    refused(b"something else", SchemaMismatch, "BGRLOFF")
    refused(data[:30], CorruptFile, "cut short")
    refused(data[:-7], CorruptFile, "cut short or altered")
    refused(data[:99] + bytes([data[99] ^ 1]) + data[100:], CorruptFile, "cut short or altered")
    refused(with_checksum(data[:8] + b"\2" + data[9:-32]), SchemaMismatch, "version 2")
    refused(with_checksum(data[:12] + b"\x20" + data[13:-32]), CorruptFile, "32 checkers")
    refused(with_checksum(data[:-34]), CorruptFile, "do not fit")
    refused(with_checksum(data[:200]), CorruptFile, "cut short: 232 bytes")
    with pytest.raises(BgrlError, match=r"cannot read .*absent\.bgoff"):
        CompactBearoff.load(tmp_path / "absent.bgoff")


@pytest.mark.parametrize("checkers", [0, 16])
def test_impossible_sizes_are_refused(tmp_path, checkers):
    with pytest.raises(BgrlError, match=str(checkers)):
        write_compact(tmp_path / "x.bgoff", checkers)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_playing_by_it_costs_a_hundred_thousandth_of_a_point(tmp_path):
    """Against the exact table, where both sides have at most six checkers."""
    database = CompactBearoff.load(write_compact(tmp_path / "six.bgoff", checkers=6))
    exact = build_two_sided(6)[NO_CUBE].astype(np.float64)
    chances = database.arrays.all_off.astype(np.float64)
    or_later = chances[:, ::-1].cumsum(axis=1)[:, ::-1]
    by_rolls = 2 * chances @ or_later.T - 1
    by_rolls[:, 0] = -1  # the opponent has borne off
    homes = np.arange(1, positions_of(6))
    off_by = np.abs(by_rolls - exact)[1:, 1:] / 2  # a chance to win
    assert off_by.mean() < 0.001
    assert off_by.max() < 0.015
    firsts, found = bearoff._all_successors(6)
    lost = 0.0
    for mine in homes:
        for roll, (_, _, ways) in enumerate(ROLLS):
            after = found[firsts[mine * 21 + roll] : firsts[mine * 21 + roll + 1]]
            taken = after[by_rolls[1:, after].argmin(axis=1)]
            best = exact[1:, after].min(axis=1)
            lost += ways / 36 * (exact[homes, taken] - best).sum()
    assert lost / len(homes) ** 2 < 1.1e-5
