"""gnubg match IDs and GNUbg IDs. The expected values were read off gnubg 1.07.001."""

from base64 import b64encode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles.strategies import positions

from bgrl.errors import InvalidPosition
from bgrl.formats import (
    MatchState,
    format_gnubg_id,
    format_match_id,
    parse_gnubg_id,
    parse_match_id,
)
from bgrl.formats.gnubg_id import _FIELDS
from bgrl.formats.match_state import OFFERS, STATUSES
from bgrl.game import Position
from bgrl.game.position import encode_id

DECODED = [
    (
        "I06 the manual's example",
        "QYkqASAAIAAA",
        MatchState(
            on_roll=1, dice=(5, 2), cube=2, cube_owner=0, score=(2, 4), length=9, jacoby=True
        ),
    ),
    ("I07 money, Jacoby on", "cAkAAAAAAAAA", MatchState(jacoby=True)),
    ("I07 money, Jacoby off", "cAkAAAAAAAAE", MatchState(jacoby=False)),
    ("I09 no game", "cIgUAAAAAAAA", MatchState(status="none", dice=(1, 5), jacoby=True)),
    ("I12 owned cube", "UQkFAAAAAAAE", MatchState(dice=(2, 1), cube=2, cube_owner=1)),
    ("I12 11 points", "cAlmAQAACAAE", MatchState(dice=(4, 1), score=(0, 1), length=11)),
    ("C04 Crawford", "8AngADAAMAAE", MatchState(score=(3, 6), length=7, crawford=True)),
    ("I14 post-Crawford", "cAngADAAMAAE", MatchState(score=(3, 6), length=7)),
    (
        "I15 the other seat",
        "AQFmAQAACAAE",
        MatchState(on_roll=0, dice=(4, 1), cube=2, cube_owner=0, score=(0, 1), length=11),
    ),
]


@pytest.mark.parametrize(
    ("match_id", "state"), [row[1:] for row in DECODED], ids=[row[0] for row in DECODED]
)
def test_match_id(match_id, state):
    assert parse_match_id(match_id) == state
    assert format_match_id(state) == match_id


def test_i06_who_decides():
    state = parse_match_id("QYkqASAAIAAA")
    assert (state.on_roll, state.to_decide) == (1, 1)
    assert state.away == (5, 7)
    assert state.cube_side == 1, "player 0 owns the cube and is the opponent"
    assert not state.crawford


def test_i09_status_none_is_kept_whatever_the_dice_say():
    state = parse_match_id("cIgUAAAAAAAA")
    assert state.status == "none"
    assert state.dice == (1, 5)


def test_i07_bits_after_the_jacoby_bit_may_be_set():
    # Whatever a newer gnubg writes there, the 67 known bits keep their meaning.
    assert parse_match_id("cAkAAAAAAAD4") == parse_match_id("cAkAAAAAAAAA")
    assert parse_match_id("cAkAAAAAAAD8") == parse_match_id("cAkAAAAAAAAE")


@st.composite
def states(draw, offers=OFFERS, statuses=STATUSES) -> MatchState:
    cube = 1 << draw(st.integers(0, 15))
    try:
        return MatchState(
            on_roll=draw(st.integers(0, 1)),
            dice=draw(st.none() | st.tuples(st.integers(1, 6), st.integers(1, 6))),
            cube=cube,
            cube_owner=draw(st.sampled_from([None, 0, 1])) if cube > 1 else None,
            score=draw(st.tuples(st.integers(0, 25), st.integers(0, 25))),
            length=draw(st.sampled_from([0, 1, 3, 26, 32767])),
            crawford=draw(st.booleans()),
            jacoby=draw(st.booleans()),
            offer=draw(st.sampled_from([None, *offers])),
            resignation=draw(st.integers(0, 3)),
            status=draw(st.sampled_from(statuses)),
        )
    except InvalidPosition:
        assume(False)
        raise


@given(states(offers=("double", "beaver")))
def test_match_id_round_trip(state):
    text = format_match_id(state)
    assert len(text) == 12
    assert parse_match_id(text) == state


@given(st.binary(min_size=9, max_size=9))
def test_any_match_id_round_trips_or_is_refused_in_one_line(data):
    text = b64encode(data[:8] + bytes([data[8] & 7])).decode()
    message = ""
    try:
        state = parse_match_id(text)
    except InvalidPosition as error:
        message = str(error)
    if message:
        assert text in message
        assert "\n" not in message
    elif state.status == "playing":
        assert format_match_id(state) == text


def match_id(**fields: int) -> str:
    """A match ID from raw bits, for what no MatchState can hold."""
    defaults = {"owner": 3, "on_roll": 1, "status": 1, "to_decide": 1}
    bits, at = 0, 0
    for name, size in _FIELDS.items():
        bits |= fields.get(name, defaults.get(name, 0)) << at
        at += size
    return encode_id(bits.to_bytes(9, "little"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("QYkqASAAIAA", "has 11 characters, not 12"),
        ("QYkqASAAIAAAA", "has 13 characters, not 12"),
        ("QYkqASAAI_AA", "character '_' at position 10"),
        ("4HPwATDgc/ABMA", "has 14 characters, not 12"),
        (match_id(owner=2), "its cube belongs to a player 2"),
        (match_id(owner=0), "a cube that shows 1 has no owner"),
        (match_id(status=6), "no game state 6"),
        (match_id(die1=7, die2=1), "no dice show 7-1"),
        (match_id(die1=3), "no dice show 3-0"),
        (match_id(to_decide=0), "nothing has been offered"),
        (match_id(length=3, score0=3), "a match to 3 is over at (3, 0)"),
        (match_id(length=3, crawford=1), "a player who is 1 point away"),
        (match_id(crawford=1), "a player who is 1 point away"),
        (match_id(length=3, score0=2, crawford=1, cube=1), "no doubling in the Crawford game"),
        (match_id(doubled=1, to_decide=0, die1=1, die2=2), "before the dice are rolled"),
    ],
)
def test_malformed_match_ids(text, reason):
    with pytest.raises(InvalidPosition) as error:
        parse_match_id(text)
    assert reason in str(error.value)
    assert text in str(error.value)


def test_offers_change_whose_decision_it_is():
    for on_roll in (0, 1):
        opponent = 1 - on_roll
        assert MatchState(on_roll=on_roll).to_decide == on_roll
        assert MatchState(on_roll=on_roll, offer="double").to_decide == opponent
        assert MatchState(on_roll=on_roll, offer="beaver").to_decide == on_roll
        assert MatchState(on_roll=on_roll, offer="raccoon").to_decide == opponent
        assert MatchState(on_roll=on_roll, resignation=1).to_decide == opponent


def test_what_a_match_id_cannot_hold_is_refused():
    with pytest.raises(InvalidPosition, match="raccoon"):
        format_match_id(MatchState(offer="raccoon"))
    with pytest.raises(InvalidPosition, match="cube 16 does not fit"):
        format_match_id(MatchState(cube=1 << 16))
    with pytest.raises(InvalidPosition, match="score0 40000 does not fit"):
        format_match_id(MatchState(score=(40000, 0)))


@given(positions(), states(offers=("double",)))
def test_gnubg_id_round_trip(position, state):
    text = format_gnubg_id(position, state)
    assert parse_gnubg_id(text, position.variant) == (position, state)


def test_gnubg_id():
    position, state = parse_gnubg_id(" 4O3CgAXgZ8wMIA:cAlmAQAACAAE\n")
    assert position == Position.from_gnubg_id("4O3CgAXgZ8wMIA")
    assert state.length == 11
    with pytest.raises(InvalidPosition, match="not positionID:matchID"):
        parse_gnubg_id("4HPwATDgc/ABMA")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"on_roll": 2}, "on_roll"),
        ({"cube": 3}, "power of 2"),
        ({"cube": 0}, "power of 2"),
        ({"cube_owner": 1}, "no owner"),
        ({"cube": 2, "cube_owner": -1}, "cube_owner"),
        ({"dice": (0, 3)}, "dice"),
        ({"score": (-1, 0)}, "score"),
        ({"length": 5, "score": (5, 0)}, "over"),
        ({"offer": "redouble"}, "offer"),
        ({"status": "paused"}, "status"),
        ({"resignation": 4}, "resignation"),
        ({"cube": 2, "cube_owner": 0, "offer": "double"}, "without owning the cube"),
    ],
)
def test_contradictory_states(fields, reason):
    with pytest.raises(InvalidPosition, match=reason):
        MatchState(**fields)


def test_crawford_and_post_crawford():
    assert MatchState(length=7, score=(3, 6), crawford=True).post_crawford is False
    assert MatchState(length=7, score=(3, 6)).post_crawford is True
    assert MatchState(length=7, score=(3, 5)).post_crawford is False
    assert MatchState(length=1).post_crawford is False, "a 1-point match has no Crawford game"
