"""The torch net: an encoder's inputs, ReLU layers or products of ReLUs, five sigmoids."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from bgrl.encoding import Encoder
from bgrl.game.board import BAR, HOME, OFF, POINTS, SLOTS
from bgrl.game.variants import BACKGAMMON, Variant
from bgrl.nets.weights import Weights, layer_shapes


class Net(nn.Module):
    """A multilayer perceptron over ``encoder``'s inputs.

    ``hidden`` gives the hidden layers' widths, first to last, at least one. ``variant`` is the
    game that it plays. With ``products`` each unit of the first hidden layer is the product of two
    ReLUs, so that it can see two features of a position at once (as in the nets of Stockfish,
    which multiply halves of their first layer).
    """

    encoder_slots: Tensor
    encoder_shift: Tensor
    encoder_scale: Tensor
    encoder_cap: Tensor

    def __init__(
        self,
        encoder: Encoder,
        hidden: Sequence[int] = (128, 32),
        variant: Variant = BACKGAMMON,
        products: bool = False,
    ):
        super().__init__()
        if not hidden or min(hidden) < 1:
            raise ValueError(f"hidden must name at least one layer of positive width: {hidden}")
        self.encoder = encoder
        self.hidden = tuple(hidden)
        self.variant = variant
        self.products = products
        self.layers = nn.ModuleList(
            nn.Linear(n_in, n_out)
            for n_out, n_in in layer_shapes(encoder.n_inputs, hidden, products)
        )
        for name in ("slots", "shift", "scale", "cap"):
            self.register_buffer(
                f"encoder_{name}", torch.from_numpy(getattr(encoder, name).copy()), persistent=False
            )

    @property
    def linears(self) -> list[nn.Linear]:
        """The dense layers, first to last."""
        return cast(list[nn.Linear], list(self.layers))

    def reset(self, seed: int) -> "Net":
        """Fresh weights from ``seed``: He's normal ones, and zero biases; returns the net.

        A unit that is a product begins with the variance of a ReLU.
        """
        generator = torch.Generator().manual_seed(seed)
        for i, layer in enumerate(self.linears):
            gain = 2.0 if i < len(self.layers) - 1 else 1.0
            if i == 0 and self.products:
                gain = 2.0**0.5
            nn.init.normal_(
                layer.weight, 0.0, (gain / layer.in_features) ** 0.5, generator=generator
            )
            nn.init.zeros_(layer.bias)
        return self

    def grown(self, hidden: Sequence[int], seed: int) -> "Net":
        """A wider net that computes the same: ``hidden`` gives its widths, none of them smaller.

        The units that are new have fresh weights from ``seed`` and, until they learn, no say.
        Raises ValueError for another depth or a narrower layer.
        """
        if len(hidden) != len(self.hidden) or any(
            new < old for new, old in zip(hidden, self.hidden, strict=True)
        ):
            raise ValueError(f"a net of {list(self.hidden)} can't grow to {list(hidden)}")
        net = Net(self.encoder, hidden, self.variant, self.products).reset(seed)
        with torch.no_grad():
            for i, (new, old) in enumerate(zip(net.linears, self.linears, strict=True)):
                halves = 2 if i == 0 and self.products else 1
                for new_w, old_w, new_b, old_b in zip(
                    new.weight.chunk(halves),
                    old.weight.chunk(halves),
                    new.bias.chunk(halves),
                    old.bias.chunk(halves),
                    strict=True,
                ):
                    n_out, n_in = old_w.shape
                    new_w[:n_out, n_in:] = 0.0
                    new_w[:n_out, :n_in] = old_w
                    new_b[:n_out] = old_b
        return net

    def encode(self, boards: Tensor) -> Tensor:
        """Inputs float32[N, n_inputs] of ``boards`` float32[N, 2, 26], the encoder's bits."""
        counts = boards.reshape(-1, 2 * SLOTS)[:, self.encoder_slots]
        ramps = (counts - self.encoder_shift) * self.encoder_scale
        return torch.minimum(ramps.clamp_min(0), self.encoder_cap)

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits [N, 5] of encoded ``inputs`` [N, n_inputs]."""
        return self.later_layers(torch.relu(self.linears[0](inputs)))

    def later_layers(self, rectified: Tensor) -> Tensor:
        """Logits [N, 5] from the ReLUs of the first layer's sums."""
        x = self.units(rectified)
        for layer in self.linears[1:-1]:
            x = torch.relu(layer(x))
        logits: Tensor = self.linears[-1](x)
        return logits

    def units(self, rectified: Tensor) -> Tensor:
        """The first hidden layer's units [N, width] from the ReLUs of its sums."""
        if not self.products:
            return rectified
        a, b = rectified.chunk(2, dim=1)
        return a * b

    def forward(self, boards: Tensor) -> Tensor:
        """The five probabilities float32[N, 5] of ``boards`` float32[N, 2, 26], clamped.

        The same as the numba twin's to rounding, except that a finished game is not looked for.
        """
        return clamp(torch.sigmoid(self.logits(self.encode(boards))), boards)

    def weights(self, made: dict[str, Any] | None = None) -> Weights:
        """A copy of the weights as numpy arrays."""
        layers = [
            (layer.weight.detach().cpu().float().numpy().copy(),
             layer.bias.detach().cpu().float().numpy().copy())
            for layer in self.linears
        ]  # fmt: skip
        return Weights(self.encoder, self.variant, layers, made or {})

    @classmethod
    def from_weights(cls, weights: Weights) -> "Net":
        """The torch net of ``weights``."""
        net = cls(weights.encoder, weights.hidden, weights.variant, weights.products)
        with torch.no_grad():
            for layer, (weight, bias) in zip(net.linears, weights.layers, strict=True):
                layer.weight.copy_(torch.from_numpy(weight))
                layer.bias.copy_(torch.from_numpy(bias))
        return net

    @property
    def hash(self) -> str:
        """12 hex digits that name the net: :attr:`bgrl.nets.weights.Weights.hash`."""
        return self.weights().hash

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return sum(p.numel() for p in self.parameters())


def clamp(p: Tensor, boards: Tensor) -> Tensor:
    """:func:`bgrl.game.outcomes.clamp` for p [N, 5] and boards float32 [N, 2, 26], as tensors.

    Written with arithmetic that exports to ONNX; the result is a new tensor.
    """
    win = p[:, 0].clamp(0, 1)
    none_off = 1 - boards[:, :, OFF].clamp(0, 1)  # 1 where that side can still lose a gammon
    behind = boards[:, :, POINTS - HOME + 1 :].sum(2).clamp(0, 1)  # 1 where one is in enemy home
    # The rearmost checker of each side; the sides can still meet if the two add up to 25 or more.
    slot = torch.arange(SLOTS, dtype=boards.dtype, device=boards.device)
    rearmost = (boards.clamp(0, 1) * slot).amax(2)
    contact = (rearmost.sum(1) - (BAR - 1)).clamp(0, 1)
    backgammon = torch.maximum(behind, contact[:, None])
    win_gammon = torch.minimum(p[:, 1], win) * none_off[:, 1]
    lose_gammon = torch.minimum(p[:, 3], 1 - win) * none_off[:, 0]
    win_backgammon = torch.minimum(p[:, 2], win_gammon) * backgammon[:, 1]
    lose_backgammon = torch.minimum(p[:, 4], lose_gammon) * backgammon[:, 0]
    return torch.stack([win, win_gammon, win_backgammon, lose_gammon, lose_backgammon], 1)


def boards_tensor(boards: np.ndarray) -> Tensor:
    """``boards`` int8[N, 2, 26] as the float32 tensor that :class:`Net` takes."""
    return torch.from_numpy(np.ascontiguousarray(boards, dtype=np.float32))


def save_net(net: Net, folder: str | os.PathLike, made: dict[str, Any] | None = None) -> Path:
    """Publish ``net`` as the checkpoint ``folder``, replacing one that is there.

    ``made`` says how it came to be (command, seed, commit, games, ...), as plain JSON values.
    """
    return net.weights(made).save(folder)


def load_net(folder: str | os.PathLike) -> Net:
    """The net of a checkpoint folder; raises as :meth:`Weights.load`."""
    return Net.from_weights(Weights.load(folder))
