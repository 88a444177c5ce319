"""The rules of backgammon: positions, plays, dice, scoring, variants."""

from bgrl.errors import IllegalPlay, InvalidPosition
from bgrl.game.moves import Dice, Move
from bgrl.game.notation import Play, legal_plays, parse_play
from bgrl.game.position import Position
from bgrl.game.text import text_board
from bgrl.game.turn import Turn, forced_reason
from bgrl.game.variants import (
    BACKGAMMON,
    HYPERGAMMON,
    NACKGAMMON,
    VARIANTS,
    Variant,
    get_variant,
)

__all__ = [
    "BACKGAMMON",
    "HYPERGAMMON",
    "NACKGAMMON",
    "VARIANTS",
    "Dice",
    "IllegalPlay",
    "InvalidPosition",
    "Move",
    "Play",
    "Position",
    "Turn",
    "Variant",
    "forced_reason",
    "get_variant",
    "legal_plays",
    "parse_play",
    "text_board",
]
