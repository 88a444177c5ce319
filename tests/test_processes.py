"""Worker processes: lost ones are replaced, and none outlives the process that started it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from jobs import Answer, Endless, SlowAnswers, SlowStart, Threads

from bgrl.errors import BgrlError
from bgrl.processes import LOST_STARTS, run_in_processes


def test_a_process_lost_while_it_starts_is_replaced(tmp_path):
    job = SlowStart(tmp_path, deaths=2)
    answers = list(run_in_processes(job, iter([[0], [1]]), 1, 60.0))
    assert [a.task for a in answers if isinstance(a, Answer)] == [0, 1]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_job_that_never_starts_is_an_error(tmp_path):
    job = SlowStart(tmp_path, deaths=1000)
    with pytest.raises(BgrlError, match=f"{LOST_STARTS} processes did not start: .* exit code 9"):
        list(run_in_processes(job, iter([[0]]), 1, 60.0))


def test_n10_a_process_uses_one_thread():
    before = dict(os.environ)
    (answer,) = run_in_processes(Threads(), iter([[0]]), 1, 120.0)
    assert answer.value == 1
    assert dict(os.environ) == before


def test_a_process_does_not_end_by_itself_when_the_terminal_interrupts_all():
    results = run_in_processes(SlowAnswers(), iter([[0, 1]]), 1, 60.0)
    first = next(results)
    os.kill(first.value, signal.SIGINT)
    (second,) = results
    assert second == Answer(1, first.value)


def test_processes_end_when_another_thread_says_so():
    stop = threading.Event()
    results = run_in_processes(Endless(), iter([[0, 1]]), 1, 600.0, stop)
    worker = next(results).value
    threading.Timer(0.2, stop.set).start()
    begin = time.monotonic()
    assert list(results) == []
    assert time.monotonic() - begin < 10
    assert not _alive(worker)


def test_processes_end_with_the_one_that_started_them():
    code = """
from bgrl.processes import run_in_processes
from jobs import Endless
if __name__ == "__main__":
    for answer in run_in_processes(Endless(), iter([[0, 1]]), 1, 600.0):
        print(answer.value, flush=True)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    with parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        os.kill(worker, 0)
        parent.kill()
    deadline = time.monotonic() + 10
    while _alive(worker):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Where nobody reaps orphans the dead process stays as a zombie.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
