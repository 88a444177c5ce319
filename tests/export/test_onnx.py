"""The ONNX file: what it computes, what it says of itself, and which files are refused."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, MissingExtra, SchemaMismatch
from bgrl.export import OnnxNet, compare, describe_onnx, read_onnx, write_onnx
from bgrl.export import onnx as exporter
from bgrl.export.parity import tolerance
from bgrl.export.positions import constructed_positions, sampled_positions
from bgrl.game import BACKGAMMON, Position
from bgrl.game.outcomes import clamp
from bgrl.nets import FastNet, Weights

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def file(weights, tmp_path_factory):
    return write_onnx(weights, tmp_path_factory.mktemp("onnx") / "net.onnx")


@pytest.mark.parametrize(
    ("encoder", "hidden", "variant"),
    [
        ("tesauro198", (40, 12), "backgammon"),
        ("thermometer324", (30,), "nackgammon"),
        ("tesauro198", (16, 16, 8), "hypergammon"),
    ],
)
def test_torch_numba_and_onnx_runtime_agree(make_weights, encoder, hidden, variant, tmp_path):
    weights = make_weights(encoder, hidden, variant)
    sampled = sampled_positions(FastNet(weights), 1000, seed=3)
    boards = np.concatenate([sampled, constructed_positions(weights.variant, seed=3)])
    parity = compare(weights, write_onnx(weights, tmp_path / "net.onnx"), boards)
    assert parity.holds, str(parity)
    assert set(parity.positions) == {"contact", "bar", "race", "bear-off", "over"}
    assert sum(parity.positions.values()) == len(boards) > 1000


def test_the_comparison_finds_a_difference(weights, tmp_path):
    layers = [(weight.copy(), bias.copy()) for weight, bias in weights.layers]
    layers[0][0][0, 0] += 0.01
    other = write_onnx(Weights(weights.encoder, weights.variant, layers), tmp_path / "net.onnx")
    boards = sampled_positions(FastNet(weights), 200, seed=3)
    parity = compare(weights, other, boards)
    assert not parity.holds
    assert parity.too_far > 0
    assert parity.differences["torch and numba"] < 1e-5
    assert parity.differences["torch and ONNX Runtime"] > 1e-5


def test_stacks_may_differ_by_more():
    boards = np.zeros((4, 2, 26), np.int8)
    boards[:, 1, 6] = 15
    boards[0, 0, 6] = boards[1, 0, 14] = boards[2, 0, 25] = 10
    boards[3, 0, 14] = 9
    np.testing.assert_array_equal(tolerance(boards), [1e-5, 5e-5, 5e-5, 1e-5])


def test_the_comparison_finds_other_inputs(file, weights):
    shifted = replace(weights.encoder, slots=np.roll(weights.encoder.slots, 1))
    boards = constructed_positions(BACKGAMMON, seed=1)
    assert compare(replace(weights, encoder=shifted), file, boards).inputs_differ > 500


@pytest.mark.parametrize("size", [1, 7, 512])
def test_any_batch_size(file, weights, size):
    boards = np.repeat(constructed_positions(BACKGAMMON, seed=2)[:1], size, axis=0)
    out = OnnxNet(file).evaluate(boards)
    assert out.shape == (size, 5)
    assert out.dtype == np.float32
    assert np.abs(out - FastNet(weights).evaluate(boards)).max() < 1e-5


def test_nothing_impossible_comes_out(file, weights):
    boards = constructed_positions(BACKGAMMON, seed=5)
    out = OnnxNet(file).evaluate(boards)
    clamped = out.copy()
    clamp(clamped, boards)
    np.testing.assert_array_equal(out, clamped)


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        ({6: 14}, [0, 0, 0, 0, 0]),  # one is borne off: a single game
        ({6: 15}, [0, 0, 0, 1, 0]),  # none is borne off: a gammon
        ({6: 14, 19: 1}, [0, 0, 0, 1, 1]),  # one is still in the winner's home
        ({6: 14, 25: 1}, [0, 0, 0, 1, 1]),  # or on the bar
    ],
)
def test_a_game_that_is_over_has_its_certain_result(file, mine, expected):
    position = Position.from_points(mine, {})
    np.testing.assert_array_equal(OnnxNet(file).evaluate(position.board[np.newaxis])[0], expected)


def test_versions_types_and_shapes_are_pinned(file):
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 7
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    (given,), (result,) = model.graph.input, model.graph.output
    for value, sizes in ((given, [2, 26]), (result, [5])):
        tensor = value.type.tensor_type
        assert tensor.elem_type == onnx.TensorProto.FLOAT
        batch, *rest = tensor.shape.dim
        assert (batch.dim_param, batch.HasField("dim_value")) == ("N", False)
        assert [d.dim_value for d in rest] == sizes


def test_the_file_is_alone_and_the_same_each_time(file, weights, tmp_path):
    assert [path.name for path in file.parent.iterdir()] == ["net.onnx"]
    assert write_onnx(weights, tmp_path / "b.onnx").read_bytes() == file.read_bytes()


def test_the_weights_come_back(file, weights):
    again = read_onnx(file)
    assert again.hash == weights.hash
    assert again.variant == weights.variant
    facts = describe_onnx(file)
    assert facts["net"] == weights.hash
    assert facts["encoder"].startswith("tesauro198 version 1")
    assert facts["layers"] == "198 → 40 products → 12 → 5"


def test_a_cut_file_is_refused_by_name(file, tmp_path):
    data = file.read_bytes()
    path = tmp_path / "cut.onnx"
    for size in (0, 1, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(BgrlError, match=r"cut\.onnx"):
            describe_onnx(path)


def test_a_flipped_bit_is_refused_by_name(file, tmp_path):
    data = file.read_bytes()
    path = tmp_path / "flipped.onnx"
    random = np.random.default_rng(1)
    for at in random.integers(0, len(data), 60):
        flipped = bytearray(data)
        flipped[at] ^= 1 << random.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(BgrlError, match=r"flipped\.onnx"):
            describe_onnx(path)


def test_a_foreign_model_is_refused(tmp_path):
    helper = onnx.helper
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N"])
    out = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N"])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value], [out])
    onnx.save(helper.make_model(graph), tmp_path / "foreign.onnx")
    with pytest.raises(SchemaMismatch, match=r"foreign\.onnx is no export of bgrl"):
        describe_onnx(tmp_path / "foreign.onnx")


def test_another_version_is_refused(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(exporter, "VERSION", 2)
    path = write_onnx(weights, tmp_path / "net.onnx")
    monkeypatch.undo()
    with pytest.raises(SchemaMismatch, match=r"net\.onnx has version 2"):
        describe_onnx(path)


def test_another_encoder_of_that_name_is_refused(file, monkeypatch):
    other = get_encoder("thermometer324")
    monkeypatch.setattr(exporter, "get_encoder", lambda name: other)
    with pytest.raises(EncoderMismatch, match=rf"net\.onnx.*56eecb7b94ad.*{other.hash}"):
        read_onnx(file)


def test_the_runtime_refuses_rubbish_by_name(tmp_path):
    path = tmp_path / "rubbish.onnx"
    path.write_bytes(b"rubbish")
    with pytest.raises(CorruptFile, match=r"rubbish\.onnx"):
        OnnxNet(path)


def test_without_the_extra_one_line_says_how_to_get_it(weights, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bgrl\[export\]'"):
        write_onnx(weights, tmp_path / "net.onnx")
    with pytest.raises(MissingExtra, match=r"pip install 'bgrl\[export\]'"):
        OnnxNet(file)
    assert not list(tmp_path.iterdir())
