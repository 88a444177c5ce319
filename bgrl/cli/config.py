"""The types of every stage's options. Values and what they mean stand in configs/<stage>.yaml.

Configs stop at the command line: the classes behind it take plain arguments.
"""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING


@dataclass
class NetConfig:
    encoder: str = MISSING
    hidden: list[int] = MISSING


@dataclass
class SelfplayConfig:
    folder: Path = MISSING
    net: Path | None = MISSING
    games: int = MISSING
    first_game: int = MISSING
    lam: float = MISSING
    generation: int = MISSING
    variant: str = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    untrained: NetConfig = field(default_factory=NetConfig)


@dataclass
class TrainConfig:
    folder: Path = MISSING
    data: list[Path] = MISSING
    start: Path | None = MISSING
    epochs: float = MISSING
    batch: int = MISSING
    lr: float = MISSING
    lr_end: float = MISSING
    seed: int = MISSING
    net: NetConfig = field(default_factory=NetConfig)


@dataclass
class EvaluateConfig:
    player: str = MISSING
    opponent: str = MISSING
    games: int = MISSING
    variant: str = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    out: Path | None = MISSING


@dataclass
class ExportConfig:
    net: str = MISSING
    folder: Path = MISSING
    positions: int = MISSING
    seed: int = MISSING


@dataclass
class LoopSelfplayConfig:
    games: int = MISSING
    lam: list[float] = MISSING


@dataclass
class LoopTrainConfig:
    window: int = MISSING
    epochs: float = MISSING
    batch: int = MISSING
    lr: float = MISSING
    lr_end: float = MISSING


@dataclass
class GateConfig:
    enabled: bool = MISSING
    games: int = MISSING
    z: float = MISSING


@dataclass
class FinalConfig:
    opponents: list[str] = MISSING
    games: int = MISSING


@dataclass
class LoopConfig:
    name: str = MISSING
    folder: Path = MISSING
    generations: int = MISSING
    variant: str = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    net: NetConfig = field(default_factory=NetConfig)
    selfplay: LoopSelfplayConfig = field(default_factory=LoopSelfplayConfig)
    train: LoopTrainConfig = field(default_factory=LoopTrainConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    final: FinalConfig = field(default_factory=FinalConfig)


@dataclass
class ReportConfig:
    run: Path = MISSING
    out: Path | None = MISSING


@dataclass
class DescribeConfig:
    path: Path = MISSING


@dataclass
class VerifyConfig:
    what: str = MISSING
    positions: int = MISSING
    players: list[str] = MISSING
    variant: str = MISSING
    engines: list[str] | None = MISSING
    seed: int = MISSING
    workers: int | None = MISSING


CONFIGS = {
    "loop": LoopConfig,
    "selfplay": SelfplayConfig,
    "train": TrainConfig,
    "evaluate": EvaluateConfig,
    "export": ExportConfig,
    "report": ReportConfig,
    "describe": DescribeConfig,
    "verify": VerifyConfig,
}
