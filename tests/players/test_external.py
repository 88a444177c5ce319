"""bgrl as gnubg's external player. What gnubg sends is in tests/formats/cases/gnubg_fibs.txt."""

import socket
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from bgrl.errors import BgrlError
from bgrl.formats import MatchState, format_fibs, parse_fibs
from bgrl.game import Position, legal_plays, parse_play
from bgrl.game.board import BAR
from bgrl.players import EquityPlayer, load_player
from bgrl.players.external import LONGEST_LINE, ExternalPlayer, answer

SENT = (Path(__file__).parent.parent / "formats" / "cases" / "gnubg_fibs.txt").read_text()


class Judge(EquityPlayer):
    """Gives whoever is on roll the same chance in every position."""

    def __init__(self, win: float):
        super().__init__("judge", load_player("random").variant)
        self.win = win

    def probabilities(self, boards):
        return np.tile(np.array([self.win, 0, 0, 0, 0], dtype=np.float32), (len(boards), 1))


@pytest.mark.parametrize("line", [line.split()[0] for line in SENT.splitlines()])
def test_everything_that_gnubg_sends_has_a_legal_answer(line):
    player = load_player("pubeval")
    position, state = parse_fibs(line)
    text = answer(player, line)
    if state.offer:
        assert text == "accept"  # pubeval has no equity to say otherwise
    elif state.dice is None:
        assert text == "roll"
    elif not legal_plays(position, state.dice):
        assert text == ""
    else:
        after = parse_play(position, state.dice, text).position.board
        assert np.array_equal(after, player.choose(position.board.copy(), *state.dice))


def test_the_other_side_on_roll_is_seen_from_its_own_side():
    """gnubg's player 0 has the board shown from player 1's side."""
    position = Position.from_points({24: 2, 13: 5, 8: 3, 6: 5}, {24: 2, 13: 5, 8: 2, 7: 1, 6: 5})
    texts = [
        answer(load_player("pubeval"), format_fibs(position, MatchState(on_roll=seat, dice=(6, 1))))
        for seat in (0, 1)
    ]
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize(("win", "text"), [(0.74, "accept"), (0.76, "reject")])
def test_a_double_is_taken_above_the_take_point(win, text):
    for seat in (0, 1):
        state = MatchState(on_roll=seat, offer="double")
        assert answer(Judge(win), format_fibs(Position.start(), state)) == text


def test_a_dance_is_an_empty_line():
    closed = dict.fromkeys(range(1, 7), 2)
    position = Position.from_points({BAR: 1, 6: 5}, closed)
    assert answer(load_player("random"), format_fibs(position, MatchState(dice=(6, 6)))) == ""


@contextmanager
def serving(player, **options):
    with ExternalPlayer(player, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def connect(server):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    return closing(connection), connection.makefile("rwb", buffering=0)


def asked(stream, line: bytes) -> str:
    stream.write(line + b"\n\0")  # as gnubg ends a message
    return stream.readline().decode().rstrip("\n")


ROLLED = format_fibs(Position.start(), MatchState(dice=(3, 1))).encode()


def test_connections_at_once_and_in_turn():
    log: list[str] = []
    with serving(load_player("pubeval"), log=log.append, exchanges=True) as server:
        first, one = connect(server)
        second, two = connect(server)
        with first, second:
            for stream in (one, two, one):
                assert asked(stream, ROLLED) == "8/5 6/5"
        third, three = connect(server)
        with third:
            assert asked(three, ROLLED) == "8/5 6/5"
    assert sum("has come" in line for line in log) == 3
    assert sum("gets '8/5 6/5'" in line for line in log) == 4


def test_a_wrong_line_is_named_and_the_connection_goes_on():
    log: list[str] = []
    with serving(load_player("pubeval"), log=log.append) as server:
        client, stream = connect(server)
        with client:
            for line in (b"hello", b"\xff\xfe", b"board:a:b:1", b"x" * (LONGEST_LINE - 10)):
                assert asked(stream, line).startswith("Error: FIBS board")
            assert asked(stream, ROLLED) == "8/5 6/5"
    assert sum("FIBS board" in line for line in log) == 4


def test_a_client_that_breaks_off_harms_nobody():
    with serving(load_player("pubeval")) as server:
        for junk in (b"", b"board:half a li"):
            client, stream = connect(server)
            with client:
                stream.write(junk or b"\0")
        client, stream = connect(server)
        with client:
            assert asked(stream, ROLLED) == "8/5 6/5"


def test_a_port_in_use_is_named():
    with (
        serving(load_player("random")) as server,
        pytest.raises(BgrlError, match=f"cannot listen on 127.0.0.1:{server.port}"),
    ):
        ExternalPlayer(load_player("random"), port=server.port)
