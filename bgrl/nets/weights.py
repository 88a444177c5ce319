"""A net's weights as numpy arrays, and on disk as a checkpoint folder.

A checkpoint holds ``net.safetensors`` and ``net.json``, nothing that unpickles. Reading one needs
no torch, so players and self-play workers start fast and stay small.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from bgrl.encoding import Encoder, get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.files import atomic_dir, atomic_write_bytes, atomic_write_json, read_json
from bgrl.game.variants import Variant, get_variant

FORMAT = "bgrl.net"
VERSION = 1
WEIGHTS_FILE = "net.safetensors"
DESCRIPTION_FILE = "net.json"
OUTPUTS = 5


@dataclass(frozen=True)
class Weights:
    """A net as data: dense ``layers`` over ``encoder``'s inputs, ReLU between, sigmoids at the end.

    Each layer is (weight float32[out, in], bias float32[out]); the last one has five outputs. The
    first one may have twice as many outputs as the second has inputs: then each of its units is a
    product of two ReLUs, output i's and output i + width's (:attr:`products`). ``made`` says how
    the net came to be, as plain JSON values; it is no part of its identity.
    """

    encoder: Encoder
    variant: Variant
    layers: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def hidden(self) -> tuple[int, ...]:
        """The hidden layers' widths, first to last."""
        return tuple(weight.shape[1] for weight, _ in self.layers[1:])

    @property
    def products(self) -> bool:
        """Whether the first hidden layer's units are products of two ReLUs."""
        return len(self.layers[0][1]) != self.hidden[0]

    @property
    def shape(self) -> str:
        """The layers in words, such as ``324 → 1024 products → 64 → 5``."""
        first, *others = self.hidden
        units = f"{first} products" if self.products else f"{first}"
        return " → ".join(map(str, (self.encoder.n_inputs, units, *others, OUTPUTS)))

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return sum(weight.size + bias.size for weight, bias in self.layers)

    @property
    def hash(self) -> str:
        """12 hex digits of the SHA-256 of encoder, variant and weights: the net's name."""
        digest = hashlib.sha256(f"{self.encoder.hash} {self.variant.name}".encode())
        for layer in self.layers:
            for array in layer:
                digest.update(str(array.shape).encode())
                digest.update(np.ascontiguousarray(array, "<f4").tobytes())
        return digest.hexdigest()[:12]

    def save(self, folder: str | os.PathLike) -> Path:
        """Publish as the checkpoint ``folder``, replacing one that is there."""
        with atomic_dir(folder) as beside:
            self.write(beside)
        return Path(folder)

    def write(self, folder: Path) -> None:
        """Write a checkpoint's two files into an existing ``folder``."""
        tensors = {
            _tensor_name(i, k): np.ascontiguousarray(array, np.float32)
            for i, layer in enumerate(self.layers)
            for k, array in enumerate(layer)
        }
        atomic_write_bytes(folder / WEIGHTS_FILE, save_tensors(tensors))
        description = {
            "format": FORMAT,
            "version": VERSION,
            "hash": self.hash,
            "variant": self.variant.name,
            "encoder": {
                "name": self.encoder.name,
                "version": self.encoder.version,
                "hash": self.encoder.hash,
            },
            "hidden": list(self.hidden),
            "products": self.products,
            "parameters": self.n_parameters,
            "made": self.made,
        }
        atomic_write_json(folder / DESCRIPTION_FILE, description)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Weights":
        """Read a checkpoint folder and check it against its recorded hash.

        Raises as :func:`read_description` does; BgrlError for an encoder or a variant that this
        bgrl does not know; EncoderMismatch if its encoder of that name has another hash;
        CorruptFile if the weights are cut short, of other shapes, not finite, or not those that the
        hash names. Each names the file.
        """
        folder = Path(folder)
        description = read_description(folder)
        try:
            encoder = get_encoder(description["encoder"]["name"])
            variant = get_variant(description["variant"])
        except BgrlError as error:
            raise BgrlError(f"{folder / DESCRIPTION_FILE}: {error}") from error
        if encoder.hash != description["encoder"]["hash"]:
            raise EncoderMismatch(
                f"{folder / DESCRIPTION_FILE}: the net was made with encoder {encoder.name} "
                f"{description['encoder']['hash']}, but here {encoder.name} is {encoder.hash}"
            )
        matrices = layer_shapes(
            encoder.n_inputs, description["hidden"], description.get("products", False)
        )
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (n_out, n_in) in enumerate(matrices):
            shapes[_tensor_name(i, 0)] = (n_out, n_in)
            shapes[_tensor_name(i, 1)] = (n_out,)
        tensors = _read_tensors(folder / WEIGHTS_FILE, shapes)
        layers = [
            (tensors[_tensor_name(i, 0)], tensors[_tensor_name(i, 1)]) for i in range(len(matrices))
        ]
        made = description.get("made", {})
        weights = cls(encoder, variant, layers, made)
        if weights.hash != description["hash"]:
            raise CorruptFile(
                f"{folder / WEIGHTS_FILE}: the weights' hash is {weights.hash}, "
                f"but {DESCRIPTION_FILE} names {description['hash']}"
            )
        return weights


def layer_shapes(
    n_inputs: int, hidden: Sequence[int], products: bool = False
) -> list[tuple[int, int]]:
    """(outputs, inputs) of each layer's matrix, as :class:`Weights` has them."""
    shapes = [(n_out, n_in) for n_in, n_out in pairwise([n_inputs, *hidden, OUTPUTS])]
    if products:
        shapes[0] = (2 * hidden[0], n_inputs)
    return shapes


def _tensor_name(layer: int, part: int) -> str:
    return f"layers.{layer}.{('weight', 'bias')[part]}"


def _read_tensors(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    try:
        tensors = load_tensors(path.read_bytes())
    except OSError as error:
        raise CorruptFile(f"{path}: cannot be read: {error.strerror}") from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise CorruptFile(f"{path}: not a whole safetensors file: {error}") from error
    if tensors.keys() != shapes.keys():
        odd = ", ".join(sorted(tensors.keys() ^ shapes.keys()))
        raise CorruptFile(f"{path}: tensors missing or not expected: {odd}")
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32 or tensor.shape != shapes[name]:
            raise CorruptFile(
                f"{path}: {name} is {tensor.dtype}{list(tensor.shape)}, "
                f"not float32{list(shapes[name])}"
            )
        if not np.isfinite(tensor).all():
            raise CorruptFile(f"{path}: {name} holds values that are not finite")
    return tensors


def read_description(folder: str | os.PathLike) -> dict[str, Any]:
    """The checked content of a checkpoint's ``net.json``.

    Raises BgrlError if there is no checkpoint, CorruptFile if it is not whole, SchemaMismatch if
    it is of another kind or version.
    """
    path = Path(folder) / DESCRIPTION_FILE
    if not path.is_file():
        raise BgrlError(f"{folder} is not a checkpoint folder: it has no {DESCRIPTION_FILE}")
    description = read_json(path)
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise SchemaMismatch(f"{path} does not describe a net: its format is not {FORMAT!r}")
    if description.get("version") != VERSION:
        raise SchemaMismatch(
            f"{path} has version {description.get('version')!r}; this bgrl reads {VERSION}"
        )
    encoder = description.get("encoder")
    hidden = description.get("hidden")
    whole = (
        isinstance(encoder, dict)
        and isinstance(encoder.get("name"), str)
        and isinstance(encoder.get("hash"), str)
        and isinstance(hidden, list)
        and hidden
        and all(type(width) is int and width > 0 for width in hidden)
        and isinstance(description.get("products", False), bool)
        and isinstance(description.get("variant"), str)
        and isinstance(description.get("hash"), str)
        and isinstance(description.get("made", {}), dict)
    )
    if not whole:
        raise CorruptFile(
            f"{path}: encoder, hidden, products, variant, hash or made is missing or malformed"
        )
    return description
