"""Bear-off databases against plain fractions, textbook numbers and GNU Backgammon's files."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from oracles import plain_bearoff
from oracles.positions import side

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.game.dice import ROLLS
from bgrl.search import bearoff
from bgrl.search.bearoff import Bearoff, build, home_counts, home_index, positions_of


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("bearoff") / "db")


@pytest.fixture(scope="session")
def db(folder):
    return Bearoff.load(folder)


def row(home) -> np.ndarray:
    return np.array(side({point: n for point, n in enumerate(home, 1) if n}), np.int8)


def board(mine, theirs) -> np.ndarray:
    return np.stack([row(mine), row(theirs)])


def homes(checkers: int):
    counts = itertools.product(range(checkers + 1), repeat=6)
    return [home for home in counts if sum(home) <= checkers]


def test_every_home_has_its_own_number():
    numbers = {int(home_index(row(home)[None], 0)): home for home in homes(5)}
    assert sorted(numbers) == list(range(positions_of(5)))
    back = np.zeros(26, np.int8)
    for number, home in numbers.items():
        home_counts(number, back)
        assert tuple(back[1:7]) == home
    full = row((0, 0, 0, 0, 0, 15))
    assert home_index(full[None], 0) == 54_263 == positions_of(15) - 1


def test_few_checkers_against_fractions(db):
    for home in homes(3):
        for table, plain in (
            (db.rolls, plain_bearoff.all_off),
            (db.rolls_to_first, plain_bearoff.first_off),
        ):
            expected, found = plain(home), table(row(home))
            np.testing.assert_allclose(found[: len(expected)], np.array(expected, float), atol=1e-7)
            assert not found[len(expected) :].any()


def test_distributions(db):
    for table in (db.arrays.all_off, db.arrays.first_off):
        assert table.shape == (54_264, 32)
        np.testing.assert_allclose(table.sum(axis=1, dtype=np.float64), 1, atol=1e-6)
        assert not table[1:, 0].any()  # the last roll is needed, so no chance was cut off
        assert not table[:, 31].any()


# Shots of 36 that bear off everything in one roll.
ONE_ROLL = {
    (6,): 27, (1, 1): 36, (2, 1): 36, (3, 1): 34, (4, 1): 29, (2, 2): 26, (3, 2): 25, (4, 2): 23,
    (5, 1): 23, (5, 2): 19, (4, 3): 17, (3, 3): 17, (6, 1): 15, (5, 3): 14, (6, 2): 13, (4, 4): 11,
    (5, 4): 10, (6, 3): 10, (6, 4): 8, (5, 5): 6, (6, 5): 6, (6, 6): 4, (1, 1, 1): 6,
    (2, 2, 2): 5, (2, 2, 2, 2): 5,
}  # fmt: skip


@pytest.mark.parametrize("points", ONE_ROLL)
def test_one_roll_races(db, points):
    home = [points.count(point) for point in range(1, 7)]
    expected = ONE_ROLL[points] / 36
    assert db.rolls(row(home))[1] == pytest.approx(expected, abs=1e-7)
    # The opponent has one checker on the ace point and wins with any roll.
    p = db.evaluate(board(home, (1, 0, 0, 0, 0, 0)))
    assert p == pytest.approx([expected, 0, 0, 0, 0], abs=1e-7)


def test_equities_against_fractions(db):
    some = homes(2)[1:]
    for mine, theirs in itertools.product(some, some):
        expected = [
            float(plain_bearoff.equity(mine, theirs, cube))
            for cube in ("none", "centred", "mine", "theirs")
        ]
        assert db.cube_equities(board(mine, theirs)) == pytest.approx(expected, abs=1e-6)


def test_one_side_at_a_time_comes_close(db):
    rng = np.random.default_rng(0)
    small = positions_of(6)
    exact_equity = db.arrays.equities[bearoff.NO_CUBE]
    all_off = np.asarray(db.arrays.all_off, np.float64)
    mine, theirs = rng.integers(1, small, (2, 20_000))
    still_on = np.cumsum(all_off[:, ::-1], axis=1)[:, ::-1]  # needs t rolls or more
    win = (all_off[mine] * still_on[theirs]).sum(axis=1)
    error = np.abs(win - (exact_equity[mine, theirs] + 1) / 2)
    assert error.max() < 0.02
    assert error.mean() < 0.001


def test_gammons(db):
    # Two checkers on the ace point bear off next turn, so that fifteen on the 6 point have one
    # roll to save the gammon: any 6, 5-1, 4-2, 3-3 or 2-2.
    mine, theirs = (2, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 15)
    assert db.evaluate(board(mine, theirs)) == pytest.approx([1, 1, 0, 0, 0])
    p = db.evaluate(board(theirs, mine))
    assert p == pytest.approx([0, 0, 0, 19 / 36, 0], abs=1e-6)
    p = db.evaluate(board((0, 0, 0, 0, 5, 10), (0, 0, 0, 0, 10, 5)))
    assert 0 < p[1] < 1e-3
    assert 0 < p[3] < 1e-3


def test_the_winner_is_certain(db):
    assert db.evaluate(board((3, 0, 0, 0, 0, 0), (0,) * 6)) == pytest.approx([0, 0, 0, 0, 0])
    over = np.array([side({5: 15}), side({})], np.int8)
    assert db.evaluate(over) == pytest.approx([0, 0, 0, 1, 0])


def test_what_is_covered(db):
    assert db.covers(board((3, 3, 3, 2, 2, 2), (15, 0, 0, 0, 0, 0)))
    outside = np.array([side({7: 1, 1: 3}), side({2: 4})], np.int8)
    assert not db.covers(outside)
    assert not db.covers(outside[::-1])
    assert np.isnan(db.evaluate(outside)).all()
    assert db.cube_equities(board((7, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0))) is None
    with pytest.raises(BgrlError, match="not in the bear-off database"):
        db.rolls(outside[0])


def test_smaller_databases(tmp_path):
    small = Bearoff.load(build(tmp_path / "small", 4, 2))
    assert small.covers(board((2, 2, 0, 0, 0, 0), (0, 0, 0, 0, 0, 4)))
    assert not small.covers(board((2, 3, 0, 0, 0, 0), (0, 0, 0, 0, 0, 4)))
    with pytest.raises(BgrlError, match="may be 1 to 15"):
        build(tmp_path / "too_large", 16, 6)
    assert not (tmp_path / "too_large").exists()


def test_nothing_but_databases_is_replaced(tmp_path):
    place = build(tmp_path / "db", 2, 1)
    build(place, 3, 1)
    assert Bearoff.load(place).description["one_sided"]["checkers"] == 3
    (tmp_path / "empty").mkdir()
    build(tmp_path / "empty", 2, 1)
    other = tmp_path / "other"
    other.mkdir()
    for folder, file in ((other, other / "thesis.tex"), (place, place / "thesis.tex")):
        file.write_text("years of work")
        with pytest.raises(BgrlError, match=rf"{folder} holds something other.*: thesis\.tex"):
            build(folder, 2, 1)
        assert file.read_text() == "years of work"
    assert Bearoff.load(place).description["one_sided"]["checkers"] == 3
    with pytest.raises(BgrlError, match="is not a folder"):
        build(other / "thesis.tex", 2, 1)
    assert (other / "thesis.tex").read_text() == "years of work"


def test_its_hash_names_the_content(tmp_path):
    first, same, more = (
        Bearoff.load(build(tmp_path / name, 2, pair))
        for name, pair in (("first", 1), ("same", 1), ("more", 2))
    )
    assert re.fullmatch("[0-9a-f]{12}", first.hash)
    assert first.hash == same.hash != more.hash


def test_opened_when_absent_and_built_once(tmp_path, monkeypatch):
    monkeypatch.setattr(bearoff, "build", lambda folder: build(folder, 3, 1))
    first = Bearoff.open(tmp_path / "db")
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]
    monkeypatch.setattr(bearoff, "build", lambda folder: pytest.fail("built again"))
    again = Bearoff.open(tmp_path / "db")
    np.testing.assert_array_equal(first.arrays.all_off, again.arrays.all_off)


def test_two_processes_build_at_once(tmp_path, monkeypatch):
    def beaten(folder):
        build(tmp_path / "db", 2, 1)
        return build(folder, 3, 1)

    monkeypatch.setattr(bearoff, "build", beaten)
    assert Bearoff.open(tmp_path / "db").description["one_sided"]["checkers"] == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


def test_damage_is_noticed(tmp_path):
    place = build(tmp_path / "db", 3, 1)
    with pytest.raises(BgrlError, match="holds no bear-off databases"):
        Bearoff.load(tmp_path)
    data = bytearray((place / "all_off.npy").read_bytes())
    data[-1] ^= 1
    (place / "all_off.npy").write_bytes(data)
    with pytest.raises(CorruptFile, match=r"all_off\.npy"):
        Bearoff.load(place)
    description = json.loads((place / "bearoff.json").read_text())
    (place / "bearoff.json").write_text(json.dumps(description | {"version": 99}))
    with pytest.raises(SchemaMismatch, match="version 99"):
        Bearoff.load(place)


@pytest.fixture(scope="session")
def gnubg_one_sided():
    import gnubg_nn

    table = np.zeros((positions_of(15), 32))
    table[0, 0] = 1
    home = np.zeros(26, np.int8)
    for number in range(1, len(table)):
        home_counts(number, home)
        chances = gnubg_nn.bearoff_probabilities(tuple(int(n) for n in home[1:7]))
        table[number, 1 : len(chances) + 1] = chances
    return np.rint(table * 65535).astype(np.int64)


@pytest.fixture(scope="session")
def gnubg_two_sided():
    import gnubg_nn

    file = Path(gnubg_nn.__file__).parent / "data" / "gnubg_ts0.bd"
    raw = np.frombuffer(file.read_bytes()[40:], "<u2").reshape(924, 924, 4)
    return raw.astype(np.int64) - 32768


@pytest.mark.gnubg
class TestAgainstGnubg:
    """GNU Backgammon's tables hold 16-bit numbers, each rounded before it is used for the next.

    So its own rounded recursion must give its tables, every entry, and our unrounded ones must come
    as close as its rounding lets them.
    """

    def test_one_sided(self, db, gnubg_one_sided):
        homes = np.zeros((positions_of(15), 26), np.int8)
        for number, home in enumerate(homes):
            home_counts(number, home)
        rounded = plain_bearoff.gnubg_all_off(ROLLS, homes[:, 1:7].astype(np.int64))
        np.testing.assert_array_equal(rounded, gnubg_one_sided)
        t = np.arange(32)
        means = np.asarray(db.arrays.all_off, np.float64) @ t
        assert np.abs(means - gnubg_one_sided @ t / 65535).max() < 2e-4

    def test_two_sided(self, db, gnubg_two_sided):
        firsts, found = bearoff._all_successors(6)
        rounded = plain_bearoff.gnubg_two_sided(ROLLS, firsts, found, positions_of(6))
        np.testing.assert_array_equal(rounded[1:, 1:], gnubg_two_sided[1:, 1:])
        ours = np.stack([db.arrays.equities[cube] for cube in (0, 2, 1, 3)], axis=-1)
        theirs = (2 * gnubg_two_sided + 1) / 65535
        assert np.abs(ours - theirs)[1:, 1:].max() < 5 / 32768
