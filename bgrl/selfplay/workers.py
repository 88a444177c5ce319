"""Self-play in worker processes that write shards."""

import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from bgrl.data import (
    Generation,
    ShardMeta,
    ShardWriter,
    is_complete,
    open_generation,
    open_shard,
    publish_generation,
    shard_path,
)
from bgrl.data.generations import MANIFEST
from bgrl.errors import BgrlError
from bgrl.files import read_object, remove_temporaries
from bgrl.game.board import SLOTS
from bgrl.nets import FastNet
from bgrl.processes import Lost, Started, run_in_processes
from bgrl.progress import progress
from bgrl.search import Bearoff, Pruner
from bgrl.selfplay.kernel import play_games
from bgrl.selfplay.returns import returns_without_luck

GAMES_PER_SHARD = 4096
# Games whose returns are without luck take 50 times as long: workers that share the processor with
# the trainer then need small tasks to end at the same time.
EXACT_GAMES_PER_SHARD = 512
# Far beyond real games, which take about 55 plies; an untrained net's can drag on.
MAX_PLIES = 2000
BUFFER_ROWS = 65_536
# A shard takes seconds; a worker that is silent for so long is stuck.
TIMEOUT_SECONDS = 1800.0
TRIES = 3


@dataclass(frozen=True)
class ShardDone:
    """A worker has published shard number ``task``."""

    task: int
    games: int


@dataclass
class SelfPlayJob:
    """What a worker does: shard ``task`` holds the games of one fixed range of numbers."""

    net: FastNet
    folder: Path
    meta: ShardMeta
    first_game: int
    games: int
    games_per_shard: int
    max_plies: int
    bearoff: Bearoff | None
    pruner: Pruner | None

    def games_of(self, task: int) -> tuple[int, int]:
        """The numbers of the shard's first game and of the one after its last."""
        first = self.first_game + task * self.games_per_shard
        return first, min(first + self.games_per_shard, self.first_game + self.games)

    def prepare(self) -> None:
        """Make the buffers and have the kernels compiled."""
        rows = BUFFER_ROWS + self.max_plies
        self._buffers = (
            np.empty((rows, 2, SLOTS), np.int8),
            np.empty((rows, 5), np.float32),
            np.empty(rows, np.int8),
            np.empty(rows, np.int64),
            np.empty(rows, np.int16),
        )
        self._game_buffers = (
            np.empty((self.max_plies + 1, 2, SLOTS), np.int8),
            np.empty((self.max_plies + 1, 5), np.float32),
        )
        self._start = self.net.variant.start_board()
        self._play(self.first_game, self.first_game)
        self._labelled(0)

    def _play(self, first: int, last: int) -> tuple[int, int, int]:
        return play_games(
            self.net.arrays,
            self.net.scratch,
            self._start,
            self.meta.seed,
            first,
            last,
            self.meta.lam,
            self.meta.scatter,
            self.max_plies,
            self._buffers,
            self._game_buffers,
        )

    def _labelled(self, rows: int) -> list[np.ndarray]:
        """The buffers' first ``rows``, their targets without the luck of the dice if asked for."""
        columns = [column[:rows] for column in self._buffers]
        if self.meta.exact:
            boards, _, _, games, _ = columns
            columns[1] = returns_without_luck(
                self.net, boards, games, self.meta.lam, self.bearoff, self.pruner
            )
        return columns

    def run(self, tasks: list[int]) -> Iterator[Started | ShardDone]:
        """Play and publish the shards ``tasks``."""
        for task in tasks:
            yield Started(task, 0)
            first, last = self.games_of(task)
            game = first
            with ShardWriter(shard_path(self.folder, task), self.meta) as writer:
                while game < last:
                    game, rows, given_up = self._play(game, last)
                    writer.write(*self._labelled(rows))
                    writer.truncated_games += given_up
            yield ShardDone(task, last - first)


def generate(
    net: FastNet,
    folder: str | os.PathLike,
    *,
    seed: int,
    games: int,
    first_game: int = 0,
    generation: int = 0,
    lam: float = 0.7,
    exact: bool = False,
    bearoff: Bearoff | None = None,
    pruner: FastNet | None = None,
    scatter: float = 0.0,
    workers: int = 2,
    games_per_shard: int | None = None,
    max_plies: int = MAX_PLIES,
    stop: threading.Event | None = None,
) -> Generation:
    """Play games ``first_game .. first_game + games - 1`` of ``seed`` and publish the generation.

    ``net`` plays both sides greedily. The targets are λ-returns with ``lam`` as λ, and with
    ``exact`` those without the luck of the dice and with what the ``bearoff`` databases know
    (:mod:`bgrl.selfplay.returns`), where ``pruner``, a small net, chooses the four plays of a roll
    that ``net`` looks at. So large a share of the games as ``scatter`` begins with up to a
    dozen random plies, to get to positions that the net's own play avoids. A game that ends within
    them, or takes more than ``max_plies``, is given up: it has no positions.

    The positions are the same whatever ``workers`` is; 0 plays in this process. What an
    interrupted call has published is kept, and a worker that dies has its shard played again.
    Another thread interrupts it by setting ``stop``.
    Shards of other games or settings, which another interrupted call has left, are replaced or left
    out.

    Raises BgrlError for a value out of range, if ``folder`` is a complete generation of other games
    or settings, if a shard fails ``TRIES`` times, or when stopped.
    """
    folder = Path(folder)
    if games_per_shard is None:
        games_per_shard = EXACT_GAMES_PER_SHARD if exact else GAMES_PER_SHARD
    if (
        games < 1
        or games_per_shard < 1
        or max_plies < 1
        or not (0 <= lam <= 1 and 0 <= scatter <= 1)
        or first_game < 0
        or workers < 0
    ):
        raise BgrlError(
            f"self-play needs games, games_per_shard and max_plies of at least 1, lam and scatter "
            f"of 0 to 1, first_game and workers of at least 0, not {games}, {games_per_shard}, "
            f"{max_plies}, {lam}, {scatter}, {first_game}, {workers}"
        )
    meta = ShardMeta(
        net.hash,
        generation,
        net.variant.name,
        seed,
        lam,
        exact=exact,
        scatter=scatter,
        pruner=pruner.hash if pruner and exact else None,
    )
    if is_complete(folder):
        made = open_generation(folder)
        _check_same(made, meta, first_game, games)
        return made
    folder.mkdir(parents=True, exist_ok=True)
    remove_temporaries(folder)
    job = SelfPlayJob(
        net,
        folder,
        meta,
        first_game,
        games,
        games_per_shard,
        max_plies,
        bearoff,
        Pruner(pruner) if pruner else None,
    )
    paths = {task: shard_path(folder, task) for task in range(-(-games // games_per_shard))}
    missing = [task for task in paths if not _published(paths[task], meta, *job.games_of(task))]
    done = games - sum(last - first for first, last in map(job.games_of, missing))
    with progress(games, f"self-play {folder.name}", "games") as bar:
        bar.advance(done)
        for tries in range(TRIES):
            for result in _results(job, list(missing), workers, stop):
                if isinstance(result, Lost):
                    bar.note(f"shard {result.task}: {result.reason}; it is played again")
                elif isinstance(result, ShardDone):
                    bar.advance(result.games)
                    missing.remove(result.task)
            if not missing:
                return publish_generation(folder, [path.name for path in paths.values()])
            if stop and stop.is_set():
                raise BgrlError(f"{folder}: stopped, shards {missing} are missing")
            if tries == TRIES - 1:
                raise BgrlError(f"{folder}: shards {missing} failed {TRIES} times")
    raise AssertionError("unreachable")


def _results(
    job: SelfPlayJob, tasks: list[int], workers: int, stop: threading.Event | None
) -> Iterator[object]:
    if workers == 0:
        job.prepare()
        for task in tasks:
            if stop and stop.is_set():
                return
            yield from job.run([task])
    elif tasks:
        batches = iter([task] for task in tasks)
        count = min(workers, len(tasks))
        yield from run_in_processes(job, batches, count, TIMEOUT_SECONDS, stop)


def _published(path: Path, meta: ShardMeta, first: int, last: int) -> bool:
    """Whether ``path`` is a whole shard of this very generation, with the games ``first`` up to,
    not including, ``last``; any other file is replaced.

    One whose first or last game was given up doesn't show its range and is replaced, too.
    """
    try:
        shard = open_shard(path)
    except BgrlError:
        return False
    return (
        replace(shard.meta, created=meta.created) == meta
        and shard.numbers == (first, last - 1)
        and shard.games + shard.truncated_games == last - first
    )


def _check_same(made: Generation, meta: ShardMeta, first_game: int, games: int) -> None:
    """Raise BgrlError, saying what differs, if ``made`` is of other games or settings."""
    asked = asdict(meta)
    for shard in made.shards:
        for key, found in asdict(shard.meta).items():
            if key != "created" and found != asked[key]:
                raise BgrlError(
                    f"{made.folder} holds other self-play: its {key} is {found!r}, "
                    f"not {asked[key]!r}"
                )
    record = read_object(made.folder / MANIFEST)
    counts = [record.get(key) for key in ("games", "truncated_games")]
    published = sum(count for count in counts if isinstance(count, int))
    numbers = [number for shard in made.shards for number in shard.numbers or ()]
    inside = all(first_game <= number < first_game + games for number in numbers)
    if published != games or not inside:
        begin = f" from {min(numbers)}" if numbers else ""
        raise BgrlError(
            f"{made.folder} holds other self-play: {published} games{begin}, "
            f"not {games} from {first_game}"
        )
