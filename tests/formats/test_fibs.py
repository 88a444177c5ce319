"""FIBS board strings, both ways. The cases are what the program gnubg 1.07.001 sent to an external
player in games, with the position and match IDs that it displayed at the same time."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.strategies import dice, positions

from bgrl.errors import InvalidPosition
from bgrl.formats import MatchState, format_fibs, format_gnubg_id, parse_fibs
from bgrl.game import Position

CASES = [
    line.split()
    for line in (Path(__file__).parent / "cases" / "gnubg_fibs.txt").read_text().splitlines()
]

OPENING = (
    "board:other:viewer:0:0:0:0:-2:0:0:0:0:5:0:3:0:0:0:-5:5:0:0:0:-3:0:-5:0:0:0:0:2:0"
    ":1:3:1:3:1:1:1:1:0:1:-1:0:25:0:0:0:0:0:0:0:1"
)
# The example of the server's documentation, but for the score.
SERVER = (
    "board:You:someplayer:3:0:1:0:-2:0:0:0:0:5:0:3:0:0:0:-5:5:0:0:0:-3:0:-5:0:0:0:0:2:0"
    ":1:6:2:0:0:1:1:1:0:1:-1:0:25:0:0:0:0:2:0:0:0"
)
# The places of some fields between colons.
NAME, LENGTH, SCORES, TURN, DICE, CUBE, MAY_DOUBLE, DOUBLED = 1, 3, 4, 32, 33, 37, 38, 40
ON_THE_BAR, POST_CRAWFORD, REDOUBLES = 47, 51, 52


def changed(text: str, *changes: tuple[int, str]) -> str:
    """The string with other fields from the given places on."""
    words = text.split(":")
    for at, fields in changes:
        new = fields.split(":")
        words[at : at + len(new)] = new
    return ":".join(words)


@pytest.mark.parametrize(("line", "gnubg_id"), CASES)
def test_what_gnubg_sends_is_what_it_displays(line, gnubg_id):
    position, state = parse_fibs(line)
    # A board on display may show the dice the other way round.
    ids = [format_gnubg_id(position, state)]
    if state.dice:
        ids.append(format_gnubg_id(position, replace(state, dice=state.dice[::-1])))
    assert gnubg_id in ids
    first, second = line.split(":")[1:3]
    names = (second, first) if state.offer else (first, second)
    assert format_fibs(position, state, names) == line


def test_the_cases_hold_every_kind_of_thing():
    states = [parse_fibs(line) for line, _ in CASES]
    assert {state.on_roll for _, state in states} == {0, 1}
    assert {state.offer for _, state in states} == {None, "double"}
    assert {state.cube_owner for _, state in states} == {None, 0, 1}
    assert {state.crawford for _, state in states} == {False, True}
    assert {state.post_crawford for _, state in states} == {False, True}
    assert {state.length > 0 for _, state in states} == {False, True}
    for side in (0, 1):
        assert any(position.bar[side] for position, _ in states)
        assert any(position.off[side] for position, _ in states)


@st.composite
def states(draw) -> MatchState:
    length = draw(st.sampled_from([0, 0, 1, 3, 7]))
    score = tuple(draw(st.integers(0, length - 1)) if length else 0 for _ in range(2))
    on_roll = draw(st.integers(0, 1))
    crawford = min(score) < max(score) == length - 1 and draw(st.booleans())
    cube = 1 if crawford else draw(st.sampled_from([1, 2, 64]))
    owner = draw(st.sampled_from([None, 0, 1])) if cube > 1 else None
    doubled = not crawford and owner != 1 - on_roll and draw(st.booleans())
    return MatchState(
        on_roll=on_roll,
        dice=None if doubled else draw(st.none() | dice),
        cube=cube,
        cube_owner=owner,
        score=score,
        length=length,
        crawford=crawford,
        offer="double" if doubled else None,
    )


@given(positions(), states())
def test_round_trip(position, state):
    text = format_fibs(position, state)
    assert parse_fibs(text, position.variant) == (position, state)


@given(positions(), states(), st.sampled_from([1, -1]), st.sampled_from([1, -1]))
def test_either_colour_and_direction_mean_the_same(position, state, colour, direction):
    """FIBS shows a board to either side in either direction."""
    words = format_fibs(position, state).split(":")
    slots = [colour * int(word) for word in words[6:32]]
    words[6:32] = [str(count) for count in slots[::-direction]]
    words[32] = str(colour * int(words[32]))
    words[41:45] = [str(colour), str(direction), *(["0", "25"] if direction < 0 else ["25", "0"])]
    assert parse_fibs(":".join(words), position.variant) == (position, state)


def test_the_viewers_dice_are_the_first_pair():
    words = OPENING.split(":")
    words[33:37] = ["3", "1", "0", "0"]
    assert parse_fibs(":".join(words)) == (Position.start(), MatchState(dice=(3, 1)))
    words[32:37] = ["-1", "0", "0", "6", "2"]
    assert parse_fibs(":".join(words)) == (Position.start(), MatchState(on_roll=0, dice=(6, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, "bored"), "does not start with 'board:'"),
        ((7, "-2:0"), "53 fields, not 52"),
        ((7, "x"), "board 'x' is not a number"),
        ((7, "-3"), "the opponent has 16 checkers"),
        ((6, "1"), "a bar holds checkers of the wrong colour"),
        ((31, "-1"), "a bar holds checkers of the wrong colour"),
        ((32, "0"), "turn is 1 or -1, not 0"),
        ((33, "7"), "dice are two numbers from 1 to 6"),
        ((37, "3"), "cube is a power of 2"),
        ((42, "1"), "home 0 and bar 25 of \\+1"),
        ((45, "2"), "the player on roll has 17 checkers"),
        ((MAY_DOUBLE, "7"), "may double is 0 or 1, not 7"),
        ((MAY_DOUBLE + 1, "-1"), "may double is 0 or 1, not -1"),
        ((DOUBLED, "5"), "was doubled is 0 or 1, not 5"),
        ((POST_CRAWFORD, "2"), "post-Crawford is 0 or 1, not 2"),
        ((ON_THE_BAR, "3"), r"on the bar \[3, 0\], but the board has \[0, 0\]"),
        ((LENGTH, "-1"), "match length is 0 or more, not -1"),
        ((SCORES, "-1"), "score is 0 or more, not -1"),
        ((45, "-1"), "off is 0 or more, not -1"),
        ((DICE, "0"), "dice are two numbers"),
    ],
)
def test_malformed_boards_are_refused(change, message):
    words = OPENING.split(":")
    words[change[0]] = change[1]
    with pytest.raises(InvalidPosition, match=message):
        parse_fibs(":".join(words))


def test_the_server_gives_the_viewers_score_first():
    position, state = parse_fibs(SERVER)
    assert position == Position.start()
    assert state == MatchState(dice=(6, 2), score=(1, 0), length=3)
    assert state.away == (3, 2)


def test_gnubg_gives_the_other_score_first():
    text = changed(SERVER, (NAME, "other"))
    assert parse_fibs(text)[1].score == (0, 1)
    assert parse_fibs(text, sender="gnubg") == parse_fibs(text)


def test_who_sent_a_string_can_be_said():
    """The names of a match that one watches do not tell."""
    watched = changed(SERVER, (NAME, "someone"))
    assert parse_fibs(watched, sender="fibs") == parse_fibs(SERVER)
    assert parse_fibs(SERVER, sender="gnubg")[1].score == (0, 1)


@pytest.mark.parametrize("name", ["You", "someone"])
def test_9999_points_are_unlimited_play(name):
    _, state = parse_fibs(changed(SERVER, (NAME, name), (LENGTH, "9999:7:9")))
    assert state == MatchState(dice=(6, 2), score=(9, 7), length=0)
    assert state.away is None


def test_on_the_server_a_double_is_the_opponents():
    """While it waits the turn is already the viewer's, and nobody may double."""
    waiting = changed(SERVER, (DICE, "0:0:0:0:2:0:0:1"))
    for text in (waiting, changed(waiting, (TURN, "-1"))):
        _, state = parse_fibs(text)
        assert state == MatchState(
            on_roll=0, cube=2, cube_owner=0, score=(1, 0), length=3, offer="double"
        )
        assert state.to_decide == 1


@pytest.mark.parametrize(
    ("sender", "flags", "crawford"),
    [
        ("fibs", "0:0", True),
        ("fibs", "1:0", False),
        ("fibs", "0:2", True),  # how many redoubles are allowed at once in unlimited play
        ("gnubg", "0:0", True),
        ("gnubg", "1:1", False),
        ("gnubg", "0:1", False),  # without the Crawford rule
        ("gnubg", "1:0", False),
    ],
)
def test_the_flags_of_the_crawford_game(sender, flags, crawford):
    text = changed(SERVER, (SCORES, "0:2"), (POST_CRAWFORD, flags))
    _, state = parse_fibs(text, sender=sender)
    assert state.crawford is crawford
    assert state.post_crawford is not crawford


@pytest.mark.parametrize("sender", ["fibs", "gnubg"])
def test_with_both_at_match_point_it_is_no_crawford_game(sender):
    _, state = parse_fibs(changed(SERVER, (SCORES, "2:2")), sender=sender)
    assert state.post_crawford


def test_counts_on_the_bar_are_those_of_the_board_or_none():
    """The server says what the board says, gnubg nothing."""
    text = (
        "board:You:opponent:3:0:0:0:-2:0:1:0:0:5:0:2:0:0:0:-3:5:0:0:0:-4:-1:-5:0:0:0:0:1:1"
        ":1:5:5:1:2:1:1:1:0:1:-1:0:25:0:0:1:0:2:0:0:0"
    )
    position, _ = parse_fibs(text)
    assert position.bar == (1, 0)
    assert parse_fibs(changed(text, (ON_THE_BAR, "0:0"))) == parse_fibs(text)
    for wrong in ("0:1", "1:1", "2:0"):
        with pytest.raises(InvalidPosition, match=r"on the bar \[.*but the board has \[1, 0\]"):
            parse_fibs(changed(text, (ON_THE_BAR, wrong)))


@given(st.text(max_size=60) | st.lists(st.integers(-9, 30), min_size=50, max_size=50))
def test_nonsense_is_an_invalid_position(text):
    if isinstance(text, list):
        text = "board:a:b:" + ":".join(map(str, text))
    with contextlib.suppress(InvalidPosition):
        parse_fibs(text)


def test_what_a_fibs_board_cannot_hold():
    start = Position.start()
    for state in (MatchState(resignation=1), MatchState(status="over")):
        with pytest.raises(InvalidPosition, match="a game being played"):
            format_fibs(start, state)
    with pytest.raises(InvalidPosition, match="no colon or blank"):
        format_fibs(start, MatchState(), ("a:b", "c"))
