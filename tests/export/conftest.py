import pytest

from bgrl.encoding import get_encoder
from bgrl.game import get_variant
from bgrl.nets import Net, Weights


def made_up_weights(
    encoder: str = "tesauro198", hidden=(40, 12), variant: str = "backgammon", seed: int = 1
) -> Weights:
    """An untrained net with large weights, so that its answers go everywhere from 0 to 1."""
    net = Net(get_encoder(encoder), hidden, get_variant(variant)).reset(seed)
    weights = net.weights({"command": "a test"})
    layers = [(3 * weight, bias) for weight, bias in weights.layers]
    return Weights(weights.encoder, weights.variant, layers, weights.made)


@pytest.fixture(scope="session")
def weights() -> Weights:
    return made_up_weights()


@pytest.fixture
def make_weights():
    return made_up_weights
