"""What a player is, and the parts that players share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

from bgrl.errors import BgrlError
from bgrl.game import Play, Position, Variant, legal_plays
from bgrl.game.board import SLOTS, loss_level, swap_into
from bgrl.game.outcomes import equity, flip
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer


@dataclass(frozen=True)
class Evaluation:
    """What the player on roll, before the dice, can expect of a position.

    probabilities: float32[5] in the order of ``bgrl.game.outcomes.OUTPUTS``.
    equity: cubeless, in points.
    """

    probabilities: np.ndarray
    equity: float

    def __str__(self) -> str:
        win, win_gammon, win_backgammon, lose_gammon, lose_backgammon = self.probabilities
        return (
            f"{self.equity:+.4f} (win {win:.1%}, gammon {win_gammon:.1%}, "
            f"backgammon {win_backgammon:.1%}; lose {1 - win:.1%}, gammon {lose_gammon:.1%}, "
            f"backgammon {lose_backgammon:.1%})"
        )


@dataclass(frozen=True)
class RankedPlay:
    """A legal play as one player sees it.

    equity: cubeless, in points, for the player who plays; None from a player that doesn't
        estimate equities.
    probabilities: float32[5] for the player who plays, after the play; None likewise.
    score: what the player ranks by, the more the better: the equity where there is one.
    """

    play: Play
    score: float
    equity: float | None = None
    probabilities: np.ndarray | None = None

    @property
    def position(self) -> Position:
        """The position that the opponent faces."""
        return self.play.position

    def __str__(self) -> str:
        value = f"score {self.score:.4f}" if self.equity is None else f"{self.equity:+.4f}"
        return f"{self.play} {value}"


class Player(Protocol):
    """Anything that can play a game. A player that a match sends to other processes pickles."""

    @property
    def name(self) -> str:
        """How tables name the player."""

    @property
    def variant(self) -> Variant:
        """The game it plays."""

    @property
    def identity(self) -> str:
        """Says exactly which player it is (weights, versions): two with one identity play alike."""

    def evaluate(self, position: Position) -> Evaluation:
        """The player's estimate for the player on roll, before the dice.

        Raises BgrlError if the player ranks plays without estimating probabilities.
        """

    def rank_plays(self, position: Position, dice: tuple[int, int]) -> list[RankedPlay]:
        """Every legal play, best first; an empty list for a dance."""

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        """The position int8[2, 26] that the opponent faces; after a dance, the sides swapped."""

    def start_game(self, seed: int, game: int, seat: int) -> None:
        """Told before every game of a match: all of the player's own chance comes from these."""


@njit(cache=True)
def boards_after(board, plays, n):
    """(int8[n, 2, 26] after each of the first n `plays` of a board, their ``loss_level`` [n])."""
    after = np.empty((n, 2, SLOTS), dtype=np.int8)
    levels = np.empty(n, dtype=np.int64)
    for i in range(n):
        apply_play(board, plays[i], after[i])
        levels[i] = loss_level(after[i])
    return after, levels


@njit(cache=True)
def loss_levels(boards):
    """``loss_level`` of each of int8[N, 2, 26], as int64[N]."""
    out = np.empty(len(boards), dtype=np.int64)
    for i in range(len(boards)):
        out[i] = loss_level(boards[i])
    return out


def swapped(board: np.ndarray) -> np.ndarray:
    """The board int8[2, 26] with the other player on roll, a new contiguous array."""
    out = np.empty((2, SLOTS), dtype=np.int8)
    swap_into(board, out)
    return out


class BoardPlayer(ABC):
    """A player that scores the boards after each play and takes the highest score.

    Among equal scores the play that the generator lists first is taken.
    """

    def __init__(self, name: str, variant: Variant):
        self.name = name
        self.variant = variant

    @property
    def identity(self) -> str:
        return self.name

    @abstractmethod
    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """float64[N]: how the player who turned `before` into each of `after` likes it.

        before: int8[2, 26]; after: int8[N, 2, 26], the opponent on roll; levels: int64[N], as
        ``loss_level(after)``: where not 0, the play has won the game.
        """

    def evaluate(self, position: Position) -> Evaluation:
        raise BgrlError(f"{self.name} ranks plays; it does not estimate probabilities")

    def rank_plays(self, position: Position, dice: tuple[int, int]) -> list[RankedPlay]:
        plays = legal_plays(position, dice)
        if not plays:
            return []
        after = np.stack([play.position.board for play in plays])
        levels = loss_levels(after)
        ranked = self._ranked(position.board.copy(), dice, plays, after, levels)
        return sorted(ranked, key=lambda play: -play.score)  # stable: ties as the plays came

    def _ranked(
        self,
        before: np.ndarray,
        dice: tuple[int, int],
        plays: list[Play],
        after: np.ndarray,
        levels: np.ndarray,
    ) -> list[RankedPlay]:
        scores = self.score(before, after, levels)
        return [RankedPlay(play, float(score)) for play, score in zip(plays, scores, strict=True)]

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        buffer = play_buffer()
        n = generate_plays(board, die1, die2, buffer)
        if n == 0:
            return swapped(board)
        after, levels = boards_after(board, buffer, n)
        if n == 1:
            return after[0]
        return after[int(np.argmax(self.score(board, after, levels)))]

    def start_game(self, seed: int, game: int, seat: int) -> None:  # noqa: B027
        """Nothing to do: the player has no chance of its own."""


def exact_where_over(
    evaluate: Callable[[np.ndarray], np.ndarray], boards: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """float32[N, 5]: `evaluate` of the boards that go on, the certain loss of the others.

    evaluate: int8[M, 2, 26] -> float32[M, 5]; boards: int8[N, 2, 26]; levels: int64[N], as
    ``loss_level(boards)``.
    """
    going_on = levels == 0
    if going_on.all():
        return evaluate(boards)
    out = np.zeros((len(boards), 5), dtype=np.float32)
    out[:, 3] = levels >= 2
    out[:, 4] = levels >= 3
    if going_on.any():
        out[going_on] = evaluate(np.ascontiguousarray(boards[going_on]))
    return out


def look_deeper(
    first: np.ndarray,
    deeper: Callable[[np.ndarray], np.ndarray],
    plays: int,
    within: float,
) -> np.ndarray:
    """float64[N] scores: `deeper` for the plays worth it, minus infinity for the others.

    first: float64[N], a first look at the equities. deeper: plays' indices int64[M] -> float64[M].
    Looked at further are the `plays` best ones, of those `within` so much of the best.
    """
    best = np.argsort(-first, kind="stable")[:plays]
    best = np.sort(best[first[best] >= first[best[0]] - within])
    scores = np.full(len(first), -np.inf)
    scores[best] = deeper(best)
    return scores


class EquityPlayer(BoardPlayer):
    """A player that estimates the five probabilities of any position and plays by equity."""

    @abstractmethod
    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        """float32[N, 5] for the players on roll of boards int8[N, 2, 26], none of them over.

        Nested, and without what a board rules out (see ``bgrl.game.outcomes.clamp``).
        """

    def after_plays(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """`probabilities` of int8[N, 2, 26], each reached by a play from `before` int8[2, 26].

        For players that see a position with other eyes when they know where it came from.
        """
        return self.probabilities(after)

    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        theirs = self._theirs(before, after, levels)
        return -equity(theirs.astype(np.float64), self.variant.points)

    def _theirs(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return exact_where_over(lambda boards: self.after_plays(before, boards), after, levels)

    def evaluate(self, position: Position) -> Evaluation:
        board = position.board.copy()
        lost, won = loss_level(board), loss_level(swapped(board))
        if won:
            probabilities = np.array([1, won >= 2, won >= 3, 0, 0], dtype=np.float32)
        else:
            probabilities = exact_where_over(
                self.probabilities, board[np.newaxis], np.array([lost])
            )[0]
        value = float(equity(probabilities.astype(np.float64), self.variant.points))
        return Evaluation(probabilities, value)

    def _ranked(
        self,
        before: np.ndarray,
        dice: tuple[int, int],
        plays: list[Play],
        after: np.ndarray,
        levels: np.ndarray,
    ) -> list[RankedPlay]:
        theirs = self._theirs(before, after, levels)
        mine = flip(theirs)
        scores = -equity(theirs.astype(np.float64), self.variant.points)
        return [
            RankedPlay(play, float(score), float(score), p)
            for play, score, p in zip(plays, scores, mine, strict=True)
        ]


_buffer: np.ndarray | None = None


def play_buffer() -> np.ndarray:
    # One buffer a process, made when first needed: it is too large to make for every play.
    global _buffer
    if _buffer is None:
        _buffer = new_play_buffer()
    return _buffer
