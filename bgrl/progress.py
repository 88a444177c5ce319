"""Progress of long work: a bar with rate and time left; without a terminal, a line a minute."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

PLAIN_SECONDS = 60.0


class Progress(Protocol):
    """What `progress` yields."""

    def advance(self, n: int = 1) -> None:
        """Count `n` more units as done."""

    def note(self, text: str) -> None:
        """Show `text` (a loss, a score) beside the count from now on."""


@contextmanager
def progress(
    total: int | None, label: str, unit: str = "it", stream: TextIO | None = None
) -> Iterator[Progress]:
    """Show how far a piece of work is, on `stream` (standard error unless given).

    total: the number of units to do, or None when unknown. On a terminal a rich bar with rate and
    time left; elsewhere one plain line a minute and a last line at the end.
    """
    stream = stream or sys.stderr
    if stream.isatty():
        with _BARS.show(total, label, unit, stream) as bar:
            yield bar
    else:
        lines = _Lines(total, label, unit, stream)
        try:
            yield lines
        finally:
            lines.finish()


class _Lines:
    """One plain line a minute: for logs, pipes and notebooks."""

    def __init__(self, total: int | None, label: str, unit: str, stream: TextIO):
        self.total, self.label, self.unit, self.stream = total, label, unit, stream
        self.done = 0
        self.text = ""
        self.start = self.last = time.monotonic()

    def advance(self, n: int = 1) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last >= PLAIN_SECONDS:
            self.last = now
            self._print(now - self.start, finished=False)

    def note(self, text: str) -> None:
        self.text = text

    def finish(self) -> None:
        self._print(time.monotonic() - self.start, finished=True)

    def _print(self, seconds: float, finished: bool) -> None:
        rate = self.done / seconds if seconds > 0 else 0.0
        of = f" of {self.total:,}" if self.total is not None else ""
        parts = [f"{self.label}: {self.done:,}{of} {self.unit}", f"{rate:,.0f} {self.unit}/s"]
        if finished:
            parts.append(f"took {_clock(seconds)}")
        elif self.total is not None and rate > 0:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        if self.text:
            parts.append(self.text)
        print(", ".join(parts), file=self.stream, flush=True)


class _Bars:
    """The bars of one terminal: those of several threads stand below each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._display: Any = None
        self._users = 0

    @contextmanager
    def show(self, total: int | None, label: str, unit: str, stream: TextIO) -> Iterator[Progress]:
        with self._lock:
            if not self._users:
                self._display = _new_display(stream)
                self._display.start()
            self._users += 1
            display = self._display
            task = display.add_task(label, total=total, text="", unit=unit)

        class Bar:
            def advance(self, n: int = 1) -> None:
                display.advance(task, n)

            def note(self, text: str) -> None:
                display.update(task, text=text)

        try:
            yield Bar()
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    display.stop()


_BARS = _Bars()


def _new_display(stream: TextIO) -> Any:
    # rich takes a tenth of a second to import, which a command without a bar need not pay.
    from rich import progress as rich_progress
    from rich.console import Console
    from rich.text import Text

    class Rate(rich_progress.ProgressColumn):
        def render(self, task: rich_progress.Task) -> Text:
            speed = task.finished_speed or task.speed or 0.0
            return Text(f"{speed:,.0f} {task.fields['unit']}/s")

    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        Rate(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[text]}"),
        console=Console(file=stream),
    )


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, minutes, seconds_ = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{seconds_:02d}" if hours else f"{minutes}:{seconds_:02d}"
