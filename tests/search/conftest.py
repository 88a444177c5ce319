"""Small nets and positions of every kind for the tests of lookahead."""

from itertools import pairwise

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.game import BACKGAMMON, HYPERGAMMON
from bgrl.nets import FastNet, Weights


def small_weights(hidden=(16, 8), variant=BACKGAMMON, seed=0) -> Weights:
    """A net with random weights, large enough that plays differ well."""
    rng = np.random.default_rng(seed)
    encoder = get_encoder("tesauro198")
    widths = [encoder.n_inputs, *hidden, 5]
    layers = []
    for n_in, n_out in pairwise(widths):
        weight = rng.normal(0, (2 / n_in) ** 0.5 * 1.5, (n_out, n_in)).astype(np.float32)
        layers.append((weight, rng.normal(0, 0.3, n_out).astype(np.float32)))
    return Weights(encoder, variant, layers)


@pytest.fixture(scope="session")
def weights():
    return small_weights()


@pytest.fixture(scope="session")
def net(weights):
    return FastNet(weights)


@pytest.fixture(scope="session")
def small():
    """A smaller net with other weights."""
    return FastNet(small_weights(hidden=(8,), seed=7))


@pytest.fixture(scope="session")
def hyper_weights():
    return small_weights(variant=HYPERGAMMON, seed=1)


@pytest.fixture(scope="session")
def hyper_net(hyper_weights):
    return FastNet(hyper_weights)


@pytest.fixture(scope="session")
def game_boards():
    """int8[1500, 2, 26]: positions met by pubeval and by random players, none of them over."""
    from bgrl.game.board import loss_level
    from bgrl.game.dice import Dice
    from bgrl.players import load_player

    random, pubeval = load_player("random"), load_player("pubeval")
    found = []
    game = 0
    while len(found) < 1500:
        dice = Dice(1, game)
        random.start_game(1, game, 0)
        board = BACKGAMMON.start_board()
        while not loss_level(board):
            found.append(board.copy())
            player = random if (len(found) + game) % 6 == 0 else pubeval
            board = player.choose(board, *dice.roll())
        game += 1
    return np.array(found[:1500])
