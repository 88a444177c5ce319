"""`bgrl selfplay`: one generation of games."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import SelfplayConfig
from bgrl.cli.nets import cores, playing_net
from bgrl.cli.record import run_folder
from bgrl.nets import FastNet
from bgrl.search import Bearoff
from bgrl.selfplay import generate


def run(config: SelfplayConfig, launch: Launch) -> None:
    """Play the games, or those that are missing, and say what there is."""
    net = playing_net(config.player, config.net, config.variant, config.seed)
    read = {"net": net.hash}
    pruner = None
    if config.pruner:
        pruner = FastNet.load(config.pruner)
        read["pruner"] = pruner.hash
    bearoff = Bearoff.open() if config.exact else None
    if bearoff:
        read["bearoff"] = bearoff.hash
    with run_folder(config.folder, launch, config.seed, read):
        made = generate(
            net,
            config.folder / "shards" / f"gen-{config.generation:04d}",
            seed=config.seed,
            games=config.games,
            first_game=config.first_game,
            generation=config.generation,
            lam=config.lam,
            exact=config.exact,
            bearoff=bearoff,
            pruner=pruner,
            scatter=config.scatter,
            workers=cores() if config.workers is None else config.workers,
        )
    given_up = f", {made.truncated_games:,} games given up" if made.truncated_games else ""
    print(f"{made.folder}: {made.games:,} games, {made.rows:,} positions{given_up}")
