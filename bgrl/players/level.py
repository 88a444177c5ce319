"""Levels: a net, how far it looks ahead, how it misses, and what it likes."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from bgrl.errors import BgrlError, SchemaMismatch
from bgrl.files import atomic_write_json, is_integer, is_number, read_json
from bgrl.game.board import SLOTS
from bgrl.game.dice import next_below
from bgrl.game.plays import MAX_PLAYS, apply_play
from bgrl.nets import FastNet
from bgrl.players.net import NetPlayer
from bgrl.players.player import EquityPlayer, swapped
from bgrl.players.random import player_stream
from bgrl.players.search import SearchPlayer
from bgrl.players.style import BALANCED, Style, liking, weight_array
from bgrl.search import Bearoff, Filters, MoveFilter, Pruner, Searcher
from bgrl.search.nply import MAX_PLIES, NORMAL

LEVEL_FILE = "level.json"
FORMAT = "bgrl.level"
VERSION = 1

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
        numbers = is_number(self.rate) and is_number(self.scale)
        if not (numbers and 0 <= self.rate <= 1 and self.scale > 0 and _is_count(self.depth, 1)):
            raise BgrlError(
                f"misses need a rate of 0 to 1, a positive scale and a depth from 1: {self}"
            )

    def weights(self, equities: ArrayLike) -> np.ndarray:
        """float64[..., k]: the weights of the first plays, ``equities`` [..., n] best first."""
        top = np.asarray(equities, dtype=np.float64)[..., : self.depth]
        # A play that was looked at less deeply may seem better than the best one.
        weights = np.exp(np.minimum(0.0, top - top[..., :1]) / self.scale)
        weights[..., 1:] *= self.rate
        return weights

    def choose(self, equities: ArrayLike, chance: float) -> int:
        """Which play is taken, 0 the best: ``equities`` best first, ``chance`` of 0 up to 1."""
        return int(weighted_index(self.weights(equities), chance))


@njit(cache=True)
def weighted_index(weights, chance):
    """The index taken of float64[n] weights, for a ``chance`` of 0 up to 1."""
    total = 0.0
    for weight in weights:
        total += weight
    left = chance * total
    for k in range(len(weights)):
        left -= weights[k]
        if left < 0:
            return k
    return 0


class Choice(NamedTuple):
    """What decides among ranked plays, as the kernels take it: the misses, then the style."""

    rate: float
    scale: float
    depth: int
    loss: float
    liking: np.ndarray  # float64[4]


@njit(cache=True)
def decide(choice, board, plays, equities, plies, chance, out):
    """Write what the opponent faces after the play that a level takes into ``out`` (int8[2, 26]).

    plays: int8[n, 8] of int8[2, 26] ``board``; equities: float32[n]; plies: int64[n], how deeply
    each was looked at, which ranks them before the equity does. A miss takes its play; where there
    is none, the style chooses among the plays near the best one that were looked at as deeply.
    """
    n = len(plays)
    top = np.empty(min(choice.depth, n), dtype=np.int64)
    for k in range(len(top)):
        top[k] = -1
        for i in range(n):
            if i not in top[:k] and (
                top[k] < 0
                or plies[i] > plies[top[k]]
                or (plies[i] == plies[top[k]] and equities[i] > equities[top[k]])
            ):
                top[k] = i
    best = top[0]
    weights = np.empty(len(top))
    for k in range(len(top)):
        # As Misses.weights.
        ahead = min(0.0, np.float64(equities[top[k]]) - np.float64(equities[best]))
        weights[k] = math.exp(ahead / choice.scale) * (choice.rate if k > 0 else 1.0)
    picked = top[weighted_index(weights, chance)]
    if picked == best and choice.loss > 0:
        most = -np.inf
        for i in range(n):
            lost = np.float64(equities[best]) - np.float64(equities[i])
            if plies[i] < plies[best] or lost > choice.loss:
                continue
            apply_play(board, plays[i], out)
            liked = liking(choice.liking, out)
            if liked > most or (liked == most and equities[i] > equities[picked]):
                most = liked
                picked = i
    apply_play(board, plays[picked], out)


@njit(cache=True)
def next_chance(state):
    """(new state, a chance of 0 up to 1) of a player's stream."""
    state, step = next_below(state, CHANCE_STEPS)
    return state, step / CHANCE_STEPS


@dataclass(frozen=True)
class MeasuredRating:
    """A rating with its standard error, from ``games`` against ``anchor``, rated
    ``anchor_rating``; ``scale`` points apart, one wins ten games of eleven."""

    value: float
    error: float
    anchor: str
    anchor_rating: float
    scale: float
    games: int
    seed: int

    def __post_init__(self) -> None:
        numbers = (self.value, self.error, self.anchor_rating, self.scale)
        if not (
            all(map(is_number, numbers))
            and self.error >= 0
            and self.scale > 0
            and isinstance(self.anchor, str)
            and is_integer(self.games)
            and is_integer(self.seed)
        ):
            raise BgrlError(f"a measured rating needs finite numbers and an anchor: {self}")


@dataclass(frozen=True)
class MeasuredPr:
    """A PR with its standard error, on ``decisions`` reference positions that ``judge`` judged."""

    value: float
    error: float
    decisions: int
    judge: str

    def __post_init__(self) -> None:
        if not (
            is_number(self.value)
            and is_number(self.error)
            and min(self.value, self.error) >= 0
            and is_integer(self.decisions)
            and isinstance(self.judge, str)
        ):
            raise BgrlError(f"a measured PR needs numbers of 0 or more and a judge: {self}")


@dataclass(frozen=True)
class Measured:
    """What was measured of a level, with which net (its hash), by which command and when."""

    net: str
    command: str
    date: str
    rating: MeasuredRating | None = None
    pr: MeasuredPr | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (self.net, self.command, self.date)):
            raise BgrlError(f"what was measured needs a net, a command and a date: {self}")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Measured":
        """Of ``dataclasses.asdict``; raises BgrlError, TypeError or KeyError if it is not that."""
        rating, pr = data["rating"], data["pr"]
        parts = {
            "rating": None if rating is None else MeasuredRating(**rating),
            "pr": None if pr is None else MeasuredPr(**pr),
        }
        return cls(**data | parts)


@dataclass(frozen=True)
class Level:
    """A bot as data.

    ``plies`` as GNU Backgammon counts: 0 is the net's own evaluation. ``filters`` say what the
    search leaves out; ``keep``: how many plays of a roll its pruner leaves (see
    :class:`bgrl.search.Pruner`), None: it has no pruner; ``misses`` None: it overlooks nothing;
    ``style``: what it likes among plays near the best; ``measured``: how strong it is, where that
    was measured.
    """

    name: str
    plies: int = 0
    filters: Filters = NORMAL
    keep: int | None = None
    misses: Misses | None = None
    style: Style = BALANCED
    measured: Measured | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BgrlError(f"a level needs a name, not {self.name!r}")
        if not is_integer(self.plies) or not 0 <= self.plies <= MAX_PLIES:
            raise BgrlError(f"a level looks 0 to {MAX_PLIES} plies ahead, not {self.plies!r}")
        if self.keep is not None and not _is_count(self.keep, 1):
            raise BgrlError(
                f"a level's pruner keeps at least 1 play, at most {MAX_PLAYS}, not {self.keep!r}"
            )

    def check_pruner(self, pruner: object | None) -> None:
        """Raise BgrlError unless a pruner is given exactly where the level takes one."""
        if (pruner is None) != (self.keep is None):
            wanted = "takes a pruner" if pruner is None else "has no pruner"
            raise BgrlError(f"level {self.name} {wanted}")

    @property
    def plain(self) -> bool:
        """Whether it plays as its net does by itself."""
        return self.plies == 0 and self.misses is None and self.style.loss == 0

    @property
    def choice(self) -> Choice:
        """How it decides among ranked plays, for :func:`decide`."""
        rate, scale, depth = (0.0, 1.0, 1)
        if self.misses is not None:
            rate, scale, depth = self.misses.rate, self.misses.scale, self.misses.depth
        loss = float(self.style.loss)
        return Choice(float(rate), float(scale), int(depth), loss, weight_array(self.style))

    def to_json(self) -> dict[str, Any]:
        """The level as plain JSON values."""
        return {
            "name": self.name,
            "plies": self.plies,
            "filters": {
                "root": [chosen and chosen._asdict() for chosen in self.filters.root],
                "reply": self.filters.reply._asdict(),
            },
            "keep": self.keep,
            "misses": self.misses and asdict(self.misses),
            "style": asdict(self.style),
            "measured": self.measured and asdict(self.measured),
        }

    @classmethod
    def from_json(cls, data: Any, where: str) -> "Level":
        """The level of :meth:`to_json`; raises BgrlError, naming ``where``, if it is none."""
        try:
            filters, misses, measured = data["filters"], data["misses"], data["measured"]
            root = [None if chosen is None else _filter(chosen) for chosen in filters["root"]]
            return cls(
                data["name"],
                data["plies"],
                Filters(tuple(root), _filter(filters["reply"])),
                data["keep"],
                None if misses is None else Misses(**misses),
                Style(**data["style"]),
                None if measured is None else Measured.from_json(measured),
            )
        except KeyError as error:
            raise BgrlError(f"{where}: not a level: it has no {error}") from error
        except (BgrlError, TypeError, ValueError) as error:
            raise BgrlError(f"{where}: not a level: {error}") from error


def _is_count(value: Any, least: int = 0) -> bool:
    """Whether it is a number of plays that a roll can have."""
    return is_integer(value) and least <= value <= MAX_PLAYS


def _filter(data: dict[str, Any]) -> MoveFilter:
    chosen = MoveFilter(**data)
    if not (all(map(_is_count, chosen[:2])) and is_number(chosen.threshold)):
        raise BgrlError(
            f"a filter's accept and extra are counts of plays, its threshold is points: {chosen}"
        )
    return chosen._replace(threshold=float(chosen.threshold))


def read_level(folder: Path) -> tuple[Level, Path, Path | None]:
    """The level of a folder, and the checkpoint folders of its net and of its pruner, if any.

    ``level.json`` is :meth:`Level.to_json` with ``format``, ``version``, ``net``, the name of the
    folder beside this one whose net it plays, and ``pruner``, likewise or of a folder inside such
    a one, or null. A folder without it is a checkpoint, which plays its best at 0 plies. Raises
    BgrlError, naming the file, if it is no level, its name is not the folder's, or there is no such
    net; SchemaMismatch for another format or version.
    """
    path = folder / LEVEL_FILE
    if not path.is_file():
        return Level(folder.resolve().name), folder, None
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaMismatch(f"{path}: its format is not {FORMAT!r}")
    if data.get("version") != VERSION:
        raise SchemaMismatch(
            f"{path} has version {data.get('version')!r}; this bgrl reads {VERSION}"
        )
    level = Level.from_json(data, str(path))
    if level.name != folder.resolve().name:
        raise BgrlError(f"{path}: names the level {level.name!r}, unlike its folder")
    pruner = data.get("pruner")
    if (pruner is None) != (level.keep is None):
        raise BgrlError(f"{path}: pruner is {pruner!r}, but keep is {level.keep}")
    return (
        level,
        checkpoint_beside(folder, "net", data.get("net"), str(path)),
        None if pruner is None else checkpoint_beside(folder, "pruner", pruner, str(path)),
    )


def checkpoint_beside(folder: Path, key: str, name: Any, where: str) -> Path:
    """The checkpoint folder that a level in ``folder`` calls ``name``: one beside the level's
    folder, or inside such a one.

    Raises BgrlError, naming ``where`` and the ``key``, for another path or if there is no net.
    """
    parts = Path(name).parts if isinstance(name, str) else ()
    if not parts or ".." in parts or Path(name).is_absolute():
        raise BgrlError(
            f"{where}: {key} is {name!r}, expected the name of a folder beside the level's"
        )
    found = folder.resolve().parent / name
    if not (found / "net.json").is_file():
        raise BgrlError(f"{where}: {key} is {name!r}, but {found} has no net.json")
    return found


def write_level(level: Level, folder: Path, net: str, pruner: str | None = None) -> Path:
    """Publish ``level`` as the folder's ``level.json``; ``net`` and ``pruner`` name the folders of
    its nets, as :func:`read_level` says."""
    path = folder / LEVEL_FILE
    nets = {"net": net, "pruner": pruner}
    atomic_write_json(path, {"format": FORMAT, "version": VERSION} | nets | level.to_json())
    return path


class LevelPlayer(SearchPlayer):
    """A level: its search's ranking, a miss now and then, and its liking among the best plays.

    Its own chance comes from ``start_game`` alone. ``rank_plays`` is without misses and style.
    ``bearoff``: databases to look positions up in, or None; ``pruner``: the net that prunes its
    search.

    Raises BgrlError for a level with a pruner if none is given, and the other way round.
    """

    def __init__(
        self,
        level: Level,
        net: FastNet,
        bearoff: Bearoff | None = None,
        pruner: FastNet | None = None,
    ):
        level.check_pruner(pruner)
        pruning = Pruner(pruner, level.keep) if pruner and level.keep else None
        searcher = Searcher(net, level.plies, level.filters, bearoff, pruner=pruning)
        super().__init__(searcher, level.name)
        self.level = level
        self.choice = level.choice
        self.start_game(0, 0, 0)

    @property
    def identity(self) -> str:
        return f"level {replace(self.level, measured=None)}: {super().identity}"

    def start_game(self, seed: int, game: int, seat: int) -> None:
        self._state = player_stream(seed, game, seat)

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        if self.level.misses is None and self.level.style.loss == 0:
            return super().choose(board, die1, die2)
        self._state, chance = next_chance(np.uint64(self._state))
        return self.choose_by(board, die1, die2, chance)

    def choose_by(self, board: np.ndarray, die1: int, die2: int, chance: float) -> np.ndarray:
        """:meth:`choose` with a given ``chance`` of 0 up to 1 for a miss."""
        found = self.searcher.plays(board, die1, die2)
        if len(found.boards) == 0:
            return swapped(board)
        out = np.empty((2, SLOTS), dtype=np.int8)
        board = np.require(board, np.int8, ["C", "W"])
        decide(self.choice, board, found.plays, found.equities, found.plies, chance, out)
        return out


def level_player(
    level: Level, net: FastNet, bearoff: Bearoff | None = None, pruner: FastNet | None = None
) -> EquityPlayer:
    """The player of ``level`` with its nets, given the databases or None."""
    if level.plain and bearoff is None:
        return NetPlayer(net, level.name)
    return LevelPlayer(level, net, bearoff, pruner)
