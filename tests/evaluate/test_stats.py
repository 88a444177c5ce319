import math

import numpy as np
import pytest

from bgrl.evaluate.stats import (
    Sprt,
    SprtRun,
    bootstrap_interval,
    control_variate,
    mean_and_error,
    normal_llr,
    variance_ratio,
)

# Pair scores as duplicate dice give them: many 0s, gammons, now and then a backgammon.
SCORES = np.array([-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
WEIGHTS = np.array([0.002, 0.03, 0.09, 0.02, 0.1, 0.516, 0.1, 0.02, 0.09, 0.03, 0.002])


def scores_with_mean(mean: float) -> np.ndarray:
    """Probabilities of SCORES, tilted exponentially until they have this mean."""
    low, high = -2.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        p = WEIGHTS * np.exp(middle * SCORES)
        p /= p.sum()
        low, high = (middle, high) if p @ SCORES < mean else (low, middle)
    return p


def test_mean_and_error_by_hand():
    assert mean_and_error([1, 2, 3, 6]) == pytest.approx((3, math.sqrt(14 / 3 / 4)))
    assert mean_and_error([5])[0] == 5
    assert math.isnan(mean_and_error([5])[1])
    assert math.isnan(mean_and_error([])[0])


@pytest.mark.parametrize("continuous", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(continuous):
    rng = np.random.default_rng(1)
    covered = {"bootstrap": 0, "normal": 0}
    repetitions = 300
    for i in range(repetitions):
        values = rng.choice(SCORES, size=200, p=scores_with_mean(0.1))
        if continuous:
            values = values + rng.normal(0, 0.3, size=200)
        low, high = bootstrap_interval(values, resamples=500, seed=i)
        covered["bootstrap"] += low <= 0.1 <= high
        mean, error = mean_and_error(values)
        covered["normal"] += abs(mean - 0.1) <= 1.96 * error
    # 95% of 300 is 285, with a standard deviation of 3.8.
    for count in covered.values():
        assert 270 <= count <= 296


def test_a_bootstrap_interval_is_reproducible():
    values = np.random.default_rng(2).normal(size=100)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


@pytest.mark.parametrize(("coefficient", "tolerance"), [(1.0, 4), (0.3, 4), (-2.0, 4), (None, 4)])
def test_a_control_of_mean_zero_keeps_the_mean(coefficient, tolerance):
    rng = np.random.default_rng(4)
    control = rng.normal(size=20_000)
    values = 0.25 + 1.5 * control + rng.normal(0, 0.1, size=20_000)
    mean, error = mean_and_error(control_variate(values, control, coefficient))
    assert abs(mean - 0.25) < tolerance * error


def test_the_fitted_coefficient_takes_the_most_variance_out():
    rng = np.random.default_rng(5)
    control = rng.normal(size=5000)
    values = 1.5 * control + rng.normal(0, 0.1, size=5000)
    fitted = variance_ratio(values, control_variate(values, control, None))
    assert fitted == pytest.approx((1.5**2 + 0.01) / 0.01, rel=0.1)
    for coefficient in (0.0, 1.0, 1.4, 1.6, 2.0):
        assert variance_ratio(values, control_variate(values, control, coefficient)) < fitted


def test_a_constant_control_changes_nothing():
    assert control_variate([1.0, 2.0], [0.0, 0.0], None).tolist() == [1, 2]


def test_the_llr_is_that_of_two_normal_distributions():
    rng = np.random.default_rng(6)
    x = rng.normal(0.03, 1.0, size=400)
    run = SprtRun(Sprt(0.0, 0.1))
    for score in x:
        run.add(score)
    variance = x.var()
    exact = np.sum((x - 0.0) ** 2 - (x - 0.1) ** 2) / (2 * variance)
    assert run.llr == pytest.approx(exact, rel=1e-9)
    assert run.llr == pytest.approx(normal_llr(400, x.mean(), variance, 0.0, 0.1))


def run_test(test: Sprt, scores: np.ndarray) -> tuple[str | None, int]:
    run = SprtRun(test)
    for score in scores:
        verdict = run.add(score)
        if verdict:
            return verdict, run.pairs
    return None, run.pairs


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("truth", [0, 1])
def test_sprt_errs_no_more_often_than_stated(alpha, truth):
    test = Sprt(0.0, 0.3, alpha=alpha, beta=alpha, min_pairs=40)
    rng = np.random.default_rng(7 + truth)
    p = scores_with_mean((test.ppg0, test.ppg1)[truth])
    repetitions = 800
    lengths, wrong = [], 0
    for _ in range(repetitions):
        verdict, length = run_test(test, rng.choice(SCORES, size=4000, p=p))
        assert verdict is not None
        wrong += verdict != f"H{truth}"
        lengths.append(length)
    limit = alpha * repetitions
    # At most alpha, and not so far below it that the test would waste games.
    assert wrong <= limit + 3 * math.sqrt(limit)
    assert wrong >= 0.1 * limit
    fixed = 2 * 0.88**2 * 1.645**2 / 0.3**2 * 2  # pairs that a test of fixed length would need
    if alpha == 0.05:
        assert np.mean(lengths) < fixed


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0, 1])
def test_sprt_error_rates_at_the_gates_settings(truth):
    test = Sprt(0.0, 0.1)
    rng = np.random.default_rng(9 + truth)
    p = scores_with_mean((test.ppg0, test.ppg1)[truth])
    repetitions = 3000
    wrong = sum(
        run_test(test, rng.choice(SCORES, size=12_000, p=p))[0] != f"H{truth}"
        for _ in range(repetitions)
    )
    assert wrong / repetitions <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repetitions)


def test_sprt_decides_nothing_on_equal_scores():
    verdict, pairs = run_test(Sprt(-0.1, 0.1), np.zeros(1000))
    assert verdict is None
    assert pairs == 1000


def test_sprt_refuses_senseless_settings():
    with pytest.raises(ValueError, match="ppg0 < ppg1"):
        Sprt(0.1, 0.0)
    with pytest.raises(ValueError, match="alpha"):
        Sprt(0.0, 0.1, alpha=0.7)
