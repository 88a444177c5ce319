"""Training positions for tests: randomly played games with a target that a net can learn."""

from pathlib import Path

import numpy as np

from bgrl.data import Generation, Positions, ShardMeta, ShardWriter, publish_generation, shard_path

from .walk import random_boards


def pip_lead_targets(boards: np.ndarray) -> np.ndarray:
    """float32[N, 5] that depend on the pip counts: who is ahead is likelier to win."""
    pips = boards @ np.arange(26)
    win = 1 / (1 + np.exp((pips[:, 0] - pips[:, 1]) / 25))
    out = np.zeros((len(boards), 5), np.float32)
    out[:, 0] = win
    out[:, 1] = np.where(boards[:, 1, 0] > 0, 0, 0.3 * win)
    out[:, 3] = np.where(boards[:, 0, 0] > 0, 0, 0.3 * (1 - win))
    return out


def positions(games: int, seed: int = 1, first_game: int = 0) -> Positions:
    """Every position of some random games, numbered from `first_game`."""
    boards = random_boards(games, seed)
    # A game begins where both sides stand as at the start, borne-off slot included.
    starts = (boards == boards[0]).all(axis=(1, 2))
    number = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)[number]
    ply = np.arange(len(boards)) - first
    return Positions(
        boards,
        pip_lead_targets(boards),
        np.where(ply % 2 == 0, 1, -1).astype(np.int8),
        (number + first_game).astype(np.int64),
        ply.astype(np.int16),
    )


META = ShardMeta("0123456789ab", 1, "backgammon", seed=1, lam=0.7, created="2026-01-01T00:00:00")


def write(rows: Positions, path: Path, meta: ShardMeta = META, row_group_rows: int = 2048) -> None:
    """One shard of `rows`."""
    with ShardWriter(path, meta, row_group_rows) as writer:
        writer.write(rows.boards, rows.targets, rows.outcomes, rows.games, rows.plies)


def generation(folder: Path, games: int = 40, shards: int = 2, first_game: int = 0) -> Generation:
    """A published generation of `games` random games in each of some shards."""
    for part in range(shards):
        first = first_game + part * games
        write(positions(games, first + 1, first), shard_path(folder, part))
    return publish_generation(folder)
