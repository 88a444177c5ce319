"""A net that looks ahead, as a player."""

import numpy as np

from bgrl.game import Play
from bgrl.game.outcomes import flip
from bgrl.players.player import EquityPlayer, RankedPlay
from bgrl.search import Searcher


class SearchPlayer(EquityPlayer):
    """Takes the play that its search likes best.

    The filters at the search's root hold for choosing; ``rank_plays`` looks at all plays at full
    depth.
    """

    def __init__(self, searcher: Searcher, name: str | None = None):
        super().__init__(name or f"{searcher.net.hash}@{searcher.plies}ply", searcher.net.variant)
        self.searcher = searcher

    @property
    def identity(self) -> str:
        search = self.searcher
        exact = "without bear-off databases"
        if search.bearoff:
            exact = f"with bear-off databases {search.bearoff.hash}"
        pruner = search.pruner
        pruned = f"pruned to {pruner.keep} by net {pruner.net.hash}" if pruner else "not pruned"
        return f"net {search.net.hash} at {search.plies} plies, {search.filters}, {pruned}, {exact}"

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        return self.searcher.evaluate(boards)

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        return self.searcher.best_play(board, die1, die2)

    def _ranked(
        self,
        before: np.ndarray,
        dice: tuple[int, int],
        plays: list[Play],
        after: np.ndarray,
        levels: np.ndarray,
    ) -> list[RankedPlay]:
        found = self.searcher.plays(before, *dice, every=True)
        by_board = {board.tobytes(): i for i, board in enumerate(found.boards)}
        ranked = []
        for play in plays:
            i = by_board[play.position.board.tobytes()]
            value = float(found.equities[i])
            ranked.append(RankedPlay(play, value, value, flip(found.probabilities[i])))
        return ranked
