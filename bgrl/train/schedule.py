"""The learning rate as a function of the step."""

import math
from dataclasses import dataclass

from bgrl.errors import BgrlError

KINDS = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class Schedule:
    """Rises linearly over `warmup` steps to `peak`, then follows `kind` to step `total`.

    kind: ``constant``, ``linear``, or ``cosine`` (half a period; Loshchilov and Hutter, SGDR,
    2017). The last two reach `end` at `total` and stay there. Raises BgrlError for an unknown kind
    or numbers out of range.
    """

    peak: float
    total: int
    kind: str = "cosine"
    warmup: int = 0
    end: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BgrlError(f"unknown schedule {self.kind!r}; known are {', '.join(KINDS)}")
        if not (self.peak > 0 and math.isfinite(self.peak)):
            raise BgrlError(f"learning rate {self.peak} is not a positive number")
        if self.total < 1 or not 0 <= self.warmup <= self.total or not 0 <= self.end <= self.peak:
            raise BgrlError(
                f"schedule of {self.total} steps, {self.warmup} of them warm-up, from {self.peak} "
                f"to {self.end}: expected steps >= 1, warm-up within them and 0 <= end <= peak"
            )

    def __call__(self, step: int) -> float:
        """The learning rate of step number `step`, from 0."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        if self.kind == "constant":
            return self.peak
        done = min(1.0, (step - self.warmup) / max(1, self.total - self.warmup))
        left = 1 - done if self.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.end + (self.peak - self.end) * left
