"""Reference positions: checker decisions with every legal play's equity by a strong engine.

One Parquet file. Each row is a decision with at least two plays; the file's metadata says how it
was made. The positions come from games between engines that no training run plays, with dice of a
stream of their own, so no training run can have used them.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
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
SCHEMA_VERSION = 1

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
        pa.field("rollout_errors", pa.list_(pa.float32()), nullable=False),
    ]
)


@dataclass(frozen=True)
class Decision:
    """A position with a roll, and what the reference thinks of every play.

    kind: of ``bgrl.evaluate.kinds``. board: int8[2, 26], the player with the dice to play first.
    source, game, ply: where it was met. probabilities: float32[5], the reference's for the board
    before the roll. plays: int8[N, 2, 26], what the opponent faces after each, the best by equity
    first; equities: float32[N], for the player. rollouts, rollout_errors: float32[N], mean and
    standard error of a rollout where there was one, else nan.
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
    rollout_errors: np.ndarray

    @property
    def position(self) -> Position:
        return Position(self.board)

    def loss(self, after: np.ndarray) -> float:
        """Equity lost by the play that leads to int8[2, 26], against the best.

        Rolled-out equities decide if both plays have them. Raises BgrlError for an illegal play.
        """
        same = (self.plays == after).all(axis=(1, 2))
        if not same.any():
            raise BgrlError(
                f"no legal play of {self.dice[0]}-{self.dice[1]} in {self.position.gnubg_id} "
                f"leads to {after.tolist()}"
            )
        chosen = int(np.argmax(same))
        if not np.isnan(self.rollouts[chosen]):
            return float(np.nanmax(self.rollouts) - self.rollouts[chosen])
        return float(self.equities.max() - self.equities[chosen])

    @property
    def best(self) -> np.ndarray:
        """The position int8[2, 26] after the best play."""
        if np.isnan(self.rollouts).all():
            return self.plays[int(np.argmax(self.equities))]
        return self.plays[int(np.nanargmax(self.rollouts))]


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
            for name in ("probabilities", "equities", "rollouts", "rollout_errors"):
                columns[name].append(getattr(decision, name).astype(np.float32))
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
        rollouts=np.array(row["rollouts"], dtype=np.float32),
        rollout_errors=np.array(row["rollout_errors"], dtype=np.float32),
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
    task: int
    means: list[float]
    errors: list[float]


@dataclass
class _RolloutJob:
    """Rolls out the serious plays of some decisions."""

    player: Player
    luck: LuckEvaluator | None
    decisions: list[Decision]
    games: int
    seed: int

    def prepare(self) -> None:
        roll_out(self.player, BACKGAMMON.start_board(), 1, 0, self.luck)

    def run(self, tasks: list[int]) -> Iterator[Started | _RolledOut]:
        for task in tasks:
            decision = self.decisions[task]
            means = np.full(len(decision.plays), np.nan)
            errors = means.copy()
            for i in serious_plays(decision):
                yield Started(task, int(i))
                mean, errors[i] = roll_out(
                    self.player, decision.plays[i].copy(), self.games, self.seed + task, self.luck
                )
                means[i] = -mean
            yield _RolledOut(task, means.tolist(), errors.tolist())


def serious_plays(decision: Decision) -> np.ndarray:
    """Indices of the plays that may well be the best: SERIOUS_PLAYS within SERIOUS of the best."""
    best = np.argsort(-decision.equities, kind="stable")[:SERIOUS_PLAYS]
    return best[decision.equities[best] >= decision.equities.max() - SERIOUS]


def hard_decisions(reference: Reference, player: Player, count: int) -> list[int]:
    """Numbers of `count` decisions in which `player` disagrees with the reference's evaluation.

    As many of each kind as possible, those that it gets most wrong first.
    """
    losses = np.array([d.loss(player.choose(d.board.copy(), *d.dice)) for d in reference.decisions])
    chosen: list[int] = []
    for rank in range(len(losses)):
        for kind in KINDS:
            of_kind = [i for i, d in enumerate(reference.decisions) if d.kind == kind]
            worst = sorted(of_kind, key=lambda i: -losses[i])
            if rank < len(worst) and losses[worst[rank]] > 0 and len(chosen) < count:
                chosen.append(worst[rank])
        if len(chosen) == count:
            break
    return sorted(chosen)


def add_rollouts(
    path: str | Path,
    count: int = 200,
    games: int = 324,
    seed: int = 20_261,
    player: str = "gnubg_0ply",
    luck: LuckEvaluator | None = None,
    workers: int = 1,
) -> Reference:
    """Roll out the serious plays of `count` hard decisions of the file at `path`, and save it.

    player: plays the rollouts, and by where it differs from the reference says what is hard.
    luck: a luck evaluator for less noise. Work in progress is kept beside the file, and a file that
    has these rollouts already is left as it is.
    """
    path = Path(path)
    reference = Reference.load(path)
    roller = load_player(player)
    numbers = hard_decisions(reference, roller, count)
    decisions = [reference.decisions[number] for number in numbers]
    settings = {
        "player": roller.identity,
        "luck_by": luck.identity if luck else None,
        "decisions": len(numbers),
        "games": games,
        "seed": seed,
    }
    if reference.made.get("rollouts") == settings:
        return reference
    journal = path.with_name(f"_rollouts.{path.stem}.jsonl")
    done = {row["task"]: _RolledOut(**row) for row in _read_journal(journal, settings)}
    todo = [[task] for task in range(len(numbers)) if task not in done]
    job = _RolloutJob(roller, luck, decisions, games, seed)
    events = run_in_processes(job, iter(todo), max(1, workers), timeout=3600)
    with open(journal, "a") as file, progress(len(numbers), "roll out", "positions") as bar:
        bar.advance(len(done))
        for event in events:
            if isinstance(event, Lost):
                raise BgrlError(f"rollout of position {numbers[event.task]}: {event.reason}")
            if isinstance(event, _RolledOut):
                done[event.task] = event
                file.write(json.dumps(event.__dict__) + "\n")
                file.flush()
                bar.advance()
    updated = list(reference.decisions)
    for task, number in enumerate(numbers):
        updated[number] = replace(
            updated[number],
            rollouts=np.array(done[task].means, dtype=np.float32),
            rollout_errors=np.array(done[task].errors, dtype=np.float32),
        )
    result = Reference(updated, reference.made | {"rollouts": settings})
    result.save(path)
    journal.unlink()
    return result


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
        rollouts=np.full(n, np.nan, dtype=np.float32),
        rollout_errors=np.full(n, np.nan, dtype=np.float32),
    )
