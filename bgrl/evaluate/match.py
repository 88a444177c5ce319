"""Matches between two players, in game pairs with the same dice and the seats swapped."""

import itertools
import json
import math
import os
import re
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import BgrlError, CorruptFile
from bgrl.evaluate.fast import FastPair, fast_pair
from bgrl.evaluate.game import MAX_PLIES, GameResult, PlayedTurn, PlayerFailed, play_game
from bgrl.evaluate.luck import LuckEvaluator
from bgrl.evaluate.stats import (
    Sprt,
    SprtRun,
    bootstrap_interval,
    mean_and_error,
    plus_minus,
    variance_ratio,
)
from bgrl.files import (
    atomic_write_bytes,
    atomic_write_json,
    is_integer,
    is_number,
    read_object,
)
from bgrl.game import BACKGAMMON, Variant
from bgrl.players import Player
from bgrl.processes import Lost, Started, run_in_processes
from bgrl.progress import progress

FORMAT = "bgrl.match 1"
CHECK = re.compile(r"[0-9a-f]{16}")
# No dice give a side more in a game: not even six points every turn of it.
MOST_LUCK = 6.0 * MAX_PLIES


@dataclass(frozen=True)
class PairRecord:
    """A game pair: in game 0 player a has seat 0, in game 1 player b has; all from a's view."""

    task: int
    games: tuple[GameResult, GameResult]

    def to_line(self) -> str:
        return json.dumps(
            {
                "pair": self.task,
                "outcomes": [game.outcome for game in self.games],
                "luck": [game.luck for game in self.games],
                "plies": [game.plies for game in self.games],
                "checks": [f"{game.check:016x}" for game in self.games],
            }
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PairRecord":
        """Of a line's content; raises KeyError, TypeError or ValueError if no match writes that."""
        pair = data["pair"]
        if not (is_integer(pair) and 0 <= pair < 2**63):
            raise ValueError(f"pair {pair!r} is no pair's number")
        columns = data["outcomes"], data["luck"], data["plies"], data["checks"]
        first, second = (_game(*values) for values in zip(*columns, strict=True))
        return cls(pair, (first, second))


def _game(outcome: Any, luck: Any, plies: Any, check: Any) -> GameResult:
    if not (is_integer(outcome) and 1 <= abs(outcome) <= 3):
        raise ValueError(f"outcome {outcome!r} is not ±1, ±2 or ±3")
    if not (is_number(luck) and abs(luck) < MOST_LUCK):
        raise ValueError(f"luck {luck!r} is no number of points")
    if not (is_integer(plies) and 1 <= plies <= MAX_PLIES):
        raise ValueError(f"plies {plies!r} is no number of turns")
    if not (isinstance(check, str) and CHECK.fullmatch(check)):
        raise ValueError(f"check {check!r} is not 16 hexadecimal digits")
    return GameResult(outcome, float(luck), plies, int(check, 16))


@dataclass(frozen=True)
class Failure:
    """A game that was set aside, and its pair with it."""

    task: int
    game: int
    player: str
    reason: str

    def to_line(self) -> str:
        return json.dumps({"pair": self.task, "failed": self.to_json()})

    def to_json(self) -> dict[str, Any]:
        return {
            "pair": self.task,
            "game": self.game,
            "player": self.player,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        return f"pair {self.task} game {self.game}, {self.player}: {self.reason}"


@dataclass
class MatchJob:
    """What each process of a match needs."""

    a: Player
    b: Player
    variant: Variant
    seed: int
    luck: LuckEvaluator | None
    fast: FastPair | None = field(default=None, init=False)

    def prepare(self) -> None:
        self.fast = fast_pair(self.a, self.b, self.variant, self.seed, self.luck)
        if self.fast:
            self.fast.play(0, 1)
        elif self.luck:
            self.luck.roll_values(self.variant.start_board())

    def run(self, tasks: list[int]) -> Iterator[Started | PairRecord | Failure]:
        """Play the pairs `tasks`, which are consecutive numbers where the players are fast."""
        if self.fast:
            yield Started(tasks[0], 0)
            for first, last in _ranges(tasks):
                for task, games in self.fast.play(first, last):
                    if all(game.outcome for game in games):
                        yield PairRecord(task, games)
                    else:
                        yield Failure(task, 0, "the game", "does not end")
            return
        for task in tasks:
            played: list[GameResult] = []
            for game in range(2):
                yield Started(task, game)
                try:
                    played.append(self.play(task, game))
                except PlayerFailed as failure:
                    reason = f"ply {failure.ply}: {failure.reason}"
                    yield Failure(task, game, failure.player, reason)
                    break
            else:
                yield PairRecord(task, (played[0], played[1]))

    def play(self, pair: int, game: int, turns: list[PlayedTurn] | None = None) -> GameResult:
        """Game 0 or 1 of a pair, from a's view."""
        seats = (self.a, self.b) if game == 0 else (self.b, self.a)
        result = play_game(seats, self.variant, self.seed, pair, self.luck, turns)
        if game == 0:
            return result
        return GameResult(-result.outcome, -result.luck, result.plies, result.check)


def _ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The runs [first, last) of consecutive integers."""
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield run[0], run[-1] + 1


@dataclass(frozen=True)
class MatchResult:
    """The pairs of a match, in the order of their numbers; everything from player a's view.

    pairs: int64[N] pair numbers; outcomes: int8[N, 2], ±1, 2, 3 for a single game, gammon and
    backgammon; luck: float64[N, 2] in points, zeros without a luck evaluator; plies: int32[N, 2];
    failures: the games set aside; ended: why the match ended.
    """

    a: str
    b: str
    variant: Variant
    seed: int
    luck_by: str | None
    pairs: np.ndarray
    outcomes: np.ndarray
    luck: np.ndarray
    plies: np.ndarray
    failures: list[Failure]
    ended: str
    seconds: float

    @property
    def games(self) -> int:
        """Games played, without those set aside."""
        return 2 * len(self.pairs)

    @property
    def points(self) -> np.ndarray:
        """float64[N, 2]: points won by a in each game."""
        value = np.array([0, *self.variant.points], dtype=np.float64)
        return np.sign(self.outcomes) * value[np.abs(self.outcomes)]

    @property
    def raw_scores(self) -> np.ndarray:
        """float64[N]: points a game of each pair."""
        return self.points.mean(axis=1)

    @property
    def scores(self) -> np.ndarray:
        """float64[N]: points a game of each pair less the luck, where it was measured."""
        return (self.points - self.luck).mean(axis=1)

    @property
    def ppg(self) -> float:
        """Points a game of a, less the luck where it was measured; nan without games."""
        return mean_and_error(self.scores)[0]

    @property
    def standard_error(self) -> float:
        """Standard error of ppg, from the pairs."""
        return mean_and_error(self.scores)[1]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Bootstrap confidence interval of ppg, over the pairs."""
        return bootstrap_interval(self.scores, level)

    @property
    def variance_reduction(self) -> dict[str, float]:
        """How many times fewer games give the same error than single games with other dice would.

        "duplicate": same dice and swapped seats; "luck": luck adjustment; "both". From the
        variances of this match's games: a pair's score is the mean of two games, so its variance
        is set against half that of one.
        """
        single = self.points.ravel()
        half = single / math.sqrt(2)
        adjusted = (self.points - self.luck).ravel()
        return {
            "duplicate": variance_ratio(half, self.raw_scores),
            "luck": variance_ratio(single, adjusted),
            "both": variance_ratio(half, self.scores),
        }

    def rates(self) -> dict[str, float]:
        """Share of games won and lost by a, and of those won and lost with at least a gammon and
        with a backgammon, by the names of ``bgrl.game.outcomes.OUTPUTS`` and "lose"."""
        out = {}
        for name, sign in (("win", 1), ("lose", -1)):
            for suffix, level in (("", 1), ("_gammon", 2), ("_backgammon", 3)):
                hit = sign * self.outcomes >= level
                out[name + suffix] = float(hit.mean()) if hit.size else math.nan
        return out

    def to_json(self) -> dict[str, Any]:
        """The result as plain data for a report."""
        raw, raw_error = mean_and_error(self.raw_scores)
        data = {
            "a": self.a,
            "b": self.b,
            "variant": self.variant.name,
            "seed": self.seed,
            "luck_by": self.luck_by,
            "ppg": self.ppg,
            "standard_error": self.standard_error,
            "raw_ppg": raw,
            "raw_standard_error": raw_error,
            "variance_reduction": {
                key: times if math.isfinite(times) else None
                for key, times in self.variance_reduction.items()
            },
            "games": self.games,
            "plies": int(self.plies.sum()),
            "rates": self.rates() if self.games else None,
            "failures": [failure.to_json() for failure in self.failures],
            "ended": self.ended,
            "seconds": self.seconds,
        }
        return {key: None if _is_nan(value) else value for key, value in data.items()}

    def __str__(self) -> str:
        text = f"{self.a} against {self.b}: "
        if self.games:
            text += self._played()
        else:
            text += "no games"
        if self.failures:
            text += f"; {len(self.failures)} games set aside, first: {self.failures[0]}"
        if self.ended != "complete":
            text += f"; {self.ended}"
        return text

    def _played(self) -> str:
        rates = self.rates()
        text = f"{plus_minus(self.ppg, self.standard_error)} ppg over {self.games:,} games"
        if self.luck_by:
            text += f" (luck-adjusted; raw {plus_minus(*mean_and_error(self.raw_scores))}"
            if math.isfinite(times := self.variance_reduction["both"]):
                text += f"; as exact as {times * self.games:,.0f} games with other dice each"
            text += ")"
        return (
            f"{text}; wins {rates['win']:.1%}, gammons {rates['win_gammon']:.1%} to "
            f"{rates['lose_gammon']:.1%}, backgammons {rates['win_backgammon']:.1%} to "
            f"{rates['lose_backgammon']:.1%}"
        )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def play_match(
    a: Player,
    b: Player,
    pairs: int,
    seed: int = 0,
    *,
    variant: Variant = BACKGAMMON,
    luck: LuckEvaluator | None = None,
    stop: Sprt | None = None,
    folder: str | os.PathLike | None = None,
    workers: int = 0,
    timeout: float = 120.0,
    max_failures: int = 10,
    label: str | None = None,
) -> MatchResult:
    """Play `pairs` game pairs of a against b: the same dice twice, with the seats swapped.

    The games depend on (seed, pair number) alone, so any number of workers plays the same ones,
    and a player against itself scores exactly 0.

    luck: an evaluator whose estimate of the luck is subtracted from each result.
    stop: a sequential test over the pairs in order; the match ends when it decides.
    folder: holds every pair as a line of ``pairs.jsonl``, appended as it ends, and ``match.json``,
        the match's definition. The same call goes on where a killed one left off, and one with
        more pairs plays the rest, one with fewer takes the first; games that were set aside are
        tried again.
    workers: processes to spawn; with 0 the games are played in this one, where a player that
        hangs or crashes can't be helped.
    timeout: seconds that a game may take before it is set aside (only with workers).
    max_failures: the match ends when more games than this were set aside.

    Raises BgrlError for a negative number of workers or if the folder holds another match,
    CorruptFile if its files are damaged or its match.json is missing.
    """
    if workers < 0:
        raise BgrlError(f"a match needs 0 or more workers, not {workers}")
    start = time.monotonic()
    identity = {
        "format": FORMAT,
        "a": a.identity,
        "b": b.identity,
        "variant": variant.name,
        "seed": seed,
        "luck_by": luck.identity if luck else None,
    }
    job = MatchJob(a, b, variant, seed, luck)
    running = _Running(job, pairs, stop, max_failures)
    journal = _Journal(Path(folder), identity) if folder is not None else None
    for record in journal.records if journal else []:
        if record.task < pairs:
            running.add(record)
    todo = [pair for pair in range(pairs) if pair not in running.records]
    events = _events(job, todo, workers, timeout)
    try:
        with progress(pairs, label or f"{a.name} against {b.name}", "pairs") as bar:
            bar.advance(len(running.records))
            while running.ended is None:
                event = next(events, None)
                if event is None:
                    running.ended = "complete"
                elif not isinstance(event, Started):
                    if isinstance(event, Lost):
                        event = Failure(event.task, event.part, "a process", event.reason)
                    if journal:
                        journal.write(event)
                    running.add(event)
                    bar.note(running.text())
                    bar.advance()
    finally:
        events.close()
        if journal:
            journal.close()
    used = sorted(pair for pair in running.records if pair < running.used)
    games = [running.records[pair].games for pair in used]
    return MatchResult(
        a=a.name,
        b=b.name,
        variant=variant,
        seed=seed,
        luck_by=luck.identity if luck else None,
        pairs=np.array(used, dtype=np.int64),
        outcomes=_column(games, "outcome", np.int8),
        luck=_column(games, "luck", np.float64),
        plies=_column(games, "plies", np.int32),
        failures=[running.failures[pair] for pair in sorted(running.failures)],
        ended=running.ended,
        seconds=time.monotonic() - start,
    )


def replay(
    a: Player,
    b: Player,
    pair: int,
    game: int,
    seed: int = 0,
    *,
    variant: Variant = BACKGAMMON,
    luck: LuckEvaluator | None = None,
) -> tuple[GameResult, list[PlayedTurn]]:
    """Game 0 or 1 of a pair of `play_match` again: its result from a's view and every turn."""
    turns: list[PlayedTurn] = []
    result = MatchJob(a, b, variant, seed, luck).play(pair, game, turns)
    return result, turns


def _column(games: list[tuple[GameResult, GameResult]], name: str, dtype: type) -> np.ndarray:
    values = [[getattr(game, name) for game in pair] for pair in games]
    return np.array(values, dtype=dtype).reshape(len(games), 2)


def _events(
    job: MatchJob, todo: list[int], workers: int, timeout: float
) -> Generator[Any, None, None]:
    """Play the pairs `todo`, yielding what `MatchJob.run` and `run_in_processes` yield."""
    fast = fast_pair(job.a, job.b, job.variant, job.seed, job.luck)
    size = 1 if fast is None else 16 if job.luck else 128
    batches = (todo[i : i + size] for i in range(0, len(todo), size))
    if workers > 0:
        yield from run_in_processes(job, batches, workers, timeout)
    elif todo:
        job.prepare()
        for batch in batches:
            yield from job.run(batch)


class _Running:
    """The pairs that have ended, and what they say so far in the order of their numbers."""

    def __init__(self, job: MatchJob, pairs: int, stop: Sprt | None, max_failures: int):
        self.job = job
        self.records: dict[int, PairRecord] = {}
        self.failures: dict[int, Failure] = {}
        self.pairs = pairs
        self.used = 0  # pairs 0 to used - 1 have all ended
        self.ended: str | None = None
        self._test = SprtRun(stop) if stop else None
        self._max_failures = max_failures
        self._value = np.array([0, *job.variant.points])
        self._n = 0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, event: PairRecord | Failure) -> None:
        if isinstance(event, PairRecord):
            self.records[event.task] = event
            self.failures.pop(event.task, None)
        else:
            self.failures[event.task] = event
        while self.ended is None and self.used < self.pairs:
            record = self.records.get(self.used)
            if record is None and self.used not in self.failures:
                break
            self.used += 1
            if record:
                self._count(record)
        if self.ended is None and len(self.failures) > self._max_failures:
            self.used = self.pairs
            self.ended = (
                f"stopped: more than {self._max_failures} games were set aside, the last: {event}"
            )

    def _count(self, record: PairRecord) -> None:
        score = sum(
            math.copysign(self._value[abs(game.outcome)], game.outcome) - game.luck
            for game in record.games
        )
        score = float(score) / 2
        self._n += 1
        self._sum += score
        self._squares += score * score
        verdict = self._test.add(score) if self._test else None
        if verdict and self._test:
            test = self._test.test
            ppg = test.ppg1 if verdict == "H1" else test.ppg0
            self.ended = f"{verdict} accepted after {self.used} pairs: {ppg:+g} ppg"

    def text(self) -> str:
        if self._n < 2:
            return ""
        mean = self._sum / self._n
        variance = max(0.0, self._squares / self._n - mean * mean)
        return f"{mean:+.3f} ± {math.sqrt(variance / (self._n - 1)):.3f} ppg"


class _Journal:
    """The folder that keeps a match: what was played, a line a pair, in the order of ending."""

    def __init__(self, folder: Path, identity: dict[str, Any]):
        # Before asking what is there: ".." in a path leads nowhere while a folder before it is
        # missing.
        folder.mkdir(parents=True, exist_ok=True)
        definition = folder / "match.json"
        self.path = folder / "pairs.jsonl"
        if definition.exists():
            known = read_object(definition)
            for key, value in identity.items():
                if known.get(key) != value:
                    raise BgrlError(
                        f"{folder} holds another match: its {key} is {known.get(key)!r}, "
                        f"not {value!r}"
                    )
        elif self.path.exists():
            raise CorruptFile(f"{self.path}: there is no {definition.name} to say of which match")
        else:
            atomic_write_json(definition, identity)
        self.records = self._read(with_luck=identity["luck_by"] is not None)
        self._file = open(self.path, "ab")  # noqa: SIM115 - held until the match ends

    def _read(self, with_luck: bool) -> list[PairRecord]:
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        complete, _, cut = data.rpartition(b"\n")
        if cut:
            # A kill while a line was being appended: that pair is played again.
            atomic_write_bytes(self.path, complete + b"\n" if complete else b"")
        records: dict[int, PairRecord] = {}
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                entry = json.loads(line)
                if not isinstance(entry, dict):
                    raise ValueError("not a JSON object")
                if "failed" in entry:
                    continue
                record = PairRecord.from_dict(entry)
                if not with_luck and any(game.luck for game in record.games):
                    raise ValueError("luck, which this match does not measure")
                if records.setdefault(record.task, record) != record:
                    raise ValueError(f"pair {record.task} again, with another result")
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptFile(f"{self.path} line {number}: {error}") from error
        return list(records.values())

    def write(self, event: PairRecord | Failure) -> None:
        self._file.write(event.to_line().encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
