import copy
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bgrl.errors import BgrlError
from bgrl.evaluate import play_match
from bgrl.game import HYPERGAMMON, Position
from bgrl.players import gnubg_program, load_player
from bgrl.players.gnubg_program import GnubgProgram, find_gnubg

FAKE = Path(__file__).parent.parent / "fake_gnubg.py"


def has_gnubg() -> bool:
    try:
        find_gnubg()
    except BgrlError:
        return False
    return True


needs_gnubg = pytest.mark.skipif(not has_gnubg(), reason="the program gnubg is not installed")


@pytest.fixture(scope="module")
def program():
    return load_player("gnubg_program_0ply")


@needs_gnubg
def test_the_program_gives_its_published_opening_evaluation(program):
    expected = [0.52149, 0.15418, 0.00757, 0.12965, 0.00750]
    assert program.evaluate(Position.start()).probabilities == pytest.approx(expected, abs=5e-4)
    best = program.rank_plays(Position.start(), (3, 1))[0]
    assert str(best) == "8/5 6/5 +0.1590"
    assert "GNU Backgammon 1." in program.identity


@needs_gnubg
@pytest.mark.gnubg
def test_the_program_sees_every_board_as_the_package_does(program, decisions):
    """Bars, checkers borne off and dances among them: any slip in the board would show."""
    package = load_player("gnubg_0ply")
    same = total = 0
    for board, die1, die2 in decisions[::4]:
        p, q = (player.evaluate(Position(board)) for player in (program, package))
        assert p.probabilities == pytest.approx(q.probabilities, abs=0.06)
        ours = program.choose(board.copy(), die1, die2)
        theirs = package.choose(board.copy(), die1, die2)
        same += np.array_equal(ours, theirs)
        total += 1
    assert any(board[0, 25] for board, _, _ in decisions[::4])
    assert same > 0.93 * total  # they differ in bear-off databases and among equal plays


@needs_gnubg
def test_a_deeper_program_answers_otherwise():
    position = Position.start()
    zero, one = (load_player(f"gnubg_program_{n}ply").evaluate(position).equity for n in (0, 1))
    assert 0.001 < abs(zero - one) < 0.05


@needs_gnubg
def test_copies_have_programs_of_their_own(program):
    program.evaluate(Position.start())
    for other in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert other.evaluate(Position.start()).equity == program.evaluate(Position.start()).equity
        assert other._program is not program._program


def gone(folder: Path, group: int, seconds: float = 10) -> bool:
    """Whether the program's folder and process group go within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return not folder.exists()
        time.sleep(0.05)
    return False


@needs_gnubg
def test_the_program_ends_with_the_player(program):
    other = copy.deepcopy(program)
    other.evaluate(Position.start())
    folder, group = other._program._folder, other._program._shell.pid
    assert folder.exists()
    del other
    assert gone(folder, group)


@needs_gnubg
def test_the_program_ends_when_our_process_is_killed():
    script = (
        "from bgrl.players.gnubg_program import GnubgProgram; import time\n"
        "p = GnubgProgram(0); print(p._folder, p._shell.pid, flush=True); time.sleep(600)"
    )
    ours = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    folder, group = ours.stdout.readline().split()
    assert Path(folder).exists()
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert gone(Path(folder), int(group))


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """fake(how): from now on `gnubg` is tests/fake_gnubg.py."""

    def install(how: str) -> None:
        script = tmp_path / "gnubg"
        marker = tmp_path / "went-wrong"
        command = f"'{sys.executable}' '{FAKE}' {how} '{marker}'"
        script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\nexec {command} "$@"\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return install


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("illegal", "IllegalPlay: '1/2' with .*: 1/2 does not go forwards"),
        ("nonsense", "IllegalPlay: "),
        ("error", "gnubg answered 'Error: what\\?'"),
        ("hang", "gnubg gave no answer within 2 s"),
        ("crash", "gnubg is gone: .*; its last words: segmentation fault"),
        ("disconnect", "gnubg is gone: it closed the connection"),
    ],
)
def test_a_program_that_goes_wrong_costs_one_game(fake, monkeypatch, how, reason):
    fake(how)
    monkeypatch.setattr(gnubg_program, "ANSWER_SECONDS", 2.0)
    player = load_player("gnubg_program_0ply")
    result = play_match(player, load_player("random"), 2, seed=1)
    (failure,) = result.failures
    assert failure.player == "gnubg_program_0ply"
    assert re.search(reason, failure.reason), failure.reason
    assert result.games == 2
    assert result.ended == "complete"


def test_a_program_that_does_not_start_says_why(fake, monkeypatch):
    fake("refuse")
    with pytest.raises(BgrlError, match="gnubg does not start: no license"):
        GnubgProgram(0)


def test_a_missing_program_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(BgrlError, match="sudo apt-get install gnubg"):
        load_player("gnubg_program_0ply")


@needs_gnubg
def test_the_program_refuses_a_variant_of_other_checkers():
    with pytest.raises(BgrlError, match="15 checkers a side, not hypergammon's 3"):
        load_player("gnubg_program_0ply", HYPERGAMMON)
