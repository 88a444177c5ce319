"""Metrics: JSON lines, which are the truth, and Weights & Biases beside them if asked for."""

import json
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from bgrl.errors import BgrlError
from bgrl.files import is_integer

log = logging.getLogger(__name__)

WANDB_MODES = ("disabled", "offline", "online")


class MetricLog:
    """Appends metrics to a JSONL file, one line a call, each with its wall time.

    path: the file, whose folder also gets wandb's own files. wandb_mode: "disabled", "offline"
    (asks for no account; `wandb sync` uploads it later) or "online". project, name: of the wandb
    run, which keeps one identity, the file's folder, over all resumptions. config: shown there;
    plain data only.

    A run that was killed and resumed repeats the steps after its last checkpoint;
    :func:`read_metrics` keeps what came last.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        wandb_mode: str = "disabled",
        project: str = "bgrl",
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
    ):
        if wandb_mode not in WANDB_MODES:
            raise BgrlError(f"wandb_mode is {wandb_mode!r}, expected {', '.join(WANDB_MODES)}")
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115
        self._end_torn_line()
        self._run = None
        if wandb_mode != "disabled":
            import wandb  # takes a second

            self._run = wandb.init(
                mode=wandb_mode,  # type: ignore[arg-type]
                project=project,
                name=name or self.path.parent.name,
                id=_run_id(self.path.parent),
                resume="allow",
                dir=str(self.path.parent),
                config=json.loads(json.dumps(dict(config or {}))),
                settings=wandb.Settings(silent=True, console="off"),
            )
            # Steps of our own: wandb's counter starts at 0 again when an offline run is resumed.
            self._run.define_metric("*", step_metric="step")

    def _end_torn_line(self) -> None:
        """A process killed while writing leaves half a line, which must not swallow the next."""
        size = self.path.stat().st_size
        if size:
            with open(self.path, "rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    self._file.write("\n")
                    self._file.flush()

    def write(self, step: int, metrics: Mapping[str, float | int | str]) -> None:
        """Add one line: the step, the wall time (seconds since 1970) and `metrics`.

        A number that is not finite is written as null, since JSON has none.
        """
        line = {"step": step, "time": round(time.time(), 3), **metrics}
        self._file.write(json.dumps(_finite(line), allow_nan=False) + "\n")
        self._file.flush()
        if self._run is not None:
            self._run.log(line)

    def close(self) -> None:
        """Close the file and the wandb run."""
        self._file.close()
        if self._run is not None:
            self._run.finish()
            self._run = None

    def __enter__(self) -> "MetricLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_metrics(path: str | os.PathLike) -> list[dict[str, Any]]:
    """The lines of a metrics file, by generation, where they name one, and step.

    Of lines with equal step, generation and keys the last counts. A number that is not finite is
    None, as in what :class:`MetricLog` writes.
    A line that is not JSON (the last words of a killed process), or of which step or generation is
    no integer, or a value no scalar, is named in a warning and left out.
    """
    lines: dict[tuple, dict[str, Any]] = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            line = _line(text)
            if line is None:
                log.warning("left out: %s line %d is not a line of metrics", path, number)
            else:
                lines[line["step"], line.get("generation"), tuple(sorted(line))] = line
    return sorted(lines.values(), key=lambda line: (line.get("generation", 0), line["step"]))


def _line(text: str) -> dict[str, Any] | None:
    """What one line of a metrics file says, or None when it is no such line."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or any(isinstance(value, dict | list) for value in line.values()):
        return None
    numbers = is_integer(line.get("step")) and is_integer(line.get("generation", 0))
    return _finite(line) if numbers else None


def _finite(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line with None for numbers that are not finite, which JSON has not."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }


def _run_id(folder: Path) -> str:
    """wandb's identity of the run in `folder`, made once and kept there."""
    path = folder / "wandb_id"
    if not path.exists():
        path.write_text(os.urandom(4).hex(), encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()
