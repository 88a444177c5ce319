"""The TypeScript client: its own tests, in Node, on a bundle and on what bgrl computes for it."""

import json
import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from export.client_reference import write_reference
from export.conftest import made_up_weights

from bgrl.errors import BgrlError
from bgrl.export import export_levels
from bgrl.export.site import build_site, serve
from bgrl.game.board import loss_level
from bgrl.game.dice import Dice
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.players.bundle import open_bundle
from bgrl.players.level import Level, Misses
from bgrl.players.style import CAUTIOUS
from bgrl.search import Filters, MoveFilter

CLIENT = Path(__file__).parents[2] / "bgrl" / "export" / "client"


@pytest.fixture(scope="session")
def built() -> Path:
    """The client's folder, compiled; skips where Node or its packages are missing."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if not (CLIENT / "node_modules" / "typescript").is_dir():
        pytest.skip(f"the client's packages are not installed: npm ci in {CLIENT}")
    compiled = subprocess.run(
        ["node", "node_modules/typescript/bin/tsc"], cwd=CLIENT, capture_output=True, text=True
    )
    assert compiled.returncode == 0, compiled.stdout
    return CLIENT


@pytest.fixture(scope="session")
def bots(weights, tmp_path_factory):
    """A bundle of three levels on two nets, and its reference."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("client")
    other = replace(weights, layers=[(w * np.float32(0.5), b) for w, b in weights.layers])
    levels = [
        (Level("hard"), weights),
        (Level("easy", misses=Misses(rate=0.9, scale=0.1), style=CAUTIOUS), other),
        (Level("master", 2, Filters((MoveFilter(0, 4, 0.1),), MoveFilter(1, 1, 0.04))), weights),
    ]
    small = {"hard": made_up_weights(hidden=(16,), seed=3)}
    bundle = export_levels(levels, folder / "bots", positions=200, smaller=small).folder
    write_reference(
        open_bundle(bundle),
        folder / "reference.json",
        positions=2000,
        rolls=400,
        decisions=120,
        deep=20,
        values=10,
    )
    return folder


@pytest.mark.node
def test_the_client_s_own_tests_pass(built, bots):
    run = subprocess.run(
        ["node", "--test", *sorted(map(str, (built / "dist" / "test").glob("*.test.js")))],
        cwd=built,
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "BGRL_BUNDLE": str(bots / "bots"),
            "BGRL_REFERENCE": str(bots / "reference.json"),
        },
    )
    assert run.returncode == 0, run.stdout[-6000:]
    assert "# skipped 0" in run.stdout or "ℹ skipped 0" in run.stdout, run.stdout[-2000:]


@pytest.fixture(scope="session")
def site(built, bots, tmp_path_factory):
    """The page's folder, with the checks and their reference beside it."""
    folder = build_site(bots / "bots", tmp_path_factory.mktemp("site") / "page")
    shutil.copytree(built / "dist" / "test", folder / "client" / "test")
    shutil.copy(bots / "reference.json", folder / "reference.json")
    return folder


@pytest.mark.node
def test_the_page_is_small_without_the_runtime(built, bots, tmp_path):
    folder = build_site(bots / "bots", tmp_path / "page")
    sent = [path for path in folder.rglob("*") if path.is_file() and "runtime" not in path.parts]
    scripts_and_nets = [path for path in sent if path.suffix in (".html", ".css", ".js", ".onnx")]
    assert sum(path.stat().st_size for path in scripts_and_nets) < 2_000_000
    (folder / "bots" / "bundle.json").unlink()
    with pytest.raises(BgrlError, match="holds something other than the page"):
        build_site(bots / "bots", folder)


@pytest.mark.slow
@pytest.mark.node
@pytest.mark.browser
def test_the_page_plays_in_chromium_and_computes_what_bgrl_does(built, site, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with serve(site, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        run = subprocess.run(
            ["node", "dist/test/browser.js", url, str(tmp_path), chromium],
            cwd=built,
            capture_output=True,
            text=True,
            timeout=300,
        )
        server.shutdown()
    assert run.returncode == 0, run.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["errors"] == []
    assert result["pageBytes"] < 2_000_000
    assert result["touchChose"]
    labels = result["game"]["labels"]
    assert len(labels) == 26
    assert any(label.startswith("Point 8: 3 of your checkers") for label in labels)
    assert any(label.startswith("Bar: 0 of your checkers, 0 of the bot's") for label in labels)
    assert result["game"]["turns"] > 5
    measured = result["measured"]
    assert not measured["isolated"]  # no cross-origin headers: one thread
    for checked in (measured["golden"], measured["found"]):
        assert max(checked["flat"], checked["onnx"]) < 1e-5
        assert not any(n for name, n in checked.items() if name.startswith("wrong"))
    assert measured["golden"]["inputsDiffer"] == 0
    assert measured["found"]["value"] < 1e-5


def test_a_page_needs_a_bundle_and_a_free_port(tmp_path):
    with pytest.raises(BgrlError, match="is no bundle"):
        build_site(tmp_path, tmp_path / "page")
    with serve(tmp_path, 0) as server, pytest.raises(BgrlError, match="cannot serve on port"):
        serve(tmp_path, server.server_address[1])


@pytest.mark.slow
@pytest.mark.node
def test_the_client_s_bot_and_bgrl_s_are_equals_over_100_games(built, bots):
    """Duplicate games: each set of dice twice, with the seats swapped. Every play is checked."""
    bundle = open_bundle(bots / "bots")
    ours = bundle.player("easy")
    process = subprocess.Popen(
        ["node", "dist/test/bot-lines.js", str(bots / "bots"), "easy"],
        cwd=built,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    chances = np.random.default_rng(6)
    plays = new_play_buffer()

    def theirs(board, die1, die2):
        asked = {"board": board.ravel().tolist(), "dice": [die1, die2], "chance": chances.random()}
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
    with process:
        for game in range(100):
            dice = Dice(3, game // 2)
            ours.start_game(3, game, 0)
            seats = (ours.choose, theirs) if game % 2 else (theirs, ours.choose)
            die1, die2 = dice.opening_roll()
            turn = 0 if die1 > die2 else 1
            board = ours.variant.start_board()
            for _ in range(1000):
                board = seats[turn](board, die1, die2)
                turn = 1 - turn
                if level := loss_level(board):
                    winner = seats[1 - turn]
                    points.append(level if winner is theirs else -level)
                    break
                die1, die2 = dice.roll()
        process.stdin.close()
    assert len(points) >= 95  # a net that knows nothing may shuffle to and fro
    error = np.std(points) / np.sqrt(len(points))
    print(f"{np.mean(points):+.3f} ± {error:.3f} points a game over {len(points)} games")
    assert abs(np.mean(points)) < 4 * error
