import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from bgrl.errors import BgrlError
from bgrl.evaluate import PlayerLuck, luck_evaluator, play_match
from bgrl.evaluate.match import MatchResult
from bgrl.evaluate.ratings import (
    ELO,
    FIBS,
    ONE_POINT,
    cross_table,
    ladder_json,
    one_point,
    rate,
    wins,
)
from bgrl.evaluate.report import Report
from bgrl.game import BACKGAMMON
from bgrl.players import load_player


def match(a, b, outcomes) -> MatchResult:
    outcomes = np.asarray(outcomes, dtype=np.int8).reshape(-1, 2)
    n = len(outcomes)
    return MatchResult(
        a, b, BACKGAMMON, 0, None, np.arange(n), outcomes, np.zeros((n, 2)),
        np.full((n, 2), 50, dtype=np.int32), [], "complete", 1.0,
    )  # fmt: skip


def simulated(rng, strength, pairs, same_dice=0.0, same_seed=False):
    """A round robin of players of known ratings; a pair's games agree with chance `same_dice`, and
    those of a number go alike in all matches with `same_seed`."""
    matches = []
    common = rng.random((2, pairs))
    for a, b in itertools.combinations(strength, 2):
        p = 1 / (1 + 10 ** ((strength[b] - strength[a]) / ELO))
        dice = common if same_seed else rng.random((2, pairs))
        first = dice[0] < p
        # The same dice favour the other player once the seats are swapped.
        second = np.where(rng.random(pairs) < same_dice, ~first, dice[1] < p)
        matches.append(match(a, b, np.where(np.stack([first, second], axis=1), 1, -1)))
    return matches


def test_two_players_have_the_rating_difference_of_their_score():
    won = np.array([1] * 750 + [-1] * 250)
    ratings = rate([match("a", "b", won)], anchor="b", anchor_rating=1500)
    expected = ELO * math.log10((750 + 0.5) / (250 + 0.5))
    assert ratings.players == ("a", "b")
    assert ratings.difference("a", "b")[0] == pytest.approx(expected, abs=1e-6)
    assert ratings.values.tolist() == pytest.approx([1500 + expected, 1500])
    assert ratings.error("b") == 0
    fibs = rate([match("a", "b", won)], anchor="b", scale=FIBS)
    assert fibs.values[0] == pytest.approx(expected * FIBS / ELO)


def test_ratings_find_the_strengths_behind_the_games():
    strength = {"a": 120.0, "b": 40.0, "c": 0.0, "d": -150.0}
    ratings = rate(simulated(np.random.default_rng(1), strength, 4000), anchor="c")
    assert ratings.players == ("a", "b", "c", "d")
    for player, value in zip(ratings.players, ratings.values, strict=True):
        assert abs(value - strength[player]) <= 4 * ratings.error(player)
        assert ratings.error(player) < 4
    assert "a" in str(ratings).splitlines()[0]


@pytest.mark.parametrize("same_dice", [0.0, 0.6])
def test_errors_cover_the_truth_as_often_as_they_say(same_dice):
    rng = np.random.default_rng(2)
    strength = {"a": 0.0, "b": 0.0, "c": 0.0}
    covered, zs, repetitions = 0, [], 300
    for _ in range(repetitions):
        ratings = rate(simulated(rng, strength, 300, same_dice), anchor="c")
        difference, error = ratings.difference("a", "b")
        zs.append(difference / error)
        covered += abs(difference) < 1.96 * error
    assert 270 <= covered <= 297  # 285 ± 3.8 expected
    # Errors that ignored the common dice would make these .63 for same_dice = .6.
    assert 0.88 < np.std(zs) < 1.12


def test_errors_know_that_matches_with_the_same_seed_have_the_same_dice():
    rng = np.random.default_rng(4)
    zs = {"a": [], "b": []}
    for _ in range(300):
        played = simulated(rng, {"a": 0.0, "b": 0.0, "c": 0.0}, 300, same_seed=True)
        ratings = rate(played, anchor="c")
        for player, z in zs.items():
            z.append(ratings.difference(player, "c")[0] / ratings.error(player))
    # In a's matches the games with the same dice add up, and in b's they cancel out: errors that
    # ignored it would make these 1.6 and 0.8.
    assert 0.88 < np.std(zs["a"]) < 1.12
    assert 0.88 < np.std(zs["b"]) < 1.12
    # Of matches with different seeds, no pairs belong together.
    other = [replace(one, seed=seed) for seed, one in enumerate(played)]
    assert rate(other, anchor="c").error("a") < 0.8 * ratings.error("a")


def test_few_pairs_have_the_error_of_a_small_sample():
    """Of one match, it is that of the mean of its pairs, with a game more that tips no scale."""
    for pairs in (2, 3, 40):
        played = match("a", "b", [1, -1, 1, 1] + [1, -1] * (pairs - 2))
        ratings = rate([played], anchor="b")
        p = 1 / (1 + 10 ** (-ratings.values[0] / ELO))
        information = (2 * pairs + 1) * p * (1 - p)
        sums = wins(played).sum(axis=1) - 2 * p
        variance = pairs / (pairs - 1) * (sums**2).sum() / information**2
        unit = ELO / math.log(10)
        assert ratings.error("a") == pytest.approx(unit * math.sqrt(variance), rel=1e-9)
    one = rate([match("a", "b", [1, 1])], anchor="b")
    assert math.isnan(one.error("a"))
    assert math.isnan(one.difference("a", "b")[1])
    assert one.error("b") == 0
    assert [line.split()[2:] for line in str(one).splitlines()] == [["±?"], ["±", "0.0"]]


@pytest.mark.parametrize("luck", [-0.5, 2.5])
def test_luck_beyond_all_games_still_leaves_ratings(luck):
    played = match("a", "b", np.ones(40))
    played = replace(played, variant=one_point(BACKGAMMON), luck=np.full((20, 2), luck))
    assert not 0 <= wins(played).mean() <= 1
    ratings = rate([played], anchor="b")
    expected = math.copysign(ELO * math.log10(40.5 / 0.5), -luck)
    assert ratings.difference("a", "b")[0] == pytest.approx(expected, abs=1e-6)


def test_luck_taken_off_leaves_the_rating_and_lowers_its_error():
    """Luck of expectation 0 that explains most of each game, in games that count one point."""
    rng = np.random.default_rng(3)
    p, pairs = 0.6, 200
    truth = ELO * math.log10(p / (1 - p))
    zs, errors = [], {"luck": [], "none": []}
    for _ in range(200):
        won = rng.random((pairs, 2)) < p
        luck = np.where(won, 1, -1) - (2 * p - 1) + rng.normal(0, 0.2, (pairs, 2))
        played = match("a", "b", np.where(won, rng.integers(1, 4, (pairs, 2)), -1))
        adjusted = replace(played, variant=one_point(BACKGAMMON), luck=luck)
        for name, one in (("luck", adjusted), ("none", replace(adjusted, luck=0 * luck))):
            ratings = rate([one], anchor="b")
            errors[name].append(ratings.error("a"))
            if name == "luck":
                zs.append((ratings.values[0] - truth) / ratings.error("a"))
    assert np.mean(errors["luck"]) < np.mean(errors["none"]) / 3
    assert abs(np.mean(zs)) < 0.35
    assert 0.85 < np.std(zs) < 1.15
    # Luck in points says nothing about wins.
    assert np.array_equal(wins(replace(played, luck=luck)), won)


def test_the_luck_of_played_games_to_one_point():
    """Luck in wins, of whichever path plays: it leaves the share of wins, with a smaller error."""
    hard, variant = load_player("hard"), one_point(BACKGAMMON)
    fast = play_match(
        hard, load_player("pubeval"), 60, 1,
        variant=variant, luck=luck_evaluator(hard, ONE_POINT),
    )  # fmt: skip
    won = (fast.outcomes > 0).mean(axis=1)
    adjusted = wins(fast).mean(axis=1)
    error = np.std(won - adjusted) / math.sqrt(len(won))
    assert abs(won.mean() - adjusted.mean()) < 4 * error
    assert adjusted.std() < 0.6 * won.std()
    assert "(1, 1, 1)" in fast.luck_by
    judge = PlayerLuck(hard, ONE_POINT)
    board = BACKGAMMON.start_board()
    assert luck_evaluator(hard, ONE_POINT).roll_values(board) == pytest.approx(
        judge.roll_values(board), abs=1e-5
    )
    assert abs(judge.roll_values(board)).max() <= 1


def test_a_player_who_wins_everything_has_a_finite_rating():
    ratings = rate([match("a", "b", [1] * 100)], anchor="b")
    assert 500 < ratings.values[0] < 2000


def test_players_far_apart_are_rated_through_one_between():
    far = np.array([1] * 999 + [-1])
    matches = [match("top", "middle", far), match("middle", "bottom", far)]
    ratings = rate(matches, anchor="middle")
    expected = ELO * math.log10(999.5 / 1.5)
    assert ratings.values.tolist() == pytest.approx([expected, 0, -expected], abs=1e-5)


def test_ratings_need_an_anchor_that_everyone_is_connected_to():
    matches = [match("a", "b", [1, -1]), match("c", "d", [1, -1])]
    with pytest.raises(BgrlError, match="anchor 'e' played no match; players are a, b, c, d"):
        rate(matches, anchor="e")
    with pytest.raises(BgrlError, match="no matches connect c, d with the anchor a"):
        rate(matches, anchor="a")


@pytest.mark.parametrize("scale", [0, -400, math.nan, math.inf])
def test_a_scale_that_rates_nobody_is_refused(scale):
    with pytest.raises(BgrlError, match=f"scale is {scale}, expected more than 0"):
        rate([match("a", "b", [1, -1])], anchor="a", scale=scale)


@pytest.mark.parametrize("rating", [math.nan, math.inf, -math.inf])
def test_an_anchor_needs_a_finite_rating(rating):
    with pytest.raises(BgrlError, match=f"anchor's rating is {rating}, expected a finite number"):
        rate([match("a", "b", [1, -1])], anchor="a", anchor_rating=rating)


def test_a_ladder_of_single_pairs_has_a_report_without_their_errors(tmp_path):
    matches = [match("a", "b", [1, 2]), match("b", "c", [1, -1]), match("c", "a", [])]
    ladder = ladder_json(rate(matches, anchor="b"), matches)
    json.dumps(ladder, allow_nan=False)
    found = {(entry["a"], entry["b"]): entry for entry in ladder["cross_table"]}
    assert found["a", "b"]["ppg"] == 1.5
    assert found["a", "b"]["standard_error"] is None
    assert found["c", "a"]["ppg"] is None
    assert ladder["covariance"][0][0] is None
    report = Report("Ladder")
    report.add_ladder(ladder)
    report.add_matches([match.to_json() for match in matches])
    text = report.write(tmp_path).read_text()
    assert "<td>+1.500 ±?</td>" in text
    assert f"<td>{ladder['ratings'][0]:.0f} ±?</td>" in text


def test_the_cross_table_has_both_views():
    table = cross_table([match("a", "b", [1, 2, 1, 1])], ["a", "b"])
    assert table["a", "b"][0] == 1.25
    assert table["b", "a"] == (-1.25, table["a", "b"][1], 4)
    assert ("a", "a") not in table
