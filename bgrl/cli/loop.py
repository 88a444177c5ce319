"""`bgrl loop`: generations of self-play, training and evaluation."""

from dataclasses import replace
from pathlib import Path

from bgrl.cli.compose import Launch, compose, positional
from bgrl.cli.config import LoopConfig
from bgrl.cli.describe import points
from bgrl.cli.nets import cores
from bgrl.cli.record import run_folder
from bgrl.errors import BgrlError
from bgrl.files import read_json
from bgrl.nets import Weights
from bgrl.pipeline import Loop, LoopResult


def run(config: LoopConfig, launch: Launch) -> None:
    """Run the loop, or go on with it, and print how its last net plays.

    A level that begins after another one begins with that one's net, and runs it first if it is not
    there.
    """
    loop = Loop(
        config.folder,
        generations=config.generations,
        games=config.selfplay.games,
        encoder=config.net.encoder,
        hidden=tuple(config.net.hidden),
        products=config.net.products,
        variant=config.variant,
        start=config.start,
        taught=config.taught,
        seed=config.seed,
        workers=cores() if config.workers is None else config.workers,
        lam=tuple(config.selfplay.lam),
        exact=tuple(config.selfplay.exact),
        pruner=config.selfplay.pruner,
        scatter=config.selfplay.scatter,
        overlap=config.selfplay.overlap,
        window=config.train.window,
        passes=config.train.passes,
        batch=config.train.batch,
        lr=config.train.lr,
        lr_end=config.train.lr_end,
        revive=config.train.revive,
        val_percent=config.train.val_percent,
        trainer=launch.resolved["trainer"],
        gate_games=config.gate.games if config.gate.enabled else 0,
        gate_z=config.gate.z,
        opponents=tuple(config.evaluate.opponents),
        opponent_games=config.evaluate.games,
        final_opponents=tuple(config.final.opponents),
        final_games=config.final.games,
        final_luck=config.final.luck,
        wandb=config.wandb,
        record=launch.resolved,
    )
    if config.taught and not (config.start or config.after):
        raise BgrlError("taught: there is no teacher without start or after")
    if config.after and not config.start:
        loop = replace(loop, start=_earlier(config, config.after))
    read = {"start": Weights.load(loop.start).hash} if loop.start else {}
    if config.selfplay.pruner:
        read["pruner"] = Weights.load(config.selfplay.pruner).hash
    with run_folder(config.folder, launch, config.seed, read):
        result = loop.run()
    print(table(result))


def _earlier(config: LoopConfig, level: str) -> Path:
    """The net of the level to begin after, in the folder beside this run's."""
    folder = config.folder.parent / level
    net = folder / "net"
    if not (net / "net.json").exists():
        # What is of the machine or the user holds for both, what is of the recipe does not.
        given = [f"seed={config.seed}", f"wandb={config.wandb}"]
        if config.workers is not None:
            given.append(f"workers={config.workers}")
        for key in ("device", "mixed_precision", "compile", "threads"):
            given.append(f"trainer.{key}={getattr(config.trainer, key)}")
        launch = compose(
            "loop", [f"level={level}", positional("loop", "folder", str(folder)), *given]
        )
        run(launch.config, launch)
    return net


def table(result: LoopResult) -> str:
    """How the last net plays and where everything is, as text."""
    games = read_json(result.net / "net.json")["made"]["games"]
    lines = [
        "",
        f"net {result.hash}, generation {result.generation}, after {games:,} games of self-play",
        "",
        f"{'against':<14}{'points a game':>17}{'games':>9}{'wins':>8}{'gammons':>18}",
    ]
    for row in result.rows:
        if row.match is None or not row.match["games"]:
            lines.append(f"{row.opponent:<14}   {row.reason or 'no games'}")
            continue
        rates = row.match["rates"]
        gammons = f"{rates['win_gammon']:.1%} to {rates['lose_gammon']:.1%}"
        lines.append(
            f"{row.opponent:<14}   {points(row.match):<14}"
            f"{row.match['games']:>9,}{rates['win']:>8.1%}{gammons:>18}"
        )
    if any(row.match and row.match["luck_by"] for row in result.rows):
        lines += ["", "Points are less the luck of the dice as the net sees it; wins as played."]
    return "\n".join(
        [
            *lines,
            "",
            f"net     {result.net}",
            f"report  {result.report}",
            f"onnx    {result.onnx or result.onnx_reason}",
        ]
    )
