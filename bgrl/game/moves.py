"""One checker, one die: what may be moved, and why not. For people; the kernels are in `plays`."""

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from bgrl.errors import BgrlError
from bgrl.game.board import BAR, HOME, OFF, SLOTS

Dice = tuple[int, int]


class Move(NamedTuple):
    """One checker's move by one die, in the mover's slots; equal to the plain tuple."""

    source: int
    target: int
    hit: bool


def checked_dice(dice: object) -> Dice:
    """``dice`` as two ints of 1 to 6; BgrlError if that is not what it is.

    A set, which holds no doubles, or a dict is no roll.
    """
    if isinstance(dice, Set | Mapping):
        raise BgrlError(f"dice are two numbers from 1 to 6 in an order, not {dice!r}")
    try:
        die1, die2 = (int(die) for die in dice if die == int(die))  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        die1 = die2 = 0
    if not (1 <= die1 <= 6 and 1 <= die2 <= 6):
        raise BgrlError(f"dice are two numbers from 1 to 6, not {dice!r}")
    return die1, die2


def dice_to_play(dice: Dice) -> tuple[int, ...]:
    """The dice of a turn: both, or the same one four times."""
    return dice * 2 if dice[0] == dice[1] else dice


def slot_name(slot: int) -> str:
    """How notation calls a slot: ``bar``, ``off`` or the point's number."""
    return {BAR: "bar", OFF: "off"}.get(slot, str(slot))


def move_error(board: np.ndarray, source: int, die: int) -> str | None:
    """Why the player on roll of ``board`` (int8[2, 26]) may not move from ``source`` by ``die``.

    None if the move is allowed, the other dice left aside.
    """
    mine = board[0]
    if not mine[source] or source == OFF:
        return f"there is no checker on {_place(source)}"
    if mine[BAR] and source != BAR:
        return "a checker on the bar must enter first"
    target = source - die
    if target > OFF:
        if board[1, 25 - target] >= 2:
            return f"point {target} is held by the opponent"
        return None
    if mine[HOME + 1 :].any():
        return f"{slot_name(source)}/off needs every checker in the home board"
    if target < OFF and mine[source + 1 :].any():
        highest = int(np.flatnonzero(mine)[-1])
        return (
            f"the checker on point {highest} must be moved before a {die} bears off from {source}"
        )
    return None


def play_move(board: np.ndarray, source: int, die: int) -> Move:
    """Move a checker on ``board`` (int8[2, 26], changed in place). The move must be allowed."""
    target = max(source - die, OFF)
    hit = target > OFF and board[1, 25 - target] == 1
    board[0, source] -= 1
    board[0, target] += 1
    if hit:
        board[1, 25 - target] = 0
        board[1, BAR] += 1
    return Move(source, target, bool(hit))


def is_won(board: np.ndarray) -> bool:
    """Whether the player on roll of ``board`` (int8[2, 26]) has no checker left to bear off."""
    return not board[0, 1:].any()


def most_dice(board: np.ndarray, dice: tuple[int, ...]) -> int:
    """How many of ``dice`` can be played on ``board`` (int8[2, 26]), in whatever order.

    A won game counts as all of them: the turn ends, and nothing is left to play.
    """
    if not dice or is_won(board):
        return len(dice)
    best = 0
    for die in sorted(set(dice), reverse=True):
        rest = without(dice, die)
        for source in sources(board, die):
            after = board.copy()
            play_move(after, source, die)
            best = max(best, 1 + most_dice(after, rest))
            if best == len(dice):
                return best
    return best


def sources(board: np.ndarray, die: int) -> list[int]:
    """The slots from which the player on roll may move by ``die``, highest first."""
    return [
        slot
        for slot in range(SLOTS - 1, OFF, -1)
        if board[0, slot] and move_error(board, slot, die) is None
    ]


def without(dice: tuple[int, ...], die: int) -> tuple[int, ...]:
    """``dice`` less one ``die``."""
    at = dice.index(die)
    return dice[:at] + dice[at + 1 :]


def _place(slot: int) -> str:
    return "the bar" if slot == BAR else f"point {slot}"
