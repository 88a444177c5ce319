"""The package's kernels behind the plain types of the oracles."""

import numpy as np

from bgrl.game.board import loss_level
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer

from .plain_rules import Sides
from .positions import to_board, to_sides

_PLAYS = new_play_buffer()


def kernel_rows(sides: Sides, die1: int, die2: int) -> np.ndarray:
    """int8[n, 8]: the plays as (from, to) pairs padded with -1."""
    board = to_board(sides)
    n = generate_plays(board, die1, die2, _PLAYS)
    assert np.array_equal(board, to_board(sides)), "the generator changed the board"
    return _PLAYS[:n].copy()


def kernel_after(sides: Sides, row: np.ndarray) -> Sides:
    """The position after the play, the mover still first."""
    board, after = to_board(sides), np.empty((2, 26), np.int8)
    apply_play(board, row, after)
    assert np.array_equal(board, to_board(sides)), "applying a play changed the board"
    opponent, mover = to_sides(after)
    return mover, opponent


def kernel_plays(sides: Sides, die1: int, die2: int) -> list[Sides]:
    """The position after each play, in the kernel's order, the mover still first."""
    return [kernel_after(sides, row) for row in kernel_rows(sides, die1, die2)]


def kernel_result(sides: Sides) -> int:
    """Points that the mover has just won, 0 while the game goes on."""
    mover, opponent = sides
    return int(loss_level(to_board((opponent, mover))))
