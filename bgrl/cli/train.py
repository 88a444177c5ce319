"""`bgrl train`: a net from self-play data."""

from pathlib import Path

from bgrl.cli.compose import Launch
from bgrl.cli.config import TrainConfig
from bgrl.cli.nets import untrained_net
from bgrl.cli.record import run_folder
from bgrl.data import Window, WindowStream, is_complete
from bgrl.data.generations import MANIFEST
from bgrl.errors import BgrlError
from bgrl.files import sha256_file
from bgrl.nets import load_net, save_net
from bgrl.train import MetricLog, Schedule, Trainer


def run(config: TrainConfig, launch: Launch) -> None:
    """Train, or go on training, and publish the net."""
    folders = [generation for path in config.data for generation in generations(path)]
    window = Window(folders, config.val_percent)
    stream = WindowStream(window, config.batch, config.seed)
    steps = max(1, round(config.epochs * stream.steps_per_epoch))
    if config.start is None:
        net = untrained_net(config.net, window.variant.name, config.seed)
    else:
        net = load_net(config.start)
    manifests = [folder / MANIFEST for folder in folders]
    read = {str(manifest): sha256_file(manifest) for manifest in manifests}
    read["start"] = net.hash
    rate = Schedule(config.lr, steps, config.schedule, config.warmup, config.lr_end)
    trainer = Trainer(net, stream, rate, **launch.resolved["trainer"])
    with run_folder(config.folder, launch, config.seed, read):
        trainer.resume(config.folder / "train")
        metrics = config.folder / "metrics.jsonl"
        with MetricLog(metrics, config.wandb, name=config.name, config=launch.resolved) as log:
            last = trainer.train(
                steps,
                folder=config.folder / "train",
                checkpoint_every=config.checkpoint_every,
                metrics=log,
            )
        made = {"run": config.name, "seed": config.seed, "step": steps, "parent": read["start"]}
        folder = save_net(trainer.saved_net(), config.folder / "net", made)
    print(f"{folder}: net {trainer.saved_net().hash} after {steps:,} steps", end="")
    print(f", validation loss {last['val_loss']:.4f}" if "val_loss" in last else "")


def generations(path: Path) -> list[Path]:
    """`path` if it is a finished generation, else the finished generations in it, by name."""
    if is_complete(path):
        return [path]
    found = sorted(folder for folder in path.glob("*") if is_complete(folder))
    if not found:
        raise BgrlError(f"{path}: no finished generation there")
    return found
