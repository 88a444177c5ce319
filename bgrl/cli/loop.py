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
from bgrl.search import Bearoff


def run(config: LoopConfig, launch: Launch) -> None:
    """Run the loop, or go on with it, and print how its last net plays.

    A level that begins after another one begins with that one's net, and runs it first if it is not
    there.
    """
    start: Path | None = None
    for loop, each in _runs(config, launch):
        start = _run(replace(loop, start=start) if start else loop, each)


def _runs(config: LoopConfig, launch: Launch) -> list[tuple[Loop, Launch]]:
    """The run, after those of the levels before it that are not there, each with its command line.

    Each run but the first begins with the net of the one before. Raises BgrlError when one can't,
    rather than after the hours that those before it take.
    """
    loop = _loop(config, launch)
    if config.start or not config.after:
        if config.taught and not config.start:
            raise BgrlError("taught: there is no teacher without start or after")
        return [(loop, launch)]
    folder = config.folder.parent / config.after
    if _is_finished(folder):
        return [(replace(loop, start=folder / "net"), launch)]
    earlier = _earlier(config, config.after, folder)
    runs = _runs(earlier.config, earlier)
    loop.check_start(f"after: {config.after}", runs[-1][0].shape)
    return [*runs, (loop, launch)]


def _is_finished(folder: Path) -> bool:
    """Whether a net is there and its run, if it has one, went on to measure it."""
    unmeasured = (folder / "state.json").exists() and not (folder / "result.json").exists()
    return (folder / "net" / "net.json").exists() and not unmeasured


def _earlier(config: LoopConfig, level: str, folder: Path) -> Launch:
    """The command line of the level to begin after, in `folder`."""
    # What is of the machine or the user holds for both, what is of the recipe does not.
    given = [f"seed={config.seed}", f"wandb={config.wandb}"]
    if config.workers is not None:
        given.append(f"workers={config.workers}")
    for key in ("device", "mixed_precision", "compile", "threads"):
        given.append(f"trainer.{key}={getattr(config.trainer, key)}")
    return compose("loop", [f"level={level}", positional("loop", "folder", str(folder)), *given])


def _run(loop: Loop, launch: Launch) -> Path:
    """Run one loop, print how its last net plays, and return where that is."""
    read = {"start": Weights.load(loop.start).hash} if loop.start else {}
    if loop.pruner:
        read["pruner"] = Weights.load(loop.pruner).hash
    if any(loop.exact):
        read["bearoff"] = Bearoff.open().hash
    with run_folder(loop.folder, launch, loop.seed, read):
        result = loop.run()
    print(table(result))
    return result.net


def _loop(config: LoopConfig, launch: Launch) -> Loop:
    """The loop that a command line asks for, without the net of a level before it."""
    return Loop(
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
