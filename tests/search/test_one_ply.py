"""One ply, the exact mean over 21 rolls, against plain lookahead."""

import numpy as np
import pytest
from oracles.plain_search import plain_net, plain_value
from oracles.positions import position, to_board, to_sides

from bgrl.game import BACKGAMMON, HYPERGAMMON, NACKGAMMON
from bgrl.search import Searcher

POSITIONS = {
    "start": to_sides(BACKGAMMON.start_board()),
    "nackgammon": to_sides(NACKGAMMON.start_board()),
    "on the bar against four points": position(
        {"bar": 2, 13: 4, 8: 3, 6: 6}, {24: 2, 23: 2, 22: 2, 19: 3, 5: 1, 12: 5}
    ),
    "closed out": position(
        {"bar": 1, 6: 5, 5: 5, 4: 4}, {19: 3, 20: 3, 21: 3, 22: 2, 23: 2, 24: 2}
    ),
    "bearing off against an anchor": position({6: 3, 4: 3, 2: 3}, {1: 2, 20: 5, 21: 5, 22: 3}),
    "race for the gammon": position({2: 2}, {13: 5, 14: 5, 18: 5}),
    "backgammon or not": position({1: 1, 2: 1}, {2: 1, 7: 4, 18: 10}),
    "last checkers": position({5: 1, 1: 1}, {20: 1, 24: 1}),
    "lost a gammon": position({7: 15}, {}),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_equals_plain_lookahead(name, weights, net):
    sides = POSITIONS[name]
    expected = plain_value(plain_net(weights), sides, 1)
    np.testing.assert_allclose(Searcher(net, 1).evaluate(to_board(sides)), expected, atol=2e-6)


def test_random_positions_of_games(weights, net, game_boards):
    evaluate = plain_net(weights)
    boards = game_boards[::37][:40]
    expected = [plain_value(evaluate, to_sides(board), 1) for board in boards]
    np.testing.assert_allclose(Searcher(net, 1).evaluate(boards), expected, atol=2e-6)


def test_three_checkers(hyper_weights, hyper_net):
    sides = to_sides(HYPERGAMMON.start_board())
    expected = plain_value(plain_net(hyper_weights), sides, 1)
    np.testing.assert_allclose(
        Searcher(hyper_net, 1).evaluate(to_board(sides)), expected, atol=2e-6
    )


def test_result_does_not_depend_on_the_batch(net, game_boards):
    together = Searcher(net, 1).evaluate(game_boards)
    alone = np.stack([Searcher(net, 1).evaluate(board) for board in game_boards[:50]])
    assert together.shape == (len(game_boards), 5)
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[:50], alone)
    p = together
    assert (p >= 0).all()
    assert (p[:, 2] <= p[:, 1]).all()
    assert (p[:, 1] <= p[:, 0]).all()
    assert (p[:, 4] <= p[:, 3]).all()
    assert (p[:, 3] <= 1 - p[:, 0]).all()


def test_no_boards(net):
    assert Searcher(net, 1).evaluate(np.empty((0, 2, 26), np.int8)).shape == (0, 5)
