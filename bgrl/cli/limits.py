"""What the numbers among the options may be: looked at once, before any work."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from bgrl.errors import BgrlError

# Games, seeds and counts end up in int64 columns and kernels.
MOST = 2**63 - 1


class Limit(NamedTuple):
    """A number is finite, from `least` (or above it) to `most`."""

    least: float = 0
    most: float = MOST
    above: bool = False

    def allows(self, value: float) -> bool:
        """Whether `value` is within the limit."""
        low = self.least < value if self.above else self.least <= value
        return low and value <= self.most and math.isfinite(value)

    def wanted(self, value: float) -> str:
        """What a message says is expected instead of `value`."""
        if self.above:
            return f"a finite number above {self.least}"
        if self.least == -math.inf or (self.most == MOST and not math.isfinite(value)):
            return "a finite number"
        if value < self.least and self.most == MOST:
            return f"at least {self.least}"
        return f"{self.least} to {self.most}"


AT_LEAST_1, POSITIVE, SHARE = Limit(1), Limit(0, above=True), Limit(0, 1)
# By dotted key or, for every section and stage, by its last name; any other number is at least 0.
LIMITS = {
    "anchor_rating": Limit(-math.inf),
    "batch": AT_LEAST_1,
    "checkpoint_every": AT_LEAST_1,
    "count": AT_LEAST_1,
    "epochs": POSITIVE,
    "exact": SHARE,
    # The last game's number is int64, too.
    "first_game": Limit(0, 2**62),
    "generations": AT_LEAST_1,
    "hidden": AT_LEAST_1,
    "lam": SHARE,
    "lr": POSITIVE,
    "miss_depth": AT_LEAST_1,
    "miss_rate": SHARE,
    "passes": POSITIVE,
    "plies": Limit(0, 3),
    "port": Limit(0, 2**16 - 1),
    "positions": AT_LEAST_1,
    "rating": Limit(-math.inf),
    "repetitions": AT_LEAST_1,
    "revive": SHARE,
    "rollout.count": Limit(0),
    "rollout.games": AT_LEAST_1,
    "sample": AT_LEAST_1,
    "scale": POSITIVE,
    "scatter": SHARE,
    "val_percent": Limit(0, 99),
    "window": AT_LEAST_1,
}


def check_limits(stage: str, options: Mapping[str, Any]) -> None:
    """Raise BgrlError that names the first of a stage's options, by dotted key, out of range."""
    for key, value in options.items():
        limit = LIMITS.get(key) or LIMITS.get(key.rpartition(".")[2]) or Limit()
        for number in value if isinstance(value, list) else [value]:
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            if is_number and not limit.allows(number):
                raise BgrlError(f"{stage}: {key} is {value}, expected {limit.wanted(number)}")
