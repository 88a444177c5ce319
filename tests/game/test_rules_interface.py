"""The reported cases that concern Position, Play and Turn: one rule book, however it is asked."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.any_positions import ROLLS, any_positions
from oracles.kernels import kernel_plays
from oracles.plain_rules import one_checker_moves, pips, plain_plays
from oracles.positions import decode_id, position, to_board, to_sides

from bgrl.errors import BgrlError, IllegalPlay, InvalidPosition
from bgrl.game import Position, Turn, Variant, forced_reason, legal_plays, parse_play


def as_position(sides):
    """The Position, or a rejected Hypothesis example if no game can reach it."""
    variant = Variant("any number of checkers", sum(sides[0]), ())
    try:
        return Position(to_board(sides), variant)
    except InvalidPosition:
        assume(False)


def after(play):
    """(mover, opponent) after a play."""
    opponent, mover = to_sides(play.position.board)
    return mover, opponent


@settings(max_examples=60, deadline=None)
@given(any_positions(), st.sampled_from(ROLLS))
def test_legal_plays_are_the_plain_ones(sides, roll):
    start = as_position(sides)
    plays = legal_plays(start, roll)
    used, expected = plain_plays(sides, *roll)
    if start.is_over:
        used, expected = 0, set()
    assert {after(play) for play in plays} == expected
    assert len(plays) == len(expected)
    for play in plays:
        assert len(play.moves) == used
        assert sum(hit for _, _, hit in play.moves) == after(play)[1][25] - sides[1][25]


@settings(max_examples=60, deadline=None)
@given(any_positions(), st.sampled_from(ROLLS))
def test_notation_reads_back(sides, roll):
    """What a play is called names it and no other, in any order of its words."""
    start = as_position(sides)
    plays = legal_plays(start, roll)[:40]
    assert len({str(play) for play in plays}) == len(plays)
    for play in plays:
        assert parse_play(start, roll, str(play)) == play
        assert parse_play(start, roll, " ".join(reversed(str(play).split()))) == play
        one_by_one = " ".join(f"{source}/{target}" for source, target, _ in play.moves)
        assert parse_play(start, roll, one_by_one).position.off == play.position.off


@settings(max_examples=60, deadline=None)
@given(any_positions(), st.sampled_from(ROLLS), st.randoms(use_true_random=False))
def test_r25_r26_turns_keep_their_dice_and_undo(sides, roll, random):
    """R25, R26: each step leaves the other dice as they were, and undoing it restores all."""
    start = as_position(sides)
    expected = {after(play) for play in legal_plays(start, roll)} or {sides}
    turn = Turn(start, roll)
    states = []
    while not turn.done:
        states.append((turn.position, turn.remaining))
        dice, before = list(turn.remaining), to_sides(turn.position.board)
        move = random.choice(turn.moves())
        turn.play(move)
        stepped = to_sides(turn.position.board)
        dice_used = [die for die in set(dice) if stepped in one_checker_moves(before, die)]
        assert dice_used
        if turn.remaining:
            assert sorted(turn.remaining) in [
                sorted(dice[: dice.index(die)] + dice[dice.index(die) + 1 :]) for die in dice_used
            ]
    assert to_sides(turn.position.board) in expected
    while states:
        turn.undo()
        assert (turn.position, turn.remaining) == states.pop()
    assert turn.position == start


@pytest.mark.parametrize("text", ["4/off", "4/2/off", "4/2 2/off"])
def test_r13_the_last_checker_may_be_written_in_any_way(text):
    start = Position.from_gnubg_id("AwAAQAAAAAAAAA")
    play = parse_play(start, (6, 2), text)
    assert [play] == legal_plays(start, (6, 2))
    assert play.position.is_over


def test_r13_a_finishing_checker_still_plays_both_dice_if_it_can():
    """With a blot on 2, 4/2*/off plays both dice, and so 4/off without the hit is no play."""
    start = as_position(position({4: 1}, {2: 1}))
    (play,) = legal_plays(start, (6, 2))
    assert play.position.bar == (1, 0)
    turn = Turn(start, (6, 2))
    assert turn.moves() == [(4, 2, True)]


def test_r14_six_off_with_61_is_the_whole_play():
    start = Position.from_gnubg_id("AwAAgAIAAAAAAA")
    assert after(parse_play(start, (6, 1), "6/off")) in kernel_plays(to_sides(start.board), 6, 1)
    for play in legal_plays(start, (6, 1)):
        assert parse_play(start, (6, 1), str(play)) == play


def test_r21_a_held_point_is_named():
    start = Position.from_gnubg_id("HC/wATDg8+AxAA")
    with pytest.raises(IllegalPlay, match="point 12"):
        parse_play(start, (5, 1), "13/12 13/8")


def test_r27_the_mover_comes_nearer_home_whoever_moves():
    """R27: 8/5 6/5 costs either side 4 pips, and then the sides look at each other alike."""
    first = parse_play(Position.start(), (3, 1), "8/5 6/5").position
    assert first.pip_counts == (167, 163)
    second = parse_play(first, (3, 1), "8/5 6/5").position
    assert second.pip_counts == (163, 163)
    assert second == second.swap()
    assert pips(to_sides(second.board)[0]) == 163


FORCED = [
    ("R02 either die but not both", "ABgA8P8DAAABAA", (6, 5), "higher"),
    ("R03 only the smaller die", "wGAAwP8PAAAEAA", (6, 5), "5"),
    ("R07 on the bar", "wzgAAOBz8ABwAA", (6, 5), "bar"),
    ("R09 a dance", "27YBAAB8HnwACA", (6, 6), "bar"),
]


@pytest.mark.parametrize(
    ("name", "position_id", "dice", "word"), FORCED, ids=lambda value: str(value)
)
def test_r28_forced_plays_have_a_reason(name, position_id, dice, word):
    start = Position.from_gnubg_id(position_id)
    assert word in forced_reason(start, dice)
    assert (start.bar[0] > 0) == ("bar" in forced_reason(start, dice))


@pytest.mark.parametrize("dice", [None, (), (1,), (0, 3), (7, 1), (1, 2, 3), ("a", 1)])
def test_r30_no_plays_without_dice(dice):
    """R30: a clear error, since there are no legal plays to speak of before the roll."""
    with pytest.raises(BgrlError, match="dice"):
        legal_plays(Position.start(), dice)


def test_r30_the_side_not_on_roll_is_asked_by_swapping():
    start = Position(to_board(decode_id("wzgAAOBz8ABwAA")))
    assert {after(play) for play in legal_plays(start.swap(), (6, 5))} == plain_plays(
        to_sides(start.swap().board), 6, 5
    )[1]


def test_r32_a_finished_game_has_no_turn():
    """R32: no plays, nothing to do, and no dice left over."""
    start = Position.from_gnubg_id("AwAAQAAAAAAAAA")
    over = legal_plays(start, (6, 2))[0].position.swap()
    assert over.is_over
    assert legal_plays(over, (6, 2)) == []
    turn = Turn(over, (6, 2))
    assert turn.done
    assert turn.remaining == ()
    with pytest.raises(IllegalPlay):
        parse_play(over, (6, 2), "4/off")
