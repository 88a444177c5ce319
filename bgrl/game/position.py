"""A position that a game can reach, and its GNU Backgammon position ID."""

import base64
import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from bgrl.errors import InvalidPosition
from bgrl.game.board import BAR, HOME, OFF, POINTS, SLOTS, empty_board, pip_count
from bgrl.game.text import text_board
from bgrl.game.variants import BACKGAMMON, Variant

SIDES = ("the player on roll", "the opponent")

# From here on a count is refused alone, since the sum of a side's could wrap around unseen.
_TOO_MANY = 1 << 32
_ID_BYTES = 10
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


class Position:
    """A board, always seen by the player on roll, and the variant that is played on it.

    ``board`` is anything that converts to an integer array [2, 26] laid out as `bgrl.game.board`
    says: row 0 is the player on roll, row 1 the opponent, each from its owner's own view, slot 0
    the checkers borne off and slot 25 the bar. All checkers of the variant are counted.

    Positions are immutable, hashable and equal if board and variant are.

    Raises InvalidPosition, with the reason, for a board that no game can reach.
    """

    __slots__ = ("_board", "_variant")

    def __init__(self, board: Any, variant: Variant = BACKGAMMON):
        self._board = _checked(board, variant)
        self._variant = variant

    @classmethod
    def start(cls, variant: Variant = BACKGAMMON) -> "Position":
        """The position in which a game of ``variant`` starts."""
        return cls(variant.start_board(), variant)

    @classmethod
    def from_points(
        cls,
        mine: Mapping[int, int],
        theirs: Mapping[int, int],
        variant: Variant = BACKGAMMON,
    ) -> "Position":
        """A position from {slot: count} of the player on roll and of the opponent.

        Each side's slots are its own: 1 to 24 the points, 25 the bar. The checkers that are not
        mentioned have been borne off.

        Raises InvalidPosition if a slot or count is no whole number or the board impossible.
        """
        board = np.zeros((2, SLOTS), dtype=np.int64)
        for side, counts in enumerate((mine, theirs)):
            for slot, count in counts.items():
                if not isinstance(slot, Integral) or not 0 <= slot < SLOTS:
                    raise InvalidPosition(
                        f"{SIDES[side]} has no slot {slot!r}: 0 to {BAR} are known"
                    )
                if not isinstance(count, Integral) or not 0 <= count < _TOO_MANY:
                    raise InvalidPosition(f"{SIDES[side]} has {count!r} checkers on slot {slot}")
                board[side, slot] = count
            if OFF not in counts:
                board[side, OFF] = max(0, variant.checkers - board[side].sum())
        return cls(board, variant)

    @classmethod
    def from_gnubg_id(cls, position_id: str, variant: Variant = BACKGAMMON) -> "Position":
        """The position of a 14-character GNU Backgammon position ID.

        An ID does not say how many checkers have been borne off: that follows from ``variant``.
        Blanks around the ID and base64 padding (``=``) are ignored.

        Raises InvalidPosition if the ID is malformed or its board impossible. Source: GNU
        Backgammon manual, "A technical description of the position ID".
        """
        data = decode_id(position_id, _ID_BYTES, "position ID")
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        ends = np.flatnonzero(bits == 0)
        fields = 2 * BAR
        if len(ends) < fields or bits[ends[fields - 1] :].any():
            raise InvalidPosition(f"position ID {position_id!r}: too many checkers")
        counts = np.diff(ends[:fields], prepend=-1) - 1
        board = empty_board().astype(np.int64)
        # The player who is not on roll comes first.
        board[1, 1:], board[0, 1:] = counts[:BAR], counts[BAR:]
        board[:, OFF] = np.maximum(0, variant.checkers - board.sum(axis=1))
        try:
            return cls(board, variant)
        except InvalidPosition as error:
            raise InvalidPosition(f"position ID {position_id!r}: {error}") from None

    @property
    def board(self) -> np.ndarray:
        """The board, int8[2, 26], read-only."""
        return self._board

    @property
    def variant(self) -> Variant:
        """The variant that is played."""
        return self._variant

    @property
    def gnubg_id(self) -> str:
        """The 14-character GNU Backgammon position ID."""
        bits = np.zeros(8 * _ID_BYTES, dtype=np.uint8)
        at = 0
        for count in np.concatenate((self._board[1, 1:], self._board[0, 1:])):
            bits[at : at + count] = 1
            at += count + 1
        return encode_id(np.packbits(bits, bitorder="little").tobytes())

    @property
    def pip_counts(self) -> tuple[int, int]:
        """The pips to go of the player on roll and of the opponent."""
        return int(pip_count(self._board, 0)), int(pip_count(self._board, 1))

    @property
    def bar(self) -> tuple[int, int]:
        """The checkers on the bar of the player on roll and of the opponent."""
        return int(self._board[0, BAR]), int(self._board[1, BAR])

    @property
    def off(self) -> tuple[int, int]:
        """The checkers borne off by the player on roll and by the opponent."""
        return int(self._board[0, OFF]), int(self._board[1, OFF])

    @property
    def is_over(self) -> bool:
        """Whether a side has borne off all of its checkers."""
        return self._variant.checkers in self.off

    def swap(self) -> "Position":
        """The same position with the other player on roll."""
        return Position(self._board[::-1], self._variant)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        return self._variant == other._variant and np.array_equal(self._board, other._board)

    def __hash__(self) -> int:
        return hash((self._variant.name, self._board.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Position, (self._board, self._variant)

    def __str__(self) -> str:
        return text_board(self._board)

    def __repr__(self) -> str:
        return f"<Position {self.gnubg_id} ({self._variant.name})>"


def _checked(board: Any, variant: Variant) -> np.ndarray:
    """A read-only int8[2, 26] copy of ``board``, or InvalidPosition with the reason."""
    try:
        array = np.asarray(board)
    except ValueError:  # rows of unequal length
        raise InvalidPosition(f"a board has 2 rows of {SLOTS} counts") from None
    if array.shape != (2, SLOTS):
        raise InvalidPosition(f"a board has the shape (2, {SLOTS}), not {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidPosition(f"a board holds whole numbers, not {array.dtype}")
    array = array.astype(np.int64)
    for side, row in enumerate(array):
        wrong = (row < 0) | (row >= _TOO_MANY)
        if wrong.any():
            slot = int(np.argmax(wrong))
            raise InvalidPosition(f"{SIDES[side]} has {row[slot]} checkers on slot {slot}")
        if row.sum() != variant.checkers:
            raise InvalidPosition(
                f"{SIDES[side]} has {row.sum()} checkers, those borne off included, "
                f"and {variant.name} is played with {variant.checkers}"
            )
    # My point p, counted from the front, faces the opponent's point p counted from the back.
    shared = (array[0, 1:BAR] > 0) & (array[1, POINTS:OFF:-1] > 0)
    if shared.any():
        raise InvalidPosition(f"both sides have checkers on point {int(np.argmax(shared)) + 1}")
    if (array[:, BAR] > 0).all() and (array[:, 1 : HOME + 1] >= 2).all():
        raise InvalidPosition("both sides are on the bar against a closed board")
    if (array[:, OFF] == variant.checkers).all():
        raise InvalidPosition("both sides have borne off all of their checkers")
    checked = np.ascontiguousarray(array, dtype=np.int8)
    checked.setflags(write=False)
    return checked


def decode_id(text: str, n_bytes: int, what: str) -> bytes:
    """The bytes of a GNU Backgammon ID: base64, its padding optional, blanks around it ignored.

    Raises InvalidPosition, which calls the ID ``what``, unless it holds exactly ``n_bytes``.
    """
    stripped = text.strip().rstrip("=").rstrip()
    wrong = _NOT_BASE64.search(stripped)
    if wrong:
        hint = " (URL-safe base64 is not used)" if wrong.group() in "-_" else ""
        raise InvalidPosition(
            f"{what} {text!r}: character {wrong.group()!r} at position {wrong.start() + 1} "
            f"is not one of A-Z a-z 0-9 + /{hint}"
        )
    length = -(-n_bytes * 8 // 6)
    if len(stripped) != length:
        raise InvalidPosition(f"{what} {text!r} has {len(stripped)} characters, not {length}")
    data = base64.b64decode(stripped + "=" * (-length % 4))
    if encode_id(data) != stripped:
        raise InvalidPosition(
            f"{what} {text!r}: its last character {stripped[-1]!r} has bits that belong to no byte"
        )
    return data


def encode_id(data: bytes) -> str:
    """``data`` as base64 without padding."""
    return base64.b64encode(data).decode("ascii").rstrip("=")
