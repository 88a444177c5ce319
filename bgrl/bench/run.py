"""What `bgrl bench` measures, part by part."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.bench import peers
from bgrl.bench.child import Child
from bgrl.bench.figures import Figure, Goal, Series
from bgrl.bench.ours import (
    LAM,
    ExactMeans,
    Lookahead,
    NetGames,
    RandomGames,
    SelfPlay,
    Training,
    dense_flops,
    sparse_flops,
)
from bgrl.bench.profile import KernelProfile, PythonProfile
from bgrl.bench.subject import Subject, find_subjects
from bgrl.data import (
    Generation,
    Positions,
    ShardWriter,
    publish_generation,
    read_positions,
    shard_path,
)
from bgrl.errors import BgrlError
from bgrl.files import shipped
from bgrl.nets import FastNet, Weights
from bgrl.progress import progress
from bgrl.selfplay import generate

SHAPES = ((128, 32), (256, 32))
GAMES_A_SECOND = {(128, 32): 4000, (256, 32): 2500}
FULL_WINDOW = 100_000_000
FLAT = 1.1  # a curve that ends at most so much above its start is called flat
PRUNER = shipped("checkpoints") / "hard" / "small"
MB = 1e6


@dataclass(frozen=True)
class Settings:
    """How to measure.

    net: as in :func:`bgrl.bench.subject.find_subjects`. repetitions: of every speed, each of
    `seconds`. batch: the trainer's. sample: self-play games whose positions trainer, data and
    memory are measured on. window: positions of the memory measurement. games: the most of the
    scaling measurement. profile: also measure where time goes.
    """

    net: str | None = None
    repetitions: int = 5
    seconds: float = 1.0
    batch: int = 1024
    sample: int = 4096
    window: int = 4_000_000
    games: int = 100_000
    seed: int = 1
    profile: bool = False

    def __post_init__(self) -> None:
        for name in ("repetitions", "batch", "sample", "window"):
            if getattr(self, name) < 1:
                raise BgrlError(f"bench: {name} is {getattr(self, name)}, expected at least 1")
        if self.games < 10 or not self.seconds > 0:
            raise BgrlError(
                f"bench: games is {self.games} and seconds {self.seconds}, expected at least 10 "
                "and more than 0"
            )


def run_bench(what: str, settings: Settings) -> dict[str, Any]:
    """Measure the part `what` of PARTS, or "all"; returns plain data for :mod:`bgrl.bench.show`.

    Peers that are not installed are named in the figures, with the line that installs them. What
    is written to disk meanwhile goes with the temporary folder.

    Raises BgrlError for an unknown part, when a net can't be loaded, and when the disk has no room.
    """
    if what != "all" and what not in PARTS:
        raise BgrlError(f"bench: there is no {what!r}, only all, {', '.join(PARTS)}")
    parts = list(PARTS) if what == "all" else [what]
    with tempfile.TemporaryDirectory(prefix="bgrl-bench-") as folder:
        bench = Bench(settings, Path(folder))
        figures: list[tuple[str, Figure]] = []
        with progress(len(parts) + settings.profile, "bench", "parts") as bar:
            for part in parts:
                bar.note(part)
                figures += [(part, figure) for figure in PARTS[part](bench)]
                bar.advance()
            profiles = None
            if settings.profile:
                bar.note("profile")
                profiles = bench.profile()
                bar.advance()
    return {
        "nets": [
            {"shape": s.shape, "hash": s.weights.hash, "encoder": s.weights.encoder.name,
             "origin": s.origin, "trained": s.trained}
            for s in bench.subjects.values() if s
        ],
        "figures": [{"part": part, **figure.to_json()} for part, figure in figures],
        "profile": profiles,
    }  # fmt: skip


class Bench:
    """One run: its settings, its nets, its temporary folder, and what several parts share."""

    def __init__(self, settings: Settings, folder: Path):
        self.settings = settings
        self.folder = folder
        self.subjects = find_subjects(settings.net, SHAPES, settings.seed)
        #: The net of whatever is measured with one net only.
        self.subject: Subject = next(s for s in self.subjects.values() if s)

    @cached_property
    def sample(self) -> Generation:
        """Games of the net with itself, as a run writes them."""
        return generate(
            FastNet(self.subject.weights), self.folder / "sample", seed=self.settings.seed,
            games=self.settings.sample, lam=LAM, workers=1,
        )  # fmt: skip

    def repeat(self, **runs: Callable[[], Any]) -> dict[str, list[Any]]:
        """What each of `runs` returns, the repetitions of all of them taking turns."""
        values: dict[str, list[Any]] = {name: [] for name in runs}
        for _ in range(self.settings.repetitions):
            for name, run in runs.items():
                values[name].append(run())
        return values

    def against(
        self, ours: Child, method: str, others: dict[str, tuple[Any, ...]]
    ) -> tuple[Series, dict[str, tuple[Series | None, str]]]:
        """Our rates, and each peer's with what is missing of it.

        others: name -> (class, arguments), whose `run` is what `method` is of ours.
        """
        seconds = self.settings.seconds
        with ExitStack() as stack:
            runs: dict[str, Callable[[], float]] = {"bgrl": lambda: ours.call(method, seconds)}
            absent: dict[str, str] = {}
            for name, (make, *arguments) in others.items():
                try:
                    child = stack.enter_context(Child(make, *arguments))
                    runs[name] = lambda child=child: child.call("run", seconds)  # type: ignore[misc]
                except BgrlError as error:
                    absent[name] = str(error)
            values = self.repeat(**runs)
        found = {
            name: (Series(name, values[name]) if name in values else None, absent.get(name, ""))
            for name in others
        }
        return Series("bgrl", values["bgrl"]), found

    def profile(self) -> dict[str, Any]:
        """Where time goes: the kernels by phase, and Python by function."""
        found: dict[str, Any] = {"kernels": {}}
        for subject in filter(None, self.subjects.values()):
            with Child(KernelProfile, subject.weights, self.settings.seed) as child:
                phases = child.call("phases", self.settings.seconds)
                found["kernels"][subject.shape] = phases
        weights, seed = self.subject.weights, self.settings.seed
        with Child(PythonProfile) as child:
            found["worker"] = child.call(
                "worker", weights, self.folder / "profile", self.settings.sample, seed
            )
        folders = [self.sample.folder]
        with Child(PythonProfile) as child:
            found["trainer"] = child.call(
                "trainer", weights, folders, self.settings.batch, seed, self.settings.seconds
            )
        return found


def plays(bench: Bench) -> list[Figure]:
    """Random games, which are play generation and little else."""
    seed = bench.settings.seed
    with Child(RandomGames, seed) as ours:
        rates, others = bench.against(
            ours,
            "run",
            {
                "gnubg-nn moves": (peers.GnubgNnRandomGames, seed),
                "OpenSpiel": (peers.OpenSpielRandomGames, seed),
            },
        )
    goals = {"gnubg-nn moves": Goal(12, of_ratio=True)}
    return [
        Figure("random games", "games/s", rates, peer, goals.get(name), missing)
        for name, (peer, missing) in others.items()
    ]


def evaluations(bench: Bench) -> list[Figure]:
    """Static evaluations: of candidate plays while playing, and of separate boards."""
    subject, seed = bench.subject, bench.settings.seed
    with Child(NetGames, subject.weights, seed) as ours:
        rates, others = bench.against(
            ours,
            "evaluations",
            {"gnubg evaluate": (peers.GnubgEvaluations, subject.weights, seed)},
        )
        separate = bench.repeat(bgrl=lambda: ours.call("separate", bench.settings.seconds))
    peer, missing = others["gnubg evaluate"]
    goal = Goal(20, of_ratio=True)
    return [
        Figure(
            f"evaluations in self-play, {subject.shape}", "evaluations/s", rates, peer, goal,
            missing, note="the peer's of distinct candidate plays of the same kind of games",
        ),
        Figure(
            f"evaluations of separate boards, {subject.shape}", "evaluations/s",
            Series("bgrl", separate["bgrl"]),
        ),
    ]  # fmt: skip


def selfplay(bench: Bench) -> list[Figure]:
    """Whole self-play, shards written, by one worker; against gnubg's own 0-ply games."""
    figures = []
    for shape, subject in bench.subjects.items():
        name = f"self-play, {'-'.join(map(str, shape))}"
        if subject is None:
            reason = "no trained net fits this shape: net=FOLDER names one"
            figures.append(Figure(name, "games/s", None, missing=reason))
            continue
        folder = bench.folder / f"selfplay-{subject.shape}"
        with Child(SelfPlay, subject.weights, folder, bench.settings.seed) as ours:
            rates, others = bench.against(
                ours,
                "run",
                {"gnubg-nn 0-ply": (peers.GnubgNnSelfPlay, bench.settings.seed)},
            )
        peer, missing = others["gnubg-nn 0-ply"]
        if shape in GAMES_A_SECOND:
            figures.append(Figure(name, "games/s", rates, goal=Goal(GAMES_A_SECOND[shape])))
        figures.append(Figure(name, "games/s", rates, peer, Goal(25, of_ratio=True), missing))
    return figures


def lookahead(bench: Bench) -> list[Figure]:
    """Decisions at 2 plies with a pruner, against gnubg's, and what it saves of the last ply."""
    subject, seed = bench.subject, bench.settings.seed
    pruner = Weights.load(PRUNER)
    with Child(Lookahead, subject.weights, seed, pruner) as ours:
        rates, others = bench.against(
            ours, "run", {"gnubg 2-ply": (peers.GnubgLookahead, subject.weights, seed)}
        )
    peer, missing = others["gnubg 2-ply"]
    with Child(ExactMeans, subject.weights, seed, pruner) as child:
        values = bench.repeat(
            full=lambda: child.call("full", bench.settings.seconds),
            pruned=lambda: child.call("run", bench.settings.seconds),
        )
    return [
        Figure(
            f"2-ply decisions, {subject.shape}, pruned", "decisions/s", rates, peer,
            Goal(3, of_ratio=True), missing,
        ),
        Figure(
            f"means over 21 rolls, {subject.shape}", "positions/s",
            Series("pruned", values["pruned"]), Series("all plays", values["full"]),
            note=f"the pruner has {'-'.join(map(str, pruner.hidden))} units and keeps 4 plays",
        ),
    ]  # fmt: skip


def workers(bench: Bench) -> list[Figure]:
    """Two workers at once against one, and how soon a worker is at work."""
    settings, weights = bench.settings, bench.subject.weights

    def worker(number: int) -> Child:
        seed = settings.seed + number
        return Child(SelfPlay, weights, bench.folder / f"worker-{number}", seed)

    worker(0).close()  # the kernels are compiled now, whatever was the case before
    with worker(1) as first, worker(2) as second:

        def both() -> float:
            for child in (first, second):
                child.start("run", settings.seconds)
            return first.result() + second.result()

        values = bench.repeat(one=lambda: first.call("run", settings.seconds), two=both)
        started = [first.start_seconds, second.start_seconds]
    return [
        Figure(
            "self-play by two workers", "games/s", Series("2 workers", values["two"]),
            Series("1 worker", values["one"]), Goal(1.9, of_ratio=True),
            note=f"on {_cores()} cores",
        ),
        Figure(
            "start of a worker, kernels compiled before", "s", Series("bgrl", started),
            goal=Goal(3, at_most=True),
        ),
    ]  # fmt: skip


def trainer(bench: Bench) -> list[Figure]:
    """Positions a second, against what a large matrix product lets expect."""
    settings, weights = bench.settings, bench.subject.weights
    folders = [bench.sample.folder]
    arguments = weights, folders, settings.batch, _cores(), settings.seed
    with Child(Training, *arguments, one_thread=False) as child:
        values = bench.repeat(
            sgemm=lambda: child.call("sgemm", settings.seconds),
            train=lambda: child.call("train", settings.seconds),
        )
        occupied = child.call("occupied")
    dense, sparse = dense_flops(weights), sparse_flops(weights, occupied)
    sgemm = values["sgemm"]
    rates = Series("bgrl", [positions for positions, _ in values["train"]])
    name, unit = f"training, {bench.subject.shape}, batch {settings.batch}", "positions/s"
    return [
        Figure(
            name, unit, rates,
            Series("sgemm peak, dense", [flops / dense for flops in sgemm]),
            Goal(0.5, of_ratio=True),
            note=f"{dense:,} FLOP a position with a dense first layer, without its inputs' "
            f"gradient; the peak is {np.median(sgemm) / 1e9:,.0f} GFLOP/s on {_cores()} threads",
        ),
        Figure(
            name, unit, rates,
            Series("sgemm peak, sparse", [flops / sparse for flops in sgemm]),
            note=f"{sparse:,.0f} FLOP a position as computed: a row a slot, {occupied:.1f} slots",
        ),
        Figure(
            "training time spent waiting for data", "%",
            Series("bgrl", [100 * wait for _, wait in values["train"]]),
            goal=Goal(10, at_most=True),
        ),
    ]  # fmt: skip


def data(bench: Bench) -> list[Figure]:
    """Bytes of a position on disk."""
    shards = bench.sample.shards
    total = sum(shard.path.stat().st_size for shard in shards)
    columns: dict[str, int] = {}
    for shard in shards:
        for g in range(shard.footer.num_row_groups):
            group = shard.footer.row_group(g)
            for c in range(group.num_columns):
                column = group.column(c)
                size = columns.get(column.path_in_schema, 0)
                columns[column.path_in_schema] = size + column.total_compressed_size
    rows = bench.sample.rows
    note = ", ".join(f"{name} {size / rows:.2f}" for name, size in columns.items())
    plies = rows / max(1, bench.sample.games)
    return [
        Figure(
            "Parquet, all columns", "bytes/position", Series("bgrl", [total / rows]),
            goal=Goal(24, at_most=True),
            note=f"{rows:,} positions, {plies:.1f} plies a game; {note}",
        )
    ]  # fmt: skip


def memory(bench: Bench) -> list[Figure]:
    """Resident memory of a worker, and of a trainer over a large window."""
    settings, weights = bench.settings, bench.subject.weights
    with Child(SelfPlay, weights, bench.folder / "memory", settings.seed) as child:
        child.call("time", settings.sample)
        _, worker = child.call("memory")
    folders = _large_window(bench.sample, bench.folder / "window", settings.window)

    def training(folders: list[Path]) -> tuple[int, int, int]:
        """(positions, bytes at most, bytes before the window was opened)."""
        arguments = weights, folders, settings.batch, _cores(), settings.seed
        with Child(Training, *arguments, one_thread=False) as child:
            child.call("train", settings.seconds)
            imported, _, most = child.call("memory")
            return child.call("positions"), most, imported

    half_positions, half, _ = training(folders[:1])
    positions, whole, imported = training(folders)
    shutil.rmtree(bench.folder / "window")
    full = positions >= FULL_WINDOW
    note = (
        f"{imported / MB:,.0f} MB of it before the window was opened; over {half_positions:,} "
        f"positions {half / MB:,.0f} MB"
    )
    if not full:
        note += f"; the goal, 2,000 MB, is for window={FULL_WINDOW}"
    return [
        Figure(
            "memory of a self-play worker", "MB", Series("bgrl", [worker / MB]),
            goal=Goal(400, at_most=True),
        ),
        Figure(
            f"memory of a trainer over {positions:,} positions", "MB",
            Series("bgrl", [whole / MB]), goal=Goal(2000, at_most=True) if full else None,
            note=note,
        ),
    ]  # fmt: skip


def scaling(bench: Bench) -> list[Figure]:
    """Time a game and memory of one worker, from a thousand games on in steps of ten."""
    settings = bench.settings
    counts = [10**k for k in range(3, 10) if 10**k <= settings.games]
    if len(counts) < 2:
        counts = [settings.games // 10, settings.games]
    times, sizes = [], []
    folder = bench.folder / "scaling"
    with Child(SelfPlay, bench.subject.weights, folder, settings.seed) as child:
        for count in counts:
            spent = [child.call("time", count)]
            while sum(spent) < settings.seconds:
                spent.append(child.call("time", count))
            times.append(float(np.median(spent)) / count)
            sizes.append(child.call("memory")[0])
    steps = np.log10(counts)

    def figure(name: str, values: list[float], unit: str, scale: float) -> Figure:
        slope = np.polyfit(steps, np.log10(values), 1)[0]
        points = ", ".join(
            f"{count:,}: {value * scale:,.3g} {unit}"
            for count, value in zip(counts, values, strict=True)
        )
        return Figure(
            f"{name} at {counts[-1]:,} games over that at {counts[0]:,}", "×",
            Series("bgrl", [values[-1] / values[0]]), goal=Goal(FLAT, at_most=True),
            note=f"{points}; {100 * (10**slope - 1):+.1f}% for ten times the games",
        )  # fmt: skip

    return [
        figure("time a game", times, "ms", 1e3),
        figure("memory of a worker", sizes, "MB", 1 / MB),
    ]


def _large_window(sample: Generation, folder: Path, rows: int) -> list[Path]:
    """Two generations of `rows` positions together, or a few more: `sample` under new numbers.

    Raises BgrlError, before anything is written, when they would not fit on the disk.
    """
    shard = sample.shards[0]
    base = read_positions(shard)
    copies = max(2, -(-rows // len(base)))
    need = copies * shard.path.stat().st_size
    free = shutil.disk_usage(folder.parent).free
    if need > 0.9 * free:
        raise BgrlError(
            f"bench: a window of {rows:,} positions needs {need / 1e9:.1f} GB in "
            f"{folder.parent}, which has {free / 1e9:.1f} GB left; TMPDIR names another place"
        )
    stride = int(base.games.max()) + 1
    halves = [folder / "gen-0001", folder / "gen-0002"]
    with progress(copies, "window", "shards") as bar:
        for copy in range(copies):
            half = halves[2 * copy >= copies]
            part: Positions = replace(base, games=base.games + copy * stride)
            half.mkdir(parents=True, exist_ok=True)
            with ShardWriter(shard_path(half, copy), shard.meta) as writer:
                writer.write(part.boards, part.targets, part.outcomes, part.games, part.plies)
            bar.advance()
    for half in halves:
        publish_generation(half)
    return halves


def _cores() -> int:
    return os.cpu_count() or 1


PARTS: dict[str, Callable[[Bench], list[Figure]]] = {
    part.__name__: part
    for part in (plays, evaluations, selfplay, lookahead, workers, trainer, data, memory, scaling)
}
