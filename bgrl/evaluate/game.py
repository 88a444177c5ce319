"""One game between two players, and its replay."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from bgrl.errors import BgrlError
from bgrl.evaluate.luck import WAYS, LuckEvaluator, roll_index, roll_luck
from bgrl.game import Play, Position, Variant, legal_plays
from bgrl.game.board import SLOTS, loss_level, swap_into
from bgrl.game.dice import game_stream, mix, next_roll, opening_roll
from bgrl.game.plays import apply_play, generate_plays
from bgrl.players import Player
from bgrl.players.player import play_buffer

# Far beyond any game that ends: random play of backgammon takes a few hundred plies.
MAX_PLIES = 10_000


class PlayerFailed(BgrlError):
    """A player raised an error or answered with something other than a legal play."""

    def __init__(self, player: str, ply: int, reason: str):
        super().__init__(f"{player} at ply {ply}: {reason}")
        self.player = player
        self.ply = ply
        self.reason = reason


@dataclass(frozen=True)
class GameResult:
    """How a game ended.

    outcome: 1, 2 or 3 if the player in seat 0 won a single game, gammon or backgammon; negative
        if the other did.
    luck: equity that the dice gave seat 0, in points; 0 without a luck evaluator.
    plies: number of turns, dances included.
    check: uint64 hash of every position in order, by which a replay knows itself.
    """

    outcome: int
    luck: float
    plies: int
    check: int


@dataclass(frozen=True)
class PlayedTurn:
    """A turn of a replayed game: the player in `seat` had `dice` in `position`.

    play: None for a dance. luck: points that the roll gave the player; nan without an evaluator.
    """

    seat: int
    player: str
    position: Position
    dice: tuple[int, int]
    play: Play | None
    luck: float

    def __str__(self) -> str:
        play = "Cannot Move" if self.play is None else str(self.play)
        return f"{self.player} {self.dice[0]}{self.dice[1]}: {play}"


@njit(cache=True)
def chain(check, board):
    """The uint64 hash of a sequence of boards `check` with int8[2, 26] appended."""
    for side in range(2):
        for slot in range(SLOTS):
            check = (check ^ np.uint64(board[side, slot])) * np.uint64(0x100000001B3)
    return mix(check)


@njit(cache=True)
def _is_legal(board, die1, die2, after, buffer):
    n = generate_plays(board, die1, die2, buffer)
    reached = np.empty((2, SLOTS), dtype=np.int8)
    if n == 0:
        swap_into(board, reached)
        return np.array_equal(reached, after)
    for i in range(n):
        apply_play(board, buffer[i], reached)
        if np.array_equal(reached, after):
            return True
    return False


def play_game(
    seats: tuple[Player, Player],
    variant: Variant,
    seed: int,
    game: int,
    luck: LuckEvaluator | None = None,
    turns: list[PlayedTurn] | None = None,
) -> GameResult:
    """Play game number `game` of `seed` between the players of seats 0 and 1.

    The dice, and the players' own chance, are functions of (seed, game, seat) alone. Raises
    PlayerFailed if a player errs or the game doesn't end. Appends every turn to `turns`.
    """
    if seats[0] is seats[1]:
        seats = seats[0], copy.deepcopy(seats[1])
    for seat in range(2):
        seats[seat].start_game(seed, game, seat)
    state, die1, die2 = opening_roll(np.uint64(game_stream(seed, game)))
    seat = 0 if die1 > die2 else 1
    board = variant.start_board()
    lucky = 0.0
    check = 0
    for ply in range(MAX_PLIES):
        this_luck = float("nan")
        if luck is not None:
            roll = roll_index(die1, die2)
            values = luck.roll_values(board)
            # Either player was as likely to start with an opening roll, and what it is worth to
            # one it costs the other: its mean over the openings is 0.
            this_luck = values[roll] if ply == 0 else roll_luck(values, WAYS, roll)
            lucky += this_luck if seat == 0 else -this_luck
        after = _choose(seats[seat], board, die1, die2, ply)
        if turns is not None:
            turns.append(
                _turn(seat, seats[seat].name, board, variant, (die1, die2), after, this_luck)
            )
        check = chain(np.uint64(check), after)
        level = loss_level(after)
        if level:
            return GameResult(level if seat == 0 else -level, lucky, ply + 1, int(check))
        board = after
        seat = 1 - seat
        state, die1, die2 = next_roll(np.uint64(state))
    raise PlayerFailed(seats[0].name, MAX_PLIES, "the game does not end")


def _choose(player: Player, board: np.ndarray, die1: int, die2: int, ply: int) -> np.ndarray:
    try:
        answer: Any = player.choose(board.copy(), die1, die2)
    except Exception as error:  # whatever a player raises is its failure, not the match's
        raise PlayerFailed(player.name, ply, f"{type(error).__name__}: {error}") from error
    if not (isinstance(answer, np.ndarray) and answer.shape == (2, SLOTS)):
        raise PlayerFailed(player.name, ply, f"answered {answer!r:.60}, which is no board")
    after = np.ascontiguousarray(answer, dtype=np.int8)
    if not _is_legal(board, die1, die2, after, play_buffer()):
        raise PlayerFailed(
            player.name,
            ply,
            f"illegal play of {die1}-{die2} from {board.tolist()} to {after.tolist()}",
        )
    return after


def _turn(
    seat: int,
    name: str,
    board: np.ndarray,
    variant: Variant,
    dice: tuple[int, int],
    after: np.ndarray,
    luck: float,
) -> PlayedTurn:
    position = Position(board, variant)
    play = next(
        (p for p in legal_plays(position, dice) if np.array_equal(p.position.board, after)), None
    )
    return PlayedTurn(seat, name, position, dice, play, luck)
