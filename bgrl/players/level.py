"""Levels: a net, how far it looks ahead, and how it misses."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bgrl.errors import BgrlError
from bgrl.game.dice import Dice
from bgrl.nets import FastNet
from bgrl.players.player import swapped
from bgrl.players.search import SearchPlayer
from bgrl.search import Filters, MoveFilter, Searcher
from bgrl.search.nply import NORMAL

CHANCE_STEPS = 1 << 24


@dataclass(frozen=True)
class Misses:
    """How a level overlooks the best play: never wildly, and the more easily the closer the next.

    In its own ranking, play k of the first ``depth`` has the weight 1 for the best one and
    ``rate`` * exp(-(equity lost) / ``scale``) for the others, and is taken with a probability in
    proportion. ``scale`` is in points; ``rate`` is at most 1, so no play beats a better one.
    """

    rate: float
    scale: float
    depth: int = 3

    def __post_init__(self) -> None:
        if not (0 <= self.rate <= 1 and self.scale > 0 and self.depth >= 1):
            raise BgrlError(
                f"misses need a rate of 0 to 1, a positive scale and a depth from 1: {self}"
            )

    def choose(self, equities: Sequence[float], chance: float) -> int:
        """Which play is taken, 0 the best: ``equities`` best first, ``chance`` of 0 up to 1."""
        # A play that was looked at less deeply may seem better than the best one.
        weights = [
            math.exp(min(0.0, e - equities[0]) / self.scale) * (self.rate if k else 1.0)
            for k, e in enumerate(equities[: self.depth])
        ]
        left = chance * sum(weights)
        for k, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return k
        return 0


@dataclass(frozen=True)
class Level:
    """A bot as data.

    ``plies`` as GNU Backgammon counts: 0 is the net's own evaluation. ``filters`` say what the
    search leaves out; ``misses`` None: always the best play.
    """

    name: str
    plies: int = 0
    filters: Filters = NORMAL
    misses: Misses | None = None

    def to_json(self) -> dict[str, Any]:
        """The level as plain JSON values."""
        return {
            "name": self.name,
            "plies": self.plies,
            "filters": {
                "root": [chosen and chosen._asdict() for chosen in self.filters.root],
                "reply": self.filters.reply._asdict(),
            },
            "misses": self.misses and asdict(self.misses),
        }

    @classmethod
    def from_json(cls, data: Any, where: str) -> "Level":
        """The level of :meth:`to_json`; raises BgrlError, naming ``where``, if it is none."""
        try:
            filters = data["filters"]
            root = [chosen and MoveFilter(**chosen) for chosen in filters["root"]]
            return cls(
                str(data["name"]),
                int(data["plies"]),
                Filters(tuple(root), MoveFilter(**filters["reply"])),
                data["misses"] and Misses(**data["misses"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BgrlError(f"{where}: not a level: {error!r}") from error


class LevelPlayer(SearchPlayer):
    """A level: its search's ranking, and a miss now and then.

    Its own chance comes from ``start_game`` alone. ``rank_plays`` is without misses. It looks into
    no bear-off databases, which an app does not have.
    """

    def __init__(self, level: Level, net: FastNet):
        super().__init__(Searcher(net, level.plies, level.filters), level.name)
        self.level = level
        self.start_game(0, 0, 0)

    @property
    def identity(self) -> str:
        return f"level {self.level} of net {self.searcher.net.hash}"

    def start_game(self, seed: int, game: int, seat: int) -> None:
        self._chance = Dice(seed, game, purpose=2 + seat)

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        if self.level.misses is None:
            return super().choose(board, die1, die2)
        chance = self._chance.below(CHANCE_STEPS) / CHANCE_STEPS
        return self.choose_by(board, die1, die2, chance)

    def choose_by(self, board: np.ndarray, die1: int, die2: int, chance: float) -> np.ndarray:
        """:meth:`choose` with a given ``chance`` of 0 up to 1 for a miss."""
        found = self.searcher.plays(board, die1, die2)
        if len(found.boards) == 0:
            return swapped(board)
        order = found.order()
        misses = self.level.misses
        picked = 0 if misses is None else misses.choose(found.equities[order].tolist(), chance)
        return found.boards[order[picked]]
