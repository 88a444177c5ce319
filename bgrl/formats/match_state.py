"""What surrounds a position: dice, cube, score and rules, as match IDs and XGIDs record them."""

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from bgrl.errors import InvalidPosition
from bgrl.game import Dice

Offer = Literal["double", "beaver", "raccoon"]
Status = Literal["none", "playing", "over", "resigned", "dropped"]

OFFERS: tuple[Offer, ...] = ("double", "beaver", "raccoon")
STATUSES: tuple[Status, ...] = ("none", "playing", "over", "resigned", "dropped")
RESIGNATIONS = ("none", "single game", "gammon", "backgammon")


@dataclass(frozen=True)
class MatchState:
    """The state of a match or money session around a position.

    The players are seats 0 and 1, so that scores and cube keep their owners while the turn changes
    hands. gnubg calls them player 0 and player 1; in an XGID seat 1 is the player at the bottom
    (capital letters, turn 1) and seat 0 the one at the top (turn -1).

    Raises InvalidPosition if the parts contradict each other.
    """

    on_roll: int = 1
    """The seat whose turn it is; the position that goes with this is seen by that player."""
    dice: Dice | None = None
    """The roll to be played, or None before the roll."""
    cube: int = 1
    """The cube's value, a power of 2; a double that is being offered is not yet counted."""
    cube_owner: int | None = None
    """The seat that owns the cube, or None in the middle."""
    score: tuple[int, int] = (0, 0)
    """Points of seat 0 and of seat 1."""
    length: int = 0
    """Points that win the match, or 0 in a money session."""
    crawford: bool = False
    """Whether this is the Crawford game, in which nobody may double."""
    jacoby: bool = False
    """The Jacoby rule. It has a meaning in money play only."""
    beavers: bool = False
    """Whether beavers are allowed. They have a meaning in money play only."""
    offer: Offer | None = None
    """The cube action that waits for an answer: the player on roll has doubled, the opponent has
    beavered that, or the player on roll has raccooned that."""
    resignation: int = 0
    """The resignation that waits for an answer: 0 none, 1 single game, 2 gammon, 3 backgammon."""
    status: Status = "playing"
    """Whether the game is going on, or how it has ended; "none" if there is no game."""
    cube_limit: int = 1024
    """The highest cube that the program plays with."""

    def __post_init__(self) -> None:
        for name in ("on_roll", "cube", "length", "resignation", "cube_limit"):
            if not isinstance(getattr(self, name), Integral):
                raise InvalidPosition(f"{name} is a whole number, not {getattr(self, name)!r}")
        if not _is_pair(self.score):
            raise InvalidPosition(f"score is two whole numbers, not {self.score!r}")
        for name, value in (("on_roll", self.on_roll), ("cube_owner", self.cube_owner)):
            if value not in (0, 1) and not (name == "cube_owner" and value is None):
                raise InvalidPosition(f"{name} is seat 0 or 1, not {value!r}")
        if self.dice is not None and not (
            _is_pair(self.dice) and all(1 <= die <= 6 for die in self.dice)
        ):
            raise InvalidPosition(f"dice are two numbers from 1 to 6, not {self.dice!r}")
        for name, value in (("cube", self.cube), ("cube_limit", self.cube_limit)):
            if value < 1 or value & (value - 1):
                raise InvalidPosition(f"{name} is a power of 2, not {value}")
        if self.cube == 1 and self.cube_owner is not None:
            raise InvalidPosition("a cube that shows 1 has no owner")
        if self.length < 0 or min(self.score) < 0:
            raise InvalidPosition(f"a score of {self.score} in a match to {self.length}")
        if self.offer is not None and self.offer not in OFFERS:
            raise InvalidPosition(f"an offer is one of {', '.join(OFFERS)}, not {self.offer!r}")
        if self.status not in STATUSES:
            raise InvalidPosition(f"a status is one of {', '.join(STATUSES)}, not {self.status!r}")
        if not 0 <= self.resignation < len(RESIGNATIONS):
            raise InvalidPosition(f"a resignation is 0 to 3, not {self.resignation}")
        if self.status != "playing":
            return
        if self.length and max(self.score) >= self.length:
            raise InvalidPosition(f"a match to {self.length} is over at {self.score}")
        if self.crawford:
            # Where both are 1 point away, the Crawford game has been played.
            if not min(self.score) < max(self.score) == self.length - 1:
                raise InvalidPosition(
                    "a Crawford game needs a player who is 1 point away and one who is not, "
                    f"not {self.score} in a match to {self.length}"
                )
            if self.cube > 1 or self.offer is not None:
                raise InvalidPosition("there is no doubling in the Crawford game")
        if self.offer is not None:
            if self.length and self.offer != "double":
                raise InvalidPosition(f"a {self.offer} belongs to money play, not to a match")
            if self.dice is not None:
                raise InvalidPosition(f"a {self.offer} is offered before the dice are rolled")
            if self.cube_owner == 1 - self.on_roll:
                raise InvalidPosition("the player on roll has doubled without owning the cube")

    @property
    def to_decide(self) -> int:
        """The seat whose decision is next: it changes with an offer and with a resignation."""
        answers = (self.offer in ("double", "raccoon")) + (self.resignation > 0)
        return (self.on_roll + answers) % 2

    @property
    def away(self) -> tuple[int, int] | None:
        """Points that the player on roll and the opponent still need; None in money play."""
        if self.length == 0:
            return None
        mine, theirs = self.score[self.on_roll], self.score[1 - self.on_roll]
        return self.length - mine, self.length - theirs

    @property
    def post_crawford(self) -> bool:
        """Whether the Crawford game has been played, so that the trailer may double at once."""
        is_match_point = self.length > 1 and max(self.score) == self.length - 1
        return is_match_point and not self.crawford

    @property
    def cube_side(self) -> int | None:
        """Who owns the cube as rows of a board: 0 the player on roll, 1 the opponent, or None."""
        return None if self.cube_owner is None else abs(self.cube_owner - self.on_roll)


def _is_pair(value: object) -> bool:
    """Whether ``value`` is two whole numbers in an order."""
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(isinstance(number, Integral) for number in value)
    )
