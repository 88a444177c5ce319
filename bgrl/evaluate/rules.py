"""Our plays against those of engines that nobody here wrote: the same set of final positions?

Games are played through, and in every position on the way each engine lists the final positions
of the roll. GNU Backgammon takes any position. OpenSpiel's Python interface cannot set one up, so
its game is played along, turn by turn.

Every final position is written as the 52 bytes of the board int8[2, 26] that the opponent faces;
after a dance that is the same board with the sides swapped.
"""

import hashlib
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from bgrl.errors import BgrlError, InvalidPosition, MissingExtra
from bgrl.game import BACKGAMMON, HYPERGAMMON, Position, Variant, get_variant
from bgrl.game.board import BAR, HOME, SLOTS, is_race, loss_level
from bgrl.game.dice import Dice
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.players import load_player
from bgrl.players.gnubg import load_gnubg_nn
from bgrl.progress import progress

CHUNK = 500  # positions that a worker compares before it reports
EXAMPLES = 5  # differences that a chunk keeps for the report


class Engine(Protocol):
    """Another implementation of the rules, led through a game beside ours."""

    @property
    def name(self) -> str:
        """What the engine is called, with its version."""

    def start(self) -> None:
        """A new game begins."""

    def finals(self, board: np.ndarray, die1: int, die2: int) -> set[bytes]:
        """All final positions of a roll in the game's present position, int8[2, 26]."""

    def follow(self, final: bytes) -> None:
        """The game goes on with one of those final positions."""

    def points(self) -> int | None:
        """What the player who just finished the game has won, if the engine tells."""


@dataclass(frozen=True)
class Difference:
    """A roll on which an engine and we disagree."""

    engine: str
    board: bytes
    dice: tuple[int, int]
    ours: frozenset[bytes]
    theirs: frozenset[bytes]

    @property
    def size(self) -> tuple[int, int]:
        """How much there is to read: the fewest final positions, then the fewest checkers."""
        counts = np.frombuffer(self.board, np.int8).reshape(2, SLOTS)
        return len(self.ours | self.theirs), int(counts[:, 1:].sum())

    def text(self, variant: Variant) -> str:
        """The position, the roll and both sets, as position IDs with the opponent on roll."""

        def listed(finals: Iterable[bytes]) -> str:
            return " ".join(sorted(position_text(final, variant) for final in finals)) or "none"

        die1, die2 = self.dice
        return "\n".join(
            [
                f"{self.engine} differs: {variant.name} position "
                f"{position_text(self.board, variant)}, roll {die1}{die2}",
                f"  in both sets: {listed(self.ours & self.theirs)}",
                f"  ours alone:   {listed(self.ours - self.theirs)}",
                f"  theirs alone: {listed(self.theirs - self.ours)}",
            ]
        )


@dataclass
class Comparison:
    """What a comparison of the rules has found so far; comparisons add up."""

    positions: int = 0
    games: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)  # of the positions, for the record
    compared: Counter[str] = field(default_factory=Counter)  # rolls, by engine
    different: Counter[str] = field(default_factory=Counter)
    scored: Counter[str] = field(default_factory=Counter)  # finished games, by engine
    misscored: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    examples: list[Difference] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)  # hashes of (position, roll)

    def add(self, other: "Comparison") -> None:
        """Take in what another part of the work has found; wall time is the caller's to tell."""
        self.positions += other.positions
        self.games += other.games
        for mine, theirs in (
            (self.kinds, other.kinds),
            (self.compared, other.compared),
            (self.different, other.different),
            (self.scored, other.scored),
            (self.misscored, other.misscored),
        ):
            mine.update(theirs)
        self.longest = max(self.longest, other.longest)
        self.examples += other.examples
        self.seen |= other.seen

    @property
    def differences(self) -> int:
        """Rolls and final scores on which some engine disagrees."""
        return self.different.total() + self.misscored.total()

    def text(self, variant: Variant) -> str:
        """The result in a few lines, with the smallest example if there is a difference."""
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.most_common())
        lines = [
            f"{self.positions:,} positions of {variant.name} ({len(self.seen):,} distinct with "
            f"their rolls) from {self.games:,} games: {kinds}; "
            f"at most {self.longest:,} plays of a roll"
        ]
        for engine, count in self.compared.items():
            line = f"{engine}: {self.different[engine]:,} differences in {count:,} sets of plays"
            if self.scored[engine]:
                line += f", {self.misscored[engine]:,} in {self.scored[engine]:,} final scores"
            lines.append(line)
        lines.append(f"took {self.seconds:,.0f} s")
        if self.examples:
            lines.append(min(self.examples, key=lambda one: one.size).text(variant))
        return "\n".join(lines)


class GnubgRules:
    """The move generator of GNU Backgammon, from the package gnubg-nn."""

    def __init__(self) -> None:
        self._gnubg = load_gnubg_nn()
        self.name = f"gnubg-nn {version('gnubg-nn')}"

    def start(self) -> None:
        """Nothing to do: any position can be asked for."""

    def finals(self, board: np.ndarray, die1: int, die2: int) -> set[bytes]:
        mine, theirs = board.sum(axis=1).tolist()
        # The engine takes and gives (opponent, player who moves), each from point 1 to the bar.
        keys = self._gnubg.moves(board[::-1, 1:].tolist(), die1, die2)
        found = set()
        for key in keys:
            opponent, mover = self._gnubg.board_from_position_key(key)
            found.add(bytes((theirs - sum(opponent), *opponent, mine - sum(mover), *mover)))
        return found or {board[::-1].tobytes()}

    def follow(self, final: bytes) -> None:
        """Nothing to do: the engine keeps no game."""

    def points(self) -> int | None:
        return None


class OpenSpielRules:
    """The backgammon of OpenSpiel, played along.

    One of its actions moves up to two checkers; a double is two actions of the same player.
    """

    # Its game ends undecided after this many turns; random play needs a few hundred.
    MAX_TURNS = 100_000
    _BAR = 100  # State.board's number for the bar

    def __init__(self, variant: Variant):
        parameters: dict[str, Any] = {"max_player_turns": self.MAX_TURNS}
        if variant == BACKGAMMON:
            parameters["scoring_type"] = "full_scoring"
        elif variant == HYPERGAMMON:
            parameters["hyper_backgammon"] = True
        else:
            raise BgrlError(f"OpenSpiel has no {variant.name}")
        try:
            import pyspiel
        except ImportError as error:
            raise MissingExtra("open-spiel", "dev", "comparing with OpenSpiel's rules") from error
        self.name = f"OpenSpiel {version('open-spiel')}"
        self._game = pyspiel.load_game("backgammon", parameters)
        self._checkers = variant.checkers
        # With three checkers OpenSpiel 2.0.2 returns 0 for either side, whoever has won.
        self._tells_points = variant == BACKGAMMON
        self._outcomes: dict[bool, dict[tuple[int, int], int]] = {}
        self._after: dict[bytes, Any] = {}
        self.start()

    def start(self) -> None:
        self._state = self._game.new_initial_state()

    def finals(self, board: np.ndarray, die1: int, die2: int) -> set[bytes]:
        state = self._state.clone()
        state.apply_action(self._outcome(die1, die2))
        player = state.current_player()
        self._after = {}
        half_way: dict[
            bytes, Any
        ] = {}  # double: one state for each position after the first action
        for action in state.legal_actions():
            after = state.child(action)
            if after.current_player() == player:
                half_way.setdefault(self._board(after, player), after)
            else:
                self._after.setdefault(self._board(after, player), after)
        for half in half_way.values():
            for action in half.legal_actions():
                after = half.child(action)
                self._after.setdefault(self._board(after, player), after)
        return set(self._after)

    def follow(self, final: bytes) -> None:
        self._state = self._after[final]

    def points(self) -> int | None:
        return int(max(self._state.returns())) if self._tells_points else None

    def _outcome(self, die1: int, die2: int) -> int:
        """The number of the chance outcome that rolls these dice, in either order.

        Before the first turn a roll also says who starts; either will do, as the sides are alike.
        """
        opening = self._state.is_initial_state()
        if opening not in self._outcomes:
            self._outcomes[opening] = {}
            for outcome, _ in self._state.chance_outcomes():
                *_, a, b = self._state.child(outcome).observation_tensor(0)
                self._outcomes[opening][int(max(a, b)), int(min(a, b))] = outcome
        return self._outcomes[opening][max(die1, die2), min(die1, die2)]

    def _board(self, state: Any, player: int) -> bytes:
        """The board that the opponent of `player` faces."""
        count = state.board
        # Player 0 moves up through OpenSpiel's points 0 to 23, player 1 down.
        up = [count(0, point) for point in range(23, -1, -1)]
        down = [count(1, point) for point in range(24)]
        up.append(count(0, self._BAR))
        down.append(count(1, self._BAR))
        off = self._checkers - sum(up), self._checkers - sum(down)
        if player == 0:
            return bytes((off[1], *down, off[0], *up))
        return bytes((off[0], *up, off[1], *down))


ENGINES = ("gnubg", "openspiel")


@cache
def load_engine(name: str, variant: Variant) -> Engine:
    """The engine "gnubg" or "openspiel". Raises BgrlError or MissingExtra."""
    if name == "gnubg":
        return GnubgRules()
    if name == "openspiel":
        return OpenSpielRules(variant)
    raise BgrlError(f"no engine {name!r} has rules to compare with; there are {list(ENGINES)}")


def engines_for(variant: Variant) -> list[str]:
    """The engines that know the variant."""
    return ["gnubg"] if variant not in (BACKGAMMON, HYPERGAMMON) else list(ENGINES)


def final_positions(board: np.ndarray, die1: int, die2: int, buffer: np.ndarray) -> list[bytes]:
    """Our final positions of a roll, in the generator's order; after a dance the board swapped."""
    n = generate_plays(board, die1, die2, buffer)
    after = np.empty((2, SLOTS), np.int8)
    finals = []
    for i in range(n):
        apply_play(board, buffer[i], after)
        finals.append(after.tobytes())
    return finals or [board[::-1].tobytes()]


@dataclass(frozen=True)
class Chunk:
    """A share of the work: so many positions of games that `player` plays with itself."""

    number: int
    positions: int
    player: str
    variant: str
    engines: tuple[str, ...]
    seed: int


def compare_chunk(chunk: Chunk) -> Comparison:
    """Play games and compare the rules in each position. The same chunk finds the same."""
    variant = get_variant(chunk.variant)
    engines = [load_engine(name, variant) for name in chunk.engines]
    return _compare(chunk, variant, engines)


def _compare(chunk: Chunk, variant: Variant, engines: Sequence[Engine]) -> Comparison:
    player = load_player(chunk.player, variant)
    buffer = new_play_buffer()
    found = Comparison()
    while found.positions < chunk.positions:
        game = chunk.number * CHUNK + found.games
        found.games += 1
        player.start_game(chunk.seed, game, 0)
        dice = Dice(chunk.seed, game)
        die1, die2 = dice.opening_roll()
        board = variant.start_board()
        for engine in engines:
            engine.start()
        while found.positions < chunk.positions:
            ours = final_positions(board, die1, die2, buffer)
            agreed = True
            for engine in engines:
                theirs = engine.finals(board, die1, die2)
                found.compared[engine.name] += 1
                # The lengths show a final position that we list twice.
                if theirs != set(ours) or len(theirs) != len(ours):
                    agreed = False
                    found.different[engine.name] += 1
                    found.examples.append(
                        Difference(
                            engine.name,
                            board.tobytes(),
                            (die1, die2),
                            frozenset(ours),
                            frozenset(theirs),
                        )
                    )
                    found.examples = sorted(found.examples, key=lambda one: one.size)[:EXAMPLES]
            _record(found, board, die1, die2, ours)
            if not agreed:
                break  # an engine could not follow us
            after = player.choose(board, die1, die2)
            final = after.tobytes()
            for engine in engines:
                engine.follow(final)
            points = loss_level(after)
            if points:
                for engine in engines:
                    told = engine.points()
                    if told is not None:
                        found.scored[engine.name] += 1
                        found.misscored[engine.name] += told != points
                break
            board = after
            die1, die2 = dice.roll()
    return found


def _record(found: Comparison, board: np.ndarray, die1: int, die2: int, ours: list[bytes]) -> None:
    """Count the position under each kind that it is of."""
    found.positions += 1
    found.longest = max(found.longest, len(ours))
    roll = bytes((max(die1, die2), min(die1, die2)))
    found.seen.add(hashlib.blake2b(board.tobytes() + roll, digest_size=8).digest())
    kinds = found.kinds
    kinds["doubles" if die1 == die2 else "two dice"] += 1
    kinds["on the bar"] += bool(board[0, BAR])
    kinds["all home"] += not board[0, HOME + 1 :].any()
    kinds["races"] += bool(is_race(board))
    dance = ours[0] == board[::-1].tobytes()
    kinds["dances"] += dance
    kinds["forced plays"] += len(ours) == 1 and not dance


def compare_rules(
    positions: int,
    players: Sequence[str],
    variant: Variant,
    engines: Sequence[str],
    seed: int,
    workers: int,
) -> Comparison:
    """Compare the rules in `positions` positions of games that the players play, in equal shares.

    players: specs for `load_player`; each plays with itself. engines: names out of ENGINES.
    The result is the same whatever the number of workers (processes).

    Raises BgrlError for an unknown player or engine, or one that doesn't know the variant.
    """
    if positions < 1 or workers < 1:
        raise BgrlError(
            f"rules: positions and workers must be 1 or more, not {positions}, {workers}"
        )
    if not players or not engines:
        raise BgrlError("rules: at least one player and one engine are needed")
    for name in engines:
        load_engine(name, variant)
    for player in players:
        load_player(player, variant)
    chunks = [
        Chunk(
            number,
            min(CHUNK, positions - first),
            players[number % len(players)],
            variant.name,
            tuple(engines),
            seed,
        )
        for number, first in enumerate(range(0, positions, CHUNK))
    ]
    total = Comparison()
    start = time.monotonic()
    with progress(positions, "comparing the rules", "positions") as bar:

        def collect(results: Iterable[Comparison]) -> None:
            for found in results:
                total.add(found)
                bar.advance(found.positions)
                if total.differences:
                    bar.note(f"{total.differences:,} differences")

        if workers == 1:
            collect(map(compare_chunk, chunks))
        else:
            # Processes, since GNU Backgammon's state is global to one.
            spawn = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(min(workers, len(chunks)), spawn) as pool:
                try:
                    collect(pool.map(compare_chunk, chunks))
                except BrokenProcessPool:
                    raise BgrlError("rules: a worker process died; nothing is proven") from None
    total.seconds = time.monotonic() - start
    return total


def position_text(board: bytes, variant: Variant) -> str:
    """The position ID of a board's bytes, or its counts if no game can reach it."""
    counts = np.frombuffer(board, np.int8).reshape(2, SLOTS)
    try:
        return Position(counts, variant).gnubg_id
    except InvalidPosition:
        return f"(impossible: {counts.tolist()})"
