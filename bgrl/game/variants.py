"""Backgammon's variants as data: how many checkers, where they start, what a game counts."""

from dataclasses import dataclass

import numpy as np

from bgrl.errors import BgrlError
from bgrl.game.board import OFF, empty_board


@dataclass(frozen=True)
class Variant:
    """One set of rules.

    ``start`` holds (slot, count) pairs, as each side sees its own checkers; those that it leaves
    out start borne off. ``points`` is what a single game, a gammon and a backgammon count.
    """

    name: str
    checkers: int
    start: tuple[tuple[int, int], ...]
    points: tuple[int, int, int] = (1, 2, 3)

    def start_board(self) -> np.ndarray:
        """A new int8[2, 26] board with the checkers where a game starts."""
        board = empty_board()
        for slot, count in self.start:
            board[:, slot] = count
        board[:, OFF] += np.int8(self.checkers) - board.sum(axis=1, dtype=np.int8)
        return board


BACKGAMMON = Variant("backgammon", 15, ((24, 2), (13, 5), (8, 3), (6, 5)))
NACKGAMMON = Variant("nackgammon", 15, ((24, 2), (23, 2), (13, 4), (8, 3), (6, 4)))
HYPERGAMMON = Variant("hypergammon", 3, ((24, 1), (23, 1), (22, 1)))

VARIANTS = {variant.name: variant for variant in (BACKGAMMON, NACKGAMMON, HYPERGAMMON)}


def get_variant(name: str) -> Variant:
    """The variant called ``name``; BgrlError names those that there are."""
    try:
        return VARIANTS[name]
    except KeyError:
        known = ", ".join(VARIANTS)
        raise BgrlError(f"there is no variant {name!r}; known are {known}") from None
