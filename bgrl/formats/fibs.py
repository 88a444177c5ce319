"""FIBS board strings, of the server FIBS and of GNU Backgammon with its external players.

``board:``, two names and 50 numbers with colons between them: the match length, two scores, the 26
slots of the board, whose turn it is, two pairs of dice, the cube, who may double, whether a double
waits for an answer, the colour and direction of the side that the board is seen from, where its
home and bar are, checkers borne off and on the bar, and four flags.

The server names the viewer first, as ``You`` to a player, and so gives the scores and the dice; a
match length of 9999 is unlimited play; a double that waits is the opponent's, and nobody may double
meanwhile; the flag before the last one is 1 after the Crawford game. Source: First Internet
Backgammon Server, "The FIBS client protocol".

The program gnubg 1.07 differs in what it writes and reads: the names and scores are those of the
other side first, unless a double waits; the counts on the bar are always 0, since the board holds
them; both pairs of dice show the same roll; and the last flag, too, is 0 in the Crawford game and 1
in any other.
"""

import re
from typing import Literal

import numpy as np

from bgrl.errors import InvalidPosition
from bgrl.formats.match_state import MatchState
from bgrl.game import BACKGAMMON, Position, Variant
from bgrl.game.board import BAR, OFF, SLOTS, empty_board

_PREFIX = "board:"
# The fields behind the names, and how many numbers each has.
_FIELDS = {
    "match length": 1,
    "score": 2,
    "board": SLOTS,
    "turn": 1,
    "dice": 2,
    "other dice": 2,
    "cube": 1,
    "may double": 2,
    "was doubled": 1,
    "colour": 1,
    "direction": 1,
    "home": 1,
    "bar": 1,
    "off": 2,
    "on the bar": 2,
    "can move": 1,
    "forced": 1,
    "post-Crawford": 1,
    "redoubles": 1,
}
# What a field may hold; the others, but for the board, hold 0 or more.
_VALUES = {
    "turn": (1, -1),
    "may double": (0, 1),
    "was doubled": (0, 1),
    "colour": (1, -1),
    "direction": (1, -1),
    "post-Crawford": (0, 1),
}
_NAMES = 2
_NUMBERS = sum(_FIELDS.values())
_OTHER, VIEWER = 0, 1  # seats: the board is seen from the viewer's side
_YOU = "You"
_UNLIMITED = 9999

Sender = Literal["fibs", "gnubg"]


def parse_fibs(
    text: str, variant: Variant = BACKGAMMON, sender: Sender | None = None
) -> tuple[Position, MatchState]:
    """The position, seen by the player on roll, and the state of a FIBS board string.

    Seat 1 of the state is the side that the board is seen from. Where a double waits for an answer
    the player on roll is the one who offered it.

    sender: whose string it is, since the server FIBS and gnubg put the scores in different order.
    By default it is the server's if it calls the first player ``You`` or is of unlimited play, and
    else gnubg's; for a match that one watches on the server only ``sender`` can tell.

    Raises InvalidPosition, naming the field, if the string is malformed or impossible.
    """
    try:
        names, named = _split(text)
        if sender is None:
            unlimited = named["match length"] == [_UNLIMITED]
            sender = "fibs" if names[0] == _YOU or unlimited else "gnubg"
        state = _state(named, sender)
        viewed = _board(named)
        return Position(viewed if state.on_roll == VIEWER else viewed[::-1], variant), state
    except InvalidPosition as error:
        raise InvalidPosition(f"FIBS board {text.strip()[:400]!r}: {error}") from None


def format_fibs(
    position: Position, state: MatchState, names: tuple[str, str] = ("other", "viewer")
) -> str:
    """The FIBS board string of a position seen by the player on roll, as gnubg writes it.

    names: of seat 0 and of seat 1, from whose side the string shows the board. Raises
    InvalidPosition for what the string cannot hold: a game that is not being played, an offer to
    resign, a beaver, or a name with a colon or blank in it.
    """
    if state.status != "playing" or state.resignation or state.offer not in (None, "double"):
        raise InvalidPosition("a FIBS board holds a game being played, with no offer but a double")
    if not all(re.fullmatch(r"[^\s:]+", name) for name in names):
        raise InvalidPosition(f"a FIBS board's names have no colon or blank in them, not {names}")
    viewed = position.board if state.on_roll == VIEWER else position.board[::-1]
    slots = np.zeros(SLOTS, dtype=np.int64)
    slots[1:] = viewed[0, 1:]
    slots[:BAR] -= viewed[1, :OFF:-1]
    first = _first_named(state.offer is not None)
    dice = state.dice or (0, 0)
    numbers = [
        state.length,
        *(state.score[seat] for seat in (first, 1 - first)),
        *slots.tolist(),
        1 if state.on_roll == VIEWER else -1,
        *dice,
        *dice,
        state.cube,
        *(int(state.cube_owner in (None, seat)) for seat in (VIEWER, _OTHER)),
        int(state.offer is not None),
        *(1, -1, OFF, BAR),
        *(int(viewed[side, OFF]) for side in (0, 1)),
        *(0, 0, 0, 0),
        int(state.post_crawford),
        int(not state.crawford),
    ]
    return _PREFIX + ":".join([names[first], names[1 - first], *map(str, numbers)])


def _first_named(doubled: bool) -> int:
    return VIEWER if doubled else _OTHER


def _split(text: str) -> tuple[list[str], dict[str, list[int]]]:
    """The names, and the numbers of each field."""
    words = text.strip().removeprefix(_PREFIX).split(":")
    if not text.strip().startswith(_PREFIX):
        raise InvalidPosition(f"does not start with {_PREFIX!r}")
    if len(words) != _NAMES + _NUMBERS:
        raise InvalidPosition(f"{len(words)} fields, not {_NAMES + _NUMBERS}")
    named, at = {}, _NAMES
    for name, count in _FIELDS.items():
        chosen = words[at : at + count]
        for word in chosen:
            if not re.fullmatch(r"-?[0-9]{1,9}", word):
                raise InvalidPosition(f"{name} {word!r} is not a number")
        named[name] = [int(word) for word in chosen]
        at += count
        for number in named[name]:
            if name in _VALUES and number not in _VALUES[name]:
                one, other = _VALUES[name]
                raise InvalidPosition(f"{name} is {one} or {other}, not {number}")
            if name not in _VALUES and name != "board" and number < 0:
                raise InvalidPosition(f"{name} is 0 or more, not {number}")
    return words[:_NAMES], named


def _board(named: dict[str, list[int]]) -> np.ndarray:
    """int64[2, 26], the viewer in row 0."""
    (colour,), (direction,) = named["colour"], named["direction"]
    if (named["home"], named["bar"]) != (([OFF], [BAR]) if direction < 0 else ([BAR], [OFF])):
        raise InvalidPosition(f"home {named['home'][0]} and bar {named['bar'][0]} of {direction:+}")
    slots = colour * np.array(named["board"], dtype=np.int64)[::-direction]
    board = empty_board().astype(np.int64)
    board[0, 1:] = np.maximum(slots[1:], 0)
    board[1, :OFF:-1] = np.maximum(-slots[:BAR], 0)
    if slots[OFF] > 0 or slots[BAR] < 0:
        raise InvalidPosition("a bar holds checkers of the wrong colour")
    board[:, OFF] = named["off"]
    counted = board[:, BAR].tolist()
    if named["on the bar"] not in (counted, [0, 0]):
        raise InvalidPosition(f"on the bar {named['on the bar']}, but the board has {counted}")
    return board


def _state(named: dict[str, list[int]], sender: Sender) -> MatchState:
    (length,), (cube,), (doubled,) = named["match length"], named["cube"], named["was doubled"]
    if length == _UNLIMITED and sender == "fibs":
        length = 0
    on_roll = VIEWER if named["turn"] == named["colour"] else _OTHER
    first = _first_named(bool(doubled))
    post_crawford = named["post-Crawford"] == [1]
    if sender == "fibs":
        first = VIEWER
        on_roll = _OTHER if doubled else on_roll
    else:
        post_crawford |= named["redoubles"] != [0]
    # On FIBS the first pair is the viewer's; gnubg writes the roll twice.
    dice = named["dice"] if on_roll == VIEWER else named["other dice"]
    may_double = {
        seat: bool(may) for seat, may in zip((VIEWER, _OTHER), named["may double"], strict=True)
    }
    owners = [seat for seat, may in may_double.items() if may]
    if doubled and not owners:
        owners = [on_roll]
    one, two = named["score"]
    score = (one, two) if first == _OTHER else (two, one)
    return MatchState(
        on_roll=on_roll,
        dice=(dice[0], dice[1]) if any(dice) else None,
        cube=cube,
        cube_owner=owners[0] if cube > 1 and len(owners) == 1 else None,
        score=score,
        length=length,
        crawford=min(score) < max(score) == length - 1
        and cube == 1
        and not doubled
        and not post_crawford,
        offer="double" if doubled else None,
    )
