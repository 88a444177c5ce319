"""The luck of the dice, a control variate that takes most of the noise out of a match.

The luck of a roll is what the best play with it is worth less the exact mean of that over all
rolls. Whatever evaluator puts the values, its expectation before the roll is 0, so the sum over a
game has expectation 0 and a result less its luck estimates the same mean. A good evaluator makes
the difference small in variance; a bad one only costs variance.
"""

from typing import Protocol

import numpy as np
from numba import njit

from bgrl.game import Variant
from bgrl.game.board import SLOTS, loss_level, swap_into
from bgrl.game.dice import ROLLS
from bgrl.game.outcomes import equity, equity1
from bgrl.game.plays import apply_play, generate_plays
from bgrl.nets.fast import FastNet
from bgrl.nets.kernels import NetArrays, evaluate_plays
from bgrl.players import EquityPlayer
from bgrl.players.net import NetPlayer
from bgrl.players.player import exact_where_over, play_buffer

WAYS = ROLLS[:, 2].astype(np.float64)  # of 36


class LuckEvaluator(Protocol):
    """What values rolls."""

    @property
    def identity(self) -> str:
        """Names the evaluator and its weights."""

    def roll_values(self, board: np.ndarray) -> np.ndarray:
        """float64[21]: equity of the player on roll of int8[2, 26] after the best play of each of
        ``bgrl.game.dice.ROLLS``."""


@njit(cache=True, inline="always")
def roll_index(die1, die2):
    """The row of ``bgrl.game.dice.ROLLS`` that holds a roll."""
    high, low = max(die1, die2), min(die1, die2)
    return high * (high - 1) // 2 + low - 1


@njit(cache=True)
def roll_luck(values, ways, roll):
    """values[roll] less the mean of values (float64[21]), each weighted by its ways of 36."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] * ways[i]
    return values[roll] - total / 36


@njit(cache=True)
def net_roll_values(net, scratch, rolls, board, values):
    """Write into values (float64[21]) what the best play of each roll is worth to a net."""
    dance = np.nan
    for i in range(len(rolls)):
        n = evaluate_plays(
            net,
            scratch,
            board,
            rolls[i, 0],
            rolls[i, 1],
            scratch.best_value,
            scratch.no_probabilities,
        )
        if n > 0:
            values[i] = scratch.best_value[0]
            continue
        if np.isnan(dance):
            dance = -equity1(scratch.outputs, 0, net.points)
        values[i] = dance


class NetLuck:
    """Luck as a net sees it at 0-ply, by its numba twin.

    points: what a single game, a gammon and a backgammon count; None: as in the net's variant.
    """

    def __init__(self, net: FastNet, points: tuple[int, int, int] | None = None):
        self.net = net
        self.points = points or net.variant.points

    @property
    def arrays(self) -> NetArrays:
        """The net, playing for such points."""
        return self.net.arrays._replace(points=np.array(self.points, np.int64))

    @property
    def identity(self) -> str:
        return f"net {self.net.hash}{_scoring(self.points, self.net.variant)}"

    def roll_values(self, board: np.ndarray) -> np.ndarray:
        values = np.empty(len(ROLLS))
        net_roll_values(self.arrays, self.net.scratch, ROLLS, board, values)
        return values


def _scoring(points: tuple[int, int, int], variant: Variant) -> str:
    return "" if points == variant.points else f" for points {points}"


@njit(cache=True)
def _all_boards_after(board, rolls, buffer):
    """(boards int8[N, 2, 26] after every play of every roll, the first of each roll int64[22])."""
    starts = np.zeros(len(rolls) + 1, dtype=np.int64)
    out = np.empty((256, 2, SLOTS), dtype=np.int8)
    n = 0
    for i in range(len(rolls)):
        plays = generate_plays(board, rolls[i, 0], rolls[i, 1], buffer)
        while n + max(plays, 1) > len(out):
            larger = np.empty((2 * len(out), 2, SLOTS), dtype=np.int8)
            larger[:n] = out[:n]
            out = larger
        if plays == 0:
            swap_into(board, out[n])
            n += 1
        for k in range(plays):
            apply_play(board, buffer[k], out[n])
            n += 1
        starts[i + 1] = n
    levels = np.empty(n, dtype=np.int64)
    for k in range(n):
        levels[k] = loss_level(out[k])
    return out[:n], levels, starts


class PlayerLuck:
    """Luck as any player that estimates probabilities sees it; `points` as for NetLuck."""

    def __init__(self, player: EquityPlayer, points: tuple[int, int, int] | None = None):
        self.player = player
        self.points = points or player.variant.points

    @property
    def identity(self) -> str:
        return f"{self.player.identity}{_scoring(self.points, self.player.variant)}"

    def roll_values(self, board: np.ndarray) -> np.ndarray:
        boards, levels, starts = _all_boards_after(board, ROLLS, play_buffer())
        theirs = exact_where_over(self.player.probabilities, boards, levels)
        values = -equity(theirs.astype(np.float64), self.points)
        return np.maximum.reduceat(values, starts[:-1])


def luck_evaluator(
    player: EquityPlayer, points: tuple[int, int, int] | None = None
) -> LuckEvaluator:
    """The luck evaluator that values rolls as `player` does, the fastest there is for it.

    points: what a single game, a gammon and a backgammon count; None: as in its variant.
    """
    if isinstance(player, NetPlayer):
        return NetLuck(player.net, points)
    return PlayerLuck(player, points)
