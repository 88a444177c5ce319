"""`bgrl reference`: build the reference positions."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import ReferenceConfig
from bgrl.cli.nets import cores
from bgrl.errors import BgrlError
from bgrl.evaluate import luck_evaluator
from bgrl.evaluate.reference import Reference, add_rollouts, build_reference
from bgrl.players import EquityPlayer, load_player


def run(config: ReferenceConfig, launch: Launch) -> None:
    """Draw and judge the positions, then roll out the hard ones; what is there is kept."""
    luck = None
    if config.rollout.luck is not None:
        judge = load_player(config.rollout.luck)
        if not isinstance(judge, EquityPlayer):
            raise BgrlError(f"reference: rollout.luck={config.rollout.luck} estimates no equities")
        luck = luck_evaluator(judge)
    workers = cores() if config.workers is None else config.workers
    if not config.path.exists():
        build_reference(config.path, config.count, config.seed, config.judge, workers)
    if config.rollout.count:
        add_rollouts(
            config.path,
            config.rollout.count,
            config.rollout.games,
            config.seed,
            config.rollout.player,
            luck,
            workers,
        )
    reference = Reference.load(config.path)
    print(f"{config.path}: {len(reference.decisions):,} decisions by {reference.made['judge']}")
