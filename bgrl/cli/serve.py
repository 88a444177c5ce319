"""`bgrl serve`: a player for the program gnubg to play against."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import ServeConfig
from bgrl.errors import BgrlError
from bgrl.game import get_variant
from bgrl.players import load_player
from bgrl.players.external import ExternalPlayer


def run(config: ServeConfig, launch: Launch) -> None:
    """Answer gnubg's questions until interrupted."""
    if not 0 <= config.port < 1 << 16:
        raise BgrlError(f"serve: port is {config.port}, expected 0 to {(1 << 16) - 1}")
    player = load_player(config.player, get_variant(config.variant))

    def log(text: str) -> None:
        print(text, flush=True)

    with ExternalPlayer(
        player, config.host, config.port, config.seed, log=log, exchanges=config.log
    ) as server:
        log(
            f"{player.name} plays; in gnubg: set player 1 external localhost:{server.port} "
            "(Ctrl-C ends)"
        )
        server.serve_forever()
