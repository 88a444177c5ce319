"""The strength that suits a player: a level about as good as the player has lately been."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from bgrl.errors import BgrlError
from bgrl.players.level import Level, Misses

Nets = TypeVar("Nets")
NAME = "adaptive"


def adapt(pr: float, levels: Sequence[tuple[Level, Nets]]) -> tuple[Level, Nets]:
    """The level for a player of such a ``pr``, with its nets; ask once a match.

    pr: 500 times the mean error, in points, over the player's recent decisions with something at
    stake, as in the reference positions: 0.01 points or more between the best play and the worst.
    levels: each with whatever stands for its nets. Those with a measured PR are the points that
    the strength goes through: between two that differ in how wide their misses are and in nothing
    else, the scale goes in a straight line over the PR; between others the nearer one is taken. A
    level that plays its best has misses of scale 0. No level is stronger than the strongest, nor
    weaker than the weakest.

    Raises BgrlError if no level has a measured PR, or for a PR below 0.
    """
    if not pr >= 0:
        raise BgrlError(f"a PR is 0 or more, not {pr}")
    points = sorted(
        (
            (level.measured.pr.value, level, nets)
            for level, nets in levels
            if level.measured and level.measured.pr
        ),
        key=lambda point: point[0],
    )
    if not points:
        raise BgrlError("to adapt to a player takes levels with a measured PR")
    at = bisect_left([value for value, _, _ in points], pr)
    low, strong, strong_nets = points[max(at - 1, 0)]
    high, weak, weak_nets = points[min(at, len(points) - 1)]
    share = (pr - low) / (high - low) if high > low else 0.0
    if _alike(strong, weak):
        scale = _scale(strong) + share * (_scale(weak) - _scale(strong))
        misses = replace(weak.misses, scale=scale) if weak.misses and scale > 0 else None
        return replace(weak, name=NAME, misses=misses, measured=None), weak_nets
    if share < 0.5:
        return replace(strong, name=NAME, measured=None), strong_nets
    return replace(weak, name=NAME, measured=None), weak_nets


def _scale(level: Level) -> float:
    return level.misses.scale if level.misses else 0.0


def _alike(strong: Level, weak: Level) -> bool:
    """Whether two levels of one net differ in the scale of their misses at most."""
    model = strong.misses or weak.misses or Misses(0.0, 1.0)
    one, other = (
        replace(level, name=NAME, misses=replace(level.misses or model, scale=1.0), measured=None)
        for level in (strong, weak)
    )
    nets = [level.measured and level.measured.net for level in (strong, weak)]
    return one == other and nets[0] == nets[1]
