"""Two runs with different seeds agree within the errors that they state, 19 times of 20."""

import numpy as np
import pytest
from scipy import stats

from bgrl.evaluate import luck_evaluator, play_match
from bgrl.evaluate.errors import ALL, Answer, Measurement
from bgrl.evaluate.ratings import rate
from bgrl.evaluate.reference import Reference
from bgrl.evaluate.rollout import roll_out
from bgrl.evaluate.stats import mean_and_error
from bgrl.game import BACKGAMMON
from bgrl.players import load_player

Figure = tuple[float, float]  # an estimate and the standard error that it states


def assert_agree(runs: list[Figure], degrees: int) -> None:
    """Figures of independent runs agree in pairs as often as their stated errors promise.

    degrees: of freedom of each stated error. Fails a correct estimate once in a thousand seeds;
    errors that are a quarter too small or too large it finds at 100 repetitions.
    """
    first, second = np.array(runs[0::2]), np.array(runs[1::2])
    z = (first[:, 0] - second[:, 0]) / np.hypot(first[:, 1], second[:, 1])
    t = stats.t(2 * degrees)
    agree = int((np.abs(z) <= t.ppf(0.975)).sum())
    least, most = stats.binom.ppf([0.0005, 0.9995], len(z), 0.95)
    assert least <= agree <= most, f"{agree} of {len(z)} repetitions agree"
    squares = (stats.norm.ppf(t.cdf(z)) ** 2).sum()
    low, high = stats.chi2.ppf([0.0005, 0.9995], len(z))
    assert low <= squares <= high, f"chi-square {squares:.0f} of {len(z)} repetitions"


def test_the_check_finds_wrong_errors():
    rng = np.random.default_rng(1)
    right = [(float(x), 1.0) for x in rng.normal(size=200)]
    assert_agree(right, degrees=10_000)
    for factor in (0.7, 1.4):
        with pytest.raises(AssertionError):
            assert_agree([(x, factor * error) for x, error in right], degrees=10_000)


def test_raw_matches_and_ratings_of_two_seeds_agree():
    pairs, repetitions = 40, 100
    pubeval, random = load_player("pubeval"), load_player("random")
    net = load_player("hard")
    results = [play_match(net, pubeval, pairs, seed=seed) for seed in range(2 * repetitions)]
    assert_agree([(r.ppg, r.standard_error) for r in results], pairs - 1)
    ratings = [rate([result], anchor="pubeval") for result in results]
    assert_agree([r.difference("hard", "pubeval") for r in ratings], pairs - 1)
    rates = [mean_and_error((r.outcomes >= 2).mean(axis=1)) for r in results]
    assert_agree(rates, pairs - 1)
    # Gross mismatches have quite another distribution of scores.
    results = [play_match(pubeval, random, pairs, seed=seed) for seed in range(60)]
    assert_agree([(r.ppg, r.standard_error) for r in results], pairs - 1)


@pytest.mark.slow
def test_luck_adjusted_matches_of_two_seeds_agree():
    pairs, repetitions = 40, 100
    net, pubeval = load_player("hard"), load_player("pubeval")
    luck = luck_evaluator(net)
    results = [
        play_match(net, pubeval, pairs, seed=seed, luck=luck) for seed in range(2 * repetitions)
    ]
    assert_agree([(r.ppg, r.standard_error) for r in results], pairs - 1)


def test_errors_measured_on_different_positions_agree():
    """Two sets of decisions are two draws from the same games."""
    player, repetitions, size = load_player("pubeval"), 20, 250
    decisions = Reference.load().decisions
    order = np.random.default_rng(1).permutation(len(decisions))[: 2 * repetitions * size]
    rates = []
    for block in order.reshape(-1, size):
        part = [decisions[i] for i in block]
        plays = [player.choose(d.board.copy(), *d.dice) for d in part]
        answers = [
            Answer(i, d.loss(play), play, None)
            for i, (d, play) in enumerate(zip(part, plays, strict=True))
        ]
        rates.append(Measurement("pubeval", part, answers).rates())
    assert_agree([(rate[ALL].mean, rate[ALL].standard_error) for rate in rates], size - 1)


@pytest.mark.slow
@pytest.mark.parametrize("luck", [None, "hard"])
def test_rollouts_with_other_seeds_agree(luck):
    player = load_player("hard")
    evaluator = luck and luck_evaluator(load_player(luck))
    board = BACKGAMMON.start_board()
    games, repetitions = 40, 40
    runs = [
        mean_and_error(roll_out(player, board, games, seed, evaluator))
        for seed in range(2 * repetitions)
    ]
    assert_agree(runs, games - 1)
