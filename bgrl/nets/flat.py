"""A net as one flat file, for those who write their own evaluator.

Everything is little-endian and starts at a multiple of 4 bytes. With L layers, n inputs and the
layers' widths w[0..L-1], w[-1] being n:

    offset  type            content
    0       8 bytes         the letters BGRLNET and a zero byte
    8       uint32          version of this layout: 2
    12      uint32          how the matrices are stored: 0 float32, 1 float16, 2 int8
    16      uint32          checkers of a side
    20      uint32[3]       points of a single game, a gammon, a backgammon
    32      uint32          L
    36      uint32          n
    40      12 letters      hash of the net
    52      12 letters      hash of the encoder
    64      uint32          version of the encoder
    68      32 letters      name of the encoder, padded with zero bytes
    100     24 letters      name of the variant, padded with zero bytes
    124     uint32          1 if the first layer's units are products, else 0
    128     uint32[L]       w
            uint32[n]       encoder: slot of each input, side * 26 + slot
            float32[n]      encoder: shift
            float32[n]      encoder: scale
            float32[n]      encoder: cap
            for each layer k of L:
            float32[w[k]]     bias
            float32[w[k]]     scale of each row (only if stored as int8)
            w[k] rows of w[k-1] numbers (of w[0]/2 in the second layer, after products):
                            float32, float16 or int8, then zero bytes up to a multiple of 4
            32 bytes        SHA-256 of all before

Input i of a board is min(max((count[slot[i]] - shift[i]) * scale[i], 0), cap[i]) in float32. Each
layer is y = W x + bias, then ReLU, or sigmoid in the last one; after products the second layer's
input j is the first one's output j times its output j + w[0]/2. An int8 row's weights are its
numbers times its scale. What is impossible on a board has still to be taken out of the five
probabilities, as :func:`bgrl.game.outcomes.clamp` says.
"""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.files import atomic_write_bytes
from bgrl.game.variants import get_variant
from bgrl.nets.weights import OUTPUTS, Weights

MAGIC = b"BGRLNET\0"
VERSION = 2
STORAGE = ("float32", "float16", "int8")
_HEADER = struct.Struct("<8sII I3I II 12s12sI 32s24sI")
_CHECKSUM = 32


def rounded(weights: Weights, storage: str) -> Weights:
    """``weights`` as they come back from a file that stores them so; biases stay float32.

    ``storage`` is one of :data:`STORAGE`. Raises BgrlError for another, or for weights beyond
    float16's range.
    """
    layers = []
    for weight, bias in weights.layers:
        if storage == "int8":
            scale, numbers = quantize(weight)
            weight = numbers.astype(np.float32) * scale[:, None]
        elif storage == "float16":
            with np.errstate(over="ignore"):
                weight = weight.astype(np.float16).astype(np.float32)
            if not np.isfinite(weight).all():
                raise BgrlError(f"net {weights.hash} has weights beyond the range of float16")
        elif storage != "float32":
            raise BgrlError(f"weights are stored as one of {', '.join(STORAGE)}, not {storage!r}")
        layers.append((weight, bias))
    return Weights(weights.encoder, weights.variant, layers, weights.made)


def quantize(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(scale float32[out], numbers int8[out, in]) nearest to ``weight`` float32[out, in].

    Symmetric, a scale for each row: its largest weight becomes 127 or -127. Numbers times scale,
    quantized again, give the same numbers.
    """
    scale = (np.abs(weight).max(axis=1) / np.float32(127)).astype(np.float32)
    scale[scale == 0] = 1
    return scale, np.rint(weight / scale[:, None]).astype(np.int8)


def write_flat(weights: Weights, path: str | os.PathLike, storage: str = "float32") -> Path:
    """Publish ``weights`` as a flat file; raises as :func:`rounded` does.

    The file's net is the rounded one, and so is the hash in it.
    """
    kept = rounded(weights, storage)
    encoder, variant = weights.encoder, weights.variant
    parts = [
        _HEADER.pack(
            MAGIC, VERSION, STORAGE.index(storage), variant.checkers, *variant.points,
            len(kept.layers), encoder.n_inputs, kept.hash.encode(), encoder.hash.encode(),
            encoder.version, encoder.name.encode(), variant.name.encode(), weights.products,
        ),
        np.array([len(bias) for _, bias in kept.layers], "<u4").tobytes(),
        encoder.slots.astype("<u4").tobytes(),
        # No count comes near the largest float, and not every reader likes infinities.
        *(np.minimum(a, np.finfo(np.float32).max).astype("<f4").tobytes()
          for a in (encoder.shift, encoder.scale, encoder.cap)),
    ]  # fmt: skip
    for (weight, bias), (source, _) in zip(kept.layers, weights.layers, strict=True):
        parts.append(bias.astype("<f4").tobytes())
        if storage == "int8":
            scale, numbers = quantize(source)
            parts += [scale.astype("<f4").tobytes(), numbers.tobytes()]
        else:
            parts.append(weight.astype("<f2" if storage == "float16" else "<f4").tobytes())
        parts.append(bytes(-sum(map(len, parts)) % 4))
    data = b"".join(parts)
    atomic_write_bytes(path, data + hashlib.sha256(data).digest())
    return Path(path)


def read_flat(path: str | os.PathLike) -> Weights:
    """The weights of a flat file, as float32.

    Raises BgrlError if it can't be read, SchemaMismatch if it is of another kind or version,
    CorruptFile if it is cut short or altered, EncoderMismatch if this bgrl's encoder of that name
    has another hash.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror}") from error
    if data[: len(MAGIC)] != MAGIC:
        raise SchemaMismatch(f"{path} is no flat net: it does not start with BGRLNET")
    if len(data) < _HEADER.size + _CHECKSUM:
        raise CorruptFile(f"{path}: cut short: {len(data)} bytes")
    _, version, storage, _, _, _, _, n_layers, n_inputs, *names = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SchemaMismatch(f"{path} has version {version}; this bgrl reads {VERSION}")
    if hashlib.sha256(data[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        raise CorruptFile(f"{path}: cut short or altered: its SHA-256 is not the one at its end")
    *names, products = names
    net_hash, encoder_hash, _, encoder_name, variant_name = (
        name.rstrip(b"\0").decode() if isinstance(name, bytes) else name for name in names
    )
    encoder = get_encoder(encoder_name)
    if encoder.hash != encoder_hash:
        raise EncoderMismatch(
            f"{path}: the net was made with encoder {encoder_name} {encoder_hash}, "
            f"but here {encoder_name} is {encoder.hash}"
        )
    reader = _Reader(data, _HEADER.size)
    widths = reader.take("<u4", n_layers).astype(int)
    reader.take("<u4", 4 * n_inputs)
    layers = []
    for k, (n_in, n_out) in enumerate(zip([n_inputs, *widths], widths, strict=False)):
        n_in //= 2 if k == 1 and products else 1
        bias = reader.take("<f4", n_out)
        scale = reader.take("<f4", n_out) if STORAGE[storage] == "int8" else np.ones(1, np.float32)
        weight = reader.take({0: "<f4", 1: "<f2", 2: "i1"}[storage], n_out * n_in)
        matrix = weight.reshape(n_out, n_in).astype(np.float32) * scale[:, None]
        layers.append((matrix, bias))
    weights = Weights(encoder, get_variant(variant_name), layers)
    if weights.hash != net_hash or widths[-1] != OUTPUTS:
        raise CorruptFile(f"{path}: holds the net {weights.hash}, but names {net_hash}")
    return weights


class _Reader:
    """Takes arrays off ``data`` in order, each from a multiple of 4 bytes."""

    def __init__(self, data: bytes, at: int):
        self._data = data
        self._at = at

    def take(self, dtype: str, count: int) -> np.ndarray:
        array = np.frombuffer(self._data, dtype, count, self._at)
        self._at += -(-array.nbytes // 4) * 4
        return array.astype(dtype[-2:])
