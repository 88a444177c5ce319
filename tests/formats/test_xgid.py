"""XGIDs, both ways."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles.strategies import positions

from bgrl.errors import InvalidPosition
from bgrl.formats import MatchState, format_xgid, parse_xgid, split_xgid
from bgrl.game import HYPERGAMMON, NACKGAMMON, Position

I10 = "-aa---EBB---dDa--c-e----B-:0:0:1:16:0:0:3:0:8"
I12_MATCH = "----abF-B--BbB-Bacbd----A-:0:0:1:41:1:0:0:11:10"

DECODED = [
    (
        "I10",
        I10,
        "4HPkASjg2+ABMA",
        (160, 164),
        MatchState(dice=(1, 6), jacoby=True, beavers=True, cube_limit=256),
    ),
    (
        "I12 owned cube",
        "--CBCBC------B--b--cabbcb-:1:1:1:21:0:0:0:0:8",
        "u61jAAButwMGAA",
        (78, 63),
        MatchState(dice=(2, 1), cube=2, cube_owner=1, cube_limit=256),
    ),
    (
        "I12 match",
        I12_MATCH,
        "4O3CgAXgZ8wMIA",
        (154, 158),
        MatchState(dice=(4, 1), score=(0, 1), length=11),
    ),
    (
        "I12 money",
        "-b----E-C--AeD---bAdb---A-:0:0:1:52:0:0:3:0:10",
        "sGfwATDgc+RBIA",
        (159, 163),
        MatchState(dice=(5, 2), jacoby=True, beavers=True),
    ),
    (
        "I12 no Jacoby",
        "-----BC-CB--dC--acbe---AA-:0:0:1:22:0:0:0:0:10",
        "4NuFBwCwc8MBKA",
        (156, 129),
        MatchState(dice=(2, 2)),
    ),
    (
        "I14 Crawford, C04",
        "--A--A-----------------a--:0:0:1:00:6:3:1:7:10",
        "AgAAiAAAAAAAAA",
        (7, 2),
        MatchState(score=(3, 6), length=7, crawford=True),
    ),
    (
        "I14 post-Crawford",
        "--A--A-----------------a--:0:0:1:00:6:3:0:7:10",
        "AgAAiAAAAAAAAA",
        (7, 2),
        MatchState(score=(3, 6), length=7),
    ),
    (
        "I14 double offered",
        "--A--A-----------------a--:0:0:1:D:5:3:0:7:10",
        "AgAAiAAAAAAAAA",
        (7, 2),
        MatchState(score=(3, 5), length=7, offer="double"),
    ),
    (
        "I14 beaver",
        "--A--A-----------------a--:0:0:1:B:0:0:3:0:10",
        "AgAAiAAAAAAAAA",
        (7, 2),
        MatchState(jacoby=True, beavers=True, offer="beaver"),
    ),
    (
        "I14 raccoon",
        "--A--A-----------------a--:0:0:-1:R:0:0:2:0:10",
        "IgAAEAAAAAAAAA",
        (2, 7),
        MatchState(on_roll=0, beavers=True, offer="raccoon"),
    ),
    (
        "I15 the top player's turn",
        "----abF-B--BbB-Bacbd----A-:1:-1:-1:41:1:0:0:11:10",
        "4GfMDCDg7cKABQ",
        (158, 154),
        MatchState(on_roll=0, dice=(4, 1), cube=2, cube_owner=0, score=(0, 1), length=11),
    ),
    (
        "C08",
        "--A--A-----------------a--:1:-1:1:00:3:3:0:7:10",
        "AgAAiAAAAAAAAA",
        (7, 2),
        MatchState(cube=2, cube_owner=0, score=(3, 3), length=7),
    ),
    (
        "start",
        "-b----E-C---eE---c-e----B-:0:0:1:00:0:0:0:0:10",
        "4HPwATDgc/ABMA",
        (167, 167),
        MatchState(),
    ),
]


@pytest.mark.parametrize(
    ("xgid", "position_id", "pips", "state"),
    [row[1:] for row in DECODED],
    ids=[row[0] for row in DECODED],
)
def test_xgid(xgid, position_id, pips, state):
    for text in (xgid, "XGID=" + xgid, f"  XGID={xgid}\n"):
        position, parsed = parse_xgid(text)
        assert position.gnubg_id == position_id
        assert position.pip_counts == pips
        assert parsed == state
    assert format_xgid(position, state) == "XGID=" + xgid


def test_i10_checkers_of_both_sides():
    position, _ = parse_xgid(I10)
    assert position == Position.from_points(
        {24: 2, 13: 4, 8: 2, 7: 2, 6: 5}, {24: 1, 23: 1, 13: 4, 11: 1, 8: 3, 6: 5}
    )


def test_i15_each_player_keeps_score_and_checkers_when_the_turn_changes():
    bottom, bottom_state = parse_xgid(I12_MATCH)
    top, top_state = parse_xgid(I12_MATCH.replace(":1:41:1:0:", ":-1:41:1:0:"))
    assert (bottom_state.on_roll, top_state.on_roll) == (1, 0)
    assert top == bottom.swap()
    assert bottom_state.score == top_state.score == (0, 1)
    assert bottom_state.away == (10, 11)
    assert top_state.away == (11, 10)


def test_i12_the_cube_owner_is_seen_from_the_roller():
    owned = "----abF-B--BbB-Bacbd----A-:1:{}:{}:41:1:0:0:11:10"
    sides = {
        (owner, turn): parse_xgid(owned.format(owner, turn))[1].cube_side
        for owner in (-1, 0, 1)
        for turn in (-1, 1)
    }
    assert sides == {(-1, -1): 0, (-1, 1): 1, (0, -1): None, (0, 1): None, (1, -1): 1, (1, 1): 0}


def test_i14_d_is_a_take_decision_of_the_opponent():
    _, state = parse_xgid("--A--A-----------------a--:0:0:1:D:5:3:0:7:10")
    assert state.offer == "double"
    assert state.dice is None
    assert state.to_decide == 0


def test_i14_field_8_by_length():
    board = "-b----E-C---eE---c-e----B-"
    rules = {
        (field, length): parse_xgid(f"{board}:0:0:1:00:{max(length - 1, 0)}:0:{field}:{length}:10")[
            1
        ]
        for field, length in ((0, 0), (1, 0), (2, 0), (3, 0), (0, 7), (1, 7))
    }
    assert [(s.crawford, s.jacoby, s.beavers) for s in rules.values()] == [
        (False, False, False),
        (False, True, False),
        (False, False, True),
        (False, True, True),
        (False, False, False),
        (True, False, False),
    ]


def test_i16_only_the_leading_xgid_is_the_position():
    note = "\nX to play 16\n\n  see also XGID=" + I12_MATCH + " (a worse one)\nend  "
    text = f"XGID={I10}{note}"
    assert parse_xgid(text) == parse_xgid(I10)
    assert split_xgid(text) == (f"XGID={I10}", note)


@pytest.mark.parametrize("text", ["", "  ", "A note: XGID=" + I10, "see XGID=" + I10])
def test_i16_an_xgid_in_a_comment_is_not_the_position(text):
    with pytest.raises(InvalidPosition):
        parse_xgid(text)


@st.composite
def states(draw) -> MatchState:
    length = draw(st.sampled_from([0, 1, 5, 25]))
    cube = 1 << draw(st.integers(0, 8))
    try:
        return MatchState(
            on_roll=draw(st.integers(0, 1)),
            dice=draw(st.none() | st.tuples(st.integers(1, 6), st.integers(1, 6))),
            cube=cube,
            cube_owner=draw(st.sampled_from([None, 0, 1])) if cube > 1 else None,
            score=draw(st.tuples(st.integers(0, 24), st.integers(0, 24))),
            length=length,
            crawford=draw(st.booleans()),
            jacoby=length == 0 and draw(st.booleans()),
            beavers=length == 0 and draw(st.booleans()),
            offer=draw(st.sampled_from([None, "double", "beaver", "raccoon"])),
            cube_limit=1 << draw(st.integers(0, 12)),
        )
    except InvalidPosition:
        assume(False)
        raise


@given(positions(), states())
def test_round_trip(position, state):
    assert parse_xgid(format_xgid(position, state), position.variant) == (position, state)


@pytest.mark.parametrize("variant", [NACKGAMMON, HYPERGAMMON], ids=lambda v: v.name)
def test_variants(variant):
    start = Position.start(variant)
    text = format_xgid(start, MatchState())
    assert parse_xgid(text, variant)[0] == start


def changed(field: int, text: str) -> str:
    fields = I12_MATCH.split(":")
    fields[field] = text
    return ":".join(fields)


@pytest.mark.parametrize(
    ("xgid", "reason"),
    [
        ("hello", "no XGID"),
        (I12_MATCH.rsplit(":", 1)[0], "9 fields, not 10"),
        (I12_MATCH + ":1", "11 fields, not 10"),
        (changed(0, I12_MATCH[:25]), "board of 25 characters, not 26"),
        (changed(0, I12_MATCH[:26].replace("F", "6")), "board character '6' at position 7"),
        (changed(0, I12_MATCH[:26].replace("F", "\u0424")), "board character"),
        (changed(0, "A" + I12_MATCH[1:26]), "'A' on the top player's bar"),
        (changed(0, I12_MATCH[:25] + "a"), "'a' on the bottom player's bar"),
        (changed(0, I12_MATCH[:26].replace("F", "P")), "25 checkers"),
        (changed(0, I12_MATCH[:26].replace("d", "e")), "the opponent has 16 checkers"),
        (changed(0, "-" * 26), "both sides have borne off all"),
        (changed(1, "x"), "cube 'x'"),
        (changed(1, "-1"), "cube '-1'"),
        (changed(1, "99"), "cube '99'"),
        (changed(2, "2"), "cube owner '2'"),
        (changed(2, "1"), "no owner"),
        (changed(3, "0"), "turn is 1 or -1"),
        (changed(3, "2"), "turn '2'"),
        (changed(3, ""), "turn ''"),
        (changed(4, "07"), "dice '07'"),
        (changed(4, "05"), "dice '05'"),
        (changed(4, "d"), "dice 'd'"),
        (changed(4, "123"), "dice '123'"),
        (changed(4, "\u0663\u0661"), "dice"),
        (changed(5, "11"), "a match to 11 is over"),
        (changed(5, "1.5"), "bottom player's score '1.5'"),
        (changed(6, "-3"), "top player's score '-3'"),
        (changed(7, "1"), "a Crawford game needs a player who is 1 point away"),
        (changed(7, "2"), "Crawford/Jacoby '2'"),
        (I10.replace(":3:0:8", ":4:0:8"), "Crawford/Jacoby '4'"),
        (changed(8, "eleven"), "match length 'eleven'"),
        (changed(9, ""), "cube limit ''"),
    ],
)
def test_malformed_xgids(xgid, reason):
    with pytest.raises(InvalidPosition) as error:
        parse_xgid("XGID=" + xgid if ":" in xgid else xgid)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text("aAbBeE-:0123456789DBRX=", max_size=60))
def test_any_text_is_parsed_or_refused(text):
    try:
        position, state = parse_xgid(text)
    except InvalidPosition:
        return
    assert parse_xgid(format_xgid(position, state)) == (position, state)


def test_what_an_xgid_cannot_hold_is_refused():
    for state in (MatchState(status="none"), MatchState(resignation=2)):
        with pytest.raises(InvalidPosition, match="an XGID holds a game being played"):
            format_xgid(Position.start(), state)
