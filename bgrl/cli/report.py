"""`bgrl report`: a run as one HTML file."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import ReportConfig
from bgrl.errors import BgrlError
from bgrl.evaluate.report import run_report
from bgrl.train import read_metrics


def run(config: ReportConfig, launch: Launch) -> None:
    """Write the report of what the run has done so far and print where it is."""
    metrics = config.run / "metrics.jsonl"
    if not metrics.is_file():
        raise BgrlError(f"{config.run} is no run folder with metrics: it has no metrics.jsonl")
    print(
        run_report(config.run, read_metrics(metrics), config.folder, config.ladder, config.errors)
    )
