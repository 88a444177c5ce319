"""A trained net as a player, at 0-ply, by its numba twin."""

from pathlib import Path

import numpy as np

from bgrl.errors import BgrlError
from bgrl.game import Play, Variant
from bgrl.game.board import SLOTS
from bgrl.game.outcomes import flip
from bgrl.game.plays import apply_play
from bgrl.nets import FastNet
from bgrl.nets.kernels import best_play
from bgrl.players.player import EquityPlayer, RankedPlay


class NetPlayer(EquityPlayer):
    """Takes the play after which the net gives the opponent the least equity.

    net: the numba twin; name: how tables name the player, by default its hash.
    """

    def __init__(self, net: FastNet, name: str | None = None):
        super().__init__(name or net.hash, net.variant)
        self.net = net

    @classmethod
    def load(cls, folder: str | Path, variant: Variant | None = None) -> "NetPlayer":
        """The player of a checkpoint folder, named after it.

        Raises BgrlError if the net plays another variant than `variant`, and as
        ``bgrl.nets.FastNet.load`` does.
        """
        net = FastNet.load(folder)
        if variant is not None and net.variant != variant:
            raise BgrlError(f"{folder}: the net plays {net.variant.name}, not {variant.name}")
        return cls(net, Path(folder).resolve().name)

    @property
    def identity(self) -> str:
        return f"net {self.net.hash}"

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        return self.net.evaluate(boards)

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        out = np.empty((2, SLOTS), dtype=np.int8)
        best_play(self.net.arrays, self.net.scratch, board, die1, die2, out)
        return out

    def _ranked(
        self,
        before: np.ndarray,
        dice: tuple[int, int],
        plays: list[Play],
        after: np.ndarray,
        levels: np.ndarray,
    ) -> list[RankedPlay]:
        # The sums that `choose` compares come from differences between plays, so they may differ
        # in the last bit from a board's own evaluation: rank by the same numbers.
        rows, values, theirs = self.net.plays(before, *dice)
        by_board = {}
        reached = np.empty((2, SLOTS), dtype=np.int8)
        for row, value, p in zip(rows, values, theirs, strict=True):
            apply_play(before, row, reached)
            by_board[reached.tobytes()] = (float(value), flip(p))
        ranked = []
        for play in plays:
            value, mine = by_board[play.position.board.tobytes()]
            ranked.append(RankedPlay(play, value, value, mine))
        return ranked
