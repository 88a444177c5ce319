"""Matches against the program gnubg, either side asking the other: a minute, `make test-slow`."""

import os
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

from bgrl.errors import BgrlError
from bgrl.evaluate import luck_evaluator, play_match
from bgrl.evaluate.stats import mean_and_error
from bgrl.formats import parse_fibs
from bgrl.game import BACKGAMMON, legal_plays, parse_play
from bgrl.game.plays import generate_plays
from bgrl.players import load_player
from bgrl.players.external import ExternalPlayer
from bgrl.players.gnubg_program import find_gnubg
from bgrl.players.player import boards_after, play_buffer

pytestmark = [pytest.mark.slow, pytest.mark.gnubg]
PAIRS = 100
POINTS = {"single game": 1, "gammon": 2, "backgammon": 3}


@pytest.fixture(scope="module", autouse=True)
def gnubg() -> str:
    """The path of the program, Debian's package of which is installed if need be."""
    try:
        return find_gnubg()
    except BgrlError as missing:
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "gnubg"]
        if shutil.which("apt-get") is None:
            pytest.skip(f"{missing}, and this is no Debian")
        if os.geteuid() != 0:
            install = ["sudo", "--non-interactive", *install]
        try:
            done = subprocess.run(install, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{missing}: {error}")
        if done.returncode:
            pytest.skip(f"{missing}: {(done.stderr.splitlines() or ['it failed'])[-1]}")
        return find_gnubg()


def test_the_program_as_our_player_equals_the_package():
    package = load_player("gnubg_0ply")
    program = load_player("gnubg_program_0ply")
    result = play_match(program, package, PAIRS, seed=1, luck=luck_evaluator(package), workers=1)
    print(result)
    assert result.games == 2 * PAIRS
    assert not result.failures
    assert abs(result.ppg) < 4 * result.standard_error + 0.005


def commands(seeds: range, seat: int, port: int) -> str:
    """What gnubg is told: a game for each seed of the dice, its own player in the other seat."""
    lines = [
        "set automatic game off",
        "set automatic move off",
        f"set player {seat} external localhost:{port}",
        f"set player {seat} name ours",
        f"set player {1 - seat} gnubg",
        f"set player {1 - seat} name theirs",
        f"set player {1 - seat} chequerplay evaluation plies 0",
        f"set player {1 - seat} chequerplay evaluation cubeful off",
        "set cube use off",
        "set jacoby off",
        "set display off",
    ]
    for seed in seeds:
        lines += [f"set seed {seed}", "new session"]
    return "\n".join(lines) + "\n"


def test_bgrl_as_the_programs_player_equals_the_package(gnubg):
    """gnubg's engine plays gnubg's own program over the wire, so nobody should win."""
    log: list[str] = []
    seeds = range(1, PAIRS + 1)
    points = np.zeros((PAIRS, 2))
    with ExternalPlayer(load_player("gnubg_0ply"), log=log.append, exchanges=True) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for seat in (0, 1):
                done = subprocess.run(
                    [gnubg, "-t", "-q", "-r"],
                    input=commands(seeds, seat, server.port),
                    capture_output=True, text=True, timeout=900,
                )  # fmt: skip
                ends = re.findall(r"(ours|theirs) wins a ([a-z ]+?) and \d+ point", done.stdout)
                assert len(ends) == PAIRS, done.stdout[-2000:]
                points[:, seat] = [POINTS[how] * (1 if w == "ours" else -1) for w, how in ends]
        finally:
            server.shutdown()
            thread.join()
    ppg, error = mean_and_error(points.mean(axis=1))
    print(f"gnubg_0ply served to the program at 0-ply: {ppg:+.4f} ± {error:.4f} ppg")
    assert abs(ppg) < 4 * error + 0.05
    assert not [line for line in log if "rror" in line]
    asked = check_that_gnubg_took_every_play(log)
    assert asked > 40 * PAIRS


def check_that_gnubg_took_every_play(log: list[str]) -> int:
    """That each question follows from the last answer and a roll; returns how many followed.

    gnubg forfeits the turn of a play that it doesn't understand, and doesn't say so.
    """
    followed = 0
    start = BACKGAMMON.start_board()
    # A game may begin with our turn, or with the opponent's.
    first = np.concatenate([start[np.newaxis], reachable(start)])
    expected: np.ndarray | None = None
    for entry in log:
        found = re.search(r"asks (\S+)\n.* gets '(.*)'", entry)
        if not found:
            expected = None
            continue
        position, state = parse_fibs(found[1])
        if (first == position.board).all(axis=(1, 2)).any():
            expected = None
        if expected is not None:
            assert (expected == position.board).all(axis=(1, 2)).any(), entry
            followed += 1
        if state.dice:
            after = position.swap()
            if legal_plays(position, state.dice):
                after = parse_play(position, state.dice, found[2]).position
            expected = None if after.is_over else reachable(after.board)
    return followed


def reachable(board: np.ndarray) -> np.ndarray:
    """int8[N, 2, 26]: every board after a turn with any roll."""
    found = [board[np.newaxis, ::-1]]  # a dance
    for die1 in range(1, 7):
        for die2 in range(1, die1 + 1):
            n = generate_plays(board.copy(), die1, die2, play_buffer())
            found.append(boards_after(board.copy(), play_buffer(), n)[0])
    return np.concatenate(found)
