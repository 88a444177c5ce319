"""A board as text for the terminal, with the home of the player on roll at the bottom right."""

import numpy as np

from bgrl.game.board import BAR, OFF, POINTS, pip_count

MINE, THEIRS = "X", "O"

_ROWS = 5  # checkers drawn on a point; a higher stack shows its number at its end
_UNICODE = ("┌┬┐", "└┴┘", "─", "│", "·")
_ASCII = ("+++", "+++", "-", "|", ".")


def text_board(
    board: np.ndarray,
    *,
    dice: tuple[int, int] | None = None,
    cube: int | None = None,
    cube_owner: int | None = None,
    ascii_only: bool = False,
) -> str:
    """``board`` (int8[2, 26]) as lines of text; X is the player on roll and moves towards 1.

    ``dice`` are shown beside the board, and so is a ``cube`` of 1 or more: beside its owner (0 the
    player on roll, 1 the opponent) or in the middle. ``ascii_only`` draws the frame without box
    characters.
    """
    top, bottom, dash, wall, mark = _ASCII if ascii_only else _UNICODE
    upper = [_column(board, point, mark) for point in range(13, POINTS + 1)]
    lower = [_column(board, point, mark) for point in range(12, OFF, -1)]
    # A checker on the bar is drawn in the half in which it will enter.
    upper.insert(6, _stack(MINE, int(board[0, BAR]), " "))
    lower.insert(6, _stack(THEIRS, int(board[1, BAR]), " "))

    def row(cells: list[str]) -> str:
        left, right = ("".join(f"{cell:>3}" for cell in half) for half in (cells[:6], cells[7:]))
        return f" {wall}{left} {wall}{cells[6]:^3}{wall}{right} {wall}"

    def frame(corners: str) -> str:
        half = dash * 19
        return f" {corners[0]}{half}{corners[1]}{dash * 3}{corners[1]}{half}{corners[2]}"

    def numbers(points: range) -> str:
        labels = [f"{point:>3}" for point in points]
        return f"  {''.join(labels[:6])}     {''.join(labels[6:])}"

    beside = {0: cube_text(cube, cube_owner, 1), 5: cube_text(cube, cube_owner, None)}
    beside[10] = cube_text(cube, cube_owner, 0)
    if dice is not None:
        beside[5] = f"rolled {dice[0]}-{dice[1]}  {beside[5]}".rstrip()
    cells = [[column[i] for column in upper] for i in range(_ROWS)]
    cells.append([" "] * 6 + ["BAR"] + [" "] * 6)
    cells += [[column[i] for column in lower] for i in reversed(range(_ROWS))]
    lines = [_player(board, 1), numbers(range(13, POINTS + 1)), frame(top)]
    lines += [f"{row(line)} {beside.get(i, '')}".rstrip() for i, line in enumerate(cells)]
    lines += [frame(bottom), numbers(range(12, OFF, -1)), _player(board, 0)]
    return "\n".join(lines)


def cube_text(cube: int | None, owner: int | None, place: int | None) -> str:
    """``[2]`` where ``place`` is the cube's, else nothing."""
    return f"[{cube}]" if cube is not None and owner == place else ""


def _column(board: np.ndarray, point: int, mark: str) -> list[str]:
    mine, theirs = int(board[0, point]), int(board[1, 25 - point])
    return _stack(MINE, mine, mark) if mine else _stack(THEIRS, theirs, mark)


def _stack(checker: str, count: int, mark: str) -> list[str]:
    """What a point shows, from the edge of the board inwards; ``mark`` is an empty point's edge."""
    cells = [checker if i < count else " " for i in range(_ROWS)]
    if count == 0:
        cells[0] = mark
    elif count > _ROWS:
        cells[-1] = str(count)
    return cells


def _player(board: np.ndarray, side: int) -> str:
    pips = int(pip_count(board, side))
    text = f"  {(MINE, THEIRS)[side]}: {pips} {'pip' if pips == 1 else 'pips'}"
    if side == 0:
        text += ", on roll"
    if board[side, OFF]:
        text += f", {int(board[side, OFF])} off"
    return text
