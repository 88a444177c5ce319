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
    products: bool = MISSING


@dataclass
class TrainerConfig:
    """Arguments of bgrl.train.Trainer."""

    optimizer: str = MISSING
    weight_decay: float = MISSING
    grad_clip: float = MISSING
    average: float = MISSING
    equity_weight: float = MISSING
    race_weight: float = MISSING
    device: str = MISSING
    mixed_precision: bool = MISSING
    compile: bool = MISSING
    threads: int = MISSING


@dataclass
class SelfplayConfig:
    name: str = MISSING
    folder: Path = MISSING
    player: str | None = MISSING
    net: NetConfig = field(default_factory=NetConfig)
    variant: str = MISSING
    games: int = MISSING
    first_game: int = MISSING
    generation: int = MISSING
    lam: float = MISSING
    exact: bool = MISSING
    pruner: Path | None = MISSING
    scatter: float = MISSING
    seed: int = MISSING
    workers: int | None = MISSING


@dataclass
class TrainConfig:
    name: str = MISSING
    folder: Path = MISSING
    data: list[Path] = MISSING
    start: Path | None = MISSING
    net: NetConfig = field(default_factory=NetConfig)
    epochs: float = MISSING
    batch: int = MISSING
    lr: float = MISSING
    lr_end: float = MISSING
    schedule: str = MISSING
    warmup: int = MISSING
    val_percent: int = MISSING
    checkpoint_every: int = MISSING
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    seed: int = MISSING
    wandb: str = MISSING


@dataclass
class EvaluateConfig:
    player: str = MISSING
    opponent: str = MISSING
    games: int = MISSING
    variant: str = MISSING
    luck: str | None = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    folder: Path | None = MISSING


@dataclass
class LadderConfig:
    players: list[str] = MISSING
    anchor: str = MISSING
    anchor_rating: float = MISSING
    scale: float = MISSING
    games: int = MISSING
    variant: str = MISSING
    luck: str | None = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    folder: Path = MISSING


@dataclass
class CalibrateConfig:
    level: str = MISSING
    rating: float | None = MISSING
    pr: float | None = MISSING
    net: str | None = MISSING
    pruner: str | None = MISSING
    plies: int | None = MISSING
    miss_rate: float | None = MISSING
    miss_depth: int | None = MISSING
    style: str | None = MISSING
    anchor: str = MISSING
    anchor_rating: float = MISSING
    scale: float = MISSING
    games: int = MISSING
    check_games: int = MISSING
    luck: str | None = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    folder: Path = MISSING


@dataclass
class ErrorsConfig:
    players: list[str] = MISSING
    reference: Path | None = MISSING
    benchmark: Path | None = MISSING
    workers: int | None = MISSING
    folder: Path = MISSING


@dataclass
class RolloutConfig:
    count: int = MISSING
    games: int = MISSING
    player: str = MISSING
    luck: str | None = MISSING


@dataclass
class ReferenceConfig:
    path: Path = MISSING
    count: int = MISSING
    seed: int = MISSING
    judge: str = MISSING
    workers: int | None = MISSING
    rollout: RolloutConfig = field(default_factory=RolloutConfig)


@dataclass
class ExportConfig:
    net: str | None = MISSING
    level: str | None = MISSING
    small: list[str] = MISSING
    folder: Path = MISSING
    coreml: bool = MISSING
    positions: int = MISSING
    games: int = MISSING
    seed: int = MISSING
    workers: int | None = MISSING


@dataclass
class DemoConfig:
    bundle: Path = MISSING
    folder: Path = MISSING
    port: int = MISSING


@dataclass
class ServeConfig:
    player: str = MISSING
    host: str = MISSING
    port: int = MISSING
    variant: str = MISSING
    seed: int = MISSING
    log: bool = MISSING


@dataclass
class LoopSelfplayConfig:
    games: int = MISSING
    lam: list[float] = MISSING
    exact: list[float] = MISSING
    pruner: Path | None = MISSING
    scatter: float = MISSING
    overlap: bool = MISSING


@dataclass
class LoopTrainConfig:
    window: int = MISSING
    passes: float = MISSING
    batch: int = MISSING
    lr: float = MISSING
    lr_end: float = MISSING
    revive: float = MISSING
    val_percent: int = MISSING


@dataclass
class GateConfig:
    enabled: bool = MISSING
    games: int = MISSING
    z: float = MISSING


@dataclass
class MatchesConfig:
    opponents: list[str] = MISSING
    games: int = MISSING


@dataclass
class FinalConfig(MatchesConfig):
    luck: bool = MISSING


@dataclass
class LoopConfig:
    name: str = MISSING
    folder: Path = MISSING
    generations: int = MISSING
    variant: str = MISSING
    start: Path | None = MISSING
    after: str | None = MISSING
    taught: float = MISSING
    seed: int = MISSING
    workers: int | None = MISSING
    net: NetConfig = field(default_factory=NetConfig)
    selfplay: LoopSelfplayConfig = field(default_factory=LoopSelfplayConfig)
    train: LoopTrainConfig = field(default_factory=LoopTrainConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    evaluate: MatchesConfig = field(default_factory=MatchesConfig)
    final: FinalConfig = field(default_factory=FinalConfig)
    wandb: str = MISSING


@dataclass
class ReportConfig:
    run: Path = MISSING
    ladder: Path | None = MISSING
    errors: Path | None = MISSING
    folder: Path | None = MISSING


@dataclass
class DescribeConfig:
    path: Path = MISSING


@dataclass
class BenchConfig:
    what: str = MISSING
    net: str | None = MISSING
    repetitions: int = MISSING
    seconds: float = MISSING
    batch: int = MISSING
    sample: int = MISSING
    window: int = MISSING
    games: int = MISSING
    seed: int = MISSING
    profile: bool = MISSING
    out: Path = MISSING


@dataclass
class VerifyConfig:
    what: str = MISSING
    positions: int = MISSING
    players: list[str] = MISSING
    variant: str = MISSING
    engines: list[str] | None = MISSING
    seed: int = MISSING
    workers: int | None = MISSING


@dataclass
class BearoffConfig:
    folder: Path = MISSING
    checkers: int = MISSING
    pair_checkers: int = MISSING


CONFIGS = {
    "loop": LoopConfig,
    "selfplay": SelfplayConfig,
    "train": TrainConfig,
    "evaluate": EvaluateConfig,
    "ladder": LadderConfig,
    "calibrate": CalibrateConfig,
    "errors": ErrorsConfig,
    "reference": ReferenceConfig,
    "export": ExportConfig,
    "demo": DemoConfig,
    "serve": ServeConfig,
    "report": ReportConfig,
    "describe": DescribeConfig,
    "verify": VerifyConfig,
    "bench": BenchConfig,
    "bearoff": BearoffConfig,
}
