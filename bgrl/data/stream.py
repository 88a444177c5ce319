"""Endless shuffled batches of a window, the same for a seed, and from any step."""

import queue
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

import numpy as np

from bgrl.data.schema import BOARD_BYTES
from bgrl.data.window import Window
from bgrl.errors import BgrlError


class Batch(NamedTuple):
    """boards int8[B, 2, 26], targets float32[B, 5]."""

    boards: np.ndarray
    targets: np.ndarray


class WindowStream:
    """Batches of a window's training rows.

    An epoch visits every row once, but for a rest of less than a batch. It takes the row groups in
    a random order, several together as a chunk in memory, and shuffles the rows of a chunk, so
    that positions of many shards mix. Each epoch has an order of its own. What step `s` yields
    depends on (window, batch, seed, chunk_rows, s) alone.

    batch: rows of every batch (fewer if the window is smaller than that). chunk_rows: about how
    many rows are shuffled together; a chunk takes 72 bytes a row, and the stream holds about two.

    Raises BgrlError for a batch or a chunk of no rows, or a negative seed.
    """

    def __init__(self, window: Window, batch: int, seed: int, chunk_rows: int = 2**19):
        for name, value, least in (
            ("batch", batch, 1),
            ("seed", seed, 0),
            ("chunk_rows", chunk_rows, 1),
        ):
            if value < least:
                raise BgrlError(f"{name} is {value}, expected at least {least}")
        self.window = window
        self.batch = min(batch, window.train_rows)
        self.seed = seed
        self.chunk_rows = chunk_rows
        self.steps_per_epoch = window.train_rows // self.batch

    @property
    def identity(self) -> dict[str, str | int]:
        """What decides the batches: a resumed trainer compares it."""
        return {
            "window": self.window.identity,
            "batch": self.batch,
            "seed": self.seed,
            "chunk_rows": self.chunk_rows,
        }

    def batches(self, step: int = 0) -> Iterator[Batch]:
        """The batches from `step` on, without end. Loads in the calling thread."""
        epoch, in_epoch = divmod(step, self.steps_per_epoch)
        while True:
            yield from self._epoch(epoch, in_epoch)
            epoch, in_epoch = epoch + 1, 0

    def _epoch(self, epoch: int, first: int) -> Iterator[Batch]:
        skip = first * self.batch
        left = self.steps_per_epoch - first
        rest: Batch | None = None
        for number, groups in enumerate(self._chunks(epoch)):
            rows = int(self.window.group_train_rows[groups].sum())
            if skip >= rows:
                skip -= rows
                continue
            order = np.random.default_rng([self.seed, epoch, number + 1]).permutation(rows)[skip:]
            skip = 0
            boards, targets = self.window.load(groups)
            start = 0
            if rest is not None:
                start = self.batch - len(rest.boards)
                head = _take(boards, targets, order[:start])
                rest = Batch(*(np.concatenate(parts) for parts in zip(rest, head, strict=True)))
                # A chunk smaller than a batch may not fill it.
                if len(rest.boards) < self.batch:
                    continue
                yield rest
                left -= 1
            while left and start + self.batch <= len(order):
                yield _take(boards, targets, order[start : start + self.batch])
                start += self.batch
                left -= 1
            if not left:
                return
            rest = _take(boards, targets, order[start:])

    def _chunks(self, epoch: int) -> list[np.ndarray]:
        """The row groups of each chunk of an epoch."""
        groups = np.random.default_rng([self.seed, epoch, 0]).permutation(
            len(self.window.group_rows)
        )
        # Chunks of equal size: a small last one would be poorly mixed.
        n = max(1, round(self.window.train_rows / self.chunk_rows))
        return [chunk for chunk in np.array_split(groups, n) if len(chunk)]


def _take(boards: np.ndarray, targets: np.ndarray, rows: np.ndarray) -> Batch:
    # As opaque 52-byte items boards are gathered five times as fast as by their elements.
    items = boards.reshape(len(boards), -1).view(f"V{BOARD_BYTES}")[rows]
    return Batch(
        items.view(np.int8).reshape(len(rows), *boards.shape[1:]), np.take(targets, rows, axis=0)
    )


class Prefetcher:
    """Runs a stream in a thread of its own, ahead of its reader.

    step: where to begin. depth: batches held ready; by default about half a chunk, so that the
    reader need not stop while the next chunk is decoded. `wait_seconds` is how long the reader has
    waited so far. Use it as a context manager, or call `close`.
    """

    def __init__(self, stream: WindowStream, step: int = 0, depth: int | None = None):
        if depth is None:
            depth = max(2, min(stream.chunk_rows, stream.window.train_rows) // (2 * stream.batch))
        self.wait_seconds = 0.0
        self._error: BaseException | None = None
        self._queue: queue.Queue[Batch | BaseException] = queue.Queue(depth)
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(stream.batches(step),), name="prefetch", daemon=True
        )
        self._thread.start()

    def _run(self, batches: Iterator[Batch]) -> None:
        item: Batch | BaseException
        while not self._stop.is_set():
            try:
                item = next(batches)
            except BaseException as error:
                item = error
            while not self._stop.is_set():
                try:
                    self._queue.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if isinstance(item, BaseException):
                return

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """The next batch; raises in the reader whatever the loading raised."""
        if self._error is not None:
            raise self._error
        try:
            item = self._queue.get_nowait()
        except queue.Empty:
            start = time.perf_counter()
            item = self._queue.get()
            self.wait_seconds += time.perf_counter() - start
        if isinstance(item, BaseException):
            self._error = item
            raise item
        return item

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> "Prefetcher":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
