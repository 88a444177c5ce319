"""The figures of a benchmark: repeated values, their medians and spread, ratios, and goals."""

from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Series:
    """One quantity, measured several times. name: of what was measured."""

    name: str
    values: list[float]

    @property
    def median(self) -> float:
        return median(self.values)

    def over(self, other: "Series") -> "Series":
        """The ratios of repetitions that were neighbours in time."""
        pairs = zip(self.values, other.values, strict=True)
        return Series(f"{self.name} / {other.name}", [a / b for a, b in pairs])

    def to_json(self) -> dict[str, Any]:
        """Name, median, lowest, highest, and every value."""
        return {
            "name": self.name,
            "median": self.median,
            "low": min(self.values),
            "high": max(self.values),
            "values": self.values,
        }


@dataclass(frozen=True)
class Goal:
    """At least `limit`, or at most. of_ratio: the ratio to the peer is meant, not the figure."""

    limit: float
    of_ratio: bool = False
    at_most: bool = False


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    ours: what was measured of bgrl, or None when it could not be. peer: the same of another engine.
    missing: why ours or the peer is not there, and how to get it. note: what else is to be known.
    """

    name: str
    unit: str
    ours: Series | None
    peer: Series | None = None
    goal: Goal | None = None
    missing: str = ""
    note: str = ""

    @property
    def ratio(self) -> Series | None:
        """Ours over the peer's, by repetition."""
        return self.ours.over(self.peer) if self.ours and self.peer else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal or without what it is about."""
        series = self.ratio if self.goal and self.goal.of_ratio else self.ours
        if self.goal is None or series is None:
            return None
        value = series.median
        return value <= self.goal.limit if self.goal.at_most else value >= self.goal.limit

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        ratio = self.ratio
        goal = self.goal and {
            "limit": self.goal.limit,
            "of": "ratio" if self.goal.of_ratio else "ours",
            "at": "most" if self.goal.at_most else "least",
        }
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours and self.ours.to_json(),
            "peer": self.peer and self.peer.to_json(),
            "ratio": ratio and ratio.to_json(),
            "goal": goal,
            "met": self.met,
            "missing": self.missing,
            "note": self.note,
        }
