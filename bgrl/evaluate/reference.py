"""Reference positions: checker decisions with every legal play's equity by a strong engine.

One Parquet file. Each row is a decision with at least two plays; the file's metadata says how it
was made. The positions come from games between engines that no training run plays, with dice of a
stream of their own, so no training run can have used them.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.evaluate.kinds import DEFINITIONS, KINDS, kind_of
from bgrl.evaluate.luck import LuckEvaluator
from bgrl.evaluate.rollout import roll_out
from bgrl.files import atomic_file, shipped
from bgrl.game import BACKGAMMON, Position
from bgrl.game.board import SLOTS, loss_level
from bgrl.game.dice import game_stream, next_below, next_roll
from bgrl.game.plays import generate_plays
from bgrl.players import EquityPlayer, Player, load_player
from bgrl.players.player import boards_after, play_buffer
from bgrl.processes import Lost, Started, run_in_processes
from bgrl.progress import progress

SCHEMA_NAME = "reference"
SCHEMA_VERSION = 2

# The purpose of the dice stream (`bgrl.game.dice.game_stream`) that the games are played with.
STREAM = 101
# Who plays the games, and how often one of its plays is replaced by any legal one.
SOURCES = (
    ("gnubg_0ply", "gnubg_0ply", 0.0),
    ("gnubg_0ply", "pubeval", 0.0),
    ("pubeval", "pubeval", 0.0),
    ("gnubg_0ply", "gnubg_0ply", 0.2),
    ("pubeval", "pubeval", 0.3),
)
PER_GAME = 3
# A decision counts if this player sees so much equity between the best play and the worst.
MATTERS_TO = "gnubg_0ply"
MATTERS = 0.01

# A rollout takes this many plays at most, of those within so much equity of the best.
SERIOUS_PLAYS = 4
SERIOUS = 0.1

# A decision is as hard as the mean loss of a player that makes each of the serious plays with a
# probability proportional to exp(equity / DOUBT).
DOUBT = 0.02

_BOARD = pa.binary(2 * SLOTS)
SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("board", _BOARD, nullable=False),
        pa.field("die1", pa.int8(), nullable=False),
        pa.field("die2", pa.int8(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("game", pa.int64(), nullable=False),
        pa.field("ply", pa.int16(), nullable=False),
        pa.field("probabilities", pa.list_(pa.float32(), 5), nullable=False),
        pa.field("plays", pa.list_(_BOARD), nullable=False),
        pa.field("equities", pa.list_(pa.float32()), nullable=False),
        pa.field("rollouts", pa.list_(pa.float32()), nullable=False),
        pa.field("rollout_covariance", pa.list_(pa.float32()), nullable=False),
    ]
)


@dataclass(frozen=True)
class Decision:
    """A position with a roll, and what the reference thinks of every play.

    kind: of ``bgrl.evaluate.kinds``. board: int8[2, 26], the player with the dice to play first.
    source, game, ply: where it was met. probabilities: float32[5], the reference's for the board
    before the roll. plays: int8[N, 2, 26], what the opponent faces after each, the best by equity
    first; equities: float32[N], for the player. rollouts: float32[N], the equity by a rollout where
    there was one, else nan. rollout_covariance: float32[R, R], of the means of the R plays that
    were rolled out, in their order; they share their dice.
    """

    kind: str
    board: np.ndarray
    dice: tuple[int, int]
    source: str
    game: int
    ply: int
    probabilities: np.ndarray
    plays: np.ndarray
    equities: np.ndarray
    rollouts: np.ndarray
    rollout_covariance: np.ndarray

    @property
    def position(self) -> Position:
        return Position(self.board)

    @property
    def rolled_out(self) -> bool:
        """Whether its serious plays were rolled out."""
        return self.rollout_covariance.size > 0

    @property
    def rollout_errors(self) -> np.ndarray:
        """float32[N]: standard errors of `rollouts`, nan where there was none."""
        errors = np.full_like(self.rollouts, np.nan)
        errors[~np.isnan(self.rollouts)] = np.sqrt(np.diag(self.rollout_covariance))
        return errors

    def loss(self, after: np.ndarray) -> float:
        """Equity lost by the play that leads to int8[2, 26], against the best.

        By the reference's evaluation. Raises BgrlError for an illegal play.
        """
        return float(self.equities.max() - self.equities[self._index(after)])

    def rollout_loss(self, after: np.ndarray) -> tuple[float, float]:
        """The same by the rollouts, and the standard error that their games leave.

        A play that was not rolled out is put below the best by evaluation, which was, by as much as
        the evaluation puts it there.
        """
        chosen = self._index(after)
        rolled = np.flatnonzero(~np.isnan(self.rollouts))
        best = int(np.nanargmax(self.rollouts))
        value = self.rollouts[chosen]
        if np.isnan(value):
            stand_in = int(np.argmax(self.equities))
            value = self.rollouts[stand_in] + self.equities[chosen] - self.equities[stand_in]
            chosen = stand_in
        i, j = np.searchsorted(rolled, [best, chosen])
        covariance = self.rollout_covariance
        variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        return max(0.0, float(self.rollouts[best] - value)), math.sqrt(max(0.0, float(variance)))

    def _index(self, after: np.ndarray) -> int:
        same = (self.plays == after).all(axis=(1, 2))
        if not same.any():
            raise BgrlError(
                f"no legal play of {self.dice[0]}-{self.dice[1]} in {self.position.gnubg_id} "
                f"leads to {after.tolist()}"
            )
        return int(np.argmax(same))

    @property
    def best(self) -> np.ndarray:
        """The position int8[2, 26] after the best play by evaluation."""
        return self.plays[int(np.argmax(self.equities))]


@dataclass(frozen=True)
class Reference:
    """A set of decisions and how it was made (plain JSON)."""

    decisions: list[Decision]
    made: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write the Parquet file, atomically."""
        columns: dict[str, list] = {name: [] for name in SCHEMA.names}
        for decision in self.decisions:
            columns["kind"].append(decision.kind)
            columns["board"].append(decision.board.tobytes())
            columns["die1"].append(decision.dice[0])
            columns["die2"].append(decision.dice[1])
            for name in ("source", "game", "ply"):
                columns[name].append(getattr(decision, name))
            columns["plays"].append([play.tobytes() for play in decision.plays])
            for name in ("probabilities", "equities", "rollouts", "rollout_covariance"):
                columns[name].append(getattr(decision, name).astype(np.float32).ravel())
        metadata = {
            "bgrl.schema": SCHEMA_NAME,
            "bgrl.version": str(SCHEMA_VERSION),
            "bgrl.made": json.dumps(self.made),
        }
        table = pa.table(columns, schema=SCHEMA.with_metadata(metadata))
        with atomic_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd", compression_level=19)

    @classmethod
    def load(cls, path: str | Path | None = None) -> "Reference":
        """The decisions of a file, by default of the set in data/reference/.

        Raises BgrlError if there is no such file, CorruptFile for one that can't be read, and
        SchemaMismatch for one of another kind.
        """
        path = default_path() if path is None else Path(path)
        if not path.is_file():
            raise BgrlError(f"no reference positions at {path}")
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise CorruptFile(f"{path}: {error}") from error
        metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        found = metadata.get("bgrl.schema"), metadata.get("bgrl.version")
        if found != (SCHEMA_NAME, str(SCHEMA_VERSION)) or not table.schema.equals(SCHEMA):
            raise SchemaMismatch(f"{path} holds no reference positions of version {SCHEMA_VERSION}")
        return cls([_decision(row) for row in table.to_pylist()], json.loads(metadata["bgrl.made"]))


def default_path() -> Path:
    """Where the set that ships with bgrl lies."""
    return shipped("data") / "reference" / "positions.parquet"


def _board(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.int8).reshape(2, SLOTS).copy()


def _decision(row: dict[str, Any]) -> Decision:
    rollouts = np.array(row["rollouts"], dtype=np.float32)
    rolled = int((~np.isnan(rollouts)).sum())
    return Decision(
        kind=row["kind"],
        board=_board(row["board"]),
        dice=(row["die1"], row["die2"]),
        source=row["source"],
        game=row["game"],
        ply=row["ply"],
        probabilities=np.array(row["probabilities"], dtype=np.float32),
        plays=np.stack([_board(play) for play in row["plays"]]),
        equities=np.array(row["equities"], dtype=np.float32),
        rollouts=rollouts,
        rollout_covariance=np.array(row["rollout_covariance"], dtype=np.float32).reshape(
            rolled, rolled
        ),
    )


@dataclass(frozen=True)
class Found:
    """A decision met in a game, before anyone has judged it."""

    kind: str
    board: np.ndarray
    dice: tuple[int, int]
    source: str
    game: int
    ply: int


def draw_positions(count: int, seed: int, kinds: Sequence[str] = KINDS) -> list[Found]:
    """Draw `count` different decisions from games of SOURCES, as many of each kind as possible.

    From each game at most PER_GAME, and at most one of a kind; kinds that are short first.
    """
    quota = {kind: count // len(kinds) + (i < count % len(kinds)) for i, kind in enumerate(kinds)}
    players = {name: load_player(name) for name in _source_names()}
    found: list[Found] = []
    seen: set[bytes] = set()
    with progress(count, "draw positions", "positions") as bar:
        for game in itertools.count():
            short = {kind: n for kind, n in quota.items() if n > 0}
            if not short:
                break
            candidates: dict[str, list[Found]] = {}
            for decision in _decisions_of(players, seed, game):
                if decision.kind in short:
                    candidates.setdefault(decision.kind, []).append(decision)
            state = np.uint64(game_stream(seed, game, STREAM + 1))
            taken = 0
            for kind in sorted(candidates, key=lambda kind: -short[kind]):
                state, pick = next_below(np.uint64(state), len(candidates[kind]))
                decision = candidates[kind][pick]
                key = decision.board.tobytes() + bytes(sorted(decision.dice))
                if taken == PER_GAME:
                    break
                if key not in seen and _matters(players[MATTERS_TO], decision):
                    seen.add(key)
                    found.append(decision)
                    quota[kind] -= 1
                    taken += 1
            bar.advance(taken)
    return found


def _source_names() -> list[str]:
    return sorted({name for a, b, _ in SOURCES for name in (a, b)})


def _matters(player: Player, decision: Found) -> bool:
    """Whether it makes a difference what is played: not in a game that is as good as over."""
    ranked = player.rank_plays(Position(decision.board), decision.dice)
    return ranked[0].score - ranked[-1].score >= MATTERS


def _decisions_of(players: dict[str, Player], seed: int, game: int) -> Iterator[Found]:
    """The decisions of one game that have a choice."""
    a, b, sloppy = SOURCES[game % len(SOURCES)]
    source = f"{a} against {b}" + (f", {sloppy:.0%} of the plays at random" if sloppy else "")
    state = np.uint64(game_stream(seed, game, STREAM))
    board = BACKGAMMON.start_board()
    seat = 0
    for ply in itertools.count():
        state, die1, die2 = next_roll(np.uint64(state))
        if ply == 0 and die1 == die2:
            return  # no opening roll
        n = generate_plays(board, die1, die2, play_buffer())
        if n > 1:
            yield Found(kind_of(board), board, (die1, die2), source, game, ply)
        state, chance = next_below(np.uint64(state), 1000)
        state, pick = next_below(np.uint64(state), max(n, 1))
        if n > 0 and chance < 1000 * sloppy:
            board = boards_after(board, play_buffer(), n)[0][pick]
        else:
            board = players[(a, b)[seat]].choose(board, die1, die2)
        if loss_level(board):
            return
        seat = 1 - seat


@dataclass
class _Judged:
    task: int
    probabilities: list[float]
    plays: list[bytes]
    equities: list[float]


@dataclass
class _JudgeJob:
    """Evaluates every play of the decisions found."""

    judge: EquityPlayer
    found: list[Found]

    def prepare(self) -> None:
        self.judge.evaluate(Position.start())

    def run(self, tasks: list[int]) -> Iterator[Started | _Judged]:
        for task in tasks:
            yield Started(task, 0)
            decision = self.found[task]
            position = Position(decision.board)
            ranked = self.judge.rank_plays(position, decision.dice)
            yield _Judged(
                task,
                self.judge.evaluate(position).probabilities.tolist(),
                [play.position.board.tobytes() for play in ranked],
                [play.score for play in ranked],
            )


def build_reference(
    path: str | Path,
    count: int = 10_080,
    seed: int = 20_260,
    judge: str = "gnubg107_2ply",
    workers: int = 1,
) -> Reference:
    """Draw `count` decisions, have every legal play judged, and write them to `path`.

    judge: the player whose equities are the reference. What has been judged is kept beside `path`
    until the end, so that a killed build goes on.
    """
    path = Path(path)
    player = load_player(judge)
    if not isinstance(player, EquityPlayer):
        raise BgrlError(f"{judge} estimates no equities")
    found = draw_positions(count, seed)
    journal = path.with_name(f"_build.{path.stem}.jsonl")
    job = _JudgeJob(player, found)
    identity = {"judge": player.identity, "count": count, "seed": seed}
    done = {
        row["task"]: _Judged(**row | {"plays": [bytes.fromhex(play) for play in row["plays"]]})
        for row in _read_journal(journal, identity)
    }
    todo = [task for task in range(count) if task not in done]
    batches = (todo[i : i + 8] for i in range(0, len(todo), 8))
    events = run_in_processes(job, batches, max(1, workers), timeout=600)
    with open(journal, "a") as file, progress(count, "judge plays", "positions") as bar:
        bar.advance(len(done))
        for event in events:
            if isinstance(event, Lost):
                raise BgrlError(f"reference position {event.task}: {event.reason}")
            if isinstance(event, _Judged):
                done[event.task] = event
                file.write(json.dumps(event.__dict__ | {"plays": _hex(event.plays)}) + "\n")
                file.flush()
                bar.advance()
    made = {
        "judge": player.identity,
        "seed": seed,
        "count": count,
        "sources": [list(source) for source in SOURCES],
        "kinds": DEFINITIONS,
        "players": {name: load_player(name).identity for name in _source_names()},
        "command": f"bgrl reference count={count} seed={seed} judge={judge}",
        "date": datetime.now(UTC).date().isoformat(),
    }
    reference = Reference([_join(found[i], done[i]) for i in range(count)], made)
    reference.save(path)
    journal.unlink()
    return reference


@dataclass
class _RolledOut:
    """Of the serious plays: mean results, and their covariance row by row."""

    task: int
    means: list[float]
    covariance: list[float]


@dataclass
class _RolloutJob:
    """Rolls out the serious plays of decisions; a task is a decision's number."""

    player: Player
    luck: LuckEvaluator | None
    decisions: Mapping[int, Decision]
    games: int
    seed: int

    def prepare(self) -> None:
        roll_out(self.player, BACKGAMMON.start_board(), 1, 0, self.luck)

    def run(self, tasks: list[int]) -> Iterator[Started | _RolledOut]:
        for task in tasks:
            decision = self.decisions[task]
            scores = []
            for i in serious_plays(decision):
                yield Started(task, int(i))
                board = decision.plays[i].copy()
                # The same dice for each play of a decision, other ones for each decision.
                seed = self.seed + task
                scores.append(-roll_out(self.player, board, self.games, seed, self.luck))
            covariance = np.atleast_2d(np.cov(scores)) / self.games
            yield _RolledOut(task, np.mean(scores, axis=1).tolist(), covariance.ravel().tolist())


def serious_plays(decision: Decision) -> np.ndarray:
    """Numbers of the plays that may well be the best: SERIOUS_PLAYS within SERIOUS of the best."""
    best = np.argsort(-decision.equities, kind="stable")[:SERIOUS_PLAYS]
    return np.sort(best[decision.equities[best] >= decision.equities.max() - SERIOUS])


def hardness(decision: Decision) -> float:
    """How much equity is at stake between serious plays that are hard to tell apart.

    The mean loss of a player that makes each with a probability proportional to
    exp(equity / DOUBT). It depends on the reference alone, so it favours no player: decisions in
    which one is known to err would make that one look bad.
    """
    losses = decision.equities.max() - decision.equities[serious_plays(decision)]
    return float(np.average(losses, weights=np.exp(-losses / DOUBT)))


def hard_decisions(decisions: Sequence[Decision], count: int) -> list[int]:
    """Numbers of the `count` hardest decisions, as many of each kind as possible."""
    ranks = dict.fromkeys(KINDS, 0)
    order = []
    for i in sorted(range(len(decisions)), key=lambda i: -hardness(decisions[i])):
        order.append((ranks[decisions[i].kind], i))
        ranks[decisions[i].kind] += 1
    return sorted(i for _, i in sorted(order, key=lambda one: one[0])[:count])


def add_rollouts(
    path: str | Path,
    count: int = 216,
    games: int = 432,
    seed: int = 20_261,
    player: str = "gnubg_0ply",
    luck: LuckEvaluator | None = None,
    workers: int = 1,
) -> Reference:
    """Roll out the serious plays of the `count` hardest decisions of the file at `path`; save it.

    player: plays the rollouts. luck: a luck evaluator for less noise. Work in progress is kept
    beside the file. Rollouts that are there with the same settings are kept, others replaced.
    """
    path = Path(path)
    reference = Reference.load(path)
    decisions = reference.decisions
    numbers = hard_decisions(decisions, count)
    settings = {
        "player": load_player(player).identity,
        "games": games,
        "seed": seed,
        "plays": f"the best {SERIOUS_PLAYS} by the judge, within {SERIOUS} of the best",
        "hard": f"mean loss of a player with probabilities ~ exp(equity / {DOUBT})",
    }
    known = reference.made.get("rollouts", {})
    kept = [i for i, d in enumerate(decisions) if d.rolled_out]
    if any(known.get(key) != value for key, value in settings.items()):
        kept = []
    todo = [number for number in numbers if number not in kept]
    if not todo:
        return reference
    journal = path.with_name(f"_rollouts.{path.stem}.jsonl")
    done = {row["task"]: _RolledOut(**row) for row in _read_journal(journal, settings)}
    batches = [[number] for number in todo if number not in done]
    job = _RolloutJob(
        load_player(player), luck, {number: decisions[number] for number in todo}, games, seed
    )
    events = run_in_processes(job, iter(batches), max(1, workers), timeout=3600)
    with open(journal, "a") as file, progress(len(todo), "roll out", "positions") as bar:
        bar.advance(len(todo) - len(batches))
        for event in events:
            if isinstance(event, Lost):
                raise BgrlError(f"rollout of position {event.task}: {event.reason}")
            if isinstance(event, _RolledOut):
                done[event.task] = event
                file.write(json.dumps(event.__dict__) + "\n")
                file.flush()
                bar.advance()
    updated = []
    for number, decision in enumerate(decisions):
        if number in todo:
            decision = replace(decision, **_rollouts(decision, done[number]))
        elif number not in kept:
            decision = replace(decision, **_no_rollouts(len(decision.plays)))
        updated.append(decision)
    # Whoever estimates the luck, the rollouts estimate the same equities.
    luck_by = {luck.identity} if luck else set()
    if kept:
        luck_by.update(known["luck_by"])
    made = settings | {
        "luck_by": sorted(luck_by),
        "decisions": len(kept) + len(todo),
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"bgrl reference seed={seed} rollout.count={count} rollout.games={games} "
        f"rollout.player={player}",
    }
    result = Reference(updated, reference.made | {"rollouts": made})
    result.save(path)
    journal.unlink()
    return result


def _rollouts(decision: Decision, done: _RolledOut) -> dict[str, Any]:
    fields = _no_rollouts(len(decision.plays))
    fields["rollouts"][serious_plays(decision)] = done.means
    n = len(done.means)
    fields["rollout_covariance"] = np.array(done.covariance, dtype=np.float32).reshape(n, n)
    return fields


def _no_rollouts(plays: int) -> dict[str, Any]:
    return {
        "rollouts": np.full(plays, np.nan, dtype=np.float32),
        "rollout_covariance": np.empty((0, 0), dtype=np.float32),
    }


def _hex(plays: list[bytes]) -> list[str]:
    return [play.hex() for play in plays]


def _read_journal(path: Path, identity: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a piece of work that was killed; starts the file if there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(identity) + "\n")
        return []
    complete = path.read_text().rpartition("\n")[0]
    path.write_text(complete + "\n")
    lines = complete.splitlines()
    if not lines or json.loads(lines[0]) != identity:
        raise BgrlError(f"{path} is left from other work: delete it to start anew")
    return [json.loads(line) for line in lines[1:]]


def _join(found: Found, judged: _Judged) -> Decision:
    n = len(judged.plays)
    return Decision(
        kind=found.kind,
        board=found.board,
        dice=found.dice,
        source=found.source,
        game=found.game,
        ply=found.ply,
        probabilities=np.array(judged.probabilities, dtype=np.float32),
        plays=np.stack([_board(play) for play in judged.plays]),
        equities=np.array(judged.equities, dtype=np.float32),
        **_no_rollouts(n),
    )
