"""Jobs for processes, in a module of their own so that spawned processes can import them."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bgrl.processes import Started


@dataclass
class Answer:
    task: int
    value: int


@dataclass
class SlowStart:
    """Dies while it starts the first `deaths` times; then answers each task."""

    folder: Path
    deaths: int

    def prepare(self) -> None:
        started = len(list(self.folder.iterdir()))
        (self.folder / str(os.getpid())).touch()
        if started < self.deaths:
            os._exit(9)

    def run(self, tasks: list[int]) -> Iterator[Started | Answer]:
        for task in tasks:
            yield Started(task, 0)
            yield Answer(task, os.getpid())


@dataclass
class Threads:
    """Answers with the number of threads that its libraries use."""

    def prepare(self) -> None:
        pass

    def run(self, tasks: list[int]) -> Iterator[Answer]:
        import numba
        import torch

        for task in tasks:
            yield Answer(task, max(numba.get_num_threads(), torch.get_num_threads()))


@dataclass
class Endless:
    """Says which process it is, and then works without saying more."""

    def prepare(self) -> None:
        pass

    def run(self, tasks: list[int]) -> Iterator[Answer]:
        yield Answer(tasks[0], os.getpid())
        time.sleep(600)


@dataclass
class SlowAnswers:
    """Answers each task after half a second, but for the first one."""

    def prepare(self) -> None:
        pass

    def run(self, tasks: list[int]) -> Iterator[Answer]:
        for task in tasks:
            time.sleep(0.5 if task else 0)
            yield Answer(task, os.getpid())
