"""Boards met in random play, for tests that need many of them."""

import numpy as np

from bgrl.game import BACKGAMMON, Variant
from bgrl.game.board import loss_level, swap_into
from bgrl.game.dice import Dice
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer


def random_boards(games: int, seed: int = 1, variant: Variant = BACKGAMMON) -> np.ndarray:
    """int8[N, 2, 26]: every position before the dice of ``games`` randomly played games."""
    plays = new_play_buffer()
    boards = []
    for game in range(games):
        dice, choice = Dice(seed, game), Dice(seed, game, purpose=9)
        die1, die2 = dice.opening_roll()
        board = variant.start_board()
        while not loss_level(board):
            boards.append(board)
            after = np.empty_like(board)
            n = generate_plays(board, die1, die2, plays)
            if n:
                apply_play(board, plays[choice.below(n)], after)
            else:
                swap_into(board, after)
            board = after
            die1, die2 = dice.roll()
    return np.array(boards)
