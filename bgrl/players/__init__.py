"""Players: anything that evaluates positions, ranks plays and plays games."""

from bgrl.players.player import BoardPlayer, EquityPlayer, Evaluation, Player, RankedPlay
from bgrl.players.registry import load_player

__all__ = ["BoardPlayer", "EquityPlayer", "Evaluation", "Player", "RankedPlay", "load_player"]
