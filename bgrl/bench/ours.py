"""What is measured of bgrl; each object lives in a process of its own."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bgrl.bench import kernels
from bgrl.bench.memory import resident_bytes
from bgrl.data import Window, WindowStream
from bgrl.game import BACKGAMMON
from bgrl.game.board import SLOTS
from bgrl.game.plays import new_play_buffer
from bgrl.nets import FastNet, Weights
from bgrl.players.player import Player
from bgrl.players.search import SearchPlayer
from bgrl.search import Pruner, Searcher
from bgrl.selfplay import generate

# Far beyond real games; only an untrained net's may be cut off.
MAX_PLIES = 2000
LAM = 0.7
VAL_PERCENT = 5


def rate(work: Callable[[], int], seconds: float) -> float:
    """What `work` returns a second, called again and again for at least `seconds`."""
    done, start = 0, time.perf_counter()
    while True:
        done += work()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return done / elapsed


class RandomGames:
    """Games of random plays."""

    GAMES = 200

    def __init__(self, seed: int):
        self._seed, self._next = seed, 0
        self._scratch = (new_play_buffer(), *np.zeros((2, 2, SLOTS), np.int8))
        self._start = BACKGAMMON.start_board()
        self._play(1)

    def _play(self, games: int) -> int:
        first, self._next = self._next, self._next + games
        kernels.play_random(self._start, self._seed, first, self._next, *self._scratch)
        return games

    def run(self, seconds: float) -> float:
        """Games a second."""
        return rate(lambda: self._play(self.GAMES), seconds)


class NetGames:
    """Games of a net with itself, in memory, and the positions that come up in them."""

    GAMES = 20

    def __init__(self, weights: Weights, seed: int):
        self._net, self._seed = FastNet(weights), seed
        #: Number of the game that is played next.
        self.next_game = 0
        self._start = BACKGAMMON.start_board()
        self._boards = np.zeros((2, 2, SLOTS), np.int8)
        self._dice = np.zeros((2, 2), np.int64)
        self._separate = self.candidates(2000)
        self._play(1)
        self._evaluate()

    def _play(self, games: int) -> tuple[int, int]:
        first, self.next_game = self.next_game, self.next_game + games
        return kernels.play_net(
            self._net.arrays, self._net.scratch, self._start, self._seed, first, self.next_game,
            MAX_PLIES, self._boards, self._dice,
        )  # fmt: skip

    def _evaluate(self) -> int:
        return len(self._net.evaluate(self._separate))

    def evaluations(self, seconds: float) -> float:
        """Evaluations a second while playing: the candidate plays share most of their sums."""
        return rate(lambda: self._play(self.GAMES)[1], seconds)

    def separate(self, seconds: float) -> float:
        """Evaluations a second of boards that have nothing to do with each other."""
        return rate(self._evaluate, seconds)

    def turns(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next `n` positions int8[n, 2, 26] of its games and their rolls int64[n, 2]."""
        boards = np.zeros((n, 2, SLOTS), np.int8)
        dice = np.zeros((n, 2), np.int64)
        filled = 0
        while filled < n:
            part = np.zeros((MAX_PLIES + 1, 2, SLOTS), np.int8)
            rolls = np.zeros((MAX_PLIES + 1, 2), np.int64)
            plies, _ = kernels.play_net(
                self._net.arrays, self._net.scratch, self._start, self._seed, self.next_game,
                self.next_game + 1, MAX_PLIES, part, rolls,
            )  # fmt: skip
            self.next_game += 1
            rows = min(plies, n - filled)
            boards[filled : filled + rows] = part[:rows]
            dice[filled : filled + rows] = rolls[:rows]
            filled += rows
        return boards, dice

    def candidates(self, n: int) -> np.ndarray:
        """At most `n` distinct positions int8[m, 2, 26] after the plays of its next rolls."""
        out = np.zeros((n, 2, SLOTS), np.int8)
        rows = kernels.candidates(*self.turns(max(1, n // 10)), new_play_buffer(), out)
        return np.unique(out[:rows], axis=0)


class Lookahead:
    """Decisions at 2 plies, on positions of a net's games with itself, none of them twice."""

    TURNS = 20

    def __init__(self, weights: Weights, seed: int, by: Weights | Player):
        """``by``: the player who decides, or what prunes the net's own search."""
        self._games = NetGames(weights, seed)
        if isinstance(by, Weights):
            by = SearchPlayer(Searcher(weights, 2, pruner=Pruner(FastNet(by))))
        self._player = by
        self._decide()

    def _decide(self) -> int:
        for board, dice in zip(*self._games.turns(self.TURNS), strict=True):
            self._player.choose(board, int(dice[0]), int(dice[1]))
        return self.TURNS

    def run(self, seconds: float) -> float:
        """Decisions a second."""
        return rate(self._decide, seconds)


class ExactMeans:
    """Exact means over all 21 rolls, as in returns without luck, with or without a pruner."""

    TURNS = 200

    def __init__(self, weights: Weights, seed: int, pruner: Weights):
        net = FastNet(weights)
        self._boards, _ = NetGames(weights, seed).turns(self.TURNS)
        self._full = Searcher(net, 1, cache=0)
        self._pruned = Searcher(net, 1, cache=0, pruner=Pruner(FastNet(pruner)))
        self.full(0)
        self.run(0)

    def full(self, seconds: float) -> float:
        """Positions a second, every play looked at."""
        return rate(lambda: len(self._full.evaluate(self._boards)), seconds)

    def run(self, seconds: float) -> float:
        """Positions a second, with the pruner."""
        return rate(lambda: len(self._pruned.evaluate(self._boards)), seconds)


class SelfPlay:
    """A self-play worker: games, λ-returns and shards in `folder`, as a run makes them."""

    def __init__(self, weights: Weights, folder: Path, seed: int):
        self._net, self._folder, self._seed, self._next = FastNet(weights), folder, seed, 0
        self._folder.mkdir(parents=True, exist_ok=True)
        self.time(50)
        games = 200
        self._rate = games / self.time(games)

    def time(self, games: int) -> float:
        """Seconds that so many games take."""
        folder = self._folder / f"{self._next}"
        start = time.perf_counter()
        generate(
            self._net, folder, seed=self._seed, first_game=self._next, games=games, lam=LAM,
            workers=0,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        self._next += games
        shutil.rmtree(folder)
        return seconds

    def run(self, seconds: float) -> float:
        """Games a second."""
        games = max(1, round(self._rate * seconds))
        return games / self.time(games)

    def memory(self) -> tuple[int, int]:
        """Resident bytes: now, and at most so far."""
        return resident_bytes()


class Training:
    """The trainer on the positions of `folders`, and this machine's matrix products beside it."""

    SIZE = 2048  # of the matrices
    WARM_UP_STEPS = 20

    def __init__(self, weights: Weights, folders: list[Path], batch: int, threads: int, seed: int):
        import torch

        from bgrl.nets import Net
        from bgrl.train import Trainer

        self._imported = resident_bytes()[0]
        window = Window(folders, VAL_PERCENT)
        self._stream = WindowStream(window, batch, seed)
        self._trainer = Trainer(
            Net.from_weights(weights), self._stream, lambda step: 1e-4, threads=threads
        )
        start = time.perf_counter()
        self._trainer.train(self.WARM_UP_STEPS)
        self._steps_per_second = self.WARM_UP_STEPS / (time.perf_counter() - start)
        self._matrices = torch.rand(2, self.SIZE, self.SIZE)
        self._steps = 0

    def sgemm(self, seconds: float) -> float:
        """Floating-point operations a second of a large float32 matrix product."""
        import torch

        a, b = self._matrices
        torch.mm(a, b)

        def multiply() -> int:
            torch.mm(a, b)
            return 2 * self.SIZE**3

        return rate(multiply, seconds)

    def train(self, seconds: float) -> tuple[float, float]:
        """(positions a second, share of the time spent waiting for data), once under way."""
        if not self._steps:
            self._steps = max(self.WARM_UP_STEPS, round(self._steps_per_second * seconds))
        # Metrics come at multiples of the steps: the second half of the call is a span of its own.
        done = -(-self._trainer.step // self._steps) * self._steps
        line = self._trainer.train(done + 2 * self._steps, log_every=self._steps)
        return line["positions_per_second"], line["data_wait"]

    def positions(self) -> int:
        """Positions in the window."""
        return self._stream.window.rows

    def occupied(self) -> float:
        """Occupied slots of a board, of 52, on average."""
        boards, _ = self._stream.window.load(np.array([0]))
        return float(np.count_nonzero(boards) / len(boards))

    def memory(self) -> tuple[int, int, int]:
        """Resident bytes: before the window was opened, now, and at most so far."""
        return self._imported, *resident_bytes()


def dense_flops(weights: Weights) -> int:
    """Floating-point operations of a training step for one position, by dense layers.

    A product and a sum each for every weight, forward, in its gradient, and in the gradient of the
    layer's inputs, which the first layer needs not.
    """
    sizes = [weight.size for weight, _ in weights.layers]
    return 2 * (2 * sum(sizes) + sum(sizes[1:]))


def sparse_flops(weights: Weights, occupied: float) -> float:
    """The same with a first layer that adds a table row for each of `occupied` slots.

    That is what our trainer does; the table itself is made once a batch and not counted.
    """
    first, bias = weights.layers[0]
    return dense_flops(weights) - 4 * first.size + 2 * occupied * len(bias)
