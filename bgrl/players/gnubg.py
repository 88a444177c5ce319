"""GNU Backgammon's own evaluator as a player, in process.

Through the package gnubg-nn, or through gnubg, which holds the whole 1.07 engine. Either engine's
state is global to the process: use processes, never threads.
"""

from importlib.metadata import version
from types import ModuleType

import numpy as np

from bgrl.errors import BgrlError, MissingExtra
from bgrl.game import BACKGAMMON, Variant
from bgrl.game.outcomes import clamp, equity
from bgrl.players.player import EquityPlayer, exact_where_over, look_deeper

CHECKERS = 15

# How deeper plies thin out the plays: those that 0-ply puts within FILTER_EQUITY of its best, at
# most FILTER_PLAYS of them, are looked at further. GNU Backgammon's "normal" move filter keeps 8
# plays and those within 0.16; its manual, "Evaluation settings".
FILTER_PLAYS = 8
FILTER_EQUITY = 0.16


def load_gnubg_nn() -> ModuleType:
    """The package gnubg-nn. Raises MissingExtra, with the line that installs it."""
    try:
        import gnubg_nn
    except ImportError as error:
        raise MissingExtra("gnubg-nn", "gnubg", "the gnubg player") from error
    return gnubg_nn


def load_gnubg() -> ModuleType:
    """The package gnubg. Raises MissingExtra, with the line that installs it."""
    try:
        import gnubg
    except ImportError as error:
        raise MissingExtra("gnubg", "engines", "the gnubg107 player") from error
    return gnubg


class GnubgPlayer(EquityPlayer):
    """GNU Backgammon at a number of plies, counted its own way: 0 is the bare net.

    Without its pruning nets: deeper plies look at every reply with the full net.

    At 1 ply and more only the plays that 0-ply finds good enough are looked at further, when
    choosing; `rank_plays` looks at all of them.
    """

    engine = "gnubg"
    package = "gnubg-nn"

    def __init__(self, plies: int = 0, variant: Variant = BACKGAMMON):
        if variant.checkers != CHECKERS:
            raise BgrlError(
                f"gnubg plays with {CHECKERS} checkers a side, not {variant.name}'s "
                f"{variant.checkers}"
            )
        super().__init__(f"{self.engine}_{plies}ply", variant)
        self.plies = plies
        self._connect()

    def _connect(self) -> None:
        self._probabilities = load_gnubg_nn().probabilities

    @property
    def identity(self) -> str:
        return f"{self.name} ({self.package} {version(self.package)})"

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        del state["_probabilities"]
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._connect()

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        return self._at_plies(boards, self.plies)

    def _at_plies(self, boards: np.ndarray, plies: int) -> np.ndarray:
        evaluate = self._probabilities
        # The engine wants [opponent, player on roll], 25 counts each, and takes lists only.
        out = np.array(
            [evaluate(sides, plies) for sides in boards[:, ::-1, 1:].tolist()], dtype=np.float32
        ).reshape(len(boards), 5)
        clamp(out, boards)
        return out

    def score(self, before: np.ndarray, after: np.ndarray, levels: np.ndarray) -> np.ndarray:
        if self.plies == 0:
            return super().score(before, after, levels)
        first = exact_where_over(lambda boards: self._at_plies(boards, 0), after, levels)
        return look_deeper(
            -equity(first.astype(np.float64), self.variant.points),
            lambda plays: super(GnubgPlayer, self).score(before, after[plays], levels[plays]),
            FILTER_PLAYS,
            FILTER_EQUITY,
        )


class Gnubg107Player(GnubgPlayer):
    """GNU Backgammon 1.07 with its pruning nets, as the program plays by default.

    At 0-ply the same numbers as GnubgPlayer; at 2-ply two to three times as fast.
    """

    engine = "gnubg107"
    package = "gnubg"

    def _connect(self) -> None:
        gnubg = load_gnubg()
        money = gnubg.cubeinfo()
        contexts = [gnubg.evalcontext(0, plies, 1, 1, 0.0) for plies in range(self.plies + 1)]
        self._probabilities = lambda sides, plies: gnubg.evaluate(sides, money, contexts[plies])[:5]
