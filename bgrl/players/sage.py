"""Open Sage, a second independent engine, as a player in process, through the package bgsage.

Its nets choose among several by the position before the play, so plays are scored with it.
"""

from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np

from bgrl.errors import BgrlError, MissingExtra
from bgrl.game import BACKGAMMON, Variant
from bgrl.game.board import BAR, OFF, POINTS
from bgrl.game.outcomes import clamp, equity, flip
from bgrl.players.player import EquityPlayer, exact_where_over, look_deeper, swapped

CHECKERS = 15
# Sage's own move filter below its full depth.
FILTER_PLAYS = 5
FILTER_EQUITY = 0.08


def load_bgsage() -> ModuleType:
    """The package bgsage. Raises MissingExtra, with the line that installs it."""
    try:
        import bgsage
    except ImportError as error:
        raise MissingExtra("bgsage", "engines", "the sage player") from error
    return bgsage


class SagePlayer(EquityPlayer):
    """Sage at a number of plies, counted as GNU Backgammon does: Sage itself says one more."""

    def __init__(self, plies: int = 0, variant: Variant = BACKGAMMON):
        if variant.checkers != CHECKERS:
            raise BgrlError(
                f"sage plays with {CHECKERS} checkers a side, not {variant.name}'s "
                f"{variant.checkers}"
            )
        super().__init__(f"sage_{plies}ply", variant)
        self.plies = plies
        self._connect()

    def _connect(self) -> None:
        weights = load_bgsage().default_weights()
        import bgbot_cpp

        arguments = weights.strategy_type, weights.weight_paths_list, weights.hidden_sizes_list
        self._strategies: dict[int, Any] = {0: bgbot_cpp.create_strategy(*arguments)}
        if self.plies:
            self._strategies[self.plies] = bgbot_cpp.create_multipy(
                *arguments, n_plies=self.plies + 1, parallel_evaluate=False
            )

    @property
    def identity(self) -> str:
        return f"{self.name} (bgsage {version('bgsage')})"

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        del state["_strategies"]
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._connect()

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        # Where the position came from is unknown: take it for its own predecessor.
        return np.concatenate(
            [self._after(swapped(board), board[np.newaxis], self.plies) for board in boards]
        )

    def after_plays(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        return self._after(before, after, self.plies)

    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        if self.plies == 0:
            return super().score(before, after, levels)
        first = exact_where_over(lambda boards: self._after(before, boards, 0), after, levels)
        return look_deeper(
            -equity(first.astype(np.float64), self.variant.points),
            lambda plays: super(SagePlayer, self).score(before, after[plays], levels[plays]),
            FILTER_PLAYS,
            FILTER_EQUITY,
        )

    def _after(self, before: np.ndarray, after: np.ndarray, plies: int) -> np.ndarray:
        """float32[N, 5] for the players on roll of int8[N, 2, 26], reached from `before`."""
        evaluate = self._strategies[plies].evaluate_board
        reference = _sides(before)
        mine = [evaluate(_sides(swapped(board)), reference)["probs"] for board in after]
        theirs = flip(np.array(mine, dtype=np.float32).reshape(len(after), 5))
        clamp(theirs, after)
        return theirs


def _sides(board: np.ndarray) -> list[int]:
    """Sage's 26 counts: the first player's bar at 25 and points, the other's counted negative."""
    counts = board[0].astype(int)
    counts[OFF] = board[1, BAR]
    counts[1 : POINTS + 1] -= board[1, POINTS:OFF:-1]
    return counts.tolist()
