"""`bgrl serve` from the command line, as a user starts and ends it."""

import signal
import socket
import subprocess
import sys

from bgrl.formats import MatchState, format_fibs
from bgrl.game import Position


def test_it_serves_until_interrupted_and_logs_on_demand(tmp_path):
    command = [sys.executable, "-m", "bgrl", "serve", "player=pubeval", "port=0", "log=true"]
    served = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs inherit that they ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        first = served.stdout.readline()
        assert first.startswith("pubeval plays; in gnubg: set player 1 external localhost:")
        port = int(first.split("localhost:")[1].split()[0])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            line = format_fibs(Position.start(), MatchState(dice=(3, 1)))
            connection.sendall(line.encode() + b"\n\0")
            assert connection.makefile().readline() == "8/5 6/5\n"
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=30)
    finally:
        served.kill()
    assert served.returncode == 130
    assert err == "bgrl: interrupted\n"
    assert f"asks {line}" in out
    assert "gets '8/5 6/5'" in out


def test_bad_options_are_named(run):
    for options, message in (
        (["player=nobody"], "unknown player 'nobody'"),
        (["player=random", "port=70000"], "serve: port is 70000, expected 0 to 65535"),
        (["player=random", "port=0", "host=no.such.host.invalid"], "cannot listen on no.such.host"),
    ):
        status, _, err = run("serve", *options)
        assert status == 2
        assert message in err
