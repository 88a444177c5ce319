"""Progress is readable with and without a terminal."""

import io

from bgrl import progress as progress_module
from bgrl.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_without_a_terminal_is_a_line_a_minute(monkeypatch):
    clock = iter([0.0, 10.0, 61.0, 62.0, 130.0])
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    with progress(1000, "games", "games", stream) as bar:
        bar.advance(100)
        bar.note("loss .1")
        bar.advance(510)
        bar.advance(390)
    assert stream.getvalue().splitlines() == [
        "games: 610 of 1,000 games, 10 games/s, 0:39 left, loss .1",
        "games: 1,000 of 1,000 games, 8 games/s, took 2:10, loss .1",
    ]


def test_bars_on_a_terminal_can_run_at_the_same_time(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with progress(10, "outer", "games", stream) as outer:
        outer.advance(3)
        with progress(None, "inner", "steps", stream) as inner:
            inner.advance(5)
            inner.note("loss .25")
        outer.advance(7)
    for part in ("outer", "10/10", "games/s", "inner", "5/?", "loss .25"):
        assert part in stream.getvalue()
    again = Terminal()
    with progress(2, "again", "pairs", again) as bar:
        bar.advance(2)
    assert "2/2" in again.getvalue()
    assert "outer" not in again.getvalue()
