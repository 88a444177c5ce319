"""Statistics of matches: pure functions over arrays of scores.

The unit of observation is the game pair: two games with the same dice and the seats swapped. The
two games of a pair depend on each other, different pairs don't, so every error here is computed
from one number a pair. A pair's score is the mean of its two games, in points a game.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """The mean of independent observations and its standard error.

    values: [N]. The error is s / sqrt(N) with the unbiased sample variance s² (N - 1 below); nan
    for N < 2, and the mean is nan for N = 0.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0:
        return math.nan, math.nan
    if values.size == 1:
        return float(values[0]), math.nan
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def plus_minus(value: float, error: float, digits: int = 4) -> str:
    """A signed value and its standard error as text; "±?" if the error is unknown (nan)."""
    return f"{value:+.{digits}f} {error_text(error, digits)}"


def error_text(error: float, digits: int) -> str:
    """A standard error as text; "±?" if it is unknown (nan)."""
    return "±?" if math.isnan(error) else f"± {error:.{digits}f}"


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap confidence interval of the mean of independent observations.

    values: [N]. Efron & Tibshirani, An Introduction to the Bootstrap (1993), section 13.3.
    Resamples are drawn from `seed`, so that the same data give the same interval.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    # Scores of a match take few distinct values, so draw how often each is seen at once. Distinct
    # values of an adjusted match are many: draw indices in slices that stay in the cache.
    distinct, counts = np.unique(values, return_counts=True)
    if distinct.size <= 64:
        means = rng.multinomial(values.size, counts / values.size, size=resamples) @ distinct
        means = means / values.size
    else:
        means = np.array(
            [values[rng.integers(values.size, size=values.size)].mean() for _ in range(resamples)]
        )
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def control_variate(
    values: ArrayLike, control: ArrayLike, coefficient: float | None = 1.0
) -> np.ndarray:
    """The values less `coefficient` times a control whose expectation is exactly 0.

    values, control: [N]. The mean of the result estimates the mean of the values without bias for
    every constant coefficient. With None the coefficient is the least-squares one, cov(values,
    control) / var(control), which has the least variance but, being estimated from the same data,
    a bias of order 1/N. Source: Glasserman, Monte Carlo Methods in Financial Engineering (2003),
    section 4.1; for luck in backgammon, Montgomery, "Variance reduction", GammOnLine (2000).
    """
    values = np.asarray(values, dtype=np.float64)
    control = np.asarray(control, dtype=np.float64)
    if coefficient is None:
        variance = control.var()
        if variance == 0:
            return values.copy()
        # The control's mean is known to be 0, but centring it at its sample mean gives the
        # least-squares slope; the adjustment itself uses the known mean.
        coefficient = float(np.mean((values - values.mean()) * (control - control.mean())))
        coefficient /= float(variance)
    return values - coefficient * control


def variance_ratio(plain: ArrayLike, reduced: ArrayLike) -> float:
    """How many times smaller the sample variance of `reduced` is than that of `plain`.

    inf if `reduced` does not vary, nan if either has fewer than 2 values.
    """
    if np.size(plain) < 2 or np.size(reduced) < 2:
        return math.nan
    before = np.asarray(plain, dtype=np.float64).var(ddof=1)
    after = np.asarray(reduced, dtype=np.float64).var(ddof=1)
    return float(before / after) if after > 0 else math.inf


@dataclass(frozen=True)
class Sprt:
    """A sequential probability ratio test between two values of a match's ppg.

    H0: the mean pair score is `ppg0`; H1: it is `ppg1` (> ppg0). The test accepts H1 with
    probability at most about `alpha` when the truth is ppg0 or less, and H0 with probability at
    most about `beta` when it is ppg1 or more. Wald, "Sequential tests of statistical hypotheses",
    Annals of Mathematical Statistics 16 (1945): stop when the log-likelihood ratio leaves
    (log beta, -log alpha), his bounds that hold each error rate by itself.

    Scores have no known distribution, so the ratio is the generalised one in its normal
    approximation (`normal_llr`); its plug-in variance is poor on few pairs, hence `min_pairs`
    before the first verdict.
    """

    ppg0: float
    ppg1: float
    alpha: float = 0.05
    beta: float = 0.05
    min_pairs: int = 100

    def __post_init__(self) -> None:
        if not self.ppg0 < self.ppg1:
            raise ValueError(f"SPRT needs ppg0 < ppg1, not {self.ppg0} and {self.ppg1}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise ValueError(f"SPRT needs 0 < alpha, beta < .5, not {self.alpha} and {self.beta}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 (low) and H1 (high) are accepted."""
        return math.log(self.beta), -math.log(self.alpha)


class SprtRun:
    """A test in progress: pair scores go in one by one, in the order of their numbers."""

    def __init__(self, test: Sprt):
        self.test = test
        self.pairs = 0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, score: float) -> str | None:
        """Count one more pair score; 'H0' or 'H1' once the test has decided."""
        self.pairs += 1
        self._sum += score
        self._squares += score * score
        if self.pairs < self.test.min_pairs:
            return None
        low, high = self.test.bounds
        llr = self.llr
        return "H1" if llr >= high else "H0" if llr <= low else None

    @property
    def llr(self) -> float:
        """The log-likelihood ratio of H1 against H0 so far."""
        if self.pairs == 0:
            return 0.0
        mean = self._sum / self.pairs
        variance = self._squares / self.pairs - mean * mean
        return normal_llr(self.pairs, mean, variance, self.test.ppg0, self.test.ppg1)


def normal_llr(n: int, mean: float, variance: float, mean0: float, mean1: float) -> float:
    """Generalised log-likelihood ratio of mean1 against mean0, in its normal approximation.

    n, mean, variance: of the observations. The ratio of the two greatest likelihoods of a
    distribution with the mean held at mean1 and at mean0 is to leading order
    n (mean1 - mean0) (2 mean - mean0 - mean1) / (2 variance). Van den Bergh, "A practical
    introduction to the GSPRT", for the tests of Stockfish; for the sequential use of generalised
    ratios, Li, Liu and Ying, "Generalized sequential probability ratio test for separate families
    of hypotheses", Sequential Analysis 33 (2014). 0 where all observations are equal.
    """
    if variance < 1e-12:  # rounding leaves about 1e-16 of a variance of 0
        return 0.0
    return n * (mean1 - mean0) * (2 * mean - mean0 - mean1) / (2 * variance)
