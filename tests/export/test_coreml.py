"""The Core ML package. Its graph is run here by an interpreter of its operations, since Core ML
itself runs on Apple's systems only."""

import sys

import numpy as np
import pytest

from bgrl.errors import BgrlError, CorruptFile, MissingExtra
from bgrl.export import export as export_module
from bgrl.export import export_levels
from bgrl.export.coreml import build_program, write_coreml
from bgrl.export.positions import constructed_positions, sampled_positions
from bgrl.nets import FastNet
from bgrl.players.bundle import open_bundle
from bgrl.players.level import Level

coremltools = pytest.importorskip("coremltools")

OPERATIONS = {
    "reshape": lambda x, shape: x.reshape(shape),
    "gather": lambda x, indices, axis, **_: np.take(x, indices, axis),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "linear": lambda x, weight, bias: x @ weight.T + bias,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "matmul": lambda x, y, **_: x @ y,
    "clip": lambda x, alpha, beta: np.clip(x, alpha, beta),
    "reduce_max": lambda x, axes, keep_dims: x.max(axis=tuple(axes), keepdims=keep_dims),
    "concat": lambda values, axis, **_: np.concatenate(values, axis),
}


def run_program(program, boards):
    """What a MIL program computes for ``boards``, by numpy."""
    function = program.functions["main"]
    known = {"board": boards.astype(np.float32)}

    def value(variable):
        if isinstance(variable, list | tuple):
            return [value(one) for one in variable]
        return known.get(variable.name, variable.val)

    for operation in function.operations:
        if operation.op_type == "const":
            continue
        arguments = {name: value(v) for name, v in operation.inputs.items() if v is not None}
        if operation.op_type in ("minimum", "maximum"):
            result = OPERATIONS[operation.op_type](arguments["x"], arguments["y"])
        else:
            result = OPERATIONS[operation.op_type](**arguments)
        known[operation.outputs[0].name] = result
    return known[function.outputs[0].name]


def test_the_graph_computes_what_the_net_does(weights):
    boards = np.concatenate(
        [sampled_positions(FastNet(weights), 500, 3), constructed_positions(weights.variant, 3)]
    )
    out = run_program(build_program(weights), boards)
    assert out.shape == (len(boards), 5)
    assert np.abs(out - FastNet(weights).evaluate(boards)).max() < 1e-5


def test_the_package_takes_and_gives_float32(weights, tmp_path):
    package = write_coreml(weights, tmp_path / "net.mlpackage")
    assert [path.name for path in tmp_path.iterdir()] == ["net.mlpackage"]
    model = coremltools.models.MLModel(str(package), skip_model_load=True)
    description = model.get_spec().description
    (given,), (result,) = description.input, description.output
    float32 = coremltools.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT32
    assert (given.name, result.name) == ("board", "probabilities")
    assert given.type.multiArrayType.dataType == result.type.multiArrayType.dataType == float32
    sizes = given.type.multiArrayType.shapeRange.sizeRanges
    assert [(s.lowerBound, s.upperBound) for s in sizes] == [(1, 4096), (2, 2), (26, 26)]
    assert model.user_defined_metadata["net"] == weights.hash
    size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file())
    assert size < 4 * weights.n_parameters + 30_000


def test_a_bundle_holds_it_and_notices_damage(weights, tmp_path):
    for _ in range(2):  # the second replaces the first
        export = export_levels([(Level("hard"), weights)], tmp_path / "b", 20, coreml=True)
    folder = export.folder
    found = export.coreml["hard.mlpackage"]
    if sys.platform == "darwin":
        assert found < 1e-5
    else:
        assert found is None
        assert "hard.mlpackage: numba and Core ML: not run, which takes macOS" in str(export)
    assert open_bundle(folder).record["nets"]["hard"]["coreml"] == "hard.mlpackage"
    weight_file = folder / "hard.mlpackage" / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    weight_file.write_bytes(b"short")
    with pytest.raises(CorruptFile, match=r"weight\.bin: has 5 bytes"):
        open_bundle(folder)


def test_a_package_that_computes_otherwise_is_not_published(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(export_module, "run_coreml", lambda _, boards: np.ones((len(boards), 5)))
    with pytest.raises(BgrlError, match=r"Core ML package .* differs .* nothing was published"):
        export_levels([(Level("hard"), weights)], tmp_path / "b", 20, coreml=True)
    assert not list(tmp_path.iterdir())


def test_without_the_extra_one_line_says_how_to_get_it(weights, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "coremltools", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bgrl\[export\]'"):
        write_coreml(weights, tmp_path / "net.mlpackage")
    assert not list(tmp_path.iterdir())
