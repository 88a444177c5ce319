"""Plays, and their notation both ways."""

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, pairwise

import numpy as np

from bgrl.errors import IllegalPlay
from bgrl.game.board import BAR, OFF
from bgrl.game.moves import (
    Dice,
    Move,
    checked_dice,
    dice_to_play,
    move_error,
    play_move,
    slot_name,
    without,
)
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.game.position import Position


class Play:
    """A whole turn: the moves in an order in which they can be played, and what they lead to.

    ``str(play)`` is the standard notation: ``8/5 6/5``, ``bar/22*``, ``24/18(2)``, ``13/11*/8``.
    Two plays are equal if they lead to the same position.
    """

    __slots__ = ("_dice", "_moves", "_position")

    def __init__(self, dice: Dice, moves: Sequence[Move], position: Position):
        self._dice = dice
        self._moves = tuple(moves)
        self._position = position

    @property
    def dice(self) -> Dice:
        """The roll."""
        return self._dice

    @property
    def moves(self) -> tuple[Move, ...]:
        """(source, target, hit) of each move in the mover's slots: 25 the bar, 0 off."""
        return self._moves

    @property
    def position(self) -> Position:
        """The position after the play, the opponent on roll."""
        return self._position

    def __eq__(self, other: object) -> bool:
        return self._position == other._position if isinstance(other, Play) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._position)

    def __str__(self) -> str:
        return format_moves(self._moves, self._dice, won=self._position.is_over)

    def __repr__(self) -> str:
        return f"<Play {self._dice[0]}-{self._dice[1]}: {self}>"


def legal_plays(position: Position, dice: Dice) -> list[Play]:
    """Every distinct play of the player on roll, one for each position that the roll can lead to.

    The list is empty if nothing can be played or the game is over: the turn then passes as
    ``position.swap()``. Raises BgrlError if ``dice`` are not two numbers from 1 to 6.
    """
    dice = checked_dice(dice)
    if position.is_over:
        return []
    buffer = new_play_buffer()
    count = generate_plays(position.board, *dice, buffer)
    plays = []
    after = np.empty_like(position.board)
    for row in buffer[:count]:
        apply_play(position.board, row, after)
        moves = list(_moves_of(row, position.board))
        plays.append(Play(dice, moves, Position(after, position.variant)))
    return plays


def _moves_of(row: np.ndarray, board: np.ndarray) -> Iterator[Move]:
    """The moves of a row of `generate_plays`, with their hits."""
    hit: set[int] = set()
    for source, target in row.reshape(-1, 2).tolist():
        if source < 0:
            return
        hits = target > OFF and board[1, 25 - target] == 1 and target not in hit
        if hits:
            hit.add(target)
        yield Move(source, target, bool(hits))


def format_moves(moves: Sequence[Move], dice: Dice, won: bool = False) -> str:
    """Standard notation of ``moves``, in any order, of one turn.

    Highest checker first; a checker's moves are joined, with the points between left out unless it
    hits there; equal ones are counted, as in ``6/4(2)``; only the first of several checkers that
    land on a blot hits it. A checker that could have been borne off by the higher die alone keeps
    its middle point (``6/5/off`` with 6-1), since it would read like a single move, unless the
    play has ``won``.
    """
    hits = {move.target for move in moves if move.hit}
    paths: list[tuple[int, ...]] = []
    for source, target, _ in sorted(moves, key=lambda move: (-move.source, -move.target)):
        for i, path in enumerate(paths):
            if path[-1] == source:
                paths[i] = (*path, target)
                break
        else:
            paths.append((source, target))
    words = []
    for path in dict.fromkeys(paths):
        looks_single = path[-1] == OFF and path[0] <= max(dice) and not won
        text = slot_name(path[0])
        for point in path[1:]:
            if point in hits:
                hits.remove(point)
                text += f"/{point}*"
            elif point == path[-1] or looks_single:
                text += f"/{slot_name(point)}"
        count = paths.count(path)
        words.append(f"{text}({count})" if count > 1 else text)
    return " ".join(words)


def parse_play(position: Position, dice: Dice, text: str) -> Play:
    """The legal play that ``text`` describes.

    Its moves may come in any order, joined or not (``24/18/13``, ``24/13``, ``24/18 18/13``), with
    ``*`` missing or added, ``25`` for the bar and ``0`` for off. Where the text leaves the way
    open, the way that hits nothing unsaid is taken.

    Raises IllegalPlay with the reason if the text is unreadable, if the rules do not allow the
    play, or if it describes several; BgrlError if ``dice`` are not two numbers from 1 to 6.
    """
    dice = checked_dice(dice)
    refused = f"{text.strip()!r} with {dice[0]}-{dice[1]}"
    if position.is_over:
        raise IllegalPlay(f"{refused}: the game is over")
    plays = {play: play for play in legal_plays(position, dice)}
    if not plays:
        raise IllegalPlay(f"{refused}: nothing can be played")
    legs = _parse_legs(text, refused)
    if len(legs) > len(dice_to_play(dice)):
        raise IllegalPlay(f"{refused}: more moves than dice")
    search = _Search(legs)
    search.run(position.board.copy(), dice_to_play(dice), [leg[0] for leg in legs], ())
    if not search.found:
        raise IllegalPlay(f"{refused}: {_misfit(legs, dice) or search.reason}")
    reached = {
        play: moves
        for moves, board in search.found
        if (play := Play(dice, moves, Position(board[::-1], position.variant))) in plays
    }
    if not reached:
        used = max(len(moves) for moves, _ in search.found)
        possible = max(len(play.moves) for play in plays)
        raise IllegalPlay(f"{refused}: {_too_little(used, possible, dice)}")
    named = {target for _, target in legs}
    unsaid = {
        play: sum(move.hit and move.target not in named for move in moves)
        for play, moves in reached.items()
    }
    best = [play for play, count in unsaid.items() if count == min(unsaid.values())]
    if len(best) > 1:
        choices = " or ".join(str(plays[play]) for play in best)
        raise IllegalPlay(f"{refused} can be {choices}: say which")
    return plays[best[0]]


_WORD = re.compile(r"(?P<path>[^()]*)(?:\((?P<count>[1-4])\)\*?)?")
_SLOTS = {"bar": BAR, "off": OFF} | {str(slot): slot for slot in range(BAR + 1)}

# A leg is what the text says of one checker: (source, target), over one die or more.
Leg = tuple[int, int]


def _parse_legs(text: str, refused: str) -> list[Leg]:
    legs: list[Leg] = []
    for word in text.lower().replace(",", " ").split():
        match = _WORD.fullmatch(word)
        names = match["path"].split("/") if match else []
        slots = [_SLOTS.get(name.removesuffix("*"), -1) for name in names]
        if match is None or len(slots) < 2 or -1 in slots:
            raise IllegalPlay(f"{refused}: cannot read {word!r}")
        path = list(pairwise(slots))
        backwards = [leg for leg in path if leg[0] <= leg[1]]
        if backwards:
            raise IllegalPlay(f"{refused}: {_leg_name(backwards[0])} does not go forwards")
        legs += path * int(match["count"] or 1)
    if not legs:
        raise IllegalPlay(f"{refused}: no move is given")
    return legs


class _Search:
    """Every way to play the legs with the dice, each step of it by the rules."""

    def __init__(self, legs: list[Leg]):
        self.legs = legs
        self.found: list[tuple[tuple[Move, ...], np.ndarray]] = []
        self.reason: str | None = None  # why the way that got furthest stopped
        self._furthest = 0
        self._seen: set[tuple[object, ...]] = set()

    def run(
        self, board: np.ndarray, dice: tuple[int, ...], at: list[int], moves: tuple[Move, ...]
    ) -> None:
        """Go on from ``board``, where leg i's checker stands ``at[i]`` and ``dice`` are left."""
        state = (board.tobytes(), dice, tuple(at))
        if state in self._seen:
            return
        self._seen.add(state)
        complete = sum(now == target for now, (_, target) in zip(at, self.legs, strict=True))
        if complete == len(self.legs):
            self.found.append((moves, board))
            return
        for i, (_, target) in enumerate(self.legs):
            for die in dict.fromkeys(dice):
                if at[i] <= target or max(at[i] - die, OFF) < target:
                    continue
                error = move_error(board, at[i], die)
                if error is not None:
                    if self.reason is None or complete > self._furthest:
                        self.reason, self._furthest = error, complete
                    continue
                after = board.copy()
                move = play_move(after, at[i], die)
                now = [*at[:i], move.target, *at[i + 1 :]]
                self.run(after, without(dice, die), now, (*moves, move))


def _misfit(legs: list[Leg], dice: Dice) -> str | None:
    """Why the dice alone, whatever stands on the board, do not add up to the legs."""
    for leg in legs:
        if not _fit([leg], dice_to_play(dice)):
            return f"{_leg_name(leg)} is {leg[0] - leg[1]} pips, which the dice do not give"
    return None if _fit(legs, dice_to_play(dice)) else "the dice do not give these moves"


def _fit(legs: list[Leg], dice: tuple[int, ...]) -> bool:
    """Whether some of ``dice`` can be dealt out to ``legs``; bearing off may waste pips."""
    if not legs:
        return True
    (source, target), *others = legs
    for n in range(1, len(dice) + 1):
        for dealt in set(combinations(dice, n)):
            pips = sum(dealt)
            if pips == source - target or (target == OFF and pips > source):
                rest = reduce(without, dealt, dice)
                if _fit(others, rest):
                    return True
    return False


def _too_little(used: int, possible: int, dice: Dice) -> str:
    """Why moves that are each allowed are not a legal play."""
    if used < possible:
        if dice[0] == dice[1]:
            return f"{possible} moves can be played, not only {used}"
        return "both dice can be played"
    return f"the higher die must be played: {max(dice)}"


def _leg_name(leg: Leg) -> str:
    return f"{slot_name(leg[0])}/{slot_name(leg[1])}"
