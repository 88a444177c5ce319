"""`bgrl export`: levels or a net as a bundle for apps."""

from pathlib import Path

from bgrl.cli.compose import Launch
from bgrl.cli.config import ExportConfig
from bgrl.errors import BgrlError
from bgrl.export import export_levels
from bgrl.files import read_json, shipped
from bgrl.nets import Weights
from bgrl.players.level import Level


def run(config: ExportConfig, launch: Launch) -> None:
    """Write the bundle and print what it holds and how the comparison went."""
    if (config.net is None) == (config.level is None):
        raise BgrlError("export: give net=FOLDER or level=NAME (or level=all), and not both")
    if config.net is not None:
        levels = [(Level("net"), Weights.load(config.net))]
    else:
        levels = shipped_levels(shipped("checkpoints"), config.level or "")
    print(export_levels(levels, config.folder, config.positions, config.seed, coreml=config.coreml))


def shipped_levels(checkpoints: Path, wanted: str) -> list[tuple[Level, Weights]]:
    """The level called `wanted` in `checkpoints`, or all of them, with their nets.

    A level is a folder with a net, a ``level.json`` that says how it plays, or both. Without a net
    of its own it names another folder's as ``net``; without ``level.json`` it plays its best.
    Raises BgrlError for an unknown level.
    """
    known = sorted(
        folder.name
        for folder in checkpoints.iterdir()
        if (folder / "net.json").is_file() or (folder / "level.json").is_file()
    )
    if not known or wanted not in (*known, "all"):
        raise BgrlError(f"no level {wanted!r} in {checkpoints}; it has {known or 'none yet'}")
    levels = []
    for name in known if wanted == "all" else [wanted]:
        path = checkpoints / name / "level.json"
        data = read_json(path) if path.is_file() else Level(name).to_json()
        net = data.get("net", name) if isinstance(data, dict) else name
        levels.append((Level.from_json(data, str(path)), Weights.load(checkpoints / net)))
    return levels
