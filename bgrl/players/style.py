"""Styles: which of the plays that are nearly the best one a level likes most."""

from dataclasses import astuple, dataclass

import numpy as np
from numba import njit

from bgrl.errors import BgrlError
from bgrl.files import is_number
from bgrl.game.board import BAR, POINTS

# A play's features, as the mover leaves the board: see :func:`features`.
FEATURES = ("hits", "points", "shots", "back")
BACK = 19  # the first of the slots that are the opponent's home


@dataclass(frozen=True)
class Style:
    """Among the plays that lose at most ``loss`` points against the best, in the level's own
    ranking, take the one with the greatest sum of weights times features; of equals the better.

    The other fields are the weights of :func:`features`.
    """

    name: str
    loss: float = 0.0
    hits: float = 0.0
    points: float = 0.0
    shots: float = 0.0
    back: float = 0.0

    def __post_init__(self) -> None:
        name, *numbers = astuple(self)
        named = isinstance(name, str) and name
        if not (named and all(map(is_number, numbers)) and self.loss >= 0):
            raise BgrlError(f"a style needs a name, a loss of 0 or more and finite weights: {self}")

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of FEATURES."""
        return self.hits, self.points, self.shots, self.back


BALANCED = Style("balanced")
AGGRESSIVE = Style("aggressive", 0.02, hits=2, points=1)
CAUTIOUS = Style("cautious", 0.02, shots=-1)
RUNNER = Style("runner", 0.02, back=-1)
STYLES = {style.name: style for style in (BALANCED, AGGRESSIVE, CAUTIOUS, RUNNER)}


@njit(cache=True)
def features(board):
    """(hits, points, shots, back) of what a play leaves: int8[2, 26], the opponent on roll.

    hits: the opponent's checkers on the bar. points: the mover's points, of two checkers or more.
    shots: see :func:`shots`. back: the mover's checkers in the opponent's home or on the bar.
    """
    points = 0
    back = 0
    for slot in range(1, POINTS + 1):
        points += board[1, slot] >= 2
    for slot in range(BACK, BAR + 1):
        back += board[1, slot]
    return board[0, BAR], points, shots(board), back


@njit(cache=True)
def shots(board):
    """How many of the 36 rolls reach a blot of the side not on roll (int8[2, 26]).

    By one die, both, or as much of a double as it takes, whatever stands in between.
    """
    # Bit d: some checker of the side on roll has a blot d pips ahead.
    ahead = 0
    for slot in range(1, POINTS + 1):
        if board[1, slot] == 1:
            for mine in range(26 - slot, BAR + 1):
                if board[0, mine] > 0:
                    ahead |= 1 << (mine - (25 - slot))
    if ahead == 0:
        return 0
    ways = 0
    for die1 in range(1, 7):
        for die2 in range(1, 7):
            reach = 1 << die1 | 1 << die2 | 1 << (die1 + die2)
            if die1 == die2:
                reach |= 1 << 3 * die1 | 1 << 4 * die1
            ways += (ahead & reach) != 0
    return ways


@njit(cache=True)
def liking(weights, board):
    """The sum of weights (float64[4]) times :func:`features` of int8[2, 26]."""
    hits, points, exposed, back = features(board)
    return weights[0] * hits + weights[1] * points + weights[2] * exposed + weights[3] * back


def style_named(name: str) -> Style:
    """The style called `name`; BgrlError names those that there are."""
    if name not in STYLES:
        raise BgrlError(f"there is no style {name!r}; known are {', '.join(STYLES)}")
    return STYLES[name]


def weight_array(style: Style) -> np.ndarray:
    """The style's weights as float64[4], for the kernels."""
    return np.array(style.weights, dtype=np.float64)
