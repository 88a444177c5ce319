"""`bgrl export`: a net as a folder for apps."""

from pathlib import Path

from bgrl.cli.compose import Launch
from bgrl.cli.config import ExportConfig
from bgrl.errors import BgrlError
from bgrl.export import export_net
from bgrl.files import shipped
from bgrl.nets import Weights


def run(config: ExportConfig, launch: Launch) -> None:
    """Write the folder and print what it holds and how the comparison went."""
    weights = Weights.load(_checkpoint(config.net))
    print(export_net(weights, config.folder, config.positions, config.seed))


def _checkpoint(net: str) -> Path:
    """The checkpoint folder that `net` names: a folder, or a level in checkpoints/."""
    levels = shipped("checkpoints")
    for folder in (Path(net), levels / net):
        if (folder / "net.json").is_file():
            return folder
    known = ", ".join(sorted(file.parent.name for file in levels.glob("*/net.json"))) or "none yet"
    raise BgrlError(f"no net {net!r}: it is neither a checkpoint folder nor a level ({known})")
