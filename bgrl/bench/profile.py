"""Where time goes: the kernels by phase, the Python around them by function."""

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.bench import kernels
from bgrl.bench.ours import NetGames, SelfPlay, Training
from bgrl.game.board import SLOTS
from bgrl.game.plays import new_play_buffer
from bgrl.nets import FastNet, Weights

TURNS = 4000
FUNCTIONS = 15


class KernelProfile:
    """The phases of choosing a play, each as a kernel of its own over the same positions.

    A profiler does not see into compiled kernels. The first layer works its way from play to play,
    which can't be had apart: it gets what the others leave of the whole.
    """

    def __init__(self, weights: Weights, seed: int):
        self._net = FastNet(weights)
        self._boards, self._dice = NetGames(weights, seed).turns(TURNS)
        self._plays = new_play_buffer()
        self._counts = np.zeros(TURNS, np.int64)
        self._out = np.zeros((2, SLOTS), np.int8)
        self._generate()
        after = np.zeros((int(self._counts.sum()), 2, SLOTS), np.int8)
        kernels.candidates(self._boards, self._dice, self._plays, after)
        self._after = after
        self._probabilities = np.full(5 * len(after), 0.1, np.float32)

    def _generate(self) -> None:
        kernels.time_generation(self._boards, self._dice, self._plays, self._counts)

    def phases(self, seconds: float) -> dict[str, float]:
        """Microseconds a turn of each phase, the whole, and the mean number of plays."""
        net, scratch, points = self._net.arrays, self._net.scratch, self._net.arrays.points
        whole, generation, later, choice = (
            _seconds(work, seconds) * 1e6 / TURNS
            for work in (
                lambda: kernels.time_best(net, scratch, self._boards, self._dice, self._out),
                self._generate,
                lambda: kernels.time_later_layers(net, scratch, self._counts),
                lambda: kernels.time_choice(self._after, self._probabilities, points),
            )
        )
        return {
            "generation": generation,
            "first layer and the rest": whole - generation - later - choice,
            "later layers": later,
            "clamping and choice": choice,
            "whole": whole,
            "plays": float(self._counts.mean()),
        }


class PythonProfile:
    """cProfile of a worker and of a trainer; compiled code counts for its caller."""

    def worker(self, weights: Weights, folder: Path, games: int, seed: int) -> list[dict[str, Any]]:
        """The functions with most time of their own while games are played and written."""
        worker = SelfPlay(weights, folder, seed)
        return _profile(lambda: worker.time(games))

    def trainer(
        self, weights: Weights, folders: list[Path], batch: int, seed: int, seconds: float
    ) -> list[dict[str, Any]]:
        """The same of a trainer with one thread, beside the one that reads the data."""
        training = Training(weights, folders, batch, 1, seed)
        return _profile(lambda: training.train(seconds))


def _seconds(work: Callable[[], Any], seconds: float) -> float:
    """The median of the times that `work` takes, over at least `seconds` and three calls."""
    work()
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _profile(work: Callable[[], Any]) -> list[dict[str, Any]]:
    profiler = cProfile.Profile()
    profiler.runcall(work)
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    rows = sorted(stats.items(), key=lambda item: -item[1][2])[:FUNCTIONS]
    return [
        {
            "function": f"{Path(file).name}:{line} {name}" if line else name,
            "calls": calls,
            "own_seconds": own,
            "share": own / total,
            "cumulative_seconds": cumulative,
        }
        for (file, line, name), (calls, _, own, cumulative, _) in rows
    ]
