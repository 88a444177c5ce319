"""`bgrl bench`: how fast self-play and evaluation are here, on one core."""

import tempfile
import time
from pathlib import Path

import numpy as np

from bgrl.cli.compose import Launch
from bgrl.cli.config import BenchConfig
from bgrl.cli.nets import playing_net
from bgrl.data import read_positions
from bgrl.selfplay import generate

WARM_UP_GAMES = 50


def run(config: BenchConfig, launch: Launch) -> None:
    """Measure and print. The games are written to a temporary folder as a run would write them."""
    net = playing_net(config.player, config.net, config.variant, config.seed)
    with tempfile.TemporaryDirectory() as folder:
        games = WARM_UP_GAMES
        start = time.perf_counter()
        generate(net, Path(folder) / "warm", seed=config.seed, games=games, workers=0)
        # Compiled now: one short measurement says how many games fill the time asked for.
        for name in ("short", "long"):
            start = time.perf_counter()
            made = generate(net, Path(folder) / name, seed=config.seed, games=games, workers=0)
            seconds = time.perf_counter() - start
            games = max(games, round(games * config.seconds / seconds))
        boards = np.concatenate([read_positions(shard).boards for shard in made.shards])
    print(f"net {net.hash}, {made.rows / made.games:.1f} plies a game, one core")
    print(f"self-play, written to disk: {made.games / seconds:,.0f} games a second")
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < config.seconds:
        net.evaluate(boards[:10_000])
        done += len(boards[:10_000])
    print(f"evaluation: {done / (time.perf_counter() - start):,.0f} positions a second")
