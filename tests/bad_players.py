"""Players that go wrong, in a module of their own so that spawned processes can import them."""

import os
import time

import numpy as np

from bgrl.game import BACKGAMMON
from bgrl.players.player import BoardPlayer


class BadPlayer(BoardPlayer):
    """Plays the first play of each roll, except in game `bad`, where it does `how` at ply 4 or so.

    how: "raise", "illegal", "nonsense", "hang" or "crash".
    """

    def __init__(self, how: str, bad: int):
        super().__init__(f"bad ({how})", BACKGAMMON)
        self.how = how
        self.bad = bad

    def start_game(self, seed, game, seat):
        self.game = game
        self.turns = 0

    def score(self, before, after, levels):
        return -np.arange(len(after), dtype=np.float64)

    def choose(self, board, die1, die2):
        self.turns += 1
        if self.game == self.bad and self.turns == 3:
            if self.how == "raise":
                raise RuntimeError("lost my dice")
            if self.how == "illegal":
                return board.copy()
            if self.how == "nonsense":
                return "24/18"
            if self.how == "hang":
                time.sleep(3600)
            if self.how == "crash":
                os._exit(7)
        return super().choose(board, die1, die2)
