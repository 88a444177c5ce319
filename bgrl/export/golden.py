"""Golden vectors: positions with a net's inputs and outputs, for those who write them anew."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.export.onnx import LAYOUT, PERSPECTIVE
from bgrl.export.positions import KINDS, covering, kind_of
from bgrl.files import atomic_write_bytes, read_json
from bgrl.game import Position
from bgrl.game.board import HOME, OFF, SLOTS, loss_level
from bgrl.game.dice import ROLLS
from bgrl.game.outcomes import OUTPUTS, equity
from bgrl.game.plays import apply_play
from bgrl.nets import FastNet, Weights
from bgrl.players.level import Level, LevelPlayer
from bgrl.players.style import STYLES
from bgrl.search import Bearoff
from bgrl.search.bearoff import home_index

FORMAT = "bgrl.golden"
BEAROFF_FORMAT = "bgrl.bearoff.golden"
VERSION = 1
OF_EACH_KIND = 8
BEAROFF_CASES = 36
DECISIONS = 24
CHANCES = (0.0, 0.35, 0.7, 0.95)


def golden_vectors(
    weights: Weights,
    boards: np.ndarray,
    levels: Sequence[tuple[Level, FastNet | None]] = (),
    bearoff: Bearoff | None = None,
) -> dict[str, Any]:
    """A selection of ``boards`` int8[N, 2, 26] with what the net makes of each, as plain JSON.

    ``cases`` hold inputs, probabilities and equity. They start with the variant's starting
    position, and then have the first few of each kind and enough others to show every input at
    zero and above it, where some board does. ``decisions`` hold a roll on some of them: every final
    position with its equity by the net, best first, and what each of ``levels``, given with what
    prunes its search, plays, looking into ``bearoff``, for given random numbers in its own style
    (null) and in each of the others.
    """
    chosen = dict.fromkeys(i for kind in KINDS for i in _first(boards, kind))
    chosen |= dict.fromkeys(covering(weights.encoder, boards).tolist())
    start = weights.variant.start_board()
    selected = np.stack([start, *(boards[i] for i in chosen if (boards[i] != start).any())])
    inputs = weights.encoder.encode(selected)
    probabilities = FastNet(weights).evaluate(selected)
    equities = equity(probabilities.astype(np.float64), weights.variant.points)
    return {
        "format": FORMAT,
        "version": VERSION,
        "net": weights.hash,
        "variant": weights.variant.name,
        "encoder": {
            "name": weights.encoder.name,
            "version": weights.encoder.version,
            "hash": weights.encoder.hash,
        },
        "layout": LAYOUT,
        "perspective": PERSPECTIVE,
        "outputs": list(OUTPUTS),
        "cases": [
            {
                "kind": kind_of(board),
                "gnubg_id": Position(board, weights.variant).gnubg_id,
                "board": board.tolist(),
                "inputs": x.tolist(),
                "probabilities": p.tolist(),
                "equity": float(e),
            }
            for board, x, p, e in zip(selected, inputs, probabilities, equities, strict=True)
        ],
        "decisions": _decisions(weights, selected, levels, bearoff),
    }


def write_golden(golden: dict[str, Any], path: str | os.PathLike) -> Path:
    """Publish golden vectors as JSON, one case a line."""
    lines = []
    for key, value in golden.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(json.dumps(case, allow_nan=False) for case in value) + "\n]"
        lines.append(f"{json.dumps(key)}: {text}")
    atomic_write_bytes(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    return Path(path)


def bearoff_golden(bearoff: Bearoff, checkers: int, file: str) -> dict[str, Any]:
    """Golden vectors of a bear-off database, the file ``file`` of ``checkers``, as plain JSON.

    ``cases`` hold positions with both sides home, how many rolls each side needs with what chance
    (from 0 rolls on, and for the first checker null unless all are on the points), and the five
    probabilities.
    """
    random = np.random.default_rng(1)
    cases = []
    for case in range(BEAROFF_CASES):
        board = np.zeros((2, SLOTS), np.int8)
        for side, row in enumerate(board):
            left = int(random.integers(1, checkers + 1))
            lowest = 1
            if case < BEAROFF_CASES // 3:
                # One side may lose a gammon: it has nothing off yet, and the other is nearly done.
                if case % 2 == side:
                    left, lowest = checkers, 5
                else:
                    left = min(left, 3)
            np.add.at(row, random.integers(lowest, HOME + 1, left), 1)
            row[OFF] = checkers - left
        homes = [int(home_index(board, side)) for side in (0, 1)]
        cases.append(
            {
                "board": board.tolist(),
                "homes": homes,
                "all_off": [_trimmed(bearoff.rolls(row)) for row in board],
                "first_off": [
                    None if row[OFF] else _trimmed(bearoff.rolls_to_first(row)) for row in board
                ],
                "probabilities": bearoff.evaluate(board).tolist(),
            }
        )
    return {"format": BEAROFF_FORMAT, "version": VERSION, "file": file, "cases": cases}


def _trimmed(chances: np.ndarray) -> list[float]:
    """The chances up to the last above 0."""
    return np.trim_zeros(chances, "b").tolist()


def check_golden(path: str | os.PathLike, weights: Weights) -> float:
    """The largest difference between golden probabilities and those of ``weights``.

    Raises SchemaMismatch if the file holds no golden vectors of this version, EncoderMismatch if
    they are for another encoder, CorruptFile if an input is not what the encoder says, bit for bit.
    """
    golden = read_json(path)
    if not isinstance(golden, dict) or golden.get("format") != FORMAT:
        raise SchemaMismatch(f"{path} holds no golden vectors: its format is not {FORMAT!r}")
    if golden["version"] != VERSION:
        raise SchemaMismatch(f"{path} has version {golden['version']}; this bgrl reads {VERSION}")
    if golden["encoder"]["hash"] != weights.encoder.hash:
        raise EncoderMismatch(
            f"{path} is for encoder {golden['encoder']['name']} {golden['encoder']['hash']}, "
            f"and the net's is {weights.encoder.name} {weights.encoder.hash}"
        )
    boards = np.array([case["board"] for case in golden["cases"]], np.int8)
    inputs = np.array([case["inputs"] for case in golden["cases"]], np.float32)
    encoded = weights.encoder.encode(boards)
    if (inputs != encoded).any():
        case, i = np.argwhere(inputs != encoded)[0]
        raise CorruptFile(
            f"{path}: case {case}: input {i} ({weights.encoder.describe(int(i))}) is "
            f"{inputs[case, i]:g}, where the encoder gives {encoded[case, i]:g}"
        )
    expected = np.array([case["probabilities"] for case in golden["cases"]], np.float32)
    return float(np.abs(FastNet(weights).evaluate(boards) - expected).max())


def clear(equities: np.ndarray) -> bool:
    """Whether the ten best of a roll's ``equities`` are too far apart for rounding to reorder."""
    best = np.sort(equities.astype(np.float64))[::-1][:10]
    return bool((np.diff(best) < -2e-5).all())


def _decisions(
    weights: Weights,
    boards: np.ndarray,
    levels: Sequence[tuple[Level, FastNet | None]],
    bearoff: Bearoff | None,
) -> list[dict[str, Any]]:
    net = FastNet(weights)
    # A style shows where nothing is missed: at the chance 0.
    ways: list[tuple[LevelPlayer, str | None, float]] = []
    for level, pruner in levels:
        player = LevelPlayer(level, net, bearoff, pruner)
        ways += [(player, None, chance) for chance in CHANCES]
        for name, style in STYLES.items():
            if name != level.style.name:
                styled = LevelPlayer(replace(level, style=style), net, bearoff, pruner)
                ways.append((styled, name, 0.0))
    decisions: list[dict[str, Any]] = []
    for i, board in enumerate(boards):
        if len(decisions) == DECISIONS:
            break
        die1, die2 = (int(die) for die in ROLLS[i % len(ROLLS), :2])
        plays, equities, _ = net.plays(board, die1, die2)
        if loss_level(board) or not len(plays) or not clear(equities):
            continue
        after = np.empty((len(plays), 2, SLOTS), np.int8)
        for play, out in zip(plays, after, strict=True):
            apply_play(board, play, out)
        order = np.argsort(-equities, kind="stable")
        decisions.append(
            {
                "board": board.tolist(),
                "dice": [die1, die2],
                "plays": [
                    {"board": after[k].tolist(), "equity": float(equities[k])} for k in order
                ],
                "chosen": [
                    {
                        "level": player.level.name,
                        "style": style_name,
                        "chance": chance,
                        "board": player.choose_by(board, die1, die2, chance).tolist(),
                    }
                    for player, style_name, chance in ways
                ],
            }
        )
    return decisions


def _first(boards: np.ndarray, kind: str) -> Iterable[int]:
    found = [i for i, board in enumerate(boards) if kind_of(board) == kind]
    return found[:OF_EACH_KIND]
