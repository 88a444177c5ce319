"""Whole games between players that are kernels, without Python in between.

The same games as `bgrl.evaluate.game.play_game` plays, to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from bgrl.evaluate.game import MAX_PLIES, GameResult, chain
from bgrl.evaluate.luck import (
    WAYS,
    LuckEvaluator,
    NetLuck,
    net_roll_values,
    roll_index,
    roll_luck,
)
from bgrl.game import Variant
from bgrl.game.board import SLOTS, is_race, loss_level, swap_into
from bgrl.game.dice import ROLLS, game_stream, next_below, next_roll, opening_roll
from bgrl.game.plays import MAX_PLAYS, apply_play, generate_plays
from bgrl.nets.kernels import NetArrays, Scratch, best_play, evaluate_plays, new_scratch
from bgrl.players import Player
from bgrl.players.level import Choice, Level, LevelPlayer, decide, next_chance
from bgrl.players.net import NetPlayer
from bgrl.players.pubeval import PubevalPlayer, load_weights, play_score
from bgrl.players.random import RandomPlayer, player_stream

RANDOM, PUBEVAL, NET, LEVEL = range(4)


class FastPlayer(NamedTuple):
    """A player as the kernel takes it; what its kind doesn't use is empty."""

    kind: int
    net: NetArrays
    scratch: Scratch
    choice: Choice
    values: np.ndarray  # float32[MAX_PLAYS], for the plays of a roll
    plies: np.ndarray  # int64[MAX_PLAYS], zeros: a kernel looks at all plays alike


def fast_player(player: Player) -> FastPlayer | None:
    """The kernel's form of a player, or None if it has none."""
    # The exact types: a subclass may play otherwise.
    if type(player) is NetPlayer:
        return _fast(NET, player.net.arrays)
    if type(player) is LevelPlayer and player.level.plies == 0 and not player.searcher.bearoff:
        return _fast(LEVEL, player.searcher.net.arrays, player.level.choice)
    if type(player) is PubevalPlayer:
        return _fast(PUBEVAL)
    if type(player) is RandomPlayer:
        return _fast(RANDOM)
    return None


def _fast(kind: int, net: NetArrays | None = None, choice: Choice | None = None) -> FastPlayer:
    net = net or _NO_NET
    size = MAX_PLAYS if kind == LEVEL else 0
    return FastPlayer(
        kind, net, new_scratch(net), choice or Level("none").choice,
        np.zeros(size, np.float32), np.zeros(size, np.int64),
    )  # fmt: skip


_NOTHING = np.zeros(0, dtype=np.float32)
_NO_NET = NetArrays(
    _NOTHING, _NOTHING, _NOTHING, np.zeros(1, dtype=np.int64), 0, 0, np.array([1, 2, 3])
)


@dataclass
class FastPair:
    """A match of two players whose games run in the kernel."""

    a: FastPlayer
    b: FastPlayer
    luck: FastPlayer | None
    start: np.ndarray
    seed: int

    def play(self, first: int, last: int) -> Iterator[tuple[int, tuple[GameResult, GameResult]]]:
        """Play the pairs [first, last); yields each number and its games from a's view.

        An outcome of 0 marks a game that doesn't end.
        """
        n = last - first
        outcomes = np.zeros((n, 2), dtype=np.int8)
        luck = np.zeros((n, 2))
        plies = np.zeros((n, 2), dtype=np.int32)
        checks = np.zeros((n, 2), dtype=np.uint64)
        judge = self.luck or self.a
        race, contact = load_weights()
        _play_pairs(
            first, self.seed, self.start, self.a, self.b, race, contact,
            self.luck is not None, judge.net, judge.scratch, ROLLS, WAYS,
            outcomes, luck, plies, checks,
        )  # fmt: skip
        for i in range(n):
            games = [
                GameResult(
                    int(outcomes[i, game]),
                    float(luck[i, game]),
                    int(plies[i, game]),
                    int(checks[i, game]),
                )
                for game in range(2)
            ]
            yield first + i, (games[0], games[1])


def fast_pair(
    a: Player, b: Player, variant: Variant, seed: int, luck: LuckEvaluator | None
) -> FastPair | None:
    """The match as the kernel plays it, or None if a player or the luck evaluator isn't one."""
    fast_a, fast_b = fast_player(a), fast_player(b)
    if fast_a is None or fast_b is None or not (luck is None or type(luck) is NetLuck):
        return None
    judge = None
    if luck is not None:
        judge = _fast(NET, luck.arrays)
    return FastPair(fast_a, fast_b, judge, variant.start_board(), seed)


@njit(cache=True)
def _choose(player, race, contact, state, board, die1, die2, out):
    """Write what the opponent faces into `out`; returns the player's new stream state."""
    kind = player.kind
    plays = player.scratch.plays
    if kind == NET:
        best_play(player.net, player.scratch, board, die1, die2, out)
        return state
    if kind == LEVEL:
        state, chance = next_chance(state)
        values, none = player.values, player.scratch.no_probabilities
        n = evaluate_plays(player.net, player.scratch, board, die1, die2, values, none)
        if n == 0:
            swap_into(board, out)
        else:
            decide(player.choice, board, plays[:n], values, player.plies, chance, out)
        return state
    n = generate_plays(board, die1, die2, plays)
    if n == 0:
        swap_into(board, out)
        return state
    pick = 0
    if kind == RANDOM:
        if n > 1:
            state, pick = next_below(state, n)
    elif n > 1:
        weights = race if is_race(board) else contact
        best = -np.inf
        for i in range(n):
            apply_play(board, plays[i], out)
            score = play_score(weights, out)
            if score > best:
                best = score
                pick = i
    apply_play(board, plays[pick], out)
    return state


@njit(cache=True, nogil=True)
def _play_pairs(
    first, seed, start, a, b, race, contact,
    use_luck, judge, judge_scratch, rolls, ways,
    outcomes, lucks, plies, checks,
):  # fmt: skip
    values = np.empty(len(rolls))
    board = np.empty((2, SLOTS), dtype=np.int8)
    after = np.empty((2, SLOTS), dtype=np.int8)
    streams = np.empty(2, dtype=np.uint64)
    for i in range(len(outcomes)):
        for game in range(2):
            for seat in range(2):
                streams[seat] = player_stream(seed, first + i, seat)
            state, die1, die2 = opening_roll(game_stream(seed, first + i))
            seat = 0 if die1 > die2 else 1
            board[:] = start
            luck = 0.0
            check = np.uint64(0)
            for ply in range(MAX_PLIES):
                if use_luck:
                    net_roll_values(judge, judge_scratch, rolls, board, values)
                    roll = roll_index(die1, die2)
                    this_luck = values[roll] if ply == 0 else roll_luck(values, ways, roll)
                    luck += this_luck if seat == 0 else -this_luck
                # Player a has seat 0 in game 0 and seat 1 in game 1.
                player = a if seat == game else b
                streams[seat] = _choose(
                    player, race, contact, streams[seat], board, die1, die2, after
                )
                check = chain(check, after)
                level = loss_level(after)
                if level > 0:
                    sign = 1 if seat == game else -1
                    outcomes[i, game] = sign * level
                    plies[i, game] = ply + 1
                    checks[i, game] = check
                    lucks[i, game] = luck if game == 0 else -luck
                    break
                board[:] = after
                seat = 1 - seat
                state, die1, die2 = next_roll(state)


__all__ = ["FastPair", "fast_pair"]
