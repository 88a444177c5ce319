"""Plays as text, both ways, and the reasons for which a text is not a play."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.strategies import dice, positions

from bgrl.errors import BgrlError, IllegalPlay
from bgrl.game import (
    HYPERGAMMON,
    Move,
    Play,
    Position,
    Turn,
    forced_reason,
    legal_plays,
    parse_play,
)

START = Position.start()


def texts(position: Position, roll: tuple[int, int]) -> set[str]:
    return {str(play) for play in legal_plays(position, roll)}


def from_id(position_id: str) -> Position:
    return Position.from_gnubg_id(position_id)


# Writing

WRITTEN = [
    ("R01", "8N4ZAAbg/xMAIA", (6, 2), {"24/22 8/2"}),
    ("R02", "ABgA8P8DAAABAA", (6, 5), {"24/18"}),
    ("R03", "wGAAwP8PAAAEAA", (6, 5), {"24/19"}),
    ("R05", "wDAAwP8HBAAEAA", (6, 4), {"24/20 9/3"}),
    ("R07", "wzgAAOBz8ABwAA", (6, 5), {"bar/19"}),
    ("R09", "27YBAAB8HnwACA", (6, 6), set()),
    ("R10 higher", "AAwA8P8DAAACAA", (6, 5), {"bar/19"}),
    ("R10 lower", "YDAAwP8PAAAIAA", (6, 5), {"bar/20"}),
    ("R11", "AwAAEAEAAAAAAA", (4, 2), {"5/1 2/off", "5/off"}),
    ("R13", "AwAAQAAAAAAAAA", (6, 2), {"4/off"}),
    ("R14", "AwAAgAIAAAAAAA", (6, 1), {"6/off 5/4", "6/5/off"}),
    ("R16 bear-off", "AADAFrYBAAAAAA", (5, 4), {"5/off 4/off"}),
    ("R16 blocked", "AABgBjkAAAAAAA", (3, 3), set()),
    ("R18 one blot", "ACAA+P8BEAAAAA", (3, 2), {"13/8", "13/11*/8"}),
    ("R18 two blots", "AKAA8P8DIAAAAA", (3, 2), {"13/11*/8", "13/10*/8"}),
]


@pytest.mark.parametrize(
    ("position_id", "roll", "plays"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN]
)
def test_plays_of_the_cases(position_id, roll, plays):
    assert texts(from_id(position_id), roll) == plays
    assert texts(from_id(position_id), roll[::-1]) == plays


FORMS = [
    # mine, theirs on my points, dice, text as typed, text as written
    ("two checkers", {24: 2, 13: 5, 8: 3, 6: 5}, {}, (3, 1), "6/5 8/5", "8/5 6/5"),
    ("joined", {24: 2, 13: 5, 8: 3, 6: 5}, {}, (6, 5), "24/18 18/13", "24/13"),
    ("highest target first", {24: 2, 13: 5, 8: 3, 6: 5}, {}, (6, 2), "13/7 13/11", "13/11 13/7"),
    ("counted", {24: 2, 13: 5, 8: 3, 6: 5}, {}, (6, 6), "13/7(2) 24/18(2)", "24/18(2) 13/7(2)"),
    (
        "one of three",
        {24: 2, 13: 5, 8: 3, 6: 5},
        {},
        (6, 6),
        "13/7 13/7 13/7 24/18",
        "24/18 13/7(3)",
    ),
    ("a long way", {24: 1, 6: 14}, {}, (4, 4), "24/20/16/12/8", "24/8"),
    ("two long ways", {24: 2, 6: 13}, {}, (4, 4), "24/20(2) 20/16(2)", "24/16(2)"),
    ("far and near", {24: 2, 6: 13}, {}, (4, 4), "24/20(2) 20/16 6/2", "24/16 24/20 6/2"),
    ("hit", {25: 1, 6: 14}, {22: 1}, (3, 1), "bar/22 6/5", "bar/22* 6/5"),
    ("hit on the way", {13: 1, 2: 14}, {11: 1}, (3, 2), "13/11*/8", "13/11*/8"),
    ("hit twice", {13: 1, 2: 14}, {11: 1, 8: 1}, (3, 2), "13/11*/8*", "13/11*/8*"),
    ("two checkers hit one blot", {8: 2, 6: 2, 13: 11}, {4: 1}, (4, 2), "6/4* 8/4*", "8/4* 6/4"),
    ("hit by a pair", {6: 13, 13: 2}, {1: 1}, (5, 5), "6/1(2) 13/3", "13/3 6/1*(2)"),
    (
        "hit, then past it",
        {24: 2, 6: 13},
        {22: 1},
        (2, 2),
        "24/22*(2) 22/20 6/4",
        "24/22*/20 24/22 6/4",
    ),
    ("both past the hit", {24: 2, 6: 13}, {22: 1}, (2, 2), "24/20(2)", "24/22*/20(2)"),
    ("entering twice", {25: 2, 6: 13}, {}, (1, 1), "bar/24(2) 24/23(2)", "bar/23(2)"),
    ("off in one word", {6: 5}, {24: 2}, (6, 6), "6/off(4)", "6/off(4)"),
    ("off from far", {8: 1, 1: 5}, {24: 2}, (6, 2), "8/off", "8/off"),
    ("off in two steps", {5: 1, 3: 2}, {24: 2}, (2, 3), "5/off", "5/off"),
    ("off twice", {3: 2, 1: 1}, {24: 2}, (6, 3), "3/off 3/off", "3/off(2)"),
]


@pytest.mark.parametrize(
    ("mine", "theirs", "roll", "typed", "written"),
    [row[1:] for row in FORMS],
    ids=[row[0] for row in FORMS],
)
def test_standard_form(mine, theirs, roll, typed, written):
    position = Position.from_points(
        mine, {25 - point: n for point, n in (theirs or {1: 2}).items()}
    )
    play = parse_play(position, roll, typed)
    assert str(play) == written
    assert parse_play(position, roll, written) == play


def test_moves_are_in_playing_order_with_hits():
    position = Position.from_points({25: 1, 6: 14}, {3: 1})
    play = parse_play(position, (3, 1), "6/5 bar/22")
    assert play.moves == ((25, 22, True), (6, 5, False))
    assert isinstance(play.moves[0], Move)
    assert play.dice == (3, 1)
    assert play.position.bar == (1, 0), "the opponent is on roll and on the bar"


def test_play_equality_is_that_of_positions():
    first, second = (parse_play(START, (2, 1), text) for text in ("8/6/5", "8/7 7/5"))
    assert first == second
    assert len({first, second}) == 1
    assert first != parse_play(START, (2, 1), "13/11 6/5")
    assert first != "8/5"
    assert isinstance(first, Play)
    assert repr(first) == "<Play 2-1: 8/5>"


@given(positions(over=False), dice)
def test_texts_name_exactly_one_play(position, roll):
    plays = legal_plays(position, roll)
    assert len({str(play) for play in plays}) == len(plays)


# Reading


@given(positions(over=False), dice, st.randoms(use_true_random=False))
def test_any_order_any_joining_with_or_without_stars(position, roll, random):
    plays = legal_plays(position, roll)
    for play in random.sample(plays, min(len(plays), 4)):
        words = str(play).split()
        random.shuffle(words)
        shuffled = " ".join(words)
        spelt = shuffled.replace("bar", "25").replace("off", "0")
        assert parse_play(position, roll, shuffled) == play
        assert parse_play(position, roll[::-1], f"  {spelt} ") == play
        assert parse_play(position, roll, shuffled.upper().replace(" ", ", ")) == play
        single = [f"{move.source}/{move.target}" for move in play.moves]
        random.shuffle(single)
        if len(set(single)) == len(single) or roll[0] == roll[1]:
            moved = parse_play(position, roll, " ".join(single))
            hits = {move.target for move in play.moves if move.hit}
            # Without stars the same moves make the same hits.
            assert moved == play or hits != {m.target for m in moved.moves if m.hit}
        # A hit is named where it happens, so its star says nothing more.
        assert parse_play(position, roll, shuffled.replace("*", "")) == play
        starred = re.sub(r"/([0-9]+)(?![0-9*])", r"/\1*", shuffled)
        assert parse_play(position, roll, starred) == play


@pytest.mark.parametrize("text", ["4/off", "4/2/off", "4/2 2/off", "2/off 4/2", "4/0", "4/2/0"])
def test_r13_texts_of_the_last_checker(text):
    (play,) = legal_plays(from_id("AwAAQAAAAAAAAA"), (6, 2))
    assert parse_play(from_id("AwAAQAAAAAAAAA"), (6, 2), text) == play


@pytest.mark.parametrize("text", ["6/off", "6/5/off", "6/5 5/off", "5/off 6/5", "6/0"])
def test_r14_six_off_is_the_whole_play(text):
    play = parse_play(from_id("AwAAgAIAAAAAAA"), (6, 1), text)
    assert play.moves == ((6, 5, False), (5, 0, False))
    assert play.position.pip_counts[1] == 5


@pytest.mark.parametrize(
    ("typed", "other"),
    [
        ("25/22 13/7", "bar/22 13/7"),
        ("BAR/22, 13/7*", "bar/22 13/7"),
        ("13/7 25/22*", "bar/22 13/7"),
    ],
)
def test_m10_bar_and_stars(typed, other):
    position = Position.from_points({25: 1, 24: 1, 13: 5, 8: 3, 6: 5}, {24: 2, 13: 5, 8: 3, 6: 5})
    assert parse_play(position, (6, 3), typed) == parse_play(position, (6, 3), other)


@pytest.mark.parametrize("text", ["4/off 3/off", "4/0 3/0", "3/0 4/off"])
def test_m10_off(text):
    position = Position.from_points({4: 1, 3: 1, 2: 3}, {1: 2})
    assert str(parse_play(position, (4, 3), text)) == "4/off 3/off"


def test_r18_the_way_that_hits_nothing_unsaid_is_taken():
    one_blot = from_id("ACAA+P8BEAAAAA")
    assert str(parse_play(one_blot, (3, 2), "13/8")) == "13/8"
    assert str(parse_play(one_blot, (3, 2), "13/10/8")) == "13/8"
    assert str(parse_play(one_blot, (3, 2), "13/11/8")) == "13/11*/8"
    two_blots = from_id("AKAA8P8DIAAAAA")
    with pytest.raises(IllegalPlay, match=r"13/10\*/8 or 13/11\*/8"):
        parse_play(two_blots, (3, 2), "13/8")


def test_the_only_way_may_hit_unsaid():
    position = Position.from_points({13: 1, 2: 14}, {25 - 11: 1, 25 - 10: 2})
    assert str(parse_play(position, (3, 2), "13/8")) == "13/11*/8"


REFUSED = [
    ("R01 8/2 alone", "8N4ZAAbg/xMAIA", (6, 2), "8/2", "both dice can be played"),
    ("R02 the lower", "ABgA8P8DAAABAA", (6, 5), "24/19", "the higher die must be played: 6"),
    ("R03 the other", "wGAAwP8PAAAEAA", (6, 5), "24/18", "point 18 is held by the opponent"),
    ("R05", "wDAAwP8HBAAEAA", (6, 4), "9/5", "both dice can be played"),
    ("R07 not from the bar", "wzgAAOBz8ABwAA", (6, 5), "bar/19 13/8", "bar must enter first"),
    ("R07 held", "wzgAAOBz8ABwAA", (6, 5), "bar/20", "point 20 is held by the opponent"),
    ("R09", "27YBAAB8HnwACA", (6, 6), "13/7", "nothing can be played"),
    ("R10", "AAwA8P8DAAACAA", (6, 5), "bar/20", "the higher die must be played: 6"),
    ("R16", "AADAFrYBAAAAAA", (5, 4), "6/1 4/off", "point 1 is held by the opponent"),
    ("R21", "HC/wATDg8+AxAA", (5, 1), "13/12 13/8", "point 12 is held by the opponent"),
    ("M08", "4HPwATDgc/ABMA", (2, 1), "13/9", "13/9 is 4 pips, which the dice do not give"),
    ("M09", "4HPwATDgc/ABMA", (5, 5), "8/3(2) 6/1*(2)", "point 1 is held by the opponent"),
    ("no checker", "4HPwATDgc/ABMA", (3, 1), "7/4 6/5", "no checker on point 7"),
    ("no checker on the bar", "4HPwATDgc/ABMA", (3, 1), "bar/22 6/5", "no checker on the bar"),
    ("the opponent's point", "4HPwATDgc/ABMA", (3, 1), "12/9 6/5", "no checker on point 12"),
    ("one die", "4HPwATDgc/ABMA", (3, 1), "8/5", "both dice can be played"),
    ("same die twice", "4HPwATDgc/ABMA", (5, 1), "13/8 8/3", "do not give these moves"),
    ("too many", "4HPwATDgc/ABMA", (3, 1), "8/5 6/5 6/5", "more moves than dice"),
    (
        "three of four",
        "4HPwATDgc/ABMA",
        (6, 6),
        "24/18(2) 13/7",
        "4 moves can be played, not only 3",
    ),
    ("not home yet", "4HPwATDgc/ABMA", (6, 1), "6/off 8/7", "every checker in the home board"),
    ("higher first", "AwAAgAIAAAAAAA", (6, 1), "5/off", "the checker on point 6 must be moved"),
    ("backwards", "4HPwATDgc/ABMA", (3, 1), "5/8 6/5", "5/8 does not go forwards"),
    ("to the bar", "4HPwATDgc/ABMA", (3, 1), "6/25", "does not go forwards"),
    ("nothing", "4HPwATDgc/ABMA", (3, 1), "  ", "no move is given"),
    ("prose", "4HPwATDgc/ABMA", (3, 1), "Cannot Move", "cannot read 'cannot'"),
    ("point 26", "4HPwATDgc/ABMA", (3, 1), "26/23", "cannot read '26/23'"),
    ("one point", "4HPwATDgc/ABMA", (3, 1), "8", "cannot read '8'"),
    ("an open end", "4HPwATDgc/ABMA", (3, 1), "8/", "cannot read '8/'"),
    ("five times", "4HPwATDgc/ABMA", (1, 1), "6/5(5)", "cannot read '6/5(5)'"),
    ("no times", "4HPwATDgc/ABMA", (1, 1), "6/5(0)", "cannot read '6/5(0)'"),
]


@pytest.mark.parametrize(
    ("position_id", "roll", "text", "reason"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_refused_with_the_reason(position_id, roll, text, reason):
    with pytest.raises(IllegalPlay) as error:
        parse_play(from_id(position_id), roll, text)
    message = str(error.value)
    assert reason in message
    assert f"{text.strip()!r} with {roll[0]}-{roll[1]}" in message
    assert "\n" not in message


def assert_played_or_refused(position, roll, text):
    refusal = ""
    try:
        play = parse_play(position, roll, text)
    except IllegalPlay as error:
        refusal = str(error)
    if refusal:
        assert not refusal.endswith(("None", ": ")), "a refusal gives its reason"
    else:
        assert play in legal_plays(position, roll)


@given(positions(over=False), dice, st.text("0123456789/ *()barof,", max_size=16))
def test_any_text_is_a_legal_play_or_refused(position, roll, text):
    assert_played_or_refused(position, roll, text)


@given(positions(over=False), dice, st.lists(st.tuples(st.integers(0, 25), st.integers(1, 12))))
def test_any_moves_are_a_legal_play_or_refused_with_a_reason(position, roll, moves):
    text = " ".join(f"{source}/{max(source - pips, 0)}" for source, pips in moves)
    assert_played_or_refused(position, roll, text)


@pytest.mark.parametrize("roll", [(0, 1), (7, 1), (1.5, 2), "31", None, (3,), (1, float("inf"))])
def test_bad_dice_are_named(roll):
    for ask in (
        lambda: parse_play(START, roll, "8/5"),
        lambda: Turn(START, roll),
        lambda: forced_reason(START, roll),
    ):
        with pytest.raises(BgrlError, match="dice are two numbers from 1 to 6"):
            ask()


def test_s04_hypergammon_plays():
    start = Position.start(HYPERGAMMON)
    counts = [len(legal_plays(start, roll)) for roll in ((3, 1), (1, 1), (6, 6))]
    assert counts == [7, 7, 12]
    play = parse_play(start, (6, 5), "24/18 23/18")
    assert play.position.variant is HYPERGAMMON


# Turns


def test_turn_refuses_what_it_does_not_offer():
    turn = Turn(from_id("wDAAwP8HBAAEAA"), (6, 4))
    assert turn.moves() == [(24, 20, False), (9, 3, False)]
    with pytest.raises(IllegalPlay, match="9/5 may not be played now, with 6, 4 left"):
        turn.play((9, 5))
    with pytest.raises(IllegalPlay, match="not over"):
        turn.finish()
    with pytest.raises(IllegalPlay, match="no move to take back"):
        turn.undo()
    turn.play((24, 20))
    turn.play((9, 3))
    assert turn.done
    assert turn.finish() == legal_plays(from_id("wDAAwP8HBAAEAA"), (6, 4))[0].position
    assert turn.undo() == (9, 3, False)
    assert turn.remaining == (6,)


def test_r26_undoing_a_hit_takes_the_checker_off_the_bar():
    position = Position.from_points({13: 2, 6: 13}, {14: 1, 6: 14})
    turn = Turn(position, (2, 1))
    assert turn.play((13, 11)).hit
    assert turn.position.bar == (0, 1)
    turn.undo()
    assert turn.position == position


def test_a_dance_is_a_finished_turn():
    position = from_id("27YBAAB8HnwACA")
    turn = Turn(position, (6, 6))
    assert turn.done
    assert turn.finish() == position.swap()


def test_forced_reason_is_none_with_a_choice():
    assert forced_reason(START, (3, 1)) is None
