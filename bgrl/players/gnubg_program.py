"""The program GNU Backgammon as a player: it runs beside us and answers over a socket.

Started as ``gnubg -t -q -r`` with ``external SOCKET`` among its commands, the program answers a
FIBS board string with a play, and ``evaluation fibsboard BOARD plies N cubeless`` with the five
probabilities and the equity. The socket is a local one, which needs no free port and which nobody
else can use.
"""

import shutil
import socket
import subprocess
import tempfile
import time
import weakref
from pathlib import Path

import numpy as np

from bgrl.errors import BgrlError
from bgrl.formats import MatchState, format_fibs
from bgrl.game import BACKGAMMON, Position, Variant, parse_play
from bgrl.game.outcomes import clamp
from bgrl.game.plays import generate_plays
from bgrl.players.gnubg import CHECKERS
from bgrl.players.player import EquityPlayer, boards_after, play_buffer, swapped

START_SECONDS = 60.0
# Less than a match waits for a game, so that it hears what is wrong.
ANSWER_SECONDS = 60.0

# The shell holds a pipe from us. When we close it or die in whatever way, the shell removes its
# folder and ends its process group: the program, which would wait for another connection for
# ever, and itself.
_SCRIPT = """cd "$1" || exit 1
{ "$0" -t -q -r <commands; : >ended; } >output 2>&1 &
read -r end
cd /
rm -rf "$1"
kill -9 0"""

_COMMANDS = """set threads 1
set jacoby off
set beavers 0
set evaluation chequerplay evaluation plies {plies}
set evaluation chequerplay evaluation cubeful off
external socket
"""


def find_gnubg() -> str:
    """The path of the program. Raises BgrlError, with the line that installs it."""
    # Debian puts it where not everyone's PATH leads.
    path = shutil.which("gnubg") or shutil.which("gnubg", path="/usr/games:/usr/local/bin")
    if path is None:
        raise BgrlError("gnubg_program needs the program gnubg: sudo apt-get install gnubg")
    return path


def gnubg_version() -> str:
    """What the program calls itself: its name, version and date."""
    done = subprocess.run([find_gnubg(), "--version"], capture_output=True, text=True, timeout=60)
    return (done.stdout.splitlines() or ["GNU Backgammon of unknown version"])[0]


class GnubgProgram:
    """A running program that plays at a number of plies, as its external interface.

    Raises BgrlError if it does not start.
    """

    def __init__(self, plies: int):
        folder = Path(tempfile.mkdtemp(prefix="bgrl-gnubg-"))
        (folder / "commands").write_text(_COMMANDS.format(plies=plies))
        self._folder = folder
        self._shell = subprocess.Popen(
            ["sh", "-c", _SCRIPT, find_gnubg(), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the terminal is ours to handle
        )
        self._socket = socket.socket(socket.AF_UNIX)
        self._received = b""
        self.close = weakref.finalize(self, _end, self._shell, self._socket)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._socket.connect(str(folder / "socket"))
                break
            except OSError as error:
                if (folder / "ended").exists() or time.monotonic() > deadline:
                    last = self._last_words()
                    self.close()
                    raise BgrlError(f"gnubg does not start: {last or error}") from error
                time.sleep(0.02)
        self._socket.settimeout(ANSWER_SECONDS)

    def ask(self, line: str) -> str:
        """The program's answer to a line.

        Raises BgrlError if it finds fault with the line, doesn't answer or is gone; after the
        latter two it can't be asked again.
        """
        try:
            self._socket.sendall(line.encode() + b"\n")
            while b"\n" not in self._received:
                data = self._socket.recv(4096)
                if not data:
                    raise ConnectionError("it closed the connection")
                self._received += data
        except TimeoutError as error:
            self.close()
            raise BgrlError(f"gnubg gave no answer within {ANSWER_SECONDS:g} s") from error
        except OSError as error:
            last = self._last_words()
            self.close()
            raise BgrlError(f"gnubg is gone: {error}; its last words: {last}") from error
        text, self._received = self._received.split(b"\n", 1)
        answer = text.decode("ascii", "replace").strip("\0\r ")
        if answer.startswith("Error"):
            raise BgrlError(f"gnubg answered {answer!r} to {line}")
        return answer

    @property
    def running(self) -> bool:
        """Whether it can still be asked."""
        return self.close.alive

    def _last_words(self) -> str:
        try:
            lines = (self._folder / "output").read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end(shell: subprocess.Popen, connection: socket.socket) -> None:
    connection.close()
    assert shell.stdin is not None
    shell.stdin.close()
    shell.wait()


class GnubgProgramPlayer(EquityPlayer):
    """GNU Backgammon's program at a number of plies, with its own move filters and pruning.

    The program starts when it is first asked, again after it has failed, and ends with us. Every
    play that it answers is checked against the rules. `rank_plays` asks it for the probabilities
    after each play, at full depth.
    """

    def __init__(self, plies: int = 0, variant: Variant = BACKGAMMON):
        if variant.checkers != CHECKERS:
            raise BgrlError(
                f"gnubg plays with {CHECKERS} checkers a side, not {variant.name}'s "
                f"{variant.checkers}"
            )
        find_gnubg()
        super().__init__(f"gnubg_program_{plies}ply", variant)
        self.plies = plies
        self._program: GnubgProgram | None = None

    @property
    def identity(self) -> str:
        return f"{self.name} ({gnubg_version()})"

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_program": None}

    def ask(self, line: str) -> str:
        """The program's answer to a line of its external interface; see `GnubgProgram.ask`."""
        if self._program is None or not self._program.running:
            self._program = GnubgProgram(self.plies)
        return self._program.ask(line)

    def choose(self, board: np.ndarray, die1: int, die2: int) -> np.ndarray:
        buffer = play_buffer()
        n = generate_plays(board, die1, die2, buffer)
        if n == 0:
            return swapped(board)
        if n == 1:
            return boards_after(board, buffer, n)[0][0]
        position = Position(board, self.variant)
        answer = self.ask(format_fibs(position, MatchState(dice=(die1, die2))))
        # A copy, since a position's own board can't be written to.
        return parse_play(position, (die1, die2), answer).position.board.copy()

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        out = np.zeros((len(boards), 5), dtype=np.float32)
        for p, board in zip(out, boards, strict=True):
            line = format_fibs(Position(board, self.variant), MatchState())
            answer = self.ask(f"evaluation fibsboard {line} plies {self.plies} cubeless")
            try:
                p[:] = [float(word) for word in answer.split()][:5]
            except ValueError as error:
                raise BgrlError(f"gnubg answered {answer!r} to a question for an equity") from error
        clamp(out, boards)
        return out
