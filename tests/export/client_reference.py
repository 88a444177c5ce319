"""What bgrl computes, written down for the client's tests (bgrl/export/client/test/checks.ts)."""

import base64
import json
from pathlib import Path

import numpy as np

from bgrl.export.golden import clear
from bgrl.export.positions import kind_of, sampled_positions
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.nets import FastNet
from bgrl.players.bundle import Bundle
from bgrl.players.level import LevelPlayer
from bgrl.search import Searcher


def write_reference(
    bundle: Bundle, path: Path, positions: int, decisions: int, values: int, seed: int = 11
) -> None:
    """Write the reference of ``bundle``; the counts say how much of each."""
    random = np.random.default_rng(seed)
    first = next(iter(bundle.levels))
    net = FastNet(bundle.weights(first))
    boards = sampled_positions(net, positions, seed)
    going_on = [i for i in range(len(boards)) if kind_of(boards[i]) != "over"]
    players = [
        LevelPlayer(level, FastNet(bundle.weights(name))) for name, level in bundle.levels.items()
    ]
    rolls = []
    for board in boards[:decisions]:
        die1, die2 = _roll(random)
        rolls.append({"dice": [die1, die2], "finals": _base64(_finals(board, die1, die2))})
    choices = []
    while len(choices) < decisions:
        at = int(random.choice(going_on))
        die1, die2 = _roll(random)
        # Looking ahead takes long in the browser: such levels decide seldom.
        seldom = len(choices) % 20 == 0
        fit = [player for player in players if (player.level.plies > 0) == seldom] or players
        player = fit[len(choices) % len(fit)]
        plays, equities, _ = player.searcher.net.plays(boards[at], die1, die2)
        if len(plays) == 0 or not clear(equities):
            continue
        chance = float(random.random())
        chosen = player.choose_by(boards[at], die1, die2, chance)
        choices.append(
            {
                "level": player.name,
                "at": at,
                "dice": [die1, die2],
                "chance": chance,
                "board": _base64(chosen),
            }
        )
    looked = []
    for name, level in bundle.levels.items():
        searcher = Searcher(bundle.weights(name), level.plies, level.filters)
        for plies in range(1, level.plies + 1):
            for at in random.choice(going_on, values):
                value = searcher.evaluate(boards[at], plies)
                looked.append(
                    {
                        "level": name,
                        "at": int(at),
                        "plies": plies,
                        "probabilities": _base64(value),
                    }
                )
    reference = {
        "boards": _base64(boards),
        "probabilities": _base64(net.evaluate(boards)),
        "rolls": rolls,
        "choices": choices,
        "values": looked,
    }
    path.write_text(json.dumps(reference))


def _finals(board: np.ndarray, die1: int, die2: int) -> np.ndarray:
    """The positions int8[N, 2, 26] that the opponent can face; the sides swapped for a dance."""
    plays = new_play_buffer()
    n = generate_plays(board, die1, die2, plays)
    out = np.empty((max(n, 1), 2, 26), np.int8)
    out[0] = board[::-1]
    for i in range(n):
        apply_play(board, plays[i], out[i])
    return out


def _roll(random: np.random.Generator) -> tuple[int, int]:
    return int(random.integers(1, 7)), int(random.integers(1, 7))


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
