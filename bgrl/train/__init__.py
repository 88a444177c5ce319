"""The trainer: from positions with targets to a net."""

from bgrl.train.metrics import MetricLog, read_metrics
from bgrl.train.schedule import Schedule
from bgrl.train.trainer import Trainer, check_options, checkpoints

__all__ = ["MetricLog", "Schedule", "Trainer", "check_options", "checkpoints", "read_metrics"]
