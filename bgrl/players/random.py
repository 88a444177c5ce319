"""The player that takes any legal play."""

import numpy as np
from numba import njit

from bgrl.game import BACKGAMMON, Variant
from bgrl.game.dice import game_stream, next_below
from bgrl.players.player import BoardPlayer


@njit(cache=True)
def player_stream(seed, game, seat):
    """State (uint64) of the stream of the chance that the player in `seat` of a game brings."""
    return game_stream(seed, game, 1 + seat)


class RandomPlayer(BoardPlayer):
    """Takes each distinct final position with the same probability.

    Its stream is a function of (seed, game, seat), so the games of a match can be replayed.
    """

    def __init__(self, variant: Variant = BACKGAMMON):
        super().__init__("random", variant)
        self.start_game(0, 0, 0)

    def start_game(self, seed: int, game: int, seat: int) -> None:
        self._state = player_stream(seed, game, seat)

    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        self._state, pick = next_below(np.uint64(self._state), len(after))
        scores = np.zeros(len(after))
        scores[pick] = 1.0
        return scores
