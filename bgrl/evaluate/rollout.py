"""Rollouts: what a position is worth when a player plays both sides to the end."""

import numpy as np

from bgrl.errors import BgrlError
from bgrl.evaluate.game import MAX_PLIES
from bgrl.evaluate.luck import WAYS, LuckEvaluator, roll_index, roll_luck
from bgrl.game.board import loss_level
from bgrl.game.dice import game_stream, next_roll
from bgrl.players import Player

STREAM = 102  # the purpose of the dice stream, see `bgrl.game.dice.game_stream`


def roll_out(
    player: Player,
    board: np.ndarray,
    games: int,
    seed: int = 0,
    luck: LuckEvaluator | None = None,
) -> np.ndarray:
    """Points that the player on roll of int8[2, 26] wins in each of `games` games: float64[games].

    `player` plays both sides. The dice are a function of (seed, game), so positions that are rolled
    out with one seed get the same dice, and their difference less noise than either has. `luck` is
    subtracted from each result as in a match.
    """
    level = loss_level(board)
    if level:
        return np.full(games, -float(player.variant.points[level - 1]))
    return np.array([_play(player, board, seed, game, luck) for game in range(games)])


def _play(
    player: Player, board: np.ndarray, seed: int, game: int, luck: LuckEvaluator | None
) -> float:
    """Points that the player on roll first wins in one game, less the luck."""
    player.start_game(seed, game, 0)
    state = np.uint64(game_stream(seed, game, STREAM))
    sign, lucky = 1, 0.0
    for _ in range(MAX_PLIES):
        state, die1, die2 = next_roll(np.uint64(state))
        if luck is not None:
            lucky += sign * roll_luck(luck.roll_values(board), WAYS, roll_index(die1, die2))
        board = player.choose(board, die1, die2)
        level = loss_level(board)
        if level:
            return sign * player.variant.points[level - 1] - lucky
        sign = -sign
    raise BgrlError(f"a rollout by {player.name} does not end")
