"""Positions for tests: written as counts, or decoded from a GNU Backgammon position ID.

The ID is 14 characters of base64 over 10 bytes. Their bits, lowest of each byte first, hold for the
player not on roll and then for the player on roll: for each point from his ace point to his bar,
one 1 a checker and then a 0 (GNU Backgammon manual, "A technical description of the position ID").
"""

import base64

import numpy as np

from .plain_rules import BAR, OFF, Sides


def side(counts: dict[int | str, int], checkers: int = 15):
    """A side from {point: count}; "bar" is 25. Checkers not listed have been borne off."""
    slots = [0] * 26
    for point, count in counts.items():
        slots[BAR if point == "bar" else int(point)] = count
    slots[OFF] += checkers - sum(slots)
    return tuple(slots)


def facing(counts: dict[int | str, int]) -> dict[int | str, int]:
    """The same checkers on the other side's point numbers."""
    return {p if p == "bar" else 25 - int(p): n for p, n in counts.items()}


def position(mover: dict, opponent_at_movers_points: dict, checkers: int = 15) -> Sides:
    return side(mover, checkers), side(facing(opponent_at_movers_points), checkers)


def decode_id(position_id: str, checkers: int = 15) -> Sides:
    """(mover, opponent) from a GNU Backgammon position ID with the mover on roll."""
    raw = base64.b64decode(position_id + "==")
    bits = [(byte >> k) & 1 for byte in raw for k in range(8)]
    sides, at = [], 0
    for _ in range(2):
        slots = [0] * 26
        for slot in range(1, 26):
            while bits[at]:
                slots[slot] += 1
                at += 1
            at += 1
        slots[OFF] = checkers - sum(slots)
        sides.append(tuple(slots))
    return sides[1], sides[0]


def to_board(sides: Sides) -> np.ndarray:
    """int8[2, 26], the mover in row 0."""
    return np.array(sides, dtype=np.int8)


def to_sides(board: np.ndarray) -> Sides:
    return tuple(int(n) for n in board[0]), tuple(int(n) for n in board[1])
