"""`bgrl verify rules`: our rules against those of other engines."""

import os

from bgrl.cli.compose import Launch
from bgrl.cli.config import VerifyConfig
from bgrl.errors import BgrlError
from bgrl.evaluate.rules import compare_rules, engines_for
from bgrl.game import get_variant


def run(config: VerifyConfig, launch: Launch) -> None:
    """Print what was compared. Raises BgrlError if anything differs."""
    if config.what != "rules":
        raise BgrlError(f"verify: there is no {config.what!r} to verify, only 'rules'")
    variant = get_variant(config.variant)
    found = compare_rules(
        config.positions,
        config.players,
        variant,
        engines_for(variant) if config.engines is None else config.engines,
        config.seed,
        config.workers or os.cpu_count() or 1,
    )
    print(found.text(variant))
    if found.differences:
        raise BgrlError(f"verify: {found.differences:,} differences from other engines")
