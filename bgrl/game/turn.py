"""A turn played move by move, for apps, and why a play is forced."""

import numpy as np

from bgrl.errors import IllegalPlay
from bgrl.game.moves import (
    Dice,
    Move,
    checked_dice,
    dice_to_play,
    is_won,
    most_dice,
    play_move,
    slot_name,
    sources,
    without,
)
from bgrl.game.notation import Play, legal_plays
from bgrl.game.position import Position


class _State:
    """Where a turn stands: the board, the dice left, the moves played, and what may come next."""

    def __init__(
        self,
        board: np.ndarray,
        dice: tuple[int, ...],
        played: tuple[Move, ...],
        finals: set[bytes],
    ):
        self.board = board
        self.dice = dice
        self.played = played
        self.options = _options(board, dice, finals)


def _options(board: np.ndarray, dice: tuple[int, ...], finals: set[bytes]) -> dict[Move, int]:
    """The moves that may be made next, each with its die.

    ``finals`` are the boards, the mover still in row 0, that the legal plays lead to.
    """
    most = most_dice(board, dice)
    options: dict[Move, int] = {}
    # The higher die first: if only one die can be played, it must be. Where both dice bear the
    # same checker off, the lower one takes the higher one's place, which changes nothing else.
    for die in sorted(set(dice), reverse=True):
        for source in sources(board, die):
            after = board.copy()
            move = play_move(after, source, die)
            # Winning with a die left over is fine unless both dice, and a hit, could be played.
            if is_won(after) and after.tobytes() not in finals:
                continue
            if 1 + most_dice(after, without(dice, die)) == most:
                options[move] = die
        if most == 1 and options:
            break
    return options


class Turn:
    """The player on roll plays ``dice`` one move at a time, and may take moves back.

    Only moves that lead to a full legal play are offered: as many dice as can be played, and the
    higher one if only one of the two can be. Raises BgrlError if ``dice`` are not two numbers from
    1 to 6.
    """

    def __init__(self, position: Position, dice: Dice):
        self._position = position
        self._dice = checked_dice(dice)
        left = () if position.is_over else dice_to_play(self._dice)
        self._finals = {
            play.position.swap().board.tobytes() for play in legal_plays(position, self._dice)
        }
        self._states = [_State(position.board.copy(), left, (), self._finals)]

    @property
    def position(self) -> Position:
        """The position as it stands, the player whose turn it is still on roll."""
        return Position(self._states[-1].board, self._position.variant)

    @property
    def remaining(self) -> tuple[int, ...]:
        """The dice not yet played; none once the last checker is off."""
        return self._states[-1].dice

    @property
    def played(self) -> tuple[Move, ...]:
        """The moves made so far."""
        return self._states[-1].played

    @property
    def done(self) -> bool:
        """Whether the turn is complete: nothing more can or may be played."""
        return not self._states[-1].options

    def moves(self) -> list[Move]:
        """The moves that may be made next, (source, target, hit), highest source first."""
        return sorted(self._states[-1].options, reverse=True)

    def play(self, move: tuple[int, ...]) -> Move:
        """Make ``move``, a (source, target) or one of `moves`, and return it.

        Raises IllegalPlay if it may not be made now.
        """
        source, target = move[:2]
        state = self._states[-1]
        for option, die in state.options.items():
            if option[:2] == (source, target):
                after = state.board.copy()
                play_move(after, source, die)
                left = () if is_won(after) else without(state.dice, die)
                self._states.append(_State(after, left, (*state.played, option), self._finals))
                return option
        name = f"{slot_name(source)}/{slot_name(target)}"
        dice_text = ", ".join(str(die) for die in state.dice) or "no die"
        raise IllegalPlay(f"{name} may not be played now, with {dice_text} left")

    def undo(self) -> Move:
        """Take the last move back, with whatever it hit, and return it; IllegalPlay if none is."""
        if not self.played:
            raise IllegalPlay("there is no move to take back")
        return self._states.pop().played[-1]

    def finish(self) -> Position:
        """The position that the opponent now faces, also after a dance; IllegalPlay if not done."""
        if not self.done:
            raise IllegalPlay(f"the turn is not over: {self.moves()[0][:2]} may be played")
        return self.position.swap()


def forced_reason(position: Position, dice: Dice) -> str | None:
    """Why the player on roll has no choice with ``dice``, or None if there is one.

    Raises BgrlError if ``dice`` are not two numbers from 1 to 6.
    """
    dice = checked_dice(dice)
    if position.is_over:
        return "the game is over"
    plays = legal_plays(position, dice)
    on_bar = position.bar[0] > 0
    if not plays:
        return "no checker on the bar can enter" if on_bar else "no checker can be moved"
    if len(plays) > 1:
        return None
    reason = _one_play(position, dice, plays[0])
    return f"a checker on the bar must enter first, and {reason}" if on_bar else reason


def _one_play(position: Position, dice: Dice, play: Play) -> str:
    used, given = len(play.moves), len(dice_to_play(dice))
    if used == given or play.position.is_over:
        return "there is only one way to play the roll"
    if dice[0] == dice[1]:
        return f"only {used} of the {given} moves can be played"
    high, low = max(dice), min(dice)
    board = position.board
    playable = [die for die in (high, low) if sources(board, die)]
    if len(playable) == 2:
        return f"{high} and {low} cannot both be played, so the higher must be"
    return f"only the {playable[0]} can be played"
