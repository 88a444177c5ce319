"""A program that answers as gnubg's external interface does, until it goes wrong once.

Usage, with gnubg's own options behind: fake_gnubg.py HOW MARKER. At its 5th question, unless the
file MARKER exists, it makes that file and then is "illegal", answers "nonsense" or an "error",
"hang"s, "crash"es or "disconnect"s.
"""

import os
import socket
import sys
import time
from pathlib import Path

from bgrl.formats import parse_fibs
from bgrl.game import legal_plays

BAD_QUESTION = 5


def main(how: str, marker: Path) -> None:
    name = next(line.split()[1] for line in sys.stdin if line.startswith("external "))
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    if how == "refuse":
        print("no license", flush=True)
        return
    connection, _ = server.accept()
    for number, line in enumerate(connection.makefile(), 1):
        position, state = parse_fibs(line)
        assert state.dice
        answer = str(legal_plays(position, state.dice)[0])
        if number == BAD_QUESTION and not marker.exists():
            marker.touch()
            if how == "hang":
                time.sleep(3600)
            if how == "crash":
                print("segmentation fault", flush=True)
                os._exit(11)
            if how == "disconnect":
                connection.shutdown(socket.SHUT_RDWR)
                time.sleep(3600)
            answer = {"illegal": "1/2", "nonsense": "%&!", "error": "Error: what?"}[how]
        connection.sendall(answer.encode() + b" \n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
