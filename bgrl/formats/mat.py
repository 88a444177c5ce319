"""Matches in the Jellyfish text format (.mat), every play checked by the rules.

The format has no standard. What is read: ``; [Key "value"]`` tags, free text before the line
``N point match`` (0 is a money session), ``Game N``, the names with the score, then numbered lines
with one column a player. A roll that cannot be played stands alone or with ``Cannot Move`` or
``????``. What contradicts the rules is refused; a missing or wrong result is a warning.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bgrl.errors import BgrlError, CorruptFile, IllegalPlay
from bgrl.game import BACKGAMMON, Dice, Play, Position, Variant, legal_plays, parse_play
from bgrl.game.board import loss_level

Kind = Literal["play", "dance", "double", "take", "drop"]


@dataclass(frozen=True)
class MatAction:
    """One entry of the score sheet."""

    move: int
    """The number of the line in its game."""
    seat: int
    """0 for the player in the left column, 1 for the one in the right."""
    kind: Kind
    position: Position
    """The position before the action, seen by the player on roll (by the doubler, if doubled)."""
    cube: int
    """The cube's value before the action; a double doubles it."""
    cube_owner: int | None
    dice: Dice | None = None
    play: Play | None = None


@dataclass(frozen=True)
class MatGame:
    """One game. ``winner`` is None, with 0 points, if the file ends before the game does."""

    number: int
    score: tuple[int, int]
    crawford: bool
    actions: tuple[MatAction, ...]
    winner: int | None
    points: int


@dataclass(frozen=True)
class MatMatch:
    """A whole file. ``length`` is 0 for a money session, where ``jacoby`` tells the rule."""

    players: tuple[str, str]
    length: int
    jacoby: bool
    games: tuple[MatGame, ...]
    tags: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_mat(path: str | Path, jacoby: bool = True, variant: Variant = BACKGAMMON) -> MatMatch:
    """The match in the file ``path``; see `parse_mat`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise BgrlError(f"{path}: {error.strerror}") from None
    return parse_mat(text, str(path), jacoby, variant)


def parse_mat(
    text: str, name: str = "match", jacoby: bool = True, variant: Variant = BACKGAMMON
) -> MatMatch:
    """The match in ``text``, which errors call ``name``.

    ``jacoby`` says whether a money session is played with the Jacoby rule: the file does not.
    Raises CorruptFile if the text is no match, and IllegalPlay, with game, move number and dice,
    for a play or a cube action that the rules do not allow.
    """
    return _Reader(name, jacoby, variant).read(text)


_TAG = re.compile(r'\s*;\s*\[(?P<key>[^"\]]+?)\s+"(?P<value>.*)"\s*\]')
_LENGTH = re.compile(r"\s*(?P<length>\d+) point match\s*", re.IGNORECASE)
_GAME = re.compile(r"\s*Game (?P<number>\d+)\s*", re.IGNORECASE)
_NAMES = re.compile(
    r"\s*(?P<name0>\S.*?) : (?P<score0>\d+)\s+(?P<name1>\S.*?) : (?P<score1>\d+)\s*"
)
_LINE = re.compile(r"\s*(?P<move>\d+)\)")
_ENTRY = re.compile(
    r"(?P<die1>[1-6])(?P<die2>[1-6]):(?P<play>(?:\s*(?:(?:bar|\d+)/\S+|cannot move|\?+))*)"
    r"|doubles => (?P<cube>\d+)|(?P<take>takes)|(?P<drop>drops)"
    r"|wins (?P<points>\d+) points?(?P<match> and the match)?",
    re.IGNORECASE,
)
_DANCES = re.compile(r"(?:cannot move|\?+)?", re.IGNORECASE)


class _Reader:
    def __init__(self, name: str, jacoby: bool, variant: Variant):
        self.name = name
        self.jacoby = jacoby
        self.variant = variant
        self.tags: dict[str, str] = {}
        self.players = ("", "")
        self.length: int | None = None
        self.games: list[MatGame] = []
        self.warnings: list[str] = []
        self.crawford_played = False

    def read(self, text: str) -> MatMatch:
        game: _Game | None = None
        number: int | None = None  # of a game whose names have not come yet
        for at, line in enumerate(text.splitlines(), 1):
            if tag := _TAG.match(line):
                self.tags[tag["key"]] = tag["value"]
            elif self.length is None:
                if length := _LENGTH.fullmatch(line):
                    self.length = int(length["length"])
            elif header := _GAME.fullmatch(line):
                self.finish(game)
                game, number = None, int(header["number"])
            elif number is not None and (names := _NAMES.fullmatch(line)):
                game = self.begin(number, names)
                number = None
            elif line.strip():
                if game is None:
                    raise CorruptFile(f"{self.name}, line {at}: {line.strip()!r} is in no game")
                game.add(line, at)
        if self.length is None:
            raise CorruptFile(f"{self.name}: no line says 'N point match'")
        if number is not None:
            raise CorruptFile(f"{self.name}: game {number} has no line with the players")
        self.finish(game, last=True)
        return MatMatch(
            self.players,
            self.length,
            self.jacoby and self.length == 0,
            tuple(self.games),
            self.tags,
            tuple(self.warnings),
        )

    def begin(self, number: int, names: re.Match[str]) -> "_Game":
        score = (int(names["score0"]), int(names["score1"]))
        self.players = (names["name0"], names["name1"])
        if self.games:
            last = self.games[-1]
            expected = list(last.score)
            if last.winner is not None:
                expected[last.winner] += last.points
            if tuple(expected) != score:
                self.warnings.append(
                    f"game {number} starts at {score[0]}-{score[1]}, but game {last.number} "
                    f"ended at {expected[0]}-{expected[1]}"
                )
        length = self.length or 0
        crawford = (
            length > 1
            and max(score) == length - 1
            and not self.crawford_played
            and self.tags.get("Crawford", "On").lower() != "off"
        )
        self.crawford_played |= crawford
        return _Game(self, number, score, crawford, names.start("name1"))

    def finish(self, game: "_Game | None", last: bool = False) -> None:
        if game is not None:
            self.games.append(game.result(last))


class _Game:
    def __init__(
        self, reader: _Reader, number: int, score: tuple[int, int], crawford: bool, column: int
    ):
        self.reader = reader
        self.number = number
        self.score = score
        self.crawford = crawford
        self.column = column  # where the right column starts, more or less
        self.position = Position.start(reader.variant)
        self.cube = 1
        self.cube_owner: int | None = None
        self.to_act: int | None = None
        self.doubled = False
        self.earned: tuple[int, int] | None = None  # winner and points, by the rules
        self.written: tuple[int, int] | None = None  # winner and points, as the file says
        self.actions: list[MatAction] = []
        self.move = 0

    def add(self, line: str, at: int) -> None:
        start = 0
        if numbered := _LINE.match(line):
            self.move, start = int(numbered["move"]), numbered.end()
        first = numbered is not None
        while line[start:].strip():
            start += len(line[start:]) - len(line[start:].lstrip())
            entry = _ENTRY.match(line, start)
            if entry is None:
                raise CorruptFile(
                    f"{self.reader.name}, line {at}: cannot read {line[start:].strip()!r}"
                )
            side = int(start >= self.column - 3)
            # Only where a line's first entry stands can be trusted: the next may be pushed right.
            if first and not entry["points"] and self.to_act not in (None, side):
                raise CorruptFile(
                    f"{self.reader.name}, line {at}: {entry[0].strip()!r} is out of turn"
                )
            self.enter(entry, side)
            first = False
            start = entry.end()

    def enter(self, entry: re.Match[str], side: int) -> None:
        if entry["points"]:
            # After a drop or a last checker the winner is known; columns are not always kept.
            winner = self.earned[0] if self.earned else side
            self.written = (winner, int(entry["points"]))
            total = self.score[winner] + self.written[1]
            if entry["match"] and self.reader.length and total < self.reader.length:
                self.warn(f"{self.written[1]} points do not win the match at {total}")
            return
        if self.earned:
            raise self.illegal("the game is over")
        seat = side if self.to_act is None else self.to_act
        if entry["die1"]:
            self.roll(seat, (int(entry["die1"]), int(entry["die2"])), entry["play"].strip())
        elif entry["cube"]:
            self.double(seat, int(entry["cube"]))
        else:
            self.answer(seat, take=bool(entry["take"]))

    def roll(self, seat: int, dice: Dice, text: str) -> None:
        if self.doubled:
            raise self.illegal(f"{dice[0]}{dice[1]}: the double has not been answered")
        if not self.actions and dice[0] == dice[1]:
            raise self.illegal(f"{dice[0]}{dice[1]}: a game does not start with a double")
        plays = legal_plays(self.position, dice)
        if _DANCES.fullmatch(text):
            if plays:
                raise self.illegal(f"{dice[0]}{dice[1]}: something can be played, {plays[0]}")
            self.note(seat, "dance", dice)
            self.position = self.position.swap()
        else:
            try:
                play = parse_play(self.position, dice, text)
            except IllegalPlay as error:
                raise self.illegal(f"{dice[0]}{dice[1]}: {error}") from None
            self.note(seat, "play", dice, play)
            self.position = play.position
        self.to_act = 1 - seat
        level = loss_level(self.position.board)
        if level:
            counts_single = self.reader.length == 0 and self.reader.jacoby and self.cube == 1
            points = self.reader.variant.points[0 if counts_single else level - 1]
            self.earned = (seat, self.cube * points)

    def double(self, seat: int, value: int) -> None:
        if self.crawford:
            raise self.illegal("there is no doubling in the Crawford game")
        if self.cube_owner == 1 - seat:
            raise self.illegal(f"{self.reader.players[seat]} doubles without owning the cube")
        if not self.actions:
            raise self.illegal("nobody may double before the opening roll")
        if self.doubled:
            raise self.illegal("the double has not been answered")
        if value != 2 * self.cube:
            raise self.illegal(f"doubles to {value} from {self.cube}")
        self.note(seat, "double")
        self.doubled, self.to_act = True, 1 - seat

    def answer(self, seat: int, take: bool) -> None:
        if not self.doubled:
            raise self.illegal(f"{'takes' if take else 'drops'}, but nobody has doubled")
        self.note(seat, "take" if take else "drop")
        self.doubled, self.to_act = False, 1 - seat
        if take:
            self.cube, self.cube_owner = 2 * self.cube, seat
        else:
            self.earned = (1 - seat, self.cube)

    def note(
        self, seat: int, kind: Kind, dice: Dice | None = None, play: Play | None = None
    ) -> None:
        self.actions.append(
            MatAction(self.move, seat, kind, self.position, self.cube, self.cube_owner, dice, play)
        )

    def result(self, last: bool) -> MatGame:
        if self.earned and self.written != self.earned:
            found = f"the file says {self.written[1]}" if self.written else "no result is written"
            self.warn(f"{self.reader.players[self.earned[0]]} wins {self.earned[1]}: {found}")
        if not self.earned and not self.written and not last:
            self.warn("it ends without a result")
        winner, points = self.earned or self.written or (None, 0)
        return MatGame(self.number, self.score, self.crawford, tuple(self.actions), winner, points)

    def warn(self, what: str) -> None:
        self.reader.warnings.append(f"game {self.number}, move {self.move}: {what}")

    def illegal(self, what: str) -> IllegalPlay:
        return IllegalPlay(f"{self.reader.name}: game {self.number}, move {self.move}, {what}")
