"""What several stages ask for: a net by name, or an untrained one."""

import os
from typing import TYPE_CHECKING

from bgrl.cli.config import NetConfig
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.game import get_variant
from bgrl.nets import FastNet
from bgrl.players import load_player
from bgrl.players.net import NetPlayer

if TYPE_CHECKING:
    from bgrl.nets import Net


def untrained_net(config: NetConfig, variant: str, seed: int) -> "Net":
    """A net with fresh weights. Raises BgrlError for an unknown encoder or variant, or no layer."""
    from bgrl.nets import Net

    if not config.hidden or min(config.hidden) < 1:
        raise BgrlError(f"net.hidden is {config.hidden}, expected a width for each layer")
    net = Net(get_encoder(config.encoder), config.hidden, get_variant(variant), config.products)
    return net.reset(seed)


def playing_net(player: str | None, untrained: NetConfig, variant: str, seed: int) -> FastNet:
    """The net of a level or checkpoint folder, or an untrained one when `player` is None.

    Raises BgrlError when `player` is no net, or plays another variant.
    """
    if player is None:
        return FastNet.from_net(untrained_net(untrained, variant, seed))
    loaded = load_player(player, get_variant(variant))
    if not isinstance(loaded, NetPlayer):
        raise BgrlError(f"player {player!r} is not a net")
    return loaded.net


def cores() -> int:
    """How many processes the machine can run at once."""
    return os.cpu_count() or 1
