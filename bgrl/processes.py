"""Processes that play games, watched by the one that asks.

A player may hang, crash its process or be killed. The parent hears which game each process is
in, so it can set that one game aside, start a new process and go on with the rest.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from bgrl.errors import BgrlError

# Importing numba and torch, and compiling kernels that aren't in the cache yet.
START_SECONDS = 600.0
# How many processes may be lost while they start before something else than bad luck is at work.
LOST_STARTS = 5
# How often the parent looks whether it is to stop.
STOP_SECONDS = 0.5

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Job(Protocol):
    """What a process does; pickled once to each."""

    def prepare(self) -> None:
        """Called once in the process, before anything is timed: load, compile."""

    def run(self, tasks: list[int]) -> Iterator[Any]:
        """Yields `Started` before each piece of work and then its result."""


@dataclass(frozen=True)
class Started:
    """A process has begun the piece of work `part` of a task."""

    task: int
    part: int


@dataclass(frozen=True)
class Lost:
    """A process was lost in the piece of work `part` of a task, which will not be tried again."""

    task: int
    part: int
    reason: str


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    deadline: float
    ready: bool = False
    tasks: deque[int] = field(default_factory=deque)
    at: Started | None = None


def run_in_processes(
    job: Job,
    tasks: Iterator[list[int]],
    workers: int,
    timeout: float,
    stop: threading.Event | None = None,
) -> Generator[Any, None, None]:
    """Run `job` on batches of tasks in `workers` spawned processes of one thread each.

    Yields each result as it comes, and a Lost for a task whose process died or stayed silent for
    `timeout` seconds; the other tasks of its batch are given to a new process. A result has an
    attribute `task`. Once another thread sets `stop`, no more results come. The processes are gone
    when the iterator is exhausted or closed, and when this process dies. Raises BgrlError if
    processes can't start.
    """
    pool: list[_Worker] = []
    lost_starts = 0
    again: deque[list[int]] = deque()
    try:
        pool = [_start(job) for _ in range(workers)]
        while not (stop and stop.is_set()):
            for worker in pool:
                if worker.ready and not worker.tasks:
                    batch = again.popleft() if again else next(tasks, None)
                    if batch:
                        worker.tasks.extend(batch)
                        worker.at = None
                        worker.deadline = time.monotonic() + timeout
                        _send(worker, batch)
            if not any(worker.tasks for worker in pool) and all(worker.ready for worker in pool):
                return
            # A worker with nothing to do can't be late.
            busy = [worker for worker in pool if worker.tasks or not worker.ready]
            left = min(worker.deadline for worker in busy) - time.monotonic()
            left = max(0.0, min(left, STOP_SECONDS) if stop else left)
            wait([worker.connection for worker in pool], left)
            for i, worker in enumerate(pool):
                reason = None
                try:
                    while worker.connection.poll():
                        message = worker.connection.recv()
                        worker.deadline = time.monotonic() + timeout
                        if message is None:
                            worker.ready = True
                        elif isinstance(message, Started):
                            worker.at = message
                        elif isinstance(message, BaseException):
                            raise message
                        else:
                            worker.tasks.remove(message.task)
                            yield message
                except (EOFError, ConnectionError):
                    worker.process.join(10)
                    reason = f"its process ended with exit code {worker.process.exitcode}"
                if reason is None and worker in busy and time.monotonic() > worker.deadline:
                    reason = f"no answer within {timeout:g} s"
                if reason is None:
                    continue
                _end(worker)
                if not worker.ready:
                    lost_starts += 1
                    if lost_starts == LOST_STARTS:
                        raise BgrlError(f"{lost_starts} processes did not start: {reason}")
                if worker.tasks:
                    at = worker.at or Started(worker.tasks[0], 0)
                    rest = [task for task in worker.tasks if task != at.task]
                    if rest:
                        again.append(rest)
                    yield Lost(at.task, at.part, reason)
                pool[i] = _start(job)
    finally:
        for worker in pool:
            _end(worker)


def _send(worker: _Worker, batch: list[int]) -> None:
    with suppress(ConnectionError):  # the process is gone: reading from it will tell
        worker.connection.send(batch)


def _start(job: Job) -> _Worker:
    # spawn, not fork: a fork copies the parent's threads' locks and random state half-way.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, job), daemon=True)
    with single_threaded():
        process.start()
    theirs.close()
    return _Worker(process, ours, time.monotonic() + START_SECONDS)


def _end(worker: _Worker) -> None:
    worker.connection.close()
    if worker.process.is_alive():
        worker.process.kill()
    worker.process.join()


def _serve(connection: Connection, job: Job) -> None:
    # Ctrl-C reaches every process of a terminal. The parent ends this one, which would otherwise
    # look lost to it; a handler, since whatever a player starts would inherit that it is ignored.
    signal.signal(signal.SIGINT, lambda *_: None)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job.prepare()
    except Exception as error:
        connection.send(error)
        return
    connection.send(None)
    try:
        while True:
            for message in job.run(connection.recv()):
                connection.send(message)
    except (EOFError, ConnectionError):
        return  # the parent is gone


def _end_with_parent() -> None:
    """A process whose parent was killed must not write into what the next one makes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Processes started inside have libraries that use one thread: they read this when loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
