"""Measuring players: matches, statistics, luck, ratings, reports."""

from bgrl.evaluate.luck import NetLuck, PlayerLuck, luck_evaluator
from bgrl.evaluate.match import MatchResult, play_match, replay
from bgrl.evaluate.stats import Sprt

__all__ = [
    "MatchResult",
    "NetLuck",
    "PlayerLuck",
    "Sprt",
    "luck_evaluator",
    "play_match",
    "replay",
]
