"""What a match state may say, and what contradicts itself."""

import numpy as np
import pytest

from bgrl.errors import InvalidPosition
from bgrl.formats import MatchState, parse_xgid

START = "-b----E-C---eE---c-e----B-"


@pytest.mark.parametrize(
    "dice", [(1, 2, 3), (1,), (), (1.5, 2), (1.0, 2), ("3", "1"), {3, 1}, {3: 1, 1: 3}, "31", 31]
)
def test_dice_are_two_whole_numbers(dice):
    with pytest.raises(InvalidPosition, match="dice are two numbers from 1 to 6"):
        MatchState(dice=dice)


@pytest.mark.parametrize("score", [(0, 0, 0), (0,), (0.5, 1), ("1", "0"), {0, 1}, None, 3])
def test_a_score_is_two_whole_numbers(score):
    with pytest.raises(InvalidPosition, match="score is two whole numbers"):
        MatchState(score=score, length=5)


@pytest.mark.parametrize("name", ["on_roll", "cube", "length", "resignation", "cube_limit"])
@pytest.mark.parametrize("value", [1.5, 1.0, "1", None, (1,)])
def test_the_other_numbers_are_whole_too(name, value):
    with pytest.raises(InvalidPosition, match=f"{name} is a whole number"):
        MatchState(**{name: value})


def test_whole_numbers_of_numpy_are_whole():
    dice, score = np.array([3, 1]), np.array([2, 4])
    state = MatchState(dice=tuple(dice), score=tuple(score), length=5)
    assert state == MatchState(dice=(3, 1), score=(2, 4), length=5)


@pytest.mark.parametrize(("score", "length"), [((6, 6), 7), ((0, 0), 1), ((5, 3), 7), ((0, 0), 0)])
def test_in_the_crawford_game_just_one_player_is_a_point_away(score, length):
    with pytest.raises(InvalidPosition, match="Crawford game needs a player who is 1 point away"):
        MatchState(length=length, score=score, crawford=True)
    assert not MatchState(length=length, score=score).crawford


@pytest.mark.parametrize("score", ["6:6:1:7", "0:0:1:1"])
def test_an_xgid_is_no_crawford_game_with_both_a_point_away(score):
    with pytest.raises(InvalidPosition, match="Crawford game needs"):
        parse_xgid(f"XGID={START}:0:0:1:00:{score}:10")


@pytest.mark.parametrize(("offer", "letter"), [("beaver", "B"), ("raccoon", "R")])
def test_beavers_belong_to_money_play(offer, letter):
    with pytest.raises(InvalidPosition, match=f"a {offer} belongs to money play"):
        MatchState(length=7, offer=offer)
    with pytest.raises(InvalidPosition, match=f"a {offer} belongs to money play"):
        parse_xgid(f"XGID={START}:0:0:1:{letter}:0:0:0:7:10")
    assert MatchState(offer=offer).offer == offer
