"""The first layer from boards equals the dense one over the encoder's inputs."""

import numpy as np
import pytest
import torch
from oracles.walk import random_boards

from bgrl.encoding import ENCODERS, get_encoder
from bgrl.nets import Net
from bgrl.train.first_layer import FirstLayer


@pytest.fixture(scope="module")
def boards():
    return random_boards(20)[:999]


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize("width", [1, 37, 128])
def test_values_and_gradients_are_the_dense_ones(boards, name, width):
    net = Net(get_encoder(name), (width,)).reset(1)
    first = net.layers[0]
    torch.nn.init.normal_(first.bias, generator=torch.Generator().manual_seed(2))
    pull = torch.randn(len(boards), width, generator=torch.Generator().manual_seed(3))
    results = []
    for hidden in (
        FirstLayer(net.encoder, 15)(first.weight, first.bias, boards),
        torch.relu(first(torch.from_numpy(net.encoder.encode(boards)))),
    ):
        gradients = torch.autograd.grad((hidden * pull).sum(), [first.weight, first.bias])
        results.append([hidden.detach(), *gradients])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6 * float(wanted.abs().max()))


def test_nan_is_not_swallowed(boards):
    net = Net(get_encoder("tesauro198"), (8,)).reset(1)
    weight = net.layers[0].weight.detach().clone()
    weight[3] = np.nan
    hidden = FirstLayer(net.encoder, 15)(weight, net.layers[0].bias, boards)
    assert hidden[:, 3].isnan().all()
    assert not hidden[:, 4].isnan().any()
