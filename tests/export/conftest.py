import shutil
import subprocess
from pathlib import Path

import pytest

from bgrl.encoding import get_encoder
from bgrl.game import get_variant
from bgrl.nets import Net, Weights

CLIENT = Path(__file__).parents[2] / "bgrl" / "export" / "client"


def made_up_weights(
    encoder: str = "tesauro198",
    hidden=(40, 12),
    variant: str = "backgammon",
    seed: int = 1,
    products: bool = False,
) -> Weights:
    """An untrained net with large weights, so that its answers go everywhere from 0 to 1."""
    net = Net(get_encoder(encoder), hidden, get_variant(variant), products).reset(seed)
    weights = net.weights({"command": "a test"})
    layers = [(3 * weight, bias) for weight, bias in weights.layers]
    return Weights(weights.encoder, weights.variant, layers, weights.made)


@pytest.fixture(scope="session")
def weights() -> Weights:
    return made_up_weights(products=True)


@pytest.fixture
def make_weights():
    return made_up_weights


@pytest.fixture(scope="session")
def built() -> Path:
    """The client's folder, compiled; skips where Node or its packages are missing."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if not (CLIENT / "node_modules" / "typescript").is_dir():
        pytest.skip(f"the client's packages are not installed: npm ci in {CLIENT}")
    compiled = subprocess.run(
        ["node", "node_modules/typescript/bin/tsc"], cwd=CLIENT, capture_output=True, text=True
    )
    assert compiled.returncode == 0, compiled.stdout
    return CLIENT
