"""Positions: what is valid, gnubg position IDs both ways, pip counts, the text board."""

import pickle
from base64 import b64encode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.strategies import positions

from bgrl.errors import BgrlError, InvalidPosition
from bgrl.game import (
    BACKGAMMON,
    HYPERGAMMON,
    NACKGAMMON,
    Position,
    Variant,
    get_variant,
    text_board,
)

START_ID = "4HPwATDgc/ABMA"


# Variants


def test_variants_are_data():
    assert get_variant("hypergammon") is HYPERGAMMON
    assert BACKGAMMON.points == (1, 2, 3)
    own = Variant("tiny", 2, ((24, 1),))
    start = Position.start(own)
    assert start.off == (1, 1), "checkers that start nowhere are off"
    assert start.pip_counts == (24, 24)


def test_unknown_variant_names_the_known_ones():
    with pytest.raises(BgrlError, match=r"'plakoto'.*backgammon, nackgammon, hypergammon"):
        get_variant("plakoto")


@pytest.mark.parametrize(
    ("variant", "position_id", "pips"),
    [
        (BACKGAMMON, START_ID, 167),
        (NACKGAMMON, "4Dl4ADbgOXgANg", 194),  # S04
        (HYPERGAMMON, None, 69),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_s04_start_of_each_variant(variant, position_id, pips):
    start = Position.start(variant)
    assert start.pip_counts == (pips, pips)
    assert start == start.swap()
    assert start.board.sum(axis=1).tolist() == [variant.checkers] * 2
    if position_id:
        assert start.gnubg_id == position_id


def test_s04_an_id_does_not_tell_the_number_of_checkers():
    position_id = Position.start(HYPERGAMMON).gnubg_id
    assert Position.from_gnubg_id(position_id, HYPERGAMMON).off == (0, 0)
    assert Position.from_gnubg_id(position_id).off == (12, 12)
    with pytest.raises(InvalidPosition, match="hypergammon is played with 3"):
        Position.from_gnubg_id(START_ID, HYPERGAMMON)


# gnubg position IDs

DECODED = [
    ("I01 on roll", "4DMIAAYHAEAAAA", {6: 3, 1: 2, 25: 1}, {13: 1, 8: 2, 6: 5}),
    ("I01 opponent on roll", "gwMAIPAZBAAAAA", {13: 1, 8: 2, 6: 5}, {6: 3, 1: 2, 25: 1}),
    (
        "I03 opening",
        "4OeFATCw5+ABMA",
        {24: 2, 13: 4, 8: 3, 6: 4, 5: 2},
        {24: 2, 13: 2, 9: 1, 8: 4, 6: 6},
    ),
    (
        "I03 prime",
        "YEYF4TnO7w4AAA",
        {6: 3, 5: 3, 4: 6, 2: 3},
        {24: 3, 22: 4, 18: 1, 13: 1, 12: 1, 11: 1, 8: 2, 6: 2},
    ),
    ("S01 gammon", "4P8PAAABAAAAAA", {1: 1}, {6: 15}),
    ("S01 backgammon on the bar", "4P8HAEABAAAAAA", {1: 1}, {6: 14, 25: 1}),
    ("S01 opponent has borne off", "/z8AAIAAAAAAAA", {1: 1}, {1: 14}),
    ("R07 three on the bar", "wzgAAOBz8ABwAA", {25: 3, 13: 4, 8: 3, 6: 5}, {1: 2, 5: 2, 8: 3}),
    ("C03 sure gammon", "4P8PAAABAAAAAA", {1: 1}, {6: 15}),
]


@pytest.mark.parametrize(
    ("position_id", "mine", "theirs"),
    [case[1:] for case in DECODED],
    ids=[case[0] for case in DECODED],
)
def test_gnubg_id(position_id, mine, theirs):
    position = Position.from_gnubg_id(position_id)
    assert position == Position.from_points(mine, theirs)
    assert position.gnubg_id == position_id
    assert position.swap() == Position.from_points(theirs, mine)


@given(positions())
def test_gnubg_id_round_trip(position):
    text = position.gnubg_id
    assert len(text) == 14
    assert Position.from_gnubg_id(text, position.variant) == position


@given(st.text(st.sampled_from("ABCDEFGHabcdefgh0123456789+/wxyzQg"), min_size=14, max_size=14))
def test_any_14_characters_decode_to_a_position_with_that_id_or_are_refused(text):
    try:
        position = Position.from_gnubg_id(text)
    except InvalidPosition:
        return
    assert position.gnubg_id == text


@pytest.mark.parametrize(
    "text", [START_ID + "==", START_ID + "=", f"  {START_ID}\n", f"\t{START_ID}== "]
)
def test_i05_blanks_and_padding_are_ignored(text):
    assert Position.from_gnubg_id(text) == Position.start()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (START_ID[:-1], "has 13 characters, not 14"),
        (START_ID + "AA", "has 16 characters, not 14"),
        ("", "has 0 characters, not 14"),
        ("====", "has 0 characters, not 14"),
        ("4HPwATDgc_ABMA", "character '_' at position 10"),
        ("4HPwATDgc-ABMA", "character '-' at position 10"),
        ("4HPw ATDgcABMA", "character ' ' at position 5"),
        ("4HPw=TDgc/ABMA", "character '=' at position 5"),
        ("4HPwATDgc/ABM\u0410", "character '\u0410' at position 14"),
        ("4HPwATDgc/ABMB", "last character 'B'"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_i05_malformed_ids(text, reason):
    with pytest.raises(InvalidPosition) as error:
        Position.from_gnubg_id(text)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def key(bits: str) -> str:
    """The ID of 80 bits, written in their order."""
    padded = bits.ljust(80, "0")
    data = bytes(int(padded[i : i + 8][::-1], 2) for i in range(0, 80, 8))
    return b64encode(data).decode().rstrip("=")


def side_bits(counts: dict[int, int]) -> str:
    return "".join("1" * counts.get(slot, 0) + "0" for slot in range(1, 26))


@pytest.mark.parametrize(
    ("theirs", "mine", "reason"),
    [
        ({6: 16}, {6: 5}, "the opponent has 16 checkers"),
        ({6: 5}, {6: 10, 25: 6}, "the player on roll has 16 checkers"),
        ({6: 5}, {19: 5}, "both sides have checkers on point 19"),
        ({1: 2}, {24: 1}, "both sides have checkers on point 24"),
        (
            {**dict.fromkeys(range(1, 7), 2), 25: 1},
            {**dict.fromkeys(range(1, 7), 2), 25: 1},
            "both sides are on the bar against a closed board",
        ),
        ({}, {}, "both sides have borne off all"),
    ],
)
def test_impossible_boards_in_ids(theirs, mine, reason):
    text = key(side_bits(theirs) + side_bits(mine))
    with pytest.raises(InvalidPosition, match=reason) as error:
        Position.from_gnubg_id(text)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "bits",
    ["1" * 80, side_bits({6: 5}) + "1" * 50, "0" * 79 + "1"],
    ids=["all ones", "a bar without an end", "bits after both bars"],
)
def test_ids_with_bits_left_over(bits):
    with pytest.raises(InvalidPosition):
        Position.from_gnubg_id(key(bits))


# Boards


def test_board_is_read_only_and_a_copy():
    board = BACKGAMMON.start_board()
    position = Position(board)
    board[0, 24] = 7
    assert position == Position.start()
    with pytest.raises(ValueError, match="read-only"):
        position.board[0, 0] = 1
    assert position.board.dtype == np.int8
    assert position.board.flags.c_contiguous
    assert position.swap().board.flags.c_contiguous


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b: b[:, :25], r"shape \(2, 26\), not \(2, 25\)"),
        (lambda b: b[0], r"not \(26,\)"),
        (lambda b: b.astype(float), "whole numbers, not float64"),
        (lambda b: None, "shape"),
        (lambda b: [[1, 2], [3]], "2 rows"),
        (lambda b: with_count(b, 0, 24, 3), "the player on roll has 16 checkers"),
        (lambda b: with_count(b, 1, 24, 1), "the opponent has 14 checkers"),
        (lambda b: with_count(with_count(b, 0, 24, -1), 0, 13, 8), "-1 checkers on slot 24"),
        (lambda b: with_count(b, 0, 24, 258).astype(np.int64), "271 checkers"),
        (lambda b: with_count(with_count(b, 0, 24, 1), 0, 12, 1), "both sides have"),
    ],
)
def test_invalid_boards(change, reason):
    with pytest.raises(InvalidPosition, match=reason) as error:
        Position(change(BACKGAMMON.start_board().astype(np.int64)))
    assert "\n" not in str(error.value)


def with_count(board, side, slot, count):
    board = board.copy()
    board[side, slot] = count
    return board


def test_from_points_refuses_unknown_slots():
    with pytest.raises(InvalidPosition, match="no slot 26"):
        Position.from_points({26: 1}, {6: 1})


@given(positions())
def test_a_valid_position_survives_swapping_hashing_and_pickling(position):
    assert position.swap().swap() == position
    assert position.swap().pip_counts == position.pip_counts[::-1]
    again = pickle.loads(pickle.dumps(position))
    assert again == position
    assert hash(again) == hash(position)
    assert not again.board.flags.writeable
    assert position != Position(position.board, position.variant).gnubg_id


def test_the_same_board_of_another_variant_is_another_position():
    board = NACKGAMMON.start_board()
    assert Position(board) != Position(board, NACKGAMMON)


def test_r28_bar_counts():
    assert Position.from_gnubg_id("wzgAAOBz8ABwAA").bar == (3, 0)
    assert Position.from_gnubg_id("ABgA8P8DAAABAA").bar == (0, 0)
    assert Position.from_gnubg_id("4P8HAEABAAAAAA").bar == (0, 1)


def test_is_over():
    assert not Position.start().is_over
    over = Position.from_points({6: 15}, {})
    assert over.is_over
    assert over.swap().is_over


def test_pip_counts():
    # I10 and I12 give these counts with their XGIDs.
    assert Position.from_gnubg_id("4HPkASjg2+ABMA").pip_counts == (160, 164)
    assert Position.from_gnubg_id("u61jAAButwMGAA").pip_counts == (78, 63)
    assert Position.from_gnubg_id("4NuFBwCwc8MBKA").pip_counts == (156, 129)


# The text board


@given(positions())
def test_text_board_shows_every_count(position):
    text = str(position)
    lines = text.splitlines()
    assert lines[0].startswith(f"  O: {position.pip_counts[1]} pip")
    assert lines[-1].startswith(f"  X: {position.pip_counts[0]} pip")
    shown = dict.fromkeys("XO", 0)
    for rows in (lines[3:8], lines[13:8:-1]):
        for column in range(13):
            cells = [cell_at(row, column) for row in rows]
            for letter in "XO":
                if letter in cells:
                    top = cells[-1]
                    shown[letter] += int(top) if top.isdigit() else cells.count(letter)
    on_board = position.board[:, 1:].sum(axis=1)
    assert [shown["X"], shown["O"]] == on_board.tolist()
    assert all(len(line) <= 50 for line in lines)


def cell_at(row: str, column: int) -> str:
    """What row shows on a point, or on the bar (column 6)."""
    if column == 6:
        return row[22:25].strip()
    at = 2 + 3 * column if column < 6 else 27 + 3 * (column - 7)
    return row[at : at + 3].strip()


def test_text_board_of_the_start():
    assert str(Position.start()) == "\n".join(
        [
            "  O: 167 pips",
            "   13 14 15 16 17 18      19 20 21 22 23 24",
            " ┌───────────────────┬───┬───────────────────┐",
            " │  X  ·  ·  ·  O  · │   │  O  ·  ·  ·  ·  X │",
            " │  X           O    │   │  O              X │",
            " │  X           O    │   │  O                │",
            " │  X                │   │  O                │",
            " │  X                │   │  O                │",
            " │                   │BAR│                   │",
            " │  O                │   │  X                │",
            " │  O                │   │  X                │",
            " │  O           X    │   │  X                │",
            " │  O           X    │   │  X              O │",
            " │  O  ·  ·  ·  X  · │   │  X  ·  ·  ·  ·  O │",
            " └───────────────────┴───┴───────────────────┘",
            "   12 11 10  9  8  7       6  5  4  3  2  1",
            "  X: 167 pips, on roll",
        ]
    )


def test_text_board_with_dice_and_cube():
    board = Position.from_gnubg_id("4P8HAEABAAAAAA").board
    mine = text_board(board, dice=(6, 1), cube=4, cube_owner=0, ascii_only=True)
    assert mine.isascii()
    assert mine.splitlines()[13].endswith("[4]")
    assert mine.splitlines()[8].endswith("rolled 6-1")
    assert "X: 1 pip, on roll, 14 off" in mine
    assert text_board(board, cube=2, cube_owner=1).splitlines()[3].endswith("[2]")
    assert text_board(board, cube=1).splitlines()[8].endswith("[1]")
