"""Any bgrl player as an external player of the program gnubg, over TCP.

gnubg connects (``set player 1 external localhost:PORT``), sends a FIBS board string for each
decision of that player and takes a line for an answer: ``roll`` or ``double``, a play such as
``8/5 6/5``, ``accept`` or ``reject``. Source: the program gnubg 1.07, which ends a message with a
line feed and a zero byte, expects an empty line for a dance, forfeits the turn of an illegal play
and stops playing at a line that it doesn't understand.
"""

import socketserver
import threading
from collections.abc import Callable

import numpy as np

from bgrl.errors import BgrlError
from bgrl.formats import parse_fibs
from bgrl.game import Position, legal_plays
from bgrl.players.player import Player

# Cubeless equity, in points at the cube before the double, of a pass: worse than that, one passes.
# A dead cube's take point: Keeler & Spencer, "Optimal doubling in backgammon" (1975).
TAKE_POINT = -0.5
LONGEST_LINE = 4096


def answer(player: Player, line: str) -> str:
    """What `player` answers to a FIBS board string: never a double.

    It accepts a double if its cubeless equity is above TAKE_POINT, and always where it estimates
    none. Raises InvalidPosition for anything but the board string of a game that goes on.
    """
    position, state = parse_fibs(line, player.variant, sender="gnubg")
    if state.offer is not None:
        return "accept" if _takes(player, position) else "reject"
    if state.dice is None:
        return "roll"
    after = player.choose(position.board.copy(), *state.dice)
    plays = legal_plays(position, state.dice)
    return next((str(p) for p in plays if np.array_equal(p.position.board, after)), "")


def _takes(player: Player, position: Position) -> bool:
    """Whether the player takes the double of the opponent, who is on roll in `position`."""
    try:
        theirs = player.evaluate(position).equity
    except BgrlError:
        return True
    return -theirs > TAKE_POINT


class ExternalPlayer(socketserver.ThreadingTCPServer):
    """Serves `player` on host:port, where port 0 takes a free one, until it is interrupted.

    Any number of connections at once or in turn; the player answers one question at a time. All of
    its own chance comes from `seed` and the number of the connection. log: gets a line when a
    program comes or goes and when something is wrong, and with `exchanges` every question and
    answer, too.

    Raises BgrlError if it cannot listen there.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self,
        player: Player,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int = 1,
        log: Callable[[str], None] = lambda text: None,
        exchanges: bool = False,
    ):
        self.player = player
        self.seed = seed
        self.log = log
        self.exchanges = exchanges
        self.connections = 0
        # Engines keep global state, and players theirs.
        self.lock = threading.Lock()
        try:
            super().__init__((host, port), _Connection)
        except (OSError, OverflowError) as error:
            raise BgrlError(f"cannot listen on {host}:{port}: {error}") from error

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self.server_address[1]


class _Connection(socketserver.StreamRequestHandler):
    server: ExternalPlayer

    def handle(self) -> None:
        server = self.server
        who = "{}:{}".format(*self.client_address[:2])
        with server.lock:
            server.player.start_game(server.seed, server.connections, 0)
            server.connections += 1
        server.log(f"{who} has come")
        answered = 0
        try:
            while data := self.rfile.readline(LONGEST_LINE):
                line = data.decode("ascii", "replace").strip("\0\r\n ")
                if not line:  # a zero byte from the message before
                    continue
                text = self._answer(who, line)
                if server.exchanges:
                    server.log(f"{who} asks {line}\n{who} gets {text!r}")
                self.wfile.write(text.encode() + b"\n")
                answered += 1
        except ConnectionError:
            pass  # said below
        server.log(f"{who} has gone after {answered:,} answers")

    def _answer(self, who: str, line: str) -> str:
        try:
            with self.server.lock:
                return answer(self.server.player, line)
        except BgrlError as error:
            self.server.log(f"{who}: {error}")
            return f"Error: {error}"
