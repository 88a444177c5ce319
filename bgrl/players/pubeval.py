"""pubeval, the benchmark player that Gerald Tesauro published in 1993.

Two linear evaluators of 122 inputs, one for races and one for contact. The weights and their
source are in ``pubeval.json``.
"""

import json
from importlib.resources import files

import numpy as np
from numba import njit

from bgrl.game import BACKGAMMON, Variant
from bgrl.game.board import BAR, OFF, POINTS, is_race, loss_level
from bgrl.players.player import BoardPlayer

INPUTS = 122


def load_weights() -> tuple[np.ndarray, np.ndarray]:
    """The weights for races and for contact, each float64[122]."""
    data = json.loads(files("bgrl.players").joinpath("pubeval.json").read_text())
    return np.array(data["race"]), np.array(data["contact"])


@njit(cache=True)
def pubeval_score(weights, after):
    """pubeval's sum for the player who has just moved, on roll second in `after` (int8[2, 26]).

    weights: float64[122]. With n the checkers on one of the mover's points, the opponent's
    counted negative, five inputs a point from 24 down to 1: [n = -1], [n = 1], [n >= 2],
    [n = 3], (n - 3) / 2 for n >= 4; then the opponent's checkers on the bar / 2, and the mover's
    borne off / 15.
    """
    total = 0.0
    for point in range(1, POINTS + 1):
        at = 5 * (POINTS - point)
        n = after[1, point]
        if n == 0:
            if after[0, 25 - point] == 1:
                total += weights[at]
        elif n == 1:
            total += weights[at + 1]
        else:
            total += weights[at + 2]
            if n == 3:
                total += weights[at + 3]
            elif n >= 4:
                total += weights[at + 4] * (n - 3) / 2
    return total + weights[120] * after[0, BAR] / 2 + weights[121] * after[1, OFF] / 15


# A play that wins the game beats every other; more points are better.
WON = 1e6


@njit(cache=True)
def play_score(weights, after):
    """What pubeval ranks a play by, with the weights that it chose for the position before."""
    level = loss_level(after)
    return WON * level if level > 0 else pubeval_score(weights, after)


@njit(cache=True)
def _scores(race, contact, before, after):
    # The position before the play decides, for all plays: comparing sums of both evaluators would
    # compare unlike things, and makes a weaker player.
    weights = race if is_race(before) else contact
    out = np.empty(len(after))
    for i in range(len(after)):
        out[i] = play_score(weights, after[i])
    return out


class PubevalPlayer(BoardPlayer):
    """pubeval. It ranks plays and estimates no probabilities."""

    def __init__(self, variant: Variant = BACKGAMMON):
        super().__init__("pubeval", variant)
        self.race, self.contact = load_weights()

    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return _scores(self.race, self.contact, before, after)
