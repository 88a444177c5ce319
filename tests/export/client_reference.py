"""What bgrl computes, written down for the client's tests (bgrl/export/client/test/checks.ts)."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from bgrl.export.golden import clear
from bgrl.export.positions import kind_of
from bgrl.game.outcomes import equity
from bgrl.game.plays import apply_play, generate_plays, new_play_buffer
from bgrl.nets import FastNet, Weights
from bgrl.nets.flat import read_flat
from bgrl.players.bundle import Bundle
from bgrl.players.level import LevelPlayer
from bgrl.players.style import STYLES

ROUNDING = 1e-5


def write_reference(
    bundle: Bundle,
    path: Path,
    boards: np.ndarray,
    rolls: int,
    decisions: int,
    deep: int,
    values: int,
    seed: int = 11,
) -> None:
    """Write the reference of ``bundle``; the counts say how much of each.

    boards: int8[N, 2, 26], of which every net's probabilities are compared; rolls: of how many of
    them all plays and the first net's best one are;
    decisions: of each level that looks no further, half of them in its own style and the rest in
    the others; deep: likewise of each that does; values: positions looked into by each of those.
    """
    random = np.random.default_rng(seed)
    nets = {name: FastNet(read_flat(bundle.folder / f"{name}.bgnet")) for name in _nets(bundle)}
    going_on = [i for i in range(len(boards)) if kind_of(boards[i]) != "over"]
    listed = []
    first = next(iter(nets.values()))
    for board in boards[:rolls]:
        die1, die2 = _roll(random)
        finals = finals_of(board, die1, die2)
        best = best_play(first.evaluate(finals), first.variant.points)
        listed.append({"dice": [die1, die2], "finals": _base64(finals), "best": best})
    choices = []
    looked = []
    for name, level in bundle.levels.items():
        weights, small, bearoff = bundle.weights(name), bundle.pruner(name), bundle.bearoff(name)
        net, pruner = FastNet(weights), small and FastNet(small)
        others = [style for style in STYLES.values() if style.name != level.style.name]
        players: list[tuple[LevelPlayer, str | None]] = []
        for style in others:
            styled = LevelPlayer(replace(level, style=style), net, bearoff, pruner)
            players += [(LevelPlayer(level, net, bearoff, pruner), None), (styled, style.name)]
        wanted = deep if level.plies else decisions
        made = 0
        while made < wanted:
            player, style_name = players[made % len(players)]
            at = int(random.choice(going_on))
            die1, die2 = _roll(random)
            if not _certain(player, boards[at], die1, die2):
                continue
            chance = float(random.random())
            choices.append(
                {
                    "level": name,
                    "style": style_name,
                    "at": at,
                    "dice": [die1, die2],
                    "chance": chance,
                    "board": _base64(player.choose_by(boards[at], die1, die2, chance)),
                }
            )
            made += 1
        searcher = LevelPlayer(level, net, bearoff, pruner).searcher
        shaken = LevelPlayer(
            level, _shaken(weights, random), bearoff, small and _shaken(small, random)
        ).searcher
        for plies in range(1, level.plies + 1):
            for at in random.choice(going_on, values):
                value = searcher.evaluate(boards[at], plies)
                # Of plays that are equally good but for rounding, either may be looked into.
                if np.abs(value - shaken.evaluate(boards[at], plies)).max() > ROUNDING:
                    continue
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
        "probabilities": {name: _base64(net.evaluate(boards)) for name, net in nets.items()},
        "rolls": listed,
        "choices": choices,
        "values": looked,
    }
    path.write_text(json.dumps(reference))


def _shaken(weights: Weights, random: np.random.Generator) -> FastNet:
    """The net, each weight changed by about as much as rounding does."""
    layers = [
        (weight * (1 + 1e-6 * random.standard_normal(weight.shape)).astype(np.float32), bias)
        for weight, bias in weights.layers
    ]
    return FastNet(Weights(weights.encoder, weights.variant, layers))


def _nets(bundle: Bundle) -> list[str]:
    return list(bundle.record["nets"])


def _certain(player: LevelPlayer, board: np.ndarray, die1: int, die2: int) -> bool:
    """Whether rounding can't change what ``player`` does: no play is as good as the next or as a
    limit, but for rounding. What is left out is about one decision in fifty."""
    plays, equities, _ = player.searcher.net.plays(board, die1, die2)
    if len(plays) == 0 or not clear(equities):
        return False
    found = player.searcher.plays(board, die1, die2)
    lost = found.equities.max() - found.equities[found.plies == found.plies.max()]
    limits = [player.level.style.loss, *(chosen.threshold for chosen in _filters(player))]
    lost_at_first = equities.max() - equities
    return all(
        np.abs(np.concatenate([lost, lost_at_first]) - limit).min() > ROUNDING
        for limit in limits
        if limit > 0
    )


def _filters(player: LevelPlayer) -> list:
    return [chosen for chosen in player.level.filters.root if chosen and player.level.plies]


def best_play(theirs: np.ndarray, points: tuple[int, int, int]) -> int | None:
    """The play after which the opponent expects ``theirs`` float32[N, 5] the least of.

    None if another is as good but for rounding.
    """
    expected = equity(theirs.astype(np.float64), points)
    order = np.argsort(expected, kind="stable")
    if len(order) > 1 and expected[order[1]] - expected[order[0]] <= ROUNDING:
        return None
    return int(order[0])


def finals_of(board: np.ndarray, die1: int, die2: int) -> np.ndarray:
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
