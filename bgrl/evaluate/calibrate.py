"""Setting a level to a wanted strength: how wide its misses must be, found by measuring it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bgrl.errors import BgrlError
from bgrl.evaluate.errors import PR
from bgrl.evaluate.reference import Decision
from bgrl.evaluate.stats import mean_and_error
from bgrl.players.level import LevelPlayer, Misses
from bgrl.progress import progress

# Misses so narrow that the level plays its best, and so wide that it takes any of its first plays.
NARROWEST, WIDEST = 1e-4, 100.0


@dataclass(frozen=True)
class Trial:
    """A scale of misses (``bgrl.players.level.Misses``), and the strength it was measured to
    have, with its standard error."""

    scale: float
    value: float
    error: float


def find_scale(
    measure: Callable[[float], tuple[float, float]],
    wanted: float,
    tolerance: float,
    rising: bool,
    start: float,
    most: int = 12,
) -> list[Trial]:
    """Trials of scales, in order, until one is measured within ``tolerance`` of ``wanted``.

    measure: scale -> (value, standard error); ``rising``: whether the value rises with the scale,
    or falls. It should give all scales the same dice: then the noise that they share doesn't upset
    the search, which brackets the scale and closes in on its logarithm by the Illinois variant of
    false position (Dowell and Jarratt, BIT 11, 1971). The trial nearest to ``wanted`` is the
    answer (:func:`nearest`), after ``most`` trials at the latest. It was chosen for being near, so
    measure it anew with other dice.

    Raises BgrlError if no scale reaches ``wanted``.
    """
    trials: list[Trial] = []

    def beyond(at: float) -> float:
        """How far the trial of a scale, by its logarithm, is beyond what is wanted; below 0 a
        larger scale is needed."""
        scale = math.exp(at)
        trials.append(Trial(scale, *measure(scale)))
        gap = trials[-1].value - wanted
        return gap if rising else -gap

    def done() -> bool:
        return abs(trials[-1].value - wanted) <= tolerance or len(trials) >= most

    at = math.log(min(max(start, NARROWEST), WIDEST))
    gap = beyond(at)
    x, gaps = [at], [gap]
    while not done():
        # Out to the other side of the wanted value, along the line through the last two trials.
        step = math.log(2.0) if gap < 0 else -math.log(2.0)
        if len(x) > 1:
            came = gaps[-2] - gap
            line = (x[-1] - x[-2]) * gap / came if came * gap > 0 else math.inf
            step *= min(max(1.1 * abs(line / step), 0.1), 4.0)
        at = min(max(at + step, math.log(NARROWEST)), math.log(WIDEST))
        if at == x[-1]:
            reached = nearest(trials, wanted)
            raise BgrlError(
                f"misses of any scale leave {wanted:g} out of reach: the nearest is "
                f"{reached.value:.4g}, at a scale of {reached.scale:.4g}"
            )
        gap = beyond(at)
        x.append(at)
        gaps.append(gap)
        if (gap < 0) != (gaps[-2] < 0):
            break
    x, gaps = x[-2:], gaps[-2:]
    last = -1
    while not done():
        at = x[0] - gaps[0] * (x[1] - x[0]) / (gaps[1] - gaps[0])
        gap = beyond(at)
        side = 0 if (gap < 0) == (gaps[0] < 0) else 1
        x[side], gaps[side] = at, gap
        if side == last:
            gaps[1 - side] /= 2
        last = side
    return trials


def nearest(trials: Sequence[Trial], wanted: float) -> Trial:
    """The trial whose value is nearest to ``wanted``."""
    return min(trials, key=lambda trial: abs(trial.value - wanted))


class MissErrors:
    """What a level's misses cost on reference positions, for misses of any rate and scale.

    Exactly: each play's loss times its probability, so the only chance left is in the positions.
    """

    def __init__(self, player: LevelPlayer, decisions: Sequence[Decision], depth: int):
        """Has ``player`` rank all ``decisions``; ``depth`` bounds that of the misses."""
        self._equities = np.full((len(decisions), depth), -np.inf)
        self._losses = np.zeros((len(decisions), depth))
        with progress(len(decisions), player.name, "decisions") as bar:
            for row, decision in enumerate(decisions):
                found = player.searcher.plays(decision.board.copy(), *decision.dice)
                order = found.order()[:depth]
                self._equities[row, : len(order)] = found.equities[order]
                # The first is the style's where there is no miss.
                best = player.choose_by(decision.board.copy(), *decision.dice, 0.0)
                boards = [best, *found.boards[order[1:]]]
                self._losses[row, : len(order)] = [decision.loss(board) for board in boards]
                bar.advance()

    def pr(self, misses: Misses) -> tuple[float, float]:
        """The PR with such misses, and its standard error."""
        weights = misses.weights(self._equities)
        losses = self._losses[:, : misses.depth]
        mean, error = mean_and_error((weights * losses).sum(axis=1) / weights.sum(axis=1))
        return PR * mean, PR * error
