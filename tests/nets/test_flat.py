"""The flat file: its layout as documented, what comes back, and which files are refused."""

import struct

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, SchemaMismatch
from bgrl.game import BACKGAMMON, get_variant
from bgrl.nets import FastNet, Net, flat
from bgrl.nets.flat import STORAGE, quantize, read_flat, rounded, write_flat


def made_up(encoder="tesauro198", hidden=(13, 7), variant="backgammon", products=False):
    net = Net(get_encoder(encoder), hidden, get_variant(variant), products).reset(3)
    weights = net.weights()
    for _, bias in weights.layers:
        bias += np.linspace(-0.5, 0.5, len(bias), dtype=np.float32)
    return weights


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize(
    ("encoder", "hidden", "variant", "products"),
    [
        ("tesauro198", (13, 7), "backgammon", False),
        ("tesauro198", (13, 7), "backgammon", True),
        ("thermometer324", (9,), "hypergammon", False),
    ],
)
def test_the_net_comes_back(tmp_path, storage, encoder, hidden, variant, products):
    weights = made_up(encoder, hidden, variant, products)
    again = read_flat(write_flat(weights, tmp_path / "net.bgnet", storage))
    assert again.hash == rounded(weights, storage).hash
    assert again.variant == weights.variant
    assert (again.hash == weights.hash) == (storage == "float32")


@pytest.mark.parametrize("products", [False, True])
def test_the_layout_is_as_documented(tmp_path, products):
    """Reads the file by the table in the documentation, with no code of the writer."""
    weights = made_up(products=products)
    data = write_flat(weights, tmp_path / "net.bgnet", "int8").read_bytes()

    def numbers(kind, at, count):
        return struct.unpack_from(f"<{count}{kind}", data, at)

    assert data[:8] == b"BGRLNET\0"
    assert numbers("I", 8, 8) == (2, 2, 15, 1, 2, 3, 3, 198)
    assert data[52:64] == weights.encoder.hash.encode()
    assert numbers("I", 64, 1) == (1,)
    assert data[68:100].rstrip(b"\0") == b"tesauro198"
    assert data[100:124].rstrip(b"\0") == b"backgammon"
    assert numbers("I", 124, 1) == (products,)
    widths = (26 if products else 13, 7, 5)
    assert numbers("I", 128, 3) == widths
    at = 140
    slots = numbers("I", at, 198)
    shift, scale, cap = (numbers("f", at + 4 * 198 * k, 198) for k in (1, 2, 3))
    at += 4 * 4 * 198
    counts = BACKGAMMON.start_board().ravel()
    ramps = zip(slots, shift, scale, cap, strict=True)
    x = [min(max((counts[slot] - a) * b, 0), c) for slot, a, b, c in ramps]
    for layer, width in enumerate(widths):
        bias, row_scale = numbers("f", at, width), numbers("f", at + 4 * width, width)
        at += 8 * width
        rows = [numbers("b", at + len(x) * k, len(x)) for k in range(width)]
        at += -(-len(x) * width // 4) * 4
        sums = [
            s * sum(w * v for w, v in zip(row, x, strict=True)) + b
            for row, s, b in zip(rows, row_scale, bias, strict=True)
        ]
        x = [max(v, 0) for v in sums] if layer < 2 else [1 / (1 + np.exp(-v)) for v in sums]
        if layer == 0 and products:
            x = [x[j] * x[j + 13] for j in range(13)]
    assert at + 32 == len(data)
    expected = FastNet(rounded(weights, "int8")).evaluate(BACKGAMMON.start_board())
    assert x[0] == pytest.approx(expected[0], abs=1e-5)


def test_int8_keeps_each_weight_to_half_a_step():
    weight = np.random.default_rng(1).normal(size=(6, 50)).astype(np.float32)
    weight[2] = 0
    scale, numbers = quantize(weight)
    assert (np.abs(numbers * scale[:, None] - weight).max(axis=1) <= 0.501 * scale).all()
    assert np.abs(numbers[[0, 1, 3, 4, 5]]).max(axis=1).tolist() == [127] * 5
    assert not numbers[2].any()


def test_smaller_storage_makes_smaller_files(tmp_path):
    weights = made_up(hidden=(128, 32))
    sizes = [write_flat(weights, tmp_path / s, s).stat().st_size for s in STORAGE]
    assert sizes[1] < 0.55 * sizes[0]
    assert sizes[2] < 0.31 * sizes[0]


def test_damaged_and_foreign_files_are_refused_by_name(tmp_path, monkeypatch):
    path = write_flat(made_up(), tmp_path / "net.bgnet")
    data = path.read_bytes()
    other = tmp_path / "bad.bgnet"
    for size in (8, 100, len(data) // 2, len(data) - 1):
        other.write_bytes(data[:size])
        with pytest.raises(CorruptFile, match=r"bad\.bgnet: cut short"):
            read_flat(other)
    for at in (20, 60, 150, 5000, len(data) - 40):
        other.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(CorruptFile, match=r"bad\.bgnet"):
            read_flat(other)
    other.write_bytes(b"\x89PNG" + data)
    with pytest.raises(SchemaMismatch, match=r"bad\.bgnet is no flat net"):
        read_flat(other)
    other.write_bytes(data[:8] + b"\3" + data[9:])
    with pytest.raises(SchemaMismatch, match=r"bad\.bgnet has version 3"):
        read_flat(other)
    with pytest.raises(BgrlError, match=r"nothing\.bgnet"):
        read_flat(tmp_path / "nothing.bgnet")
    monkeypatch.setattr(flat, "get_encoder", lambda name: get_encoder("thermometer324"))
    with pytest.raises(EncoderMismatch, match=r"net\.bgnet"):
        read_flat(path)


def test_an_unknown_storage_and_too_large_weights_are_refused(tmp_path):
    weights = made_up()
    with pytest.raises(BgrlError, match="bfloat16"):
        write_flat(weights, tmp_path / "net.bgnet", "bfloat16")
    weights.layers[0][0][0, 0] = 1e6
    with pytest.raises(BgrlError, match="float16"):
        write_flat(weights, tmp_path / "net.bgnet", "float16")
    assert not list(tmp_path.iterdir())
