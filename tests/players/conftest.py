"""Positions reached in play, and a small net, for the tests of players."""

import numpy as np
import pytest

from bgrl.game import BACKGAMMON
from bgrl.game.board import loss_level
from bgrl.players import load_player


@pytest.fixture(scope="session")
def decisions():
    """3,000 (board int8[2, 26], die 1, die 2) of games between random and pubeval."""
    rng = np.random.default_rng(0)
    random, pubeval = load_player("random"), load_player("pubeval")
    found = []
    game = 0
    while len(found) < 3000:
        random.start_game(1, game, 0)
        game += 1
        board = BACKGAMMON.start_board()
        while not loss_level(board):
            die1, die2 = (int(die) for die in rng.integers(1, 7, 2))
            found.append((board.copy(), die1, die2))
            player = pubeval if (len(found) + game) % 3 else random
            board = player.choose(board, die1, die2)
    return found
