"""Ratings from a round robin, by the Bradley–Terry model."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bgrl.errors import BgrlError
from bgrl.evaluate.match import MatchResult
from bgrl.evaluate.stats import error_text
from bgrl.game import Variant
from bgrl.players import Player

# Points between players of whom one wins ten games of eleven. ELO is chess's; FIBS, for matches
# to n points, is 2000 / √n (First Internet Backgammon Server, "Rating formula"), here n = 1.
ELO = 400.0
FIBS = 2000.0

# A rating is about who wins: a game counts one point, as in a match to one point.
ONE_POINT = (1, 1, 1)

# Won by half for either side of each pairing, so that a player who wins every game of a pairing
# has a finite rating. One such game among the hundreds of a match moves nothing that matters.
PRIOR_GAMES = 1.0


@dataclass(frozen=True)
class Ratings:
    """Players' ratings, best first, and their covariance.

    players: N names; values: float64[N] on a scale of `scale` points; covariance: float64[N, N],
    with zeros for the anchor, whose rating is given and not estimated, and nan where it is unknown.
    """

    players: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    anchor: str
    scale: float

    def error(self, player: str) -> float:
        """Standard error of a rating, against the anchor; nan if it is unknown."""
        i = self.players.index(player)
        return math.sqrt(self.covariance[i, i])

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """How much higher a is rated than b, and the standard error of that."""
        i, j = self.players.index(a), self.players.index(b)
        variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        # Rounding may leave less than nothing; nan stays nan.
        return float(self.values[i] - self.values[j]), math.sqrt(np.maximum(0.0, variance))

    def to_json(self) -> dict[str, Any]:
        """The ratings as plain data; null for what is unknown."""
        return {
            "anchor": self.anchor,
            "scale": self.scale,
            "players": list(self.players),
            "ratings": self.values.tolist(),
            "covariance": [[_known(value) for value in row] for row in self.covariance.tolist()],
        }

    def __str__(self) -> str:
        width = max(len(player) for player in self.players)
        return "\n".join(
            f"{player:{width}} {value:8.1f} {error_text(self.error(player), 1)}"
            for player, value in zip(self.players, self.values, strict=True)
        )


def one_point(variant: Variant) -> Variant:
    """The variant's games as matches to one point; who plays them need not know."""
    return replace(variant, name=f"{variant.name}, one point", points=ONE_POINT)


def wins(match: MatchResult) -> np.ndarray:
    """float64[N, 2]: 1 for each game that a has won, 0 for each lost; less the luck of the dice,
    where it was measured in games to one point."""
    if match.variant.points == ONE_POINT:
        return (1 + match.points - match.luck) / 2
    return (match.outcomes > 0).astype(np.float64)


def round_robin(
    players: Sequence[Player], play: Callable[[Player, Player], MatchResult]
) -> list[MatchResult]:
    """One match between any two players, as `play` plays it."""
    return [play(a, b) for a, b in itertools.combinations(players, 2)]


def rate(
    matches: Sequence[MatchResult],
    anchor: str,
    anchor_rating: float = 0.0,
    scale: float = ELO,
) -> Ratings:
    """Ratings of all players of `matches` from who won each game, by maximum likelihood.

    A wins a game against B with probability 1 / (1 + 10 ** ((R_B - R_A) / scale)); what the game
    counted doesn't matter. Bradley & Terry, "Rank analysis of incomplete block designs",
    Biometrika 39 (1952). Where luck was measured (see :func:`wins`) it is taken off: the likelihood
    equations, which say that wins equal their expectation, hold as well for wins less a luck of
    expectation 0; a match that this takes past its games, or below 0, counts as all won or lost.

    The covariance is the sandwich estimator: White, "Maximum likelihood estimation of misspecified
    models", Econometrica 50 (1982). Its clusters are the games with the same dice: the two of a
    pair and, in matches with the same seed, those of all pairs with the same number. As in a sample
    variance, squares of a match of n pairs count n / (n - 1) times; after a match of a single pair
    the errors are unknown (nan).

    Raises BgrlError if the anchor played no match, or if players aren't connected to it by matches;
    for a scale that is not positive, or one or an anchor_rating that is not finite.
    """
    if not 0 < scale < math.inf:
        raise BgrlError(f"the ratings' scale is {scale}, expected more than 0")
    if not math.isfinite(anchor_rating):
        raise BgrlError(f"the anchor's rating is {anchor_rating}, expected a finite number")
    names = sorted({name for match in matches for name in (match.a, match.b)})
    if anchor not in names:
        raise BgrlError(f"the anchor {anchor!r} played no match; players are {', '.join(names)}")
    _check_connected(matches, names, anchor)
    index = {name: i for i, name in enumerate(names)}
    played = [match for match in matches if match.games and match.a != match.b]
    design = np.zeros((len(played), len(names)))  # one row a match: +1 for a, -1 for b
    for row, match in enumerate(played):
        design[row, index[match.a]] = 1
        design[row, index[match.b]] = -1
    games = np.array([match.games + PRIOR_GAMES for match in played])
    # Luck taken off may leave more wins than games, which no ratings explain.
    won = np.array([np.clip(wins(match).sum(), 0, match.games) for match in played])
    won += PRIOR_GAMES / 2

    free = [i for i, name in enumerate(names) if name != anchor]
    x = design[:, free]
    theta = np.zeros(len(free))
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ theta)))
        information = x.T @ (x * (games * p * (1 - p))[:, np.newaxis])
        step = np.linalg.solve(information, x.T @ (won - games * p))
        # Newton's step can overshoot where players are far apart.
        theta += step * min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-10:
            break
    p = 1 / (1 + np.exp(-(x @ theta)))
    scores = _cluster_scores(played, p, x)
    meat = scores.T @ scores
    inverse = np.linalg.inv(information)

    unit = scale / math.log(10)
    values = np.full(len(names), float(anchor_rating))
    values[free] += theta * unit
    covariance = np.zeros((len(names), len(names)))
    covariance[np.ix_(free, free)] = inverse @ meat @ inverse * unit**2
    order = np.argsort(-values, kind="stable")
    return Ratings(
        players=tuple(names[i] for i in order),
        values=values[order],
        covariance=covariance[np.ix_(order, order)],
        anchor=anchor,
        scale=scale,
    )


def _cluster_scores(matches: Sequence[MatchResult], p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """float64[clusters, players]: what the games with the same dice add to the likelihood's
    gradient. Of each match, p: its expected share of wins; x: its row of the design."""
    dice, parts = [], []
    for row, match in enumerate(matches):
        n = len(match.pairs)
        residual = wins(match).sum(axis=1) - 2 * p[row]
        residual *= math.sqrt(n / (n - 1)) if n > 1 else math.nan
        dice.append(np.stack([np.full(n, match.seed), match.pairs], axis=1))
        parts.append(np.outer(residual, x[row]))
    keys, cluster = np.unique(np.concatenate(dice), axis=0, return_inverse=True)
    scores = np.zeros((len(keys), x.shape[1]))
    np.add.at(scores, cluster.ravel(), np.concatenate(parts))
    return scores


def _check_connected(matches: Sequence[MatchResult], names: list[str], anchor: str) -> None:
    reached = {anchor}
    while True:
        more = {
            name
            for match in matches
            if match.games and ({match.a, match.b} & reached)
            for name in (match.a, match.b)
        }
        if more <= reached:
            break
        reached |= more
    apart = [name for name in names if name not in reached]
    if apart:
        raise BgrlError(f"no matches connect {', '.join(apart)} with the anchor {anchor}")


def ladder_json(ratings: Ratings, matches: Sequence[MatchResult]) -> dict[str, Any]:
    """The ratings and the cross table as plain data, for a report; null for what is unknown, like
    the error of a single pair of games."""
    return ratings.to_json() | {
        "cross_table": [
            {"a": a, "b": b, "ppg": _known(ppg), "standard_error": _known(error), "games": games}
            for (a, b), (ppg, error, games) in cross_table(matches, ratings.players).items()
        ]
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def cross_table(
    matches: Sequence[MatchResult], players: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float, int]]:
    """(row player, column player) -> the row player's ppg, its standard error and the games."""
    table = {}
    for match in matches:
        table[match.a, match.b] = (match.ppg, match.standard_error, match.games)
        table[match.b, match.a] = (-match.ppg, match.standard_error, match.games)
    return {
        (row, column): table[row, column]
        for row in players
        for column in players
        if (row, column) in table
    }
