"""Lookahead against plain full-width search; what filters, databases and the cache may change."""

import pickle

import numpy as np
import pytest
from oracles.plain_search import after_plays, flipped, money, plain_net, plain_value
from oracles.positions import position, side, to_board, to_sides

from bgrl.errors import BgrlError
from bgrl.game import BACKGAMMON
from bgrl.game.board import loss_level
from bgrl.game.dice import ROLLS
from bgrl.search import (
    ALL,
    BEST,
    FULL,
    NORMAL,
    Bearoff,
    Filters,
    MoveFilter,
    Pruner,
    Searcher,
)
from bgrl.search.bearoff import build

# Few plays a roll, so that plain full-width search gets through: contact, hits, races, the bar.
SMALL = {
    "contact": ({8: 1, 3: 1}, {5: 1, 19: 1}),
    "from the bar": ({"bar": 1, 2: 1}, {22: 2, 20: 1}),
    "race": ({9: 1, 2: 1}, {15: 1, 23: 1}),
    "gammon at stake": ({4: 2}, {17: 8, 6: 7}),
    "nearly over": ({2: 1, 1: 1}, {24: 1, 23: 1}),
}


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    return Bearoff.load(build(tmp_path_factory.mktemp("bearoff") / "db", 15, 6))


@pytest.mark.parametrize(
    ("name", "plies"),
    [(name, plies) for name in SMALL for plies in (0, 1, 2)]
    + [("from the bar", 3), ("nearly over", 3)],
)
def test_full_width_equals_plain_search(name, plies, weights, net):
    sides = position(*SMALL[name])
    expected = plain_value(plain_net(weights), sides, plies)
    found = Searcher(net, plies, FULL).evaluate(to_board(sides))
    np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize("plies", [2, 3])
def test_best_reply_equals_plain_search(plies, weights, net):
    for name in ("from the bar", "nearly over", "race"):
        sides = position(*SMALL[name])
        expected = plain_value(plain_net(weights), sides, plies, best_reply=True)
        found = Searcher(net, plies, NORMAL).evaluate(to_board(sides))
        np.testing.assert_allclose(found, expected, atol=3e-6)


def test_exact_leaves_equal_plain_search(weights, net, db):
    def exact(sides):
        p = db.evaluate(to_board(sides))
        return None if np.isnan(p[0]) else p.astype(float)

    for name, plies in (("race", 1), ("race", 2), ("gammon at stake", 1), ("nearly over", 3)):
        sides = position(*SMALL[name])
        for filters, best_reply in ((FULL, False), (NORMAL, True)):
            expected = plain_value(plain_net(weights), sides, plies, best_reply, exact)
            found = Searcher(net, plies, filters, db).evaluate(to_board(sides))
            np.testing.assert_allclose(found, expected, atol=3e-6)
    near = to_board(position({8: 1, 2: 5}, {20: 4, 23: 1}))
    found = Searcher(net, 1, FULL, db).evaluate(near)
    assert not np.allclose(found, Searcher(net, 1, FULL).evaluate(near), atol=0.01)
    covered = to_board(position({4: 3, 2: 5}, {20: 4, 23: 1}))
    for plies in range(4):
        found = Searcher(net, plies, bearoff=db).evaluate(covered)
        np.testing.assert_array_equal(found, db.evaluate(covered))


def test_whole_game_positions(net, game_boards):
    """Two plies put together by hand from one ply and the net's best reply."""
    boards = game_boards[::211]
    one_ply = Searcher(net, 1)
    found = Searcher(net, 2, NORMAL).evaluate(boards)
    for board, p in zip(boards, found, strict=True):
        total = np.zeros(5)
        for die1, die2, ways in ROLLS:
            rows, values, _ = net.plays(board, die1, die2)
            after = after_rows(board, rows) if len(rows) else board[None, ::-1]
            best = after[np.argmax(values)] if len(rows) else after[0]
            total += ways * flipped(one_ply.evaluate(np.ascontiguousarray(best)))
        np.testing.assert_allclose(p, total / 36, atol=1e-6)
    np.testing.assert_array_equal(Searcher(net, 0).evaluate(boards), net.evaluate(boards))


@pytest.mark.parametrize("keep", [1, 3, 4])
def test_a_pruner_chooses_what_the_net_looks_at(keep, net, small, game_boards):
    """One ply put together by hand from both nets' values of every play."""
    boards = game_boards[3::97]
    found = Searcher(net, 1, pruner=Pruner(small, keep)).evaluate(boards)
    pruned = 0
    for board, p in zip(boards, found, strict=True):
        total = np.zeros(5)
        for die1, die2, ways in ROLLS:
            rows, values, theirs = net.plays(board, die1, die2)
            if len(rows) == 0:
                theirs, values = net.evaluate(board[None, ::-1]), np.zeros(1)
            else:
                liked = np.argsort(-small.plays(board, die1, die2)[1], kind="stable")[:keep]
                pruned += len(liked) < len(rows)
                theirs, values = theirs[np.sort(liked)], values[np.sort(liked)]
            total += ways * flipped(theirs[np.argmax(values)].astype(float))
        np.testing.assert_allclose(p, total / 36, atol=1e-6)
    assert pruned > 100


def test_a_pruner_that_keeps_all_changes_nothing(net, small, hyper_net, game_boards):
    boards = game_boards[::211]
    for plies in (1, 2):
        found = Searcher(net, plies, pruner=Pruner(small, 10_000))
        np.testing.assert_array_equal(found.evaluate(boards), Searcher(net, plies).evaluate(boards))
        again = pickle.loads(pickle.dumps(found))
        assert again.pruner.keep == 10_000
    with pytest.raises(BgrlError, match="keeps at least 1"):
        Pruner(small, 0)
    with pytest.raises(BgrlError, match="pruner for hypergammon, but a net for backgammon"):
        Searcher(net, 1, pruner=Pruner(hyper_net))


def after_rows(board, rows):
    from bgrl.game.plays import apply_play

    out = np.empty((len(rows), 2, 26), np.int8)
    for row, after in zip(rows, out, strict=True):
        apply_play(board, row, after)
    return out


@pytest.mark.parametrize("plies", [1, 2])
def test_filters_change_no_value_but_only_what_is_looked_at(plies, net, game_boards):
    wide = Searcher(net, plies, Filters((), BEST))
    narrow = Searcher(net, plies, Filters((MoveFilter(2, 3, 0.05),), BEST))
    for board in game_boards[5::307]:
        full, some = wide.plays(board, 4, 2), narrow.plays(board, 4, 2)
        assert (full.plies == plies).all()
        looked = some.plies == plies
        assert min(2, len(looked)) <= looked.sum() <= 5
        np.testing.assert_array_equal(some.equities[looked], full.equities[looked])
        # By the values at 0 plies nothing that was left out beats what was kept.
        static = Searcher(net, 0).plays(board, 4, 2).equities
        assert static[~looked].max(initial=-9) <= static[looked].min(initial=9)
        extra = np.sort(static[looked])[::-1][2:]
        assert (extra >= static.max() - 0.05 - 1e-6).all()
        np.testing.assert_array_equal(some.equities[~looked], static[~looked])
        best = some.order()[0]
        assert looked[best]
        assert some.equities[best] == some.equities[looked].max()


@pytest.mark.parametrize("plies", [0, 1, 2])
def test_plays_equal_plain_search(plies, weights, net):
    sides = position(*SMALL["contact"])
    evaluate = plain_net(weights)
    found = Searcher(net, plies, FULL).plays(to_board(sides), 5, 2)
    by_position = {to_sides(b): p for b, p in zip(found.boards, found.probabilities, strict=True)}
    plain = {after: plain_value(evaluate, after, plies) for after in after_plays(sides, 5, 2)}
    assert by_position.keys() == plain.keys()
    for after, p in plain.items():
        np.testing.assert_allclose(by_position[after], p, atol=3e-6)
    best = min(plain, key=lambda after: money(plain[after]))
    chosen = Searcher(net, plies, FULL).best_play(to_board(sides), 5, 2)
    assert to_sides(chosen) == best
    np.testing.assert_array_equal(chosen, found.boards[found.order()[0]])


def test_three_plies_narrow_twice(net):
    board = BACKGAMMON.start_board()
    filters = Filters((MoveFilter(3), MoveFilter(2), MoveFilter(1)), BEST)
    found = Searcher(net, 3, filters).plays(board, 3, 1)
    assert sorted(found.plies, reverse=True)[:4] == [3, 2, 1, 0]
    ordered = found.order()
    assert list(found.plies[ordered][:4]) == [3, 2, 1, 0]


def test_no_plays(net):
    blocked = np.array(
        [side({25: 1, 6: 14}), side({1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 3})], np.int8
    )
    searcher = Searcher(net, 2)
    assert len(searcher.plays(blocked, 6, 5).plays) == 0
    np.testing.assert_array_equal(searcher.best_play(blocked, 6, 5), blocked[::-1])


def test_winning_at_once_is_exact(net):
    board = to_board(position({1: 2}, {13: 15}))
    for plies in range(4):
        searcher = Searcher(net, plies)
        after = searcher.best_play(board, 2, 1)
        assert loss_level(after) == 2
        if plies:
            assert searcher.evaluate(board) == pytest.approx([1, 1, 0, 0, 0], abs=1e-6)


def test_the_cache_changes_nothing(net, game_boards):
    boards = game_boards[:60]
    without = Searcher(net, 2, cache=0).evaluate(boards)
    tiny = Searcher(net, 2, cache=13)  # collides all the time
    large = Searcher(net, 2, cache=1 << 12)
    for searcher in (tiny, large):
        for _ in range(2):
            np.testing.assert_array_equal(searcher.evaluate(boards), without)
    # Values at fewer plies have places of their own.
    np.testing.assert_array_equal(
        large.evaluate(boards, 1), Searcher(net, 1, cache=0).evaluate(boards)
    )


def test_reply_filters_widen_the_search(net):
    board = to_board(position(*SMALL["from the bar"]))
    full = Searcher(net, 2, FULL).evaluate(board)
    wide = Searcher(net, 2, Filters((), MoveFilter(1, 50, 9.0))).evaluate(board)
    np.testing.assert_allclose(wide, full, atol=1e-6)
    assert FULL.reply == ALL


def test_pickles(net, db):
    board = to_board(position(*SMALL["race"]))
    searcher = Searcher(net, 2, NORMAL, db)
    again = pickle.loads(pickle.dumps(searcher))
    np.testing.assert_array_equal(again.evaluate(board), searcher.evaluate(board))
    assert len(pickle.dumps(db)) < 1000


def test_too_deep(net):
    with pytest.raises(BgrlError, match="0 to 3 plies"):
        Searcher(net, 4)
    board = BACKGAMMON.start_board()
    for plies in (-1, 4, 5):
        with pytest.raises(BgrlError, match=f"0 to 3 plies ahead, not {plies}"):
            Searcher(net, 1).evaluate(board, plies)
