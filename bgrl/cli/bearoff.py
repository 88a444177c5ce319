"""`bgrl bearoff`: build the bear-off databases."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import BearoffConfig
from bgrl.search.bearoff import Bearoff, build


def run(config: BearoffConfig, launch: Launch) -> None:
    """Build the databases, replacing those in the folder, and say what there is.

    Raises BgrlError, and leaves all as it is, if the folder holds anything else.
    """
    build(config.folder, config.checkers, config.pair_checkers)
    made = Bearoff.load(config.folder).description
    for kind in ("one_sided", "two_sided"):
        part = made[kind]
        print(
            f"{config.folder}: {kind.replace('_', '-')}, up to {part['checkers']} checkers a side, "
            f"{part['positions']:,} homes, {part['seconds']} s"
        )
