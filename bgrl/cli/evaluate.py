"""`bgrl evaluate`: a match between two players."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import EvaluateConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate import luck_evaluator, play_match
from bgrl.game import get_variant
from bgrl.players import EquityPlayer, load_player


def run(config: EvaluateConfig, launch: Launch) -> None:
    """Play the match, or what is left of it, and print its result."""
    if config.games < 2 or config.games % 2:
        raise BgrlError(f"evaluate: games is {config.games}, expected an even number from 2")
    variant = get_variant(config.variant)
    player = load_player(config.player, variant)
    opponent = load_player(config.opponent, variant)
    luck = None
    if config.luck is not None:
        judge = load_player(config.luck, variant)
        if not isinstance(judge, EquityPlayer):
            raise BgrlError(f"evaluate: luck={config.luck} estimates no equities")
        luck = luck_evaluator(judge)
    match = play_match(
        player,
        opponent,
        config.games // 2,
        config.seed,
        variant=variant,
        luck=luck,
        folder=config.folder,
        workers=cores() if config.workers is None else config.workers,
    )
    print(match)
