"""How much a player errs, by kind of position, and how well its probabilities are calibrated.

Errors are measured twice: by the reference's evaluation of every decision, and on the hard ones by
rollouts. The best of several rollouts is partly the luckiest, so errors by rollouts are a little
too large for everybody alike; the difference of two players' is not affected.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import BgrlError, CorruptFile
from bgrl.evaluate.reference import Decision
from bgrl.evaluate.stats import mean_and_error
from bgrl.game import Position
from bgrl.game.board import SLOTS
from bgrl.game.outcomes import OUTPUTS, equity
from bgrl.game.plays import generate_plays
from bgrl.players import EquityPlayer, Player
from bgrl.players.player import boards_after, play_buffer, swapped
from bgrl.processes import Lost, Started, run_in_processes
from bgrl.progress import progress

PR = 500  # times the mean error a decision
BLUNDER = 0.08  # equity; GNU Backgammon calls a play that loses as much "bad"
ALL = "all"


@dataclass(frozen=True)
class Answer:
    """A player's play in one decision.

    loss: equity lost by the reference's evaluation, in points, 0 or more. play: the position
    int8[2, 26] that it left the opponent. probabilities: float32[5] of the player for the board
    before the roll, or None.
    """

    task: int
    loss: float
    play: np.ndarray
    probabilities: np.ndarray | None


@dataclass(frozen=True)
class ErrorRate:
    """Of one kind of position: the number of decisions, the mean error in points and its standard
    error, and the share of blunders.

    rollout_error: what the games of rollouts leave of uncertainty, in points; the standard error,
    which is of other decisions as well, includes it. 0 by evaluation.
    """

    decisions: int
    mean: float
    standard_error: float
    blunders: float
    rollout_error: float = 0.0

    @property
    def pr(self) -> float:
        """500 times the mean error."""
        return PR * self.mean


@dataclass(frozen=True)
class Measurement:
    """A player's answers to all of `decisions`, in order."""

    player: str
    decisions: Sequence[Decision]
    answers: Sequence[Answer]

    @property
    def losses(self) -> np.ndarray:
        """float64[N]: equity lost in each decision."""
        return np.array([answer.loss for answer in self.answers])

    def rates(self) -> dict[str, ErrorRate]:
        """The error rate by kind of position, and of ALL, by the reference's evaluation."""
        return _rates(self.decisions, self.losses, np.zeros(len(self.decisions)))

    def rollout_rates(self) -> dict[str, ErrorRate]:
        """The same by rollouts, on the decisions that have them; empty if there are none."""
        losses, noise = self._rollout_losses
        return _rates([d for d in self.decisions if d.rolled_out], losses, noise)

    @cached_property
    def _rollout_losses(self) -> tuple[np.ndarray, np.ndarray]:
        """float64[R], float64[R]: equity lost in each decision rolled out, and its noise."""
        pairs = [
            decision.rollout_loss(answer.play)
            for decision, answer in zip(self.decisions, self.answers, strict=True)
            if decision.rolled_out
        ]
        losses, noise = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return losses, noise

    def difference(
        self, other: "Measurement", rollouts: bool = False
    ) -> dict[str, tuple[float, float]]:
        """By kind: this player's mean error less another's on the same decisions, and its standard
        error from the decisions' differences; by evaluation or by rollouts."""
        if rollouts:
            decisions = [d for d in self.decisions if d.rolled_out]
            lost = self._rollout_losses[0] - other._rollout_losses[0]
        else:
            decisions, lost = list(self.decisions), self.losses - other.losses
        return {kind: mean_and_error(lost[of]) for kind, of in _of_kind(decisions).items()}

    def worst(self, count: int = 20) -> list[tuple[Decision, Answer]]:
        """The decisions that cost most, the worst first."""
        order = np.argsort(-self.losses, kind="stable")[:count]
        return [(self.decisions[i], self.answers[i]) for i in order if self.answers[i].loss > 0]

    def calibration(self, output: str = "win", bins: int = 10) -> list[tuple[float, float, int]]:
        """(the player's mean, the reference's mean, positions) of each tenth of the player's range.

        Of one of ``bgrl.game.outcomes.OUTPUTS``, where the reference's probability stands for the
        truth; empty bins are left out. An empty list from a player without probabilities.
        """
        if any(answer.probabilities is None for answer in self.answers):
            return []
        column = OUTPUTS.index(output)
        mine = np.array([answer.probabilities[column] for answer in self.answers])  # type: ignore[index]
        truth = np.array([decision.probabilities[column] for decision in self.decisions])
        place = np.minimum((mine * bins).astype(int), bins - 1)
        return [
            (float(mine[place == i].mean()), float(truth[place == i].mean()), int(hit))
            for i in range(bins)
            if (hit := (place == i).sum())
        ]

    def equity_error(self) -> tuple[float, float] | None:
        """Mean absolute difference from the reference's equity of the positions before the roll,
        with its standard error; None from a player without probabilities."""
        if any(answer.probabilities is None for answer in self.answers):
            return None
        mine = equity(np.array([answer.probabilities for answer in self.answers], dtype=float))
        truth = equity(
            np.array([decision.probabilities for decision in self.decisions], dtype=float)
        )
        return mean_and_error(np.abs(mine - truth))

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data."""
        error = self.equity_error()
        return {
            "player": self.player,
            "rates": {kind: _rate_json(rate) for kind, rate in self.rates().items()},
            "rollout_rates": {
                kind: _rate_json(rate) | {"rollout_error": rate.rollout_error}
                for kind, rate in self.rollout_rates().items()
            },
            "equity_error": None if error is None else list(error),
            "calibration": {output: self.calibration(output) for output in OUTPUTS},
            "worst": [
                {
                    "position": decision.position.gnubg_id,
                    "dice": list(decision.dice),
                    "kind": decision.kind,
                    "loss": answer.loss,
                    "after": Position(answer.play).gnubg_id,
                    "best_after": Position(decision.best).gnubg_id,
                }
                for decision, answer in self.worst()
            ],
        }

    def __str__(self) -> str:
        rate = self.rates()[ALL]
        text = (
            f"{self.player}: mean error {1000 * rate.mean:.2f} ± {1000 * rate.standard_error:.2f} "
            f"mEq, PR {rate.pr:.2f}, {rate.blunders:.2%} blunders, {rate.decisions:,} decisions"
        )
        if hard := self.rollout_rates().get(ALL):
            text += (
                f"; by rollouts {1000 * hard.mean:.1f} ± {1000 * hard.standard_error:.1f} mEq "
                f"(the rollouts' own noise ± {1000 * hard.rollout_error:.1f}), "
                f"{hard.decisions} hard decisions"
            )
        return text


def errors_json(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Each measurement's figures, and by how much the player errs more than the first one:
    "difference" and "rollout_difference", by kind (mean, standard error)."""
    first = measurements[0]
    return [
        measurement.to_json()
        | {
            name: {
                kind: [mean, _number(error)]
                for kind, (mean, error) in measurement.difference(first, rollouts).items()
            }
            for name, rollouts in (("difference", False), ("rollout_difference", True))
        }
        for measurement in measurements
    ]


def _of_kind(decisions: Sequence[Decision]) -> dict[str, np.ndarray]:
    """Which decisions (bool[N]) are of ALL and of each kind that there is."""
    kinds = np.array([decision.kind for decision in decisions])
    if not decisions:
        return {}
    return {ALL: np.ones(len(kinds), bool)} | {
        kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())
    }


def _rates(
    decisions: Sequence[Decision], losses: np.ndarray, noise: np.ndarray
) -> dict[str, ErrorRate]:
    rates = {}
    for kind, of in _of_kind(decisions).items():
        mean, error = mean_and_error(losses[of])
        rollout_error = float(np.sqrt((noise[of] ** 2).sum()) / of.sum())
        blunders = float((losses[of] >= BLUNDER).mean())
        rates[kind] = ErrorRate(int(of.sum()), mean, error, blunders, rollout_error)
    return rates


def _rate_json(rate: ErrorRate) -> dict[str, Any]:
    return {
        "decisions": rate.decisions,
        "mean_error": rate.mean,
        "standard_error": _number(rate.standard_error),
        "pr": rate.pr,
        "blunders": rate.blunders,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass
class _Job:
    player: Player
    decisions: Sequence[Decision]

    def prepare(self) -> None:
        self.answer(0)

    def answer(self, task: int) -> Answer:
        decision = self.decisions[task]
        self.player.start_game(0, task, 0)
        play = self.player.choose(decision.board.copy(), *decision.dice)
        probabilities = None
        if isinstance(self.player, EquityPlayer):
            probabilities = self.player.evaluate(decision.position).probabilities
        return Answer(task, decision.loss(play), play, probabilities)

    def run(self, tasks: list[int]) -> Iterator[Started | Answer]:
        for task in tasks:
            yield Started(task, 0)
            yield self.answer(task)


def measure(player: Player, decisions: Sequence[Decision], workers: int = 0) -> Measurement:
    """Have `player` answer all `decisions`, in `workers` processes (0: in this one).

    Raises BgrlError if it answers with an illegal play or a process dies.
    """
    if not decisions:
        raise BgrlError("there are no decisions to measure by")
    job = _Job(player, decisions)
    answers: dict[int, Answer] = {}
    tasks = list(range(len(decisions)))
    batches = [tasks[i : i + 64] for i in range(0, len(tasks), 64)]
    with progress(len(tasks), player.name, "decisions") as bar:
        if workers:
            events = run_in_processes(job, iter(batches), workers, timeout=600)
        else:
            events = (event for batch in batches for event in job.run(batch))
        for event in events:
            if isinstance(event, Lost):
                raise BgrlError(f"{player.name} in decision {event.task}: {event.reason}")
            if isinstance(event, Answer):
                answers[event.task] = event
                bar.advance()
    return Measurement(player.name, decisions, [answers[task] for task in tasks])


@dataclass(frozen=True)
class BenchmarkDecision:
    """A line of a GNU Backgammon ``.bm`` file: a roll and the plays rolled out for it.

    plays: int8[N, 2, 26], the opponent on roll; losses: float64[N], equity lost by each.
    """

    board: np.ndarray
    dice: tuple[int, int]
    plays: np.ndarray
    losses: np.ndarray

    def loss(self, after: np.ndarray) -> float:
        """Equity lost by a play; the most that is listed for a play that isn't."""
        same = (self.plays == after).all(axis=(1, 2))
        return float(self.losses[np.argmax(same)] if same.any() else self.losses.max())


def read_benchmark(path: str | Path) -> list[BenchmarkDecision]:
    """The decisions of a benchmark file as GNU Backgammon's authors published them.

    Its lines ``m KEY die1 die2 KEY number KEY number ...`` give the position, the dice, and the
    position after each play with a number: the first is the best play, and a play loses the
    difference of its number to the first one's. A KEY is 20 letters A to P, the nibbles of the
    position ID's ten bytes. Other lines are passed over.

    Raises CorruptFile, with the line number, for a malformed line.
    """
    decisions = []
    try:
        lines = Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0] != "m":
            continue
        try:
            board = _board_of_key(words[1])
            dice = int(words[2]), int(words[3])
            plays = [_legal(board, dice, key) for key in words[4::2]]
            numbers = [float(word) for word in words[5::2]]
            if not plays or len(numbers) != len(plays):
                raise ValueError("a play or a number is missing")
        except (ValueError, IndexError) as error:
            raise CorruptFile(f"{path} line {number}: {error}") from error
        losses = np.abs(np.array(numbers) - numbers[0])
        decisions.append(BenchmarkDecision(board, dice, np.stack(plays), losses))
    return decisions


def score_benchmark(player: Player, decisions: Sequence[BenchmarkDecision]) -> ErrorRate:
    """The player's error rate on the decisions of a benchmark file."""
    losses = np.empty(len(decisions))
    with progress(len(decisions), player.name, "decisions") as bar:
        for task, decision in enumerate(decisions):
            # A miss then hangs on the decision's number, not on how many came before.
            player.start_game(0, task, 0)
            losses[task] = decision.loss(player.choose(decision.board.copy(), *decision.dice))
            bar.advance()
    mean, error = mean_and_error(losses)
    return ErrorRate(len(losses), mean, error, float((losses >= BLUNDER).mean()))


def _legal(board: np.ndarray, dice: tuple[int, int], key: str) -> np.ndarray:
    """What the opponent faces after the play that `key` stands for, whoever's fields come first."""
    if not all(1 <= die <= 6 for die in dice):
        raise ValueError(f"{dice[0]}-{dice[1]} is no roll")
    reached = _board_of_key(key)
    legal = boards_after(board, play_buffer(), generate_plays(board, *dice, play_buffer()))[0]
    for after in (swapped(reached), reached):
        if (legal == after).all(axis=(1, 2)).any():
            return after
    raise ValueError(f"no legal play of {dice[0]}-{dice[1]} leads to {key}")


def _board_of_key(key: str) -> np.ndarray:
    """int8[2, 26], the player on roll first, of 20 letters: the opponent's 25 fields come first."""
    if len(key) != 20 or not all("A" <= letter <= "P" for letter in key):
        raise ValueError(f"{key!r} is no position key")
    nibbles = np.array([ord(letter) - ord("A") for letter in key], dtype=np.uint8)
    data = (16 * nibbles[0::2] + nibbles[1::2]).astype(np.uint8)
    bits = np.unpackbits(data, bitorder="little")
    ends = np.flatnonzero(bits == 0)[: 2 * (SLOTS - 1)]
    counts = np.diff(ends, prepend=-1) - 1
    board = np.zeros((2, SLOTS), dtype=np.int8)
    board[1, 1:], board[0, 1:] = counts[: SLOTS - 1], counts[SLOTS - 1 :]
    board[:, 0] = 15 - board.sum(axis=1)
    if (board < 0).any():
        raise ValueError(f"{key!r} has too many checkers")
    return board
