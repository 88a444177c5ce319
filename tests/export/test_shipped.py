"""What an app can rely on, measured with the shipped levels: everything that the page for app
developers gives figures for, but for what smaller files lose (`bgrl export games=20000`).

`pytest tests/export/test_shipped.py -m slow -s` takes some ten minutes on two cores and prints the
figures. BGRL_LEVELS=hard,master measures those levels alone, BGRL_BUNDLE=FOLDER a bundle, and
BGRL_DECISIONS=100 fewer decisions of each level.
"""

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from export.client_reference import best_play, finals_of, write_reference

from bgrl.cli.export import shipped_levels
from bgrl.export import OnnxNet, compare, export_levels
from bgrl.export.positions import sampled_positions
from bgrl.export.site import build_site, serve
from bgrl.files import shipped
from bgrl.game.board import loss_level
from bgrl.game.dice import Dice
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.nets import FastNet
from bgrl.nets.flat import STORAGE, read_flat
from bgrl.players.bundle import open_bundle
from bgrl.players.player import loss_levels

pytestmark = [pytest.mark.slow, pytest.mark.node]

POSITIONS = 10_000
DECISIONS = int(os.environ.get("BGRL_DECISIONS", "1000"))  # of each level
GAMES = 100  # of each level; a tenth where it looks ahead
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    pytest.importorskip("onnxruntime")
    if "BGRL_BUNDLE" in os.environ:
        return open_bundle(Path(os.environ["BGRL_BUNDLE"]).resolve())
    levels, pruners = shipped_levels(shipped("checkpoints"), "all")
    if wanted := os.environ.get("BGRL_LEVELS"):
        levels = [entry for entry in levels if entry[0].name in wanted.split(",")]
        pruners = {name: pruners[name] for name in wanted.split(",") if name in pruners}
    folder = tmp_path_factory.mktemp("shipped") / "bots"
    return open_bundle(export_levels(levels, folder, pruners=pruners).folder)


@pytest.fixture(scope="module")
def boards(bundle):
    first = next(iter(bundle.record["nets"]))
    net = FastNet(read_flat(bundle.folder / f"{first}.bgnet"))
    return sampled_positions(net, POSITIONS, seed=5)


@pytest.fixture(scope="module")
def references(bundle, boards, tmp_path_factory):
    """Files of what bgrl computes: for Node, and a shorter one for Chromium's second run."""
    folder = tmp_path_factory.mktemp("reference")
    for name, deep in (("node", DECISIONS), ("browser", DECISIONS // 10)):
        write_reference(
            bundle,
            folder / f"{name}.json",
            boards,
            rolls=POSITIONS,
            decisions=DECISIONS,
            deep=deep,
            values=20,
        )
    return folder


@pytest.fixture(scope="module")
def site(built, bundle, references, tmp_path_factory):
    folder = build_site(bundle.folder, tmp_path_factory.mktemp("site") / "page")
    shutil.copytree(built / "dist" / "test", folder / "client" / "test")
    shutil.copy(references / "browser.json", folder / "reference.json")
    with serve(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


def figure(what: str, value: object) -> None:
    print(f"\n| {what} | {value} |", end="")


def megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.2f} MB"


def close(found: dict, *differences: str) -> str:
    largest = max(found[name] for name in differences)
    assert largest < 1e-5
    return f"{largest:.1e}"


def test_python_agrees(bundle, boards):
    import torch

    from bgrl.nets import Net, boards_tensor

    for name in bundle.record["nets"]:
        for storage in STORAGE:
            stem = name if storage == "float32" else f"{name}.{storage}"
            weights = read_flat(bundle.folder / f"{stem}.bgnet")
            parity = compare(weights, bundle.folder / f"{stem}.onnx", boards)
            assert parity.holds, str(parity)
            largest = max(parity.differences.values())
            figure(f"{stem}: torch, numba, ONNX Runtime, {POSITIONS:,} positions", f"{largest:.1e}")
    name = next(iter(bundle.record["nets"]))
    weights = read_flat(bundle.folder / f"{name}.bgnet")
    twin = FastNet(weights)
    random = np.random.default_rng(9)
    rolls = [
        finals_of(board, *(int(die) for die in random.integers(1, 7, 2)))
        for board in boards
        if loss_level(board) == 0
    ]
    finals = np.concatenate(rolls)
    by_numba = twin.evaluate(finals)
    by_torch = by_numba.copy()  # torch does not look for finished games
    going_on = loss_levels(finals) == 0
    with torch.no_grad():
        by_torch[going_on] = Net.from_weights(weights)(boards_tensor(finals[going_on])).numpy()
    by_onnx = OnnxNet(bundle.folder / f"{name}.onnx").evaluate(finals)
    compared = 0
    start = 0
    for roll in rolls:
        plays = slice(start, start + len(roll))
        start += len(roll)
        best, *others = (
            best_play(theirs[plays], twin.variant.points)
            for theirs in (by_numba, by_torch, by_onnx)
        )
        if best is not None:
            compared += 1
            assert all(other in (best, None) for other in others)
    figure(f"{name}: the same play by torch, numba and ONNX Runtime", f"all {compared:,}")


def test_node_computes_what_bgrl_does(built, bundle, references):
    run = subprocess.run(
        ["node", "--test", str(built / "dist" / "test" / "bundle.test.js")],
        cwd=built,
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "BGRL_BUNDLE": str(bundle.folder),
            "BGRL_REFERENCE": str(references / "node.json"),
        },
    )
    assert run.returncode == 0, run.stdout[-6000:]
    (line,) = (line for line in run.stdout.splitlines() if "reference {" in line)
    found = json.loads(line[line.index("{") :])
    assert found["differByRuntime"] == 0
    report("Node", found)


def report(where: str, found: dict) -> None:
    agreement = close(found, "flat", "onnx")
    figure(f"{where}: flat file and onnxruntime-web, {found['positions']:,} positions", agreement)
    figure(f"{where}: the same best play by both", f"all {found['bestPlays']:,}")
    figure(f"{where}: the same plays to choose from", f"all {found['rolls']:,} rolls")
    figure(f"{where}: values of positions looked into", close(found, "value"))
    counts = [f"{name[11:]} {n:,}" for name, n in found.items() if name.startswith("choices of ")]
    figure(f"{where}: the same play by each level, its style and the others", ", ".join(counts))


@pytest.mark.browser
def test_the_page_plays_in_chromium_and_computes_what_bgrl_does(
    built, bundle, site, chromium, tmp_path
):
    run = subprocess.run(
        ["node", "dist/test/browser.js", site, str(tmp_path), chromium],
        cwd=built,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["errors"] == []
    assert result["touchChose"]
    size = result["pageBytes"]
    database = bundle.record["nets"][next(iter(bundle.nets.values()))]["bearoff"]
    whole = size + bundle.record["files"][database]["bytes"]
    figure(
        "the page with its first level's net and the strongest one's, for a hint", megabytes(size)
    )
    figure("and with the bear-off database, when both sides are home", megabytes(whole))
    assert size < 2 * MEGABYTE
    labels = result["game"]["labels"]
    assert len(labels) == 26
    assert any(label.startswith("Point 8: 3 of your checkers") for label in labels)
    assert any(label.startswith("Bar: 0 of your checkers, 0 of the bot's") for label in labels)
    assert result["game"]["turns"] > 5
    assert len(result["styles"]) == 4 * len(bundle.levels)
    for chosen, status in result["styles"].items():
        level = chosen.split(",")[0].capitalize()
        assert level in status or "You" in status, (chosen, status)
        assert "cannot play" not in status
    measured = result["measured"]
    assert not measured["isolated"]  # no cross-origin headers: one thread
    for checked in (measured["golden"], measured["found"], measured["bearoff"]):
        assert not any(n for name, n in checked.items() if name.startswith(("wrong", "differ")))
    assert measured["golden"]["inputsDiffer"] == 0
    assert max(measured["bearoff"]["chance"], measured["bearoff"]["probability"]) < 1e-6
    close(measured["golden"], "flat", "onnx", "equity")
    report("Chromium", measured["found"])
    for name, times in measured["times"].items():
        median, worst = times["median"], times["worst"]
        level, by = name.split(", ")
        by = {"runtime": "onnxruntime-web", "plain": "plain TypeScript"}[by]
        figure(f"{level} decides, {by}", f"{median:.1f} ms (slowest {worst:.0f} ms)")
        assert median < (2000 if bundle.levels[level].plies else 100)


@pytest.mark.browser
def test_the_browser_s_bot_and_bgrl_s_are_equals(built, bundle, site, chromium):
    """Duplicate games: each set of dice and of random numbers twice, with the seats swapped, so
    that equal bots score exactly 0. Every play is checked."""
    for level in bundle.levels:
        process = subprocess.Popen(
            ["node", "dist/test/browser-lines.js", site, level, chromium],
            cwd=built,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            games = GAMES // 10 if bundle.levels[level].plies else GAMES
            points = play_games(bundle.player(level), process, games)
            process.stdin.close()
        pairs = points.reshape(-1, 2).mean(axis=1)
        error = pairs.std(ddof=1) / np.sqrt(len(pairs))
        figure(
            f"{level} in Chromium against Python, {games} games, points a game",
            f"{pairs.mean():+.3f} ± {error:.3f}",
        )
        assert abs(pairs.mean()) <= 3 * error


def play_games(ours, process: subprocess.Popen, games: int) -> np.ndarray:
    """Points that the bot behind ``process`` wins of ``ours`` in each game."""
    plays = new_play_buffer()

    def theirs(board, die1, die2, chance):
        asked = {"board": board.ravel().tolist(), "dice": [die1, die2], "chance": chance}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = np.array(json.loads(process.stdout.readline()), np.int8).reshape(2, 26)
        legal = set()
        after = np.empty((2, 26), np.int8)
        for i in range(generate_plays(board, die1, die2, plays)):
            apply_play(board, plays[i], after)
            legal.add(after.tobytes())
        assert answer.tobytes() in (legal or {np.ascontiguousarray(board[::-1]).tobytes()})
        return answer

    points = []
    for game in range(games):
        dice = Dice(3, game // 2)
        chances = np.random.default_rng([6, game // 2])
        seats = (ours.choose_by, theirs) if game % 2 else (theirs, ours.choose_by)
        die1, die2 = dice.opening_roll()
        turn = 0 if die1 > die2 else 1
        board = ours.variant.start_board()
        while not loss_level(board):
            board = seats[turn](board, die1, die2, chances.random())
            turn = 1 - turn
            die1, die2 = dice.roll()
        level = loss_level(board)
        points.append(level if seats[1 - turn] is theirs else -level)
    return np.array(points)
