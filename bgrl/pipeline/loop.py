"""The loop: self-play → train → evaluate → keep the net if it isn't worse, again and again.

All that a run knows is in its folder, and all of it is published whole:

    shards/gen-0001/    self-play by the net kept so far
    train/gen-0001/     the trainer's checkpoints, to go on from
    nets/gen-0000/      the untrained net; gen-0001/ the first generation's, and so on
    matches/            the games of every match, to go on from: gen-0001-pubeval/, final-random/
    state.json          which generations are done, and which of their nets were kept
    metrics.jsonl       one line an event
    net/                at the end: the last net kept
    result.json         at the end: how it plays
    report/, export/    at the end: the report, and the net for apps

So a run that is killed at any moment goes on where it stopped, and ends with the same net as one
that wasn't: what a step makes depends on the seed and on published files alone.
"""

import hashlib
import math
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from bgrl.data import Generation, Window, WindowStream
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile, MissingExtra
from bgrl.evaluate import MatchResult, luck_evaluator, play_match
from bgrl.evaluate.fast import fast_player
from bgrl.evaluate.luck import LuckEvaluator
from bgrl.evaluate.report import run_report
from bgrl.export import export_net
from bgrl.files import atomic_write_json, is_integer, read_object
from bgrl.game import get_variant
from bgrl.nets import FastNet, Net, Weights, load_net, save_net
from bgrl.nets.weights import read_description
from bgrl.players import Player, load_player
from bgrl.players.net import NetPlayer
from bgrl.search import Bearoff
from bgrl.selfplay import generate
from bgrl.train import MetricLog, Schedule, Trainer, check_options, read_metrics
from bgrl.train.metrics import WANDB_MODES

STATE_FORMAT = "bgrl.loop 1"
RESULT_FORMAT = "bgrl.result 1"
METRICS = "metrics.jsonl"
# A match whose process died lacks a game, and the same call plays it again.
MATCH_TRIES = 3
# A match between kernels of fewer games than this takes less time than starting processes.
GAMES_WORTH_A_PROCESS = 5000


@dataclass(frozen=True)
class Row:
    """One opponent's line of the final table: the match, or why there was none."""

    opponent: str
    match: dict[str, Any] | None
    reason: str = ""


@dataclass(frozen=True)
class LoopResult:
    """What a finished run has made; onnx is None, for a reason, without the extra."""

    net: Path
    hash: str
    generation: int
    rows: list[Row]
    report: Path
    onnx: Path | None
    onnx_reason: str = ""


class Shape(NamedTuple):
    """What nets must have in common, but for the widths, for one to grow into the other."""

    encoder: str
    hidden: tuple[int, ...]
    products: bool
    variant: str


@dataclass(frozen=True)
class Loop:
    """A run of `generations` in `folder`.

    encoder, hidden, products, variant: of the net. start: the checkpoint to begin with, such a net
    or a narrower one, which grows; None begins with an untrained one. taught: above 0 the net
    begins untrained, of any shape, and `start` is its teacher: in this share of the generations,
    the first ones, rounded up, that net plays the games. seed: of the first weights, the dice and
    the batches. workers: self-play processes; 0 plays in this one. They don't change what is made.

    games: self-play games a generation. lam: λ of the returns. exact: 0 for returns with the luck
    of the dice, or the share of the games to play and to take it off (each takes 50 times as long,
    and the bear-off databases are built if they are missing). Both as
    :func:`bgrl.selfplay.generate` takes them; one or more values, each for an equal share of the
    generations. pruner: the checkpoint of a small net that makes the latter cheaper, or None.
    scatter: the share of the games that begin with random plies.

    overlap: play a generation's games while the one before is trained on. The net that plays is
    then one generation older than it need be, never more, and the run is as reproducible.

    window: how many of the newest generations to train on. passes: how often a position is trained
    on before it leaves the window, on average: a generation's steps see as many positions as the
    newest has, times this. batch: positions. lr, lr_end: the learning rate at the start and at the
    end of the run, with half a cosine between. val_percent: games of a hundred held out. revive:
    hidden units that are open in a smaller share of those positions get new weights before a
    generation's training (:meth:`bgrl.train.Trainer.revive`), 0 for none. trainer:
    further arguments of :class:`bgrl.train.Trainer`.

    gate_games: games between a new net and the one kept so far; 0 keeps every net. gate_z: a net
    is dropped when it is worse by more than so many standard errors, which take two pairs of games.

    opponents, opponent_games: each generation's matches, for the learning curve. final_opponents,
    final_games: the last net's; final_luck takes off them what that net sees as the luck of the
    dice. With 0 games there are none of these matches, else two pairs at the least, as above.
    Players are named as in :func:`bgrl.players.load_player`; one whose package is not installed is
    left out.

    wandb: "disabled", "offline" or "online". record: the run's config, shown there.

    Raises BgrlError, before anything is written, when a value is out of range or unknown.
    """

    folder: Path
    generations: int
    games: int
    encoder: str = "tesauro198"
    hidden: tuple[int, ...] = (128, 32)
    products: bool = False
    variant: str = "backgammon"
    start: Path | None = None
    taught: float = 0.0
    seed: int = 1
    workers: int = 1
    lam: tuple[float, ...] = (0.7,)
    exact: tuple[float, ...] = (0.0,)
    pruner: Path | None = None
    scatter: float = 0.0
    overlap: bool = False
    window: int = 3
    passes: float = 2.0
    batch: int = 1024
    lr: float = 1e-3
    lr_end: float = 1e-4
    val_percent: int = 5
    revive: float = 0.0
    trainer: Mapping[str, Any] = field(default_factory=dict)
    gate_games: int = 1000
    gate_z: float = 2.0
    opponents: tuple[str, ...] = ("pubeval",)
    opponent_games: int = 400
    final_opponents: tuple[str, ...] = ("random", "pubeval", "gnubg_0ply")
    final_games: int = 2000
    final_luck: bool = True
    wandb: str = "offline"
    record: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("generations", "games", "window", "batch"):
            if getattr(self, name) < 1:
                raise BgrlError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("workers", "gate_z"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BgrlError(f"{name} is {getattr(self, name)}, expected at least 0")
        for name in ("gate_games", "opponent_games", "final_games"):
            games = getattr(self, name)
            if games < 0 or games % 2 or games == 2:
                raise BgrlError(f"{name} is {games}, expected 0 or an even number from 4")
        if not self.hidden or min(self.hidden) < 1:
            raise BgrlError(f"hidden is {list(self.hidden)}, expected one width a layer")
        for name in ("lam", "exact"):
            values = getattr(self, name)
            if not values or not all(0 <= value <= 1 for value in values):
                raise BgrlError(f"{name} is {list(values)}, expected values of 0 to 1")
        for name in ("scatter", "revive", "taught"):
            if not 0 <= getattr(self, name) <= 1:
                raise BgrlError(f"{name} is {getattr(self, name)}, expected 0 to 1")
        if not 0 < self.passes < math.inf:
            raise BgrlError(f"passes is {self.passes}, expected a finite number above 0")
        if not 0 <= self.val_percent < 100:
            raise BgrlError(f"val_percent is {self.val_percent}, expected 0 to 99")
        if self.revive and not self.val_percent:
            raise BgrlError("val_percent is 0, but revive needs held-out positions")
        if self.wandb not in WANDB_MODES:
            raise BgrlError(f"wandb is {self.wandb!r}, expected one of {', '.join(WANDB_MODES)}")
        Schedule(self.lr, 1, end=self.lr_end)
        check_options(**self.trainer)
        get_encoder(self.encoder)
        if self.pruner and (plays := Weights.load(self.pruner).variant.name) != self.variant:
            raise BgrlError(f"{self.pruner} is a net for {plays}, but the run plays {self.variant}")
        if self.start:
            net = Weights.load(self.start)
            shape = Shape(net.encoder.name, net.hidden, net.products, net.variant.name)
            self.check_start(str(self.start), shape)
        for spec in (*self.opponents, *self.final_opponents):
            self._opponent(spec)

    @property
    def shape(self) -> Shape:
        """That of the run's nets."""
        return Shape(get_encoder(self.encoder).name, self.hidden, self.products, self.variant)

    def check_start(self, name: str, found: Shape) -> None:
        """Raise BgrlError when the run can't begin with, or be taught by, such a net."""
        asked = self.shape
        if self.taught:
            if found.variant != asked.variant:
                raise BgrlError(
                    f"{name} is a net for {found.variant}, but the run plays {asked.variant}"
                )
            return
        alike = found._replace(hidden=asked.hidden) == asked
        fits = alike and len(found.hidden) == len(asked.hidden)
        if not fits or any(map(int.__gt__, found.hidden, asked.hidden)):
            raise BgrlError(
                f"{name} is a net of {tuple(found)}, but the run asks for {tuple(asked)}"
            )

    def run(self) -> LoopResult:
        """Do what is left to do and return the result.

        One process at a time may be at work in the folder (:func:`bgrl.files.exclusive`). Raises
        BgrlError when training diverges, when a worker fails again and again, or when there is no
        `start` to teach the net.
        """
        if self.taught and not self.start:
            raise BgrlError(f"taught is {self.taught}, but there is no start to teach the net")
        done, kept = self._state()
        if done < self.generations:
            metrics = self.folder / METRICS
            with (
                MetricLog(metrics, self.wandb, name=self.folder.name, config=self.record) as log,
                ThreadPoolExecutor(1) as background,
            ):
                stop = threading.Event()
                ahead: Future[Generation] | None = None
                try:
                    for generation in range(done + 1, self.generations + 1):
                        line: dict[str, Any] = {"generation": generation, "kept": 1}
                        with _timed(line, "selfplay_seconds"):
                            made = ahead.result() if ahead else self._selfplay(generation, kept)
                        if self.overlap and generation < self.generations:
                            ahead = background.submit(self._selfplay, generation + 1, kept, stop)
                        kept = self._generation(generation, kept, made, line, log)
                finally:
                    stop.set()  # or an error would wait for the games that are ahead
        return self._finish(kept[-1])

    def _selfplay(
        self, generation: int, kept: list[int], stop: threading.Event | None = None
    ) -> Generation:
        """The generation's games, by the newest net kept that was there when they could begin."""
        newest = generation - (2 if self.overlap else 1)
        player = self._net(max(number for number in kept if number <= max(newest, 0)))
        if self.start and generation <= self._taught:
            player = self.start
        exact = self._share_of(self.exact, generation) > 0
        return generate(
            FastNet.load(player),
            self.folder / "shards" / _name(generation),
            seed=self.seed,
            first_game=(generation - 1) * self.games,
            games=self._games(generation),
            generation=generation,
            lam=self._share_of(self.lam, generation),
            exact=exact,
            bearoff=Bearoff.open() if exact else None,
            pruner=FastNet.load(self.pruner) if exact and self.pruner else None,
            scatter=self.scatter,
            workers=self.workers,
            stop=stop,
        )

    def _generation(
        self,
        generation: int,
        kept: list[int],
        made: Generation,
        line: dict[str, Any],
        log: MetricLog,
    ) -> list[int]:
        """Train on the games made, measure and decide; returns which nets are now kept."""
        name = _name(generation)
        line |= {"games": made.games, "truncated": made.truncated_games, "positions": made.rows}
        with _timed(line, "train_seconds"):
            step = self._train(generation, kept[-1], line, log)
        player = self._player(generation)
        with _timed(line, "evaluate_seconds"):
            for spec in self.opponents if self.opponent_games else ():
                opponent = self._opponent(spec)
                if opponent is not None:
                    own = _match_name(name, spec)
                    match = self._match(player, opponent, self.opponent_games, own)
                    line |= {f"ppg_{spec}": match.ppg, f"ppg_error_{spec}": match.standard_error}
            if self.gate_games:
                gate = self._match(player, self._player(kept[-1]), self.gate_games, f"{name}-gate")
                line |= {"gate_ppg": gate.ppg, "gate_error": gate.standard_error}
                line["kept"] = int(gate.ppg >= -self.gate_z * gate.standard_error)
        log.write(step, line)
        if line["kept"]:
            kept = [*kept, generation]
        state = {"format": STATE_FORMAT, "done": generation, "kept": kept}
        atomic_write_json(self.folder / "state.json", state)
        # Training only ever goes on from the net kept last.
        for folder in (self.folder / "train").iterdir():
            if folder.name != _name(kept[-1]):
                shutil.rmtree(folder)
        return kept

    def _train(self, generation: int, parent: int, line: dict[str, Any], log: MetricLog) -> int:
        """Train the parent on the window and publish the net; returns its step."""
        target = self._net(generation)
        if not (target / "net.json").exists():
            first = max(1, generation - self.window + 1)
            folders = [self.folder / "shards" / _name(g) for g in range(first, generation + 1)]
            window = Window(folders, self.val_percent)
            stream = WindowStream(window, self.batch, self.seed)
            newest = window.generations[-1].rows * window.train_rows / window.rows
            steps = max(1, round(self.passes * newest / stream.batch))
            start = self._step(parent)
            rate = Schedule(self.lr, self.generations * steps, end=self.lr_end)
            trainer = Trainer(
                load_net(self._net(parent)),
                stream,
                lambda step: rate((generation - 1) * steps + step - start),
                **self.trainer,
            )
            checkpoints = self.folder / "train" / _name(generation)
            before = self.folder / "train" / _name(parent)
            if not trainer.resume(checkpoints) and parent and not trainer.resume(before):
                raise CorruptFile(f"{before}: no checkpoint there to go on from")
            if self.revive and trainer.step == start:
                line["revived"] = trainer.revive(self.revive)
            until = start + steps
            trainer.train(until, folder=checkpoints, metrics=log, extra={"generation": generation})
            made = {
                "run": self.folder.name,
                "seed": self.seed,
                "generation": generation,
                "games": sum(self._games(g) for g in range(1, generation + 1)),
                "step": until,
                "parent": Weights.load(self._net(parent)).hash,
            }
            save_net(trainer.saved_net(), target, made)
        return self._step(generation)

    def _finish(self, generation: int) -> LoopResult:
        """The last net's folder, matches, report and export: whatever of them is missing."""
        net = self.folder / "net"
        weights = Weights.load(self._net(generation))
        weights.save(net)
        result = self.folder / "result.json"
        played = {row.opponent: row for row in _rows(result) if row.match}
        rows = [played.get(spec) or self._final(net, spec) for spec in self.final_opponents]
        record = {
            "format": RESULT_FORMAT,
            "net": weights.hash,
            "generation": generation,
            "rows": [asdict(row) for row in rows],
        }
        atomic_write_json(result, record)
        report = run_report(self.folder, read_metrics(self.folder / METRICS))
        onnx = self.folder / "export" / "net.onnx"
        reason = ""
        if not onnx.exists():
            try:
                export_net(weights, onnx.parent)
            except MissingExtra as error:
                reason = str(error)
        return LoopResult(
            net, weights.hash, generation, rows, report, None if reason else onnx, reason
        )

    def _final(self, net: Path, spec: str) -> Row:
        """The net's match against one opponent."""
        if not self.final_games:
            return Row(spec, None, "no games asked for")
        player = NetPlayer(FastNet.load(net), self.folder.name)
        try:
            opponent = load_player(spec, get_variant(self.variant))
        except MissingExtra as error:
            return Row(spec, None, str(error))
        luck = luck_evaluator(player) if self.final_luck else None
        own = _match_name("final", spec)
        match = self._match(player, opponent, self.final_games, own, luck)
        return Row(spec, match.to_json())

    def _state(self) -> tuple[int, list[int]]:
        """How many generations are done, and which nets were kept, the untrained one first."""
        path = self.folder / "state.json"
        if path.exists():
            state = read_object(path)
            if state.get("format") != STATE_FORMAT:
                raise BgrlError(f"{path} is not the state of a loop")
            done, kept = state.get("done"), state.get("kept")
            # Generation 0 is the untrained net.
            if not is_integer(done) or done < 0 or not _are_kept(kept, range(done + 1)):
                raise CorruptFile(f"{path}: {done!r} generations done, {kept!r} kept")
            return done, kept
        if self.start and not self.taught:
            net = load_net(self.start).grown(self.hidden, self.seed)
        else:
            variant = get_variant(self.variant)
            net = Net(get_encoder(self.encoder), self.hidden, variant, self.products)
            net.reset(self.seed)
        save_net(net, self._net(0), {"generation": 0, "games": 0, "step": 0})
        return 0, [0]

    def _match(
        self, a: Player, b: Player, games: int, name: str, luck: LuckEvaluator | None = None
    ) -> MatchResult:
        """The same match, from its folder, whatever dies meanwhile."""
        quick = games < GAMES_WORTH_A_PROCESS and fast_player(a) and fast_player(b) and not luck
        for _ in range(MATCH_TRIES):
            match = play_match(
                a,
                b,
                games // 2,
                self.seed,
                variant=get_variant(self.variant),
                luck=luck,
                folder=self.folder / "matches" / name,
                workers=0 if quick else self.workers,
                label=name,
            )
            if not match.failures:
                return match
        raise BgrlError(f"{self.folder / 'matches' / name}: {match.failures[0]}")

    def _opponent(self, spec: str) -> Player | None:
        """The player that `spec` names, or None when its package is not installed."""
        try:
            return load_player(spec, get_variant(self.variant))
        except MissingExtra:
            return None

    def _player(self, generation: int) -> NetPlayer:
        return NetPlayer(FastNet.load(self._net(generation)), _name(generation))

    def _net(self, generation: int) -> Path:
        return self.folder / "nets" / _name(generation)

    def _step(self, generation: int) -> int:
        path = self._net(generation) / "net.json"
        step = read_description(path.parent).get("made", {}).get("step")
        if not is_integer(step) or step < 0:
            raise CorruptFile(f"{path}: its step is {step!r}, expected a count of training steps")
        return step

    @property
    def _taught(self) -> int:
        """How many generations the teacher plays; what floats add to a product is no generation."""
        return math.ceil(self.taught * self.generations - 1e-9)

    def _games(self, generation: int) -> int:
        """How many games a generation has."""
        return max(1, round((self._share_of(self.exact, generation) or 1.0) * self.games))

    def _share_of(self, values: tuple[float, ...], generation: int) -> float:
        """The value whose equal share of the generations holds this one."""
        return values[(generation - 1) * len(values) // self.generations]


@contextmanager
def _timed(line: dict[str, Any], key: str) -> Iterator[None]:
    """Put the seconds that the body takes into `line`."""
    start = time.monotonic()
    yield
    line[key] = round(time.monotonic() - start, 3)


def _name(generation: int) -> str:
    return f"gen-{generation:04d}"


def _are_kept(kept: Any, generations: range) -> TypeGuard[list[int]]:
    """Whether these are some of the generations, in order, the first one among them."""
    return (
        isinstance(kept, list)
        and all(map(is_integer, kept))
        and kept == [generation for generation in generations if generation in kept]
        and generations[0] in kept
    )


def _rows(path: Path) -> list[Row]:
    """The rows of a result.json, if there is one."""
    if not path.exists():
        return []
    try:
        rows = [Row(**row) for row in read_object(path)["rows"]]
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{path}: not the result of a loop: {error!r}") from error
    for row in rows:
        if not isinstance(row.opponent, str) or not isinstance(row.match, dict | None):
            raise CorruptFile(f"{path}: not the result of a loop: {row}")
    return rows


def _match_name(start: str, spec: str) -> str:
    """The name, below matches/, of the folder of a match against the opponent `spec`.

    A path would lead to another folder, and the gate has that name: for these it is the readable
    end of the spec, and a hash that tells it from all others.
    """
    if Path(spec).name == spec and spec not in ("..", "gate"):
        return f"{start}-{spec}"
    readable = re.sub(r"[^\w.@]+", "-", spec)[-40:].strip(".-")
    return f"{start}-{readable}.{hashlib.sha256(spec.encode()).hexdigest()[:8]}"
