"""Matches in the Jellyfish text format (.mat), every play checked by the rules.

The format has no standard. What is read: ``; [Key "value"]`` tags, free text before the line
``N point match`` (0 is a money session), ``Game N``, the names with the score, then numbered lines
with one column a player, set apart by blanks or tabs. A roll that cannot be played stands alone or
with ``Cannot Move`` or ``????``. Of the tags, ``Variation``, ``Jacoby`` and ``Crawford`` set the
rules. What contradicts the rules is refused; a missing, wrong or impossible result is a warning.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bgrl.errors import BgrlError, CorruptFile, IllegalPlay
from bgrl.game import (
    BACKGAMMON,
    HYPERGAMMON,
    NACKGAMMON,
    Dice,
    Play,
    Position,
    Variant,
    legal_plays,
    parse_play,
)
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
    variant: Variant = BACKGAMMON


def read_mat(path: str | Path, jacoby: bool = True, variant: Variant = BACKGAMMON) -> MatMatch:
    """The match in the file ``path``; see `parse_mat`. Raises BgrlError if it cannot be read.

    The text is UTF-8 or, as older programs write it, Windows-1252 or Latin-1.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BgrlError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a zero byte in the name
        raise BgrlError(f"{str(path)!r}: {error}") from None
    return parse_mat(_decoded(data), str(path), jacoby, variant)


def _decoded(data: bytes) -> str:
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")  # which knows every byte


def parse_mat(
    text: str, name: str = "match", jacoby: bool = True, variant: Variant = BACKGAMMON
) -> MatMatch:
    """The match in ``text``, which errors call ``name``.

    ``jacoby`` says whether a money session is played with the Jacoby rule. It and ``variant`` count
    where no tag of the file tells.

    Raises CorruptFile if the text is no match or a tag names unknown rules, and IllegalPlay, with
    game, move number and dice, for a play or a cube action that the rules do not allow.
    """
    return _Reader(name, jacoby, variant).read(text)


_TAG = re.compile(r'\s*;\s*\[(?P<key>[^"\]]+?)\s+"(?P<value>.*)"\s*\]')
# Nine digits: no number of a match is longer, and Python refuses to read thousands.
_LENGTH = re.compile(r"\s*(?P<length>\d{1,9}) point match\s*", re.IGNORECASE)
_GAME = re.compile(r"\s*Game (?P<number>\d{1,9})\s*", re.IGNORECASE)
_NAMES = re.compile(
    r"\s*(?P<name0>\S.*?) : (?P<score0>\d{1,9})\s+(?P<name1>\S.*?) : (?P<score1>\d{1,9})\s*"
)
_LINE = re.compile(r"\s*(?P<move>\d{1,9})\)")
_ENTRY = re.compile(
    r"(?P<die1>[1-6])(?P<die2>[1-6]):(?P<play>(?:\s*(?:(?:bar|\d+)/\S+|cannot move|\?+))*)"
    r"|doubles => (?P<cube>\d{1,9})|(?P<take>takes)|(?P<drop>drops)"
    r"|wins (?P<points>\d{1,9}) points?(?P<match> and the match)?",
    re.IGNORECASE,
)
_DANCES = re.compile(r"(?:cannot move|\?+)?", re.IGNORECASE)

_SWITCH = {"on": True, "off": False}
# The tags that set rules: what of the reader each sets, and to what. The variations are those of
# gnubg and eXtreme Gammon; gnubg's hypergammon with 1 or 2 checkers is no variant here.
_RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "Variation": (
        "variant",
        {
            "backgammon": BACKGAMMON,
            "standard": BACKGAMMON,
            "nackgammon": NACKGAMMON,
            "hypergammon": HYPERGAMMON,
            "hypergammon (3)": HYPERGAMMON,
        },
    ),
    "Jacoby": ("jacoby", _SWITCH),
    "Crawford": ("crawford", _SWITCH),
}

# Where an entry alone on its line is the left player's, while nothing shows the columns: left of
# this one. A tab takes the left column to 8, and the shortest play takes the right one beyond 16.
_LEFT_END = 12


class _Reader:
    def __init__(self, name: str, jacoby: bool, variant: Variant):
        self.name = name
        self.jacoby = jacoby
        self.variant = variant
        self.crawford = True
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
                self.tag(tag["key"], tag["value"], at)
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
            self.variant,
        )

    def tag(self, key: str, value: str, at: int) -> None:
        self.tags[key] = value
        chosen = value.strip().lower()
        if key not in _RULES or not chosen:
            return
        attribute, known = _RULES[key]
        if chosen not in known:
            raise CorruptFile(
                f"{self.name}, line {at}: {key} {value!r} is none of {', '.join(known)}"
            )
        setattr(self, attribute, known[chosen])

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
        if length and max(score) >= length:
            self.warnings.append(
                f"game {number} starts at {score[0]}-{score[1]}, where a match to {length} is over"
            )
        # With both 1 point away the Crawford game has been played, be it in the file or not.
        crawford = (
            max(score) == length - 1
            and min(score) < length - 1
            and not self.crawford_played
            and self.crawford
        )
        self.crawford_played |= crawford
        return _Game(self, number, score, crawford)

    def finish(self, game: "_Game | None", last: bool = False) -> None:
        if game is not None:
            self.games.append(game.result(last))


class _Game:
    def __init__(self, reader: _Reader, number: int, score: tuple[int, int], crawford: bool):
        self.reader = reader
        self.number = number
        self.score = score
        self.crawford = crawford
        self.right: int | None = None  # where the right column starts
        self.left_end = _LEFT_END
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
        line = line.expandtabs()
        start = 0
        numbered = _LINE.match(line)
        if numbered:
            self.move, start = int(numbered["move"]), numbered.end()
        entries = []
        while rest := line[start:].lstrip():
            entry = _ENTRY.match(line, len(line) - len(rest))
            if entry is None:
                raise CorruptFile(f"{self.reader.name}, line {at}: cannot read {rest.strip()!r}")
            entries.append(entry)
            start = entry.end()
        turns = [entry for entry in entries if not entry["points"]]
        if len(turns) > 1:
            # A long play pushes what follows it to the right, so the leftmost place counts.
            self.right = min(turns[1].start(), self.right or turns[1].start())
            self.left_end = (turns[0].start() + self.right) // 2
        if turns:
            # Where two have acted, the left one was first, wherever that is written.
            first = 0 if len(turns) > 1 else self.column(turns[0])
            if self.to_act is None:
                self.to_act = first
            elif numbered and self.to_act != first:
                raise CorruptFile(
                    f"{self.reader.name}, line {at}: {turns[0][0].strip()!r} is out of turn"
                )
        for i, entry in enumerate(entries):
            if not entry["points"]:
                self.enter(entry)
            elif i == 0 or (i == 1 and self.column(entry) == 1):
                self.win(entry, self.column(entry))
            else:  # pushed to wherever there was room
                self.win(entry, None)

    def column(self, entry: re.Match[str]) -> int:
        return int(entry.start() >= self.left_end)

    def enter(self, entry: re.Match[str]) -> None:
        if self.earned:
            raise self.illegal("the game is over")
        assert self.to_act is not None
        if entry["die1"]:
            dice = (int(entry["die1"]), int(entry["die2"]))
            self.roll(self.to_act, dice, entry["play"].strip())
        elif entry["cube"]:
            self.double(self.to_act, int(entry["cube"]))
        else:
            self.answer(self.to_act, take=bool(entry["take"]))

    def win(self, entry: re.Match[str], column: int | None) -> None:
        points = int(entry["points"])
        winner = self.known_winner()
        if winner is None:
            winner = column
        elif column is not None and column != winner:
            players = self.reader.players
            self.warn(f"{players[winner]} wins, but the result is in {players[column]}'s column")
        if winner is None:
            # Who resigns mostly does so instead of acting.
            winner = 1 - (self.to_act or 0)
            self.warn(f"no column says who wins: taken for {self.reader.players[winner]}")
        self.written = (winner, points)
        possible = self.possible_points()
        if not self.earned and points not in possible:
            expected = ", ".join(map(str, possible))
            self.warn(f"{points} points cannot be won with the cube at {self.cube}: {expected} can")
        total = self.score[winner] + points
        if entry["match"] and self.reader.length and total < self.reader.length:
            self.warn(f"{points} points do not win the match at {total}")

    def known_winner(self) -> int | None:
        """Who wins, by what has been played: it counts for more than the column of a result."""
        if self.earned:
            return self.earned[0]
        # A double without an answer was dropped.
        return 1 - self.to_act if self.doubled and self.to_act is not None else None

    def possible_points(self) -> list[int]:
        """What the loser can resign, whether or not a double that waits has been taken."""
        cubes = (self.cube, 2 * self.cube) if self.doubled else (self.cube,)
        return sorted({self.worth(level, cube) for level in (1, 2, 3) for cube in cubes})

    def worth(self, level: int, cube: int) -> int:
        """Points of a game lost at ``level``: 1 single, 2 gammon, 3 backgammon."""
        counts_single = self.reader.length == 0 and self.reader.jacoby and cube == 1
        return cube * self.reader.variant.points[0 if counts_single else level - 1]

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
            self.earned = (seat, self.worth(level, self.cube))

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
