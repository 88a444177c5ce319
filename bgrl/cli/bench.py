"""`bgrl bench`: how fast and how small bgrl is here, beside other engines."""

from datetime import UTC, datetime
from pathlib import Path

from bgrl.bench import Settings, run_bench
from bgrl.bench.machine import describe_machine
from bgrl.bench.show import draw, print_tables
from bgrl.cli.compose import Launch
from bgrl.cli.config import BenchConfig
from bgrl.cli.record import git_state
from bgrl.files import atomic_write_json


def run(config: BenchConfig, launch: Launch) -> None:
    """Measure, write bench.json and the charts (bench-PART.… for one part), print the tables."""
    settings = Settings(
        net=config.net,
        repetitions=config.repetitions,
        seconds=config.seconds,
        batch=config.batch,
        sample=config.sample,
        window=config.window,
        games=config.games,
        seed=config.seed,
        profile=config.profile,
    )
    git = git_state(Path(__file__).resolve().parents[2])
    result = {
        "format": "bgrl.bench",
        "version": 1,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": launch.resolved,
        "commit": git and git["commit"],
        "changed": bool(git and git["diff"]),
        "machine": describe_machine(),
        **run_bench(config.what, settings),
    }
    name = "bench" if config.what == "all" else f"bench-{config.what}"
    atomic_write_json(config.out / f"{name}.json", result)
    for suffix in ("svg", "png"):
        draw(result, config.out / f"{name}.{suffix}")
    print_tables(result)
    print(f"{config.out / name}.json")
