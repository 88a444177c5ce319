"""SIGKILL at random moments, of the loop (which trains) or of a worker: nothing is lost or changed.

The same command is given again after each kill of the loop. The net must be that of a run that was
left alone and played in one process.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bgrl.data import open_generation
from bgrl.files import read_json
from bgrl.nets import Weights

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="finds worker processes in /proc"
)

COMMAND = [
    *(sys.executable, "-m", "bgrl", "loop", "name=killed"),
    *("net.encoder=tesauro198", "trainer.threads=1", "evaluate.opponents=[]", "seed=3"),
    *("final.opponents=[random]", "final.games=10", "wandb=disabled"),
]
SMALL = ["generations=2", "net.hidden=[8]", "selfplay.games=60", "train.batch=128", "gate.games=20"]
# Self-play in several shards, and training for longer than from one checkpoint to the next.
LARGE = [
    *("generations=4", "net.hidden=[32]", "selfplay.games=9000", "train.batch=256"),
    *("gate.games=200", "train.passes=1", "selfplay.overlap=true"),
]


def start(folder, *overrides):
    """Give the command; returns once it has imported what it needs and begins to work."""
    record = folder / "run.json"
    before = record.stat().st_mtime_ns if record.exists() else None
    command = [*COMMAND, f"folder={folder}", *overrides]
    run = subprocess.Popen(
        command, cwd=folder.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while run.poll() is None and not (record.exists() and record.stat().st_mtime_ns != before):
        time.sleep(0.02)
    return run


def workers_of(pid):
    """The worker processes of a loop, as far as they live."""
    found = []
    try:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def disturb(folder, overrides, kills, lifetime, rng):
    """Run the command, killing it or a worker `kills` times; returns what was killed, and output.

    lifetime: seconds that a run takes, over which the kills are spread.
    """
    killed = []
    while True:
        run = start(folder, *overrides)
        while len(killed) < kills:
            try:
                run.wait(rng.uniform(0.0, 2 * lifetime / kills))
                break
            except subprocess.TimeoutExpired:
                pass
            workers = workers_of(run.pid)
            victim = rng.choice(workers) if workers and rng.random() < 0.5 else run.pid
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed.append("loop" if victim == run.pid else "worker")
            if victim == run.pid:
                break
        output, _ = run.communicate(timeout=1200)
        if run.returncode == 0:
            return killed, output
        assert run.returncode == -signal.SIGKILL, output


def check(folder, undisturbed, generations):
    assert Weights.load(folder / "net").hash == Weights.load(undisturbed / "net").hash
    assert read_json(folder / "state.json") == read_json(undisturbed / "state.json")
    for number in range(1, generations + 1):
        name = f"gen-{number:04d}"
        generation = open_generation(folder / "shards" / name)
        assert not generation.skipped
        assert generation.rows == open_generation(undisturbed / "shards" / name).rows
        net = Weights.load(folder / "nets" / name)
        assert net.hash == Weights.load(undisturbed / "nets" / name).hash
        assert net.made == {
            **Weights.load(undisturbed / "nets" / name).made,
            "run": net.made["run"],
        }
    assert (folder / "report" / "report.html").exists()
    assert (folder / "export" / "net.onnx").exists()


def kill_test(tmp_path, overrides, generations, kills, seed):
    undisturbed = tmp_path / "undisturbed"
    run = start(undisturbed, *overrides, "workers=0")
    begin = time.monotonic()
    output, _ = run.communicate(timeout=1200)
    assert run.returncode == 0, output
    lifetime = time.monotonic() - begin
    rng = random.Random(seed)
    folder = tmp_path / "killed"
    killed, output = disturb(folder, [*overrides, "workers=2"], kills, lifetime, rng)
    while not killed:  # The machine was busier before: it was over too soon.
        lifetime /= 2
        shutil.rmtree(folder)
        killed, output = disturb(folder, [*overrides, "workers=2"], kills, lifetime, rng)
    print(f"killed: {', '.join(killed)}")
    check(folder, undisturbed, generations)
    assert f"net     {folder / 'net'}" in output


def test_a_few_kills_change_nothing(tmp_path):
    kill_test(tmp_path, SMALL, 2, kills=3, seed=time.time_ns())


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path):
    kill_test(tmp_path, LARGE, 4, kills=20, seed=time.time_ns())
