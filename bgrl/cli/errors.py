"""`bgrl errors`: how much players err on the reference positions."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import ErrorsConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate.errors import errors_json, measure, read_benchmark, score_benchmark
from bgrl.evaluate.reference import Reference
from bgrl.evaluate.report import Report
from bgrl.evaluate.stats import error_text
from bgrl.players import load_player


def run(config: ErrorsConfig, launch: Launch) -> None:
    """Measure each player; print its figures and where the report is."""
    if not config.players:
        raise BgrlError("errors: players names nobody")
    if config.benchmark is not None and config.reference is not None:
        raise BgrlError("errors: give reference or benchmark, not both")
    players = [load_player(spec) for spec in config.players]
    if config.benchmark is not None:
        lines = read_benchmark(config.benchmark)
        if not lines:
            raise BgrlError(f"errors: {config.benchmark} has no line `m …` with a decision")
        for player in players:
            rate = score_benchmark(player, lines)
            print(
                f"{player.name}: mean error {1000 * rate.mean:.2f} "
                f"{error_text(1000 * rate.standard_error, 2)} mEq, {rate.decisions:,} decisions"
            )
        return
    reference = Reference.load(config.reference)
    workers = cores() if config.workers is None else config.workers
    measurements = [measure(player, reference.decisions, workers) for player in players]
    report = Report(
        "Errors", f"{len(reference.decisions):,} decisions by {reference.made['judge']}"
    )
    report.add_errors(errors_json(measurements))
    for measurement in measurements:
        print(measurement)
    print(report.write(config.folder))
