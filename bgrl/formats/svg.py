"""A board as a self-contained SVG picture, for reports, web pages and print.

The player on roll has the light checkers, moves from 24 to 1 and bears off at the bottom right. The
picture uses no ids, scripts, fonts or links, so that any number of them fit into one page.
"""

from html import escape
from math import hypot

import numpy as np

from bgrl.errors import BgrlError
from bgrl.game import Dice, Play, Position
from bgrl.game.board import BAR, OFF, POINTS
from bgrl.game.moves import checked_dice

# Everything is measured in checkers' radii times this.
_R = 26.0
_STEP = 2 * _R + 1  # from one checker of a stack to the next
_WIDE = 58.0  # a point's width
_SHOWN = 5  # checkers drawn in a stack; a higher one shows its number
_FRAME = 34.0
_SIDE = 74.0  # the cube's place on the left and the tray on the right
_BAR = 66.0
_TALL = 2 * _SHOWN * _STEP + 78
_LEFT = _SIDE
_TOP = _FRAME
_WIDTH = 2 * _SIDE + 12 * _WIDE + _BAR
_HEIGHT = _TALL + 2 * _FRAME

_WOOD, _FELT, _POINT_A, _POINT_B = "#4b3426", "#f3ead8", "#d9bd8c", "#a9744f"
_LABEL = "#f3ead8"
_ARROW = "#1668a8"
_HIT = "#c8102e"
# Fill, outline and inner ring of the checkers of the player on roll and of the opponent: they
# differ in brightness, not in hue, so they stay apart in black and white.
_CHECKERS = (("#fffdf7", "#2b2118", "#b9ab95"), ("#2f2b30", "#0f0d10", "#8d868f"))

Spot = tuple[float, float]


def svg_board(
    position: Position,
    *,
    play: Play | None = None,
    dice: Dice | None = None,
    cube: int | None = None,
    cube_owner: int | None = None,
    pip_counts: bool = True,
    title: str | None = None,
) -> str:
    """``position`` as an SVG document, seen by the player on roll.

    ``play`` is drawn as arrows, and its dice are shown unless others are given. ``cube`` is shown
    beside its owner (0 the player on roll, 1 the opponent) or in the middle. ``title`` replaces the
    picture's name for screen readers; a description of the checkers is always included.

    Raises BgrlError if ``dice`` are not two numbers from 1 to 6.
    """
    if cube_owner not in (None, 0, 1):
        raise BgrlError(f"the cube's owner is 0, 1 or None, not {cube_owner!r}")
    if dice is None and play is not None:
        dice = play.dice
    board = position.board
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(_WIDTH)} {_n(_HEIGHT)}" '
        'role="img" font-family="Helvetica, Arial, sans-serif" text-anchor="middle">',
        f"<title>{escape(title or f'Backgammon position {position.gnubg_id}')}</title>",
        f"<desc>{escape(_describe(position, play, dice, cube, cube_owner))}</desc>",
        *_table(),
    ]
    for point in range(1, POINTS + 1):
        for side, count in ((0, board[0, point]), (1, board[1, 25 - point])):
            parts += _stack(side, int(count), [_spot(0, point, i) for i in range(_SHOWN)])
    for side in (0, 1):
        spots = [_spot(side, BAR, i) for i in range(_SHOWN)]
        parts += _stack(side, position.bar[side], spots)
        parts += _tray(side, position.off[side], position.variant.checkers)
        if pip_counts:
            parts.append(_pips(side, position.pip_counts[side]))
    if cube is not None:
        parts += _cube(cube, cube_owner)
    if dice is not None:
        parts += _dice(checked_dice(dice))
    if play is not None:
        parts += _arrows(board, play)
    return "\n".join([*parts, "</svg>", ""])


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _rect(x: float, y: float, w: float, h: float, fill: str, more: str = "") -> str:
    return f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" fill="{fill}"{more}/>'


def _text(x: float, y: float, size: float, fill: str, text: str, weight: str = "bold") -> str:
    # A third of the size below the middle centres capitals and digits in every viewer.
    return (
        f'<text x="{_n(x)}" y="{_n(y + 0.35 * size)}" font-size="{_n(size)}" '
        f'font-weight="{weight}" fill="{fill}">{escape(text)}</text>'
    )


def _column_x(point: int) -> float:
    """The middle of a point of 1 to 24."""
    column = 12 - point if point <= 12 else point - 13  # from the left
    return _LEFT + (column + 0.5) * _WIDE + (_BAR if column >= 6 else 0)


def _spot(side: int, slot: int, index: int) -> Spot:
    """The middle of the ``index``-th checker of ``side`` on a slot; points are the roller's."""
    if slot == OFF:
        # Arrows to the tray end apart from each other.
        depth = 60.0 + 28 * (index % 4)
        return _WIDTH - _SIDE / 2, _TOP + _TALL - depth if side == 0 else _TOP + depth
    index = min(index, _SHOWN - 1)
    if slot == BAR:
        # In the half in which the checker will enter, growing from the middle outwards.
        away = 62 + index * (_STEP - 8)
        middle = _TOP + _TALL / 2
        return _LEFT + 6 * _WIDE + _BAR / 2, middle - away if side == 0 else middle + away
    depth = _R + 2 + index * _STEP
    return _column_x(slot), _TOP + depth if slot > 12 else _TOP + _TALL - depth


def _table() -> list[str]:
    parts = [
        _rect(0, 0, _WIDTH, _HEIGHT, _WOOD, ' rx="10"'),
        _rect(_LEFT, _TOP, 6 * _WIDE, _TALL, _FELT),
        _rect(_LEFT + 6 * _WIDE + _BAR, _TOP, 6 * _WIDE, _TALL, _FELT),
    ]
    length = _SHOWN * _STEP - 6
    for point in range(1, POINTS + 1):
        x, upper = _column_x(point), point > 12
        base = _TOP if upper else _TOP + _TALL
        tip = base + length if upper else base - length
        fill = _POINT_A if point % 2 else _POINT_B
        left, right = x - _WIDE / 2 + 1, x + _WIDE / 2 - 1
        parts.append(
            f'<polygon points="{_n(left)},{_n(base)} {_n(right)},{_n(base)} {_n(x)},{_n(tip)}" '
            f'fill="{fill}"/>'
        )
        edge = _TOP / 2 if upper else _HEIGHT - _TOP / 2
        parts.append(_text(x, edge, 19, _LABEL, str(point), "normal"))
    for upper in (True, False):
        height = _TALL / 2 - 60
        y = _TOP if upper else _TOP + _TALL - height
        parts.append(_rect(_WIDTH - _SIDE + 10, y, _SIDE - 20, height, "#38261b", ' rx="4"'))
    return parts


def _checker(side: int, spot: Spot) -> str:
    fill, outline, ring = _CHECKERS[side]
    x, y = map(_n, spot)
    return (
        f'<circle cx="{x}" cy="{y}" r="{_n(_R)}" fill="{fill}" stroke="{outline}" '
        f'stroke-width="2"/><circle cx="{x}" cy="{y}" r="{_n(_R * 0.68)}" fill="none" '
        f'stroke="{ring}" stroke-width="2"/>'
    )


def _stack(side: int, count: int, spots: list[Spot]) -> list[str]:
    shown = spots[: min(count, len(spots))]
    parts = [_checker(side, spot) for spot in shown]
    if count > len(shown):
        parts.append(_text(*shown[-1], 24, _CHECKERS[1 - side][0], str(count)))
    return parts


def _tray(side: int, count: int, checkers: int) -> list[str]:
    """The checkers borne off, edge on."""
    fill, _, ring = _CHECKERS[side]
    height = min(15.0, (_TALL / 2 - 72) / checkers)
    parts = []
    for i in range(count):
        y = _TOP + _TALL - 4 - (i + 1) * height if side == 0 else _TOP + 4 + i * height
        more = f' rx="2" stroke="{ring}"'
        parts.append(_rect(_WIDTH - _SIDE + 14, y, _SIDE - 28, height - 2, fill, more))
    if count:
        reach = count * height + 18
        y = _TOP + _TALL - reach if side == 0 else _TOP + reach
        parts.append(_text(_WIDTH - _SIDE / 2, y, 20, _LABEL, str(count)))
    return parts


def _pips(side: int, pips: int) -> str:
    y = _HEIGHT - _TOP / 2 if side == 0 else _TOP / 2
    return _text(_LEFT + 6 * _WIDE + _BAR / 2, y, 19, _LABEL, str(pips))


def _cube(cube: int, owner: int | None) -> list[str]:
    size = 48.0
    x = _LEFT / 2
    middle = _TOP + _TALL / 2
    y = {None: middle, 0: _TOP + _TALL - size / 2 - 6, 1: _TOP + size / 2 + 6}[owner]
    text = str(cube)
    return [
        _rect(
            x - size / 2,
            y - size / 2,
            size,
            size,
            "#ffffff",
            ' rx="7" stroke="#111" stroke-width="2"',
        ),
        _text(x, y, 26 if len(text) < 3 else 64 / len(text), "#111", text),
    ]


_PIPS: dict[int, list[tuple[int, int]]] = {
    1: [(0, 0)],
    2: [(-1, -1), (1, 1)],
    3: [(-1, -1), (0, 0), (1, 1)],
    4: [(-1, -1), (-1, 1), (1, -1), (1, 1)],
    5: [(-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)],
    6: [(-1, -1), (-1, 0), (-1, 1), (1, -1), (1, 0), (1, 1)],
}


def _dice(dice: Dice) -> list[str]:
    """The roll in the right half, in the colours of the player on roll."""
    fill, outline, _ = _CHECKERS[0]
    size, gap = 46.0, 14.0
    y = _TOP + _TALL / 2
    middle = _LEFT + 9 * _WIDE + _BAR
    parts = []
    for die, x in zip(dice, (middle - (size + gap) / 2, middle + (size + gap) / 2), strict=True):
        more = f' rx="9" stroke="{outline}" stroke-width="2"'
        parts.append(_rect(x - size / 2, y - size / 2, size, size, fill, more))
        for dx, dy in _PIPS[die]:
            at = f'cx="{_n(x + dx * 12.5)}" cy="{_n(y + dy * 12.5)}"'
            parts.append(f'<circle {at} r="4.6" fill="{outline}"/>')
    return parts


def _arrows(board: np.ndarray, play: Play) -> list[str]:
    """One arrow a move, from where the checker stands to where it comes to stand."""
    counts = board[0].astype(int)
    parts = []
    for source, target, hit in play.moves:
        start = _spot(0, source, counts[source] - 1)
        end = _spot(0, target, counts[target])
        counts[source] -= 1
        counts[target] += 1
        if hit:
            x, y = map(_n, end)
            parts.append(
                f'<circle cx="{x}" cy="{y}" r="{_n(_R + 3)}" fill="none" stroke="{_HIT}" '
                'stroke-width="5"/>'
            )
        parts += _arrow(start, end)
    return parts


def _arrow(start: Spot, end: Spot) -> list[str]:
    length = hypot(end[0] - start[0], end[1] - start[1])
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    head, half = 22.0, 12.0
    neck = (end[0] - ux * head, end[1] - uy * head)
    corners = [
        end,
        (neck[0] - uy * half, neck[1] + ux * half),
        (neck[0] + uy * half, neck[1] - ux * half),
    ]
    points = " ".join(f"{_n(x)},{_n(y)}" for x, y in corners)
    line = f'x1="{_n(start[0])}" y1="{_n(start[1])}" x2="{_n(neck[0])}" y2="{_n(neck[1])}"'
    edge = 'stroke="#ffffff" stroke-linejoin="round"'  # keeps arrows visible on dark checkers
    return [
        f'<line {line} stroke="#ffffff" stroke-width="11" stroke-linecap="round"/>',
        f'<polygon points="{points}" fill="{_ARROW}" {edge} stroke-width="5"/>',
        f'<line {line} stroke="{_ARROW}" stroke-width="7" stroke-linecap="round"/>',
        f'<polygon points="{points}" fill="{_ARROW}"/>',
    ]


def _describe(
    position: Position,
    play: Play | None,
    dice: Dice | None,
    cube: int | None,
    cube_owner: int | None,
) -> str:
    """The picture in words, each side's points as its owner counts them."""
    names = ("Player on roll (light)", "Opponent (dark)")
    sentences = []
    for side, name in enumerate(names):
        row = position.board[side]
        places = [f"{int(row[p])} on {p}" for p in range(POINTS, OFF, -1) if row[p]]
        if row[BAR]:
            places.insert(0, f"{int(row[BAR])} on the bar")
        if row[OFF]:
            places.append(f"{int(row[OFF])} off")
        sentences.append(f"{name}: {', '.join(places)}; {position.pip_counts[side]} pips.")
    if cube is not None:
        owner = {None: "in the middle", 0: "player on roll's", 1: "opponent's"}[cube_owner]
        sentences.append(f"Cube at {cube}, {owner}.")
    if dice is not None:
        sentences.append(f"Roll {dice[0]}-{dice[1]}.")
    if play is not None:
        sentences.append(f"Play {play}.")
    return " ".join(sentences)
