"""Nets and players for the tests of matches."""

import pytest

from bgrl.encoding import get_encoder
from bgrl.nets import FastNet, Net
from bgrl.players.net import NetPlayer


@pytest.fixture(scope="session")
def net_player():
    """net_player(seed): an untrained net as a player, the same one every time."""
    made: dict[int, NetPlayer] = {}

    def make(seed: int = 1) -> NetPlayer:
        if seed not in made:
            net = Net(get_encoder("tesauro198"), (16,)).reset(seed)
            made[seed] = NetPlayer(FastNet.from_net(net), f"net{seed}")
        return made[seed]

    return make
