"""XGID, eXtreme Gammon's text form of a position with its cube, dice and score.

``XGID=`` and ten fields with colons between them: 26 characters of board, log2 of the cube, its
owner, the turn, the dice, the scores of the bottom and the top player, Crawford or Jacoby and
beavers, the match length, log2 of the cube's limit. The board does not turn with the turn: capitals
are always the bottom player's, whose points are counted from 1 to 24; the first character is the
top player's bar and the last one the bottom player's. Source: eXtreme Gammon's help, "XGID".
"""

import re

import numpy as np

from bgrl.errors import InvalidPosition
from bgrl.formats.match_state import MatchState, Offer
from bgrl.game import BACKGAMMON, Position, Variant
from bgrl.game.board import BAR, OFF, SLOTS, empty_board

_PREFIX = "XGID="
_FIELDS = (
    "board",
    "cube",
    "cube owner",
    "turn",
    "dice",
    "bottom player's score",
    "top player's score",
    "Crawford/Jacoby",
    "match length",
    "cube limit",
)
TOP, BOTTOM = 0, 1  # seats
_SEAT_OF_TURN = {1: BOTTOM, -1: TOP}
_TURN_OF_SEAT = {BOTTOM: 1, TOP: -1}
_OFFERS: dict[str, Offer] = {"D": "double", "B": "beaver", "R": "raccoon"}
_LARGEST_LOG2 = 30


def split_xgid(text: str) -> tuple[str, str]:
    """The XGID that ``text`` starts with, and all the text after it, untouched.

    Only a leading XGID is the position: one further on belongs to a comment. Raises
    InvalidPosition if the text does not start with one.
    """
    match = re.match(r"\s*(\S+)", text)
    if match is None or match[1].count(":") == 0:
        start = text.strip().split("\n", 1)[0][:40]
        raise InvalidPosition(f"no XGID at the start of {start!r}")
    return match[1], text[match.end() :]


def parse_xgid(text: str, variant: Variant = BACKGAMMON) -> tuple[Position, MatchState]:
    """The position, seen by the player on roll, and the state of the XGID at the start of ``text``.

    ``XGID=`` may be missing. What follows the XGID after a blank is ignored; see `split_xgid`.
    With ``D`` for dice the player whose turn it is has doubled, and the opponent is to take or
    pass. Raises InvalidPosition, naming the field, if it is malformed or impossible.
    """
    xgid, _ = split_xgid(text)
    fields = xgid.removeprefix(_PREFIX).split(":")
    try:
        if len(fields) != len(_FIELDS):
            raise InvalidPosition(f"{len(fields)} fields, not {len(_FIELDS)}")
        named = dict(zip(_FIELDS, fields, strict=True))
        state = _state(named)
        bottom_view = _board(named["board"], variant)
        board = bottom_view if state.on_roll == BOTTOM else bottom_view[::-1]
        return Position(board, variant), state
    except InvalidPosition as error:
        raise InvalidPosition(f"XGID {xgid!r}: {error}") from None


def format_xgid(position: Position, state: MatchState) -> str:
    """The XGID, with its prefix, of a position seen by the player on roll.

    Raises InvalidPosition for what an XGID cannot hold: a game that is not being played, or a
    resignation.
    """
    if state.status != "playing" or state.resignation:
        raise InvalidPosition("an XGID holds a game being played, without an offer to resign")
    bottom_view = position.board if state.on_roll == BOTTOM else position.board[::-1]
    slots = []
    for slot in range(SLOTS):
        bottom = int(bottom_view[0, slot]) if slot > OFF else 0
        top = int(bottom_view[1, 25 - slot]) if slot < BAR else 0
        letter = chr(ord("A") + bottom - 1) if bottom else chr(ord("a") + top - 1)
        slots.append(letter if bottom or top else "-")
    if state.offer is not None:
        dice = next(letter for letter, offer in _OFFERS.items() if offer == state.offer)
    else:
        dice = "{}{}".format(*(state.dice or (0, 0)))
    rules = int(state.crawford) if state.length else state.jacoby + 2 * state.beavers
    fields = (
        "".join(slots),
        state.cube.bit_length() - 1,
        0 if state.cube_owner is None else _TURN_OF_SEAT[state.cube_owner],
        _TURN_OF_SEAT[state.on_roll],
        dice,
        state.score[BOTTOM],
        state.score[TOP],
        rules,
        state.length,
        state.cube_limit.bit_length() - 1,
    )
    return _PREFIX + ":".join(map(str, fields))


def _board(letters: str, variant: Variant) -> np.ndarray:
    """int64[2, 26], the bottom player in row 0."""
    if len(letters) != SLOTS:
        raise InvalidPosition(f"board of {len(letters)} characters, not {SLOTS}")
    board = empty_board().astype(np.int64)
    for slot, letter in enumerate(letters):
        if "A" <= letter <= "Z" and slot > OFF:
            board[0, slot] = ord(letter) - ord("A") + 1
        elif "a" <= letter <= "z" and slot < BAR:
            board[1, 25 - slot] = ord(letter) - ord("a") + 1
        elif letter in "-":
            continue
        elif letter.isascii() and letter.isalpha():
            whose = "top" if slot == OFF else "bottom"
            raise InvalidPosition(f"{letter!r} on the {whose} player's bar is the other player's")
        else:
            raise InvalidPosition(f"board character {letter!r} at position {slot + 1}")
    board[:, OFF] = np.maximum(0, variant.checkers - board.sum(axis=1))
    return board


def _state(named: dict[str, str]) -> MatchState:
    def number(name: str, lowest: int, highest: int) -> int:
        text = named[name]
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
            raise InvalidPosition(f"{name} {text!r} is not a number from {lowest} to {highest}")
        return int(text)

    turn = number("turn", -1, 1)
    if turn == 0:
        raise InvalidPosition("turn is 1 or -1, not 0")
    owner = number("cube owner", -1, 1)
    length = number("match length", 0, 10**6)
    rules = number("Crawford/Jacoby", 0, 1 if length else 3)
    dice = named["dice"]
    if dice not in _OFFERS and not re.fullmatch("00|[1-6][1-6]", dice):
        raise InvalidPosition(f"dice {dice!r} are not 00, two digits from 1 to 6, D, B or R")
    rolled = dice not in _OFFERS and dice != "00"
    return MatchState(
        on_roll=_SEAT_OF_TURN[turn],
        dice=(int(dice[0]), int(dice[1])) if rolled else None,
        cube=1 << number("cube", 0, _LARGEST_LOG2),
        cube_owner=_SEAT_OF_TURN.get(owner),
        score=(
            number("top player's score", 0, 10**6),
            number("bottom player's score", 0, 10**6),
        ),
        length=length,
        crawford=bool(length and rules),
        jacoby=not length and bool(rules & 1),
        beavers=not length and bool(rules & 2),
        offer=_OFFERS.get(dice),
        cube_limit=1 << number("cube limit", 0, _LARGEST_LOG2),
    )
