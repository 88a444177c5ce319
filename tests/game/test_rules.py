"""Positions that other engines have got wrong, each with every legal final position spelled out."""

from dataclasses import dataclass

import pytest
from oracles.kernels import kernel_plays
from oracles.plain_rules import plain_plays
from oracles.positions import decode_id, position, side


@dataclass(frozen=True)
class Case:
    name: str
    position_id: str
    mover: dict
    opponent: dict  # on the mover's point numbers
    dice: tuple[int, int]
    after: list[dict]  # the mover's checkers after each legal play
    hits: tuple = ()  # for each play, the mover's points on which it hits

    def expected(self):
        hits = self.hits or ((),) * len(self.after)
        finals = set()
        for counts, hit in zip(self.after, hits, strict=True):
            opponent = dict(self.opponent)
            for point in hit:
                opponent[point] -= 1
                opponent["bar"] = opponent.get("bar", 0) + 1
            finals.add(position(counts, opponent))
        return finals


# fmt: off
CASES = [
    Case("R01 both dice although the larger alone plays more ways",
         "8N4ZAAbg/xMAIA", {24: 1, 8: 1, 6: 13}, {4: 2, 16: 2, 18: 3, 19: 4, 20: 4}, (6, 2),
         [{22: 1, 2: 1, 6: 13}]),
    Case("R02 either die but not both: the higher",
         "ABgA8P8DAAABAA", {24: 1, 2: 14}, {13: 2}, (6, 5), [{18: 1, 2: 14}]),
    Case("R03 only the smaller die plays",
         "wGAAwP8PAAAEAA", {24: 1, 2: 14}, {13: 2, 18: 2}, (6, 5), [{19: 1, 2: 14}]),
    Case("R05 a first move that strands the other die is illegal",
         "wDAAwP8HBAAEAA", {24: 1, 9: 1, 2: 13}, {18: 2, 14: 2}, (6, 4),
         [{20: 1, 3: 1, 2: 13}]),
    Case("R07 several on the bar, one open point: no other checker moves",
         "wzgAAOBz8ABwAA", {"bar": 3, 13: 4, 8: 3, 6: 5}, {24: 2, 20: 2, 17: 3}, (6, 5),
         [{"bar": 2, 19: 1, 13: 4, 8: 3, 6: 5}]),
    Case("R09 a closed board: dance",
         "27YBAAB8HnwACA", {"bar": 1, 13: 5, 8: 4, 6: 5},
         {19: 2, 20: 2, 21: 2, 22: 2, 23: 2, 24: 2}, (6, 6), []),
    Case("R10 either number enters but not both: the larger",
         "AAwA8P8DAAACAA", {"bar": 1, 2: 14}, {14: 2}, (6, 5), [{19: 1, 2: 14}]),
    Case("R10 the larger number cannot enter",
         "YDAAwP8PAAAIAA", {"bar": 1, 2: 14}, {14: 2, 19: 2}, (6, 5), [{20: 1, 2: 14}]),
    Case("R11 bearing off goes on when the first die bears nothing off",
         "AwAAEAEAAAAAAA", {5: 1, 2: 1}, {24: 2}, (4, 2), [{1: 1}, {2: 1}]),
    Case("R13 the last checker: every order wins, one final position",
         "AwAAQAAAAAAAAA", {4: 1}, {24: 2}, (6, 2), [{}]),
    Case("R14 the second die bears off from below once the highest has moved",
         "AwAAgAIAAAAAAA", {6: 1, 5: 1}, {24: 2}, (6, 1), [{4: 1}, {5: 1}]),
    Case("R16 bearing off against anchors and a checker on the bar",
         "AADAFrYBAAAAAA", {6: 2, 5: 2, 4: 2}, {"bar": 1, 1: 2, 2: 2}, (5, 4),
         [{6: 2, 5: 1, 4: 1}]),
    Case("R16 blocked by anchors while bearing off",
         "AABgBjkAAAAAAA", {6: 3, 4: 1}, {3: 2, 1: 2}, (3, 3), []),
    Case("R18 the same squares with and without a hit are two plays",
         "ACAA+P8BEAAAAA", {13: 1, 2: 14}, {11: 1}, (3, 2), [{8: 1, 2: 14}] * 2, ((), (11,))),
    Case("R18 hits on either way are two plays, not three",
         "AKAA8P8DIAAAAA", {13: 1, 2: 14}, {11: 1, 10: 1}, (3, 2), [{8: 1, 2: 14}] * 2,
         ((11,), (10,))),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case):
    sides = position(case.mover, case.opponent)
    assert decode_id(case.position_id) == sides, "the row's ID and its counts disagree"
    for dice in (case.dice, case.dice[::-1]):
        plays = kernel_plays(sides, *dice)
        assert set(plays) == case.expected() == plain_plays(sides, *dice)[1]
        assert len(plays) == len(set(plays))


OPENING_COUNTS = {
    "backgammon": (
        "4HPwATDgc/ABMA",
        15,
        "11:42 21:15 22:75 31:16 32:17 33:73 41:14 42:18 43:17 44:52 51:8 52:8 53:9 54:9 55:4 "
        "61:10 62:14 63:14 64:14 65:7 66:11",
    ),
    "nackgammon": ("4Dl4ADbgOXgANg", 15, "31:22 11:70 66:3"),
    "hypergammon": ("AACgAgAAKgAAAA", 3, "31:7 11:7 66:12"),
}


@pytest.mark.parametrize(
    ("variant", "dice", "count"),
    [
        (variant, (int(entry[0]), int(entry[1])), int(entry[3:]))
        for variant, (_, _, table) in OPENING_COUNTS.items()
        for entry in table.split()
    ],
)
def test_opening_counts(variant, dice, count):
    """R23 and S04: the number of distinct plays from each variant's start."""
    position_id, checkers, _ = OPENING_COUNTS[variant]
    sides = decode_id(position_id, checkers)
    assert len(kernel_plays(sides, *dice)) == count
    assert len(kernel_plays(sides, *dice[::-1])) == count


def test_opening_counts_sum():
    """R23: 447 plays over the 21 rolls."""
    sides = decode_id("4HPwATDgc/ABMA")
    rolls = [(a, b) for a in range(1, 7) for b in range(1, a + 1)]
    assert sum(len(kernel_plays(sides, *roll)) for roll in rolls) == 447


def test_r21_held_point_is_no_landing_place():
    """R21: 11 plays; 13/12 is impossible, since the opponent holds 12."""
    sides = decode_id("HC/wATDg8+AxAA")
    plays = kernel_plays(sides, 5, 1)
    assert len(plays) == 11
    assert sides[1][25 - 12] >= 2
    assert all(after[0][12] == sides[0][12] for after in plays)


def test_r09_both_sides_may_dance_for_many_plies():
    """R09: nobody can enter, so turns pass and the board never changes."""
    closed = dict.fromkeys(range(1, 7), 2)
    both_shut_out = (side({**closed, "bar": 3}), side({**closed, "bar": 3}))
    sides = both_shut_out
    for ply in range(100):
        assert kernel_plays(sides, 1 + ply % 6, 1 + ply % 5) == []
        sides = sides[::-1]
    assert sides == both_shut_out
