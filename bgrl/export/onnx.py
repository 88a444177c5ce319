"""A net as one ONNX file: raw boards in, the five clamped probabilities out, the encoder inside.

The graph is written node by node, so that the same weights give the same bytes on every machine,
with no trace or example batch in which a size could freeze. It uses opset 13 and IR version 7,
which runtimes since the end of 2020 load (ONNX Runtime 1.6, by its table of compatible versions),
and operators that have all been part of every runtime since.
"""

import hashlib
import json
import os
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bgrl.encoding import Encoder, get_encoder
from bgrl.errors import BgrlError, CorruptFile, EncoderMismatch, MissingExtra, SchemaMismatch
from bgrl.files import atomic_write_bytes
from bgrl.game.board import BAR, HOME, OFF, POINTS, SLOTS
from bgrl.game.outcomes import OUTPUTS
from bgrl.game.variants import get_variant
from bgrl.nets import Weights
from bgrl.nets.flat import quantize, rounded

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

FORMAT = "bgrl.onnx"
VERSION = 1
OPSET = 13
IR_VERSION = 7
INPUT = "board"
OUTPUT = "probabilities"
ENCODED = "inputs"
LAYOUT = (
    "float32[N,2,26] checker counts. Row 0 is the player on roll, row 1 the opponent, each seen by "
    "its owner: the index is the pips a checker there still has to go, so 0 is borne off, 1 to 24 "
    "are the points, 25 is the bar; my point p is the opponent's point 25 - p."
)
PERSPECTIVE = "the player on roll, before the dice"
CHECKSUM = "sha256"


def build_model(weights: Weights, storage: str = "float32") -> "ModelProto":
    """The ONNX model of ``weights``, their matrices stored as ``storage``.

    The model's net is the rounded one (:func:`bgrl.nets.flat.rounded`), and so is the hash in it;
    it computes in float32 whatever the storage. Raises MissingExtra without the package onnx, and
    as ``rounded`` does.
    """
    helper = _onnx().helper
    source, weights = weights, rounded(weights, storage)
    graph = _Graph()
    flat = graph.add("Reshape", INPUT, graph.integers("flat_shape", [-1, 2 * SLOTS]))
    x = _encode(graph, flat, weights.encoder)
    for i, (weight, bias) in enumerate(source.layers):
        matrix = _matrix(graph, f"layers.{i}.weight", weight, storage)
        x = graph.add("Gemm", x, matrix, graph.floats(f"layers.{i}.bias", bias), transB=1)
        x = graph.add("Relu" if i < len(weights.layers) - 1 else "Sigmoid", x)
        if i == 0 and weights.products:
            width = weights.hidden[0]
            cuts = [graph.integers(f"cut_{at}", [at]) for at in (0, width, 2 * width)]
            axis = graph.integers("units_axis", [1])
            a, b = (graph.add("Slice", x, *cuts[k : k + 2], axis) for k in (0, 1))
            x = graph.add("Mul", a, b)
    _clamp(graph, x, flat)
    real = _onnx().TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"bgrl net {weights.hash}",
            [helper.make_tensor_value_info(INPUT, real, ["N", 2, SLOTS], doc_string=LAYOUT)],
            [
                helper.make_tensor_value_info(
                    OUTPUT,
                    real,
                    ["N", len(OUTPUTS)],
                    doc_string=f"{', '.join(OUTPUTS)}; cumulative, for {PERSPECTIVE}",
                )
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="bgrl",
        producer_version=package_version("bgrl"),
    )
    _set_metadata(model, _metadata(weights, storage))
    return model


def write_onnx(weights: Weights, path: str | os.PathLike, storage: str = "float32") -> Path:
    """Publish ``weights`` as the ONNX file ``path``; raises as :func:`build_model` does."""
    atomic_write_bytes(path, build_model(weights, storage).SerializeToString())
    return Path(path)


def read_onnx(path: str | os.PathLike) -> Weights:
    """The weights inside an exported file.

    Raises as :func:`read_model` does; EncoderMismatch if this bgrl's encoder of that name has
    another hash; CorruptFile if the weights are not those that the file names.
    """
    return _weights(read_model(path), path)


def _weights(model: "ModelProto", path: str | os.PathLike) -> Weights:
    metadata = _get_metadata(model)
    encoder = get_encoder(metadata["encoder"])
    if encoder.hash != metadata["encoder_hash"]:
        raise EncoderMismatch(
            f"{path}: the net was made with encoder {encoder.name} {metadata['encoder_hash']}, "
            f"but here {encoder.name} is {encoder.hash}"
        )
    to_array = _onnx().numpy_helper.to_array
    tensors = {tensor.name: to_array(tensor) for tensor in model.graph.initializer}
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    while (name := f"layers.{len(layers)}.weight") in tensors:
        matrix = tensors[name].astype(np.float32)
        if f"{name}.scale" in tensors:
            matrix *= tensors[f"{name}.scale"][:, None]
        layers.append((matrix, tensors[f"layers.{len(layers)}.bias"]))
    weights = Weights(encoder, get_variant(metadata["variant"]), layers)
    if weights.hash != metadata["net"]:
        raise CorruptFile(f"{path}: holds the net {weights.hash}, but names {metadata['net']}")
    return weights


def read_model(path: str | os.PathLike) -> "ModelProto":
    """The model of an exported file, checked against the checksum inside it.

    Raises MissingExtra without onnx, BgrlError if the file can't be read, SchemaMismatch if it is
    ONNX but not bgrl's or of another version, CorruptFile if it is cut short or altered.
    """
    onnx = _onnx()
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BgrlError(f"cannot read {path}: {error.strerror}") from error
    try:
        model = onnx.load_from_string(data)
    except Exception as error:  # protobuf's DecodeError, whose place has moved between releases
        raise CorruptFile(f"{path}: not a whole ONNX file: {error}") from error
    metadata = _get_metadata(model)
    if metadata.get("format") != FORMAT:
        if not model.graph.node:
            raise CorruptFile(f"{path}: not a whole ONNX file: it holds no graph")
        raise SchemaMismatch(f"{path} is no export of bgrl: its format is not {FORMAT!r}")
    if metadata.get("version") != str(VERSION):
        raise SchemaMismatch(
            f"{path} has version {metadata.get('version')}; this bgrl reads {VERSION}"
        )
    if metadata.get(CHECKSUM) != _checksum(model):
        raise CorruptFile(f"{path}: its content does not have the SHA-256 that it names")
    return model


def describe_onnx(path: str | os.PathLike) -> dict[str, Any]:
    """What an exported ONNX file is, as {fact: value} for people; raises as :func:`read_onnx`."""
    model = read_model(path)
    weights = _weights(model, path)
    metadata = _get_metadata(model)
    return {
        "net": metadata["net"],
        "variant": metadata["variant"],
        "encoder": f"{weights.encoder.name} version {metadata['encoder_version']} "
        f"({metadata['encoder_hash']}), inside the graph",
        "layers": weights.shape,
        "parameters": f"{weights.n_parameters:,}, stored as {metadata['storage']}",
        "input": f"{INPUT}, float32[N,2,{SLOTS}]: the counts of a board",
        "output": f"{OUTPUT}, float32[N,{len(OUTPUTS)}]: {metadata['outputs']}",
        "perspective": metadata["perspective"],
        "opset": f"{model.opset_import[0].version}, IR version {model.ir_version}",
        "written by": f"bgrl {model.producer_version}",
        "size": f"{Path(path).stat().st_size:,} bytes",
    }


class OnnxNet:
    """An exported file, evaluated by ONNX Runtime on the CPU.

    ``model`` is a path or the serialized model. Raises MissingExtra without onnxruntime, and
    CorruptFile if the runtime refuses the file.
    """

    def __init__(self, model: str | os.PathLike | bytes):
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("onnxruntime", "export", "an exported net") from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        source = model if isinstance(model, bytes) else os.fspath(model)
        try:
            self._session = onnxruntime.InferenceSession(
                source, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the runtime's own exceptions have no common base
            name = "the model" if isinstance(model, bytes) else model
            reason = str(error).splitlines()[0]
            raise CorruptFile(f"{name}: ONNX Runtime refuses it: {reason}") from error

    def evaluate(self, boards: np.ndarray) -> np.ndarray:
        """The five probabilities float32[N, 5] of ``boards`` int8[N, 2, 26]."""
        return self.run(boards, OUTPUT)

    def run(self, boards: np.ndarray, output: str) -> np.ndarray:
        """One of the graph's outputs, by name, for ``boards`` int8[N, 2, 26]."""
        return self._session.run([output], {INPUT: np.asarray(boards, np.float32)})[0]


def with_encoded_output(model: "ModelProto") -> bytes:
    """The model, serialized, with one more output ``inputs``: what its own encoder computes."""
    onnx = _onnx()
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    real = onnx.TensorProto.FLOAT
    copy.graph.output.append(onnx.helper.make_tensor_value_info(ENCODED, real, ["N", None]))
    return copy.SerializeToString()


class _Graph:
    """Nodes in order and named constants."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, operator: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """Append a node with one output; returns that output's name."""
        out = out or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(_onnx().helper.make_node(operator, list(inputs), [out], **attributes))
        return out

    def floats(self, name: str, values: Any) -> str:
        return self.constant(name, np.ascontiguousarray(values, np.float32))

    def integers(self, name: str, values: Any) -> str:
        return self.constant(name, np.ascontiguousarray(values, np.int64))

    def constant(self, name: str, array: np.ndarray) -> str:
        if all(constant.name != name for constant in self.constants):
            self.constants.append(_onnx().numpy_helper.from_array(array, name))
        return name


def _encode(graph: _Graph, flat: str, encoder: Encoder) -> str:
    """The encoder's inputs [N, n] of the counts ``flat`` [N, 52], bit for bit."""
    # No count comes near the largest float, and some converters mishandle infinities.
    cap = np.minimum(encoder.cap, np.finfo(np.float32).max)
    counts = graph.add("Gather", flat, graph.integers("encoder.slots", encoder.slots), axis=1)
    above = graph.add("Sub", counts, graph.floats("encoder.shift", encoder.shift))
    ramps = graph.add("Mul", above, graph.floats("encoder.scale", encoder.scale))
    ramps = graph.add("Max", ramps, graph.floats("zero", 0))
    return graph.add("Min", ramps, graph.floats("encoder.cap", cap), out=ENCODED)


def _matrix(graph: _Graph, name: str, weight: np.ndarray, storage: str) -> str:
    """A layer's matrix [out, in] as float32, from a constant of the ``storage`` type."""
    if storage == "float16":
        stored = graph.constant(name, weight.astype(np.float16))
        return graph.add("Cast", stored, to=_onnx().TensorProto.FLOAT)
    if storage == "int8":
        scale, numbers = quantize(weight)
        return graph.add(
            "DequantizeLinear",
            graph.constant(name, numbers),
            graph.floats(f"{name}.scale", scale),
            graph.constant(f"{name}.zero", np.zeros(len(scale), np.int8)),
            axis=0,
        )
    return graph.floats(name, weight)


def _clamp(graph: _Graph, p: str, flat: str) -> None:
    """:func:`bgrl.game.outcomes.clamp`, and the certain loss of a game that is over."""
    zero, one = graph.floats("zero", 0), graph.floats("one", 1)

    def column(x: str, k: int) -> str:
        return graph.add("Gather", x, graph.integers(f"column_{k}", [k]), axis=1)

    # 1 where a side has some checker among the slots that a column of this matrix marks.
    marks = np.zeros((2, SLOTS, 5), np.float32)
    marks[0, OFF, 0] = 1  # the player on roll has borne off
    marks[1, OFF, 1] = 1  # the opponent has borne off
    marks[0, POINTS - HOME + 1 :, 2] = 1  # the player on roll in the opponent's home or on the bar
    marks[1, POINTS - HOME + 1 :, 3] = 1  # the opponent likewise
    marks[1, OFF + 1 :, 4] = 1  # the opponent has checkers left
    counts = graph.add("MatMul", flat, graph.floats("marks", marks.reshape(2 * SLOTS, 5)))
    some = graph.add("Clip", counts, zero, one)
    own_off, their_off, own_behind, their_behind, going_on = (column(some, k) for k in range(5))
    over = graph.add("Sub", one, going_on)

    # The rearmost checker of each side; they can still meet if the two add up to 25 or more.
    occupied = graph.add("Clip", flat, zero, one)
    slots = np.tile(np.arange(SLOTS), 2)
    occupied = graph.add("Mul", occupied, graph.floats("slots", slots))
    sides = graph.add("Reshape", occupied, graph.integers("sides_shape", [-1, 2, SLOTS]))
    rearmost = graph.add("ReduceMax", sides, axes=[2], keepdims=0)
    sum_of_both = graph.add("MatMul", rearmost, graph.floats("both", np.ones((2, 1))))
    beyond = graph.add("Sub", sum_of_both, graph.floats("no_contact", BAR - 1))
    contact = graph.add("Clip", beyond, zero, one)

    def gammon(raw: str, at_most: str, off: str) -> str:
        nested = graph.add("Min", raw, at_most)
        return graph.add("Mul", nested, graph.add("Sub", one, off))

    def backgammon(raw: str, at_most: str, behind: str) -> str:
        nested = graph.add("Min", raw, at_most)
        return graph.add("Mul", nested, graph.add("Max", behind, contact))

    win = graph.add("Mul", column(p, 0), going_on)
    lose = graph.add("Sub", one, win)
    win_gammon = gammon(column(p, 1), win, their_off)
    win_backgammon = backgammon(column(p, 2), win_gammon, their_behind)
    lose_gammon = gammon(graph.add("Max", column(p, 3), over), lose, own_off)
    lose_backgammon = backgammon(graph.add("Max", column(p, 4), over), lose_gammon, own_behind)
    graph.add(
        "Concat", win, win_gammon, win_backgammon, lose_gammon, lose_backgammon, out=OUTPUT, axis=1
    )


def _metadata(weights: Weights, storage: str) -> dict[str, str]:
    return {
        "format": FORMAT,
        "version": str(VERSION),
        "net": weights.hash,
        "storage": storage,
        "variant": weights.variant.name,
        "checkers": str(weights.variant.checkers),
        "points": json.dumps(weights.variant.points),
        "encoder": weights.encoder.name,
        "encoder_version": str(weights.encoder.version),
        "encoder_hash": weights.encoder.hash,
        "outputs": ", ".join(OUTPUTS),
        "perspective": PERSPECTIVE,
        "layout": LAYOUT,
        "made": json.dumps(weights.made, sort_keys=True, ensure_ascii=False),
    }


def _get_metadata(model: "ModelProto") -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def _set_metadata(model: "ModelProto", metadata: dict[str, str]) -> None:
    """Replace the model's metadata by ``metadata`` and the checksum of both."""
    set_model_props = _onnx().helper.set_model_props
    set_model_props(model, metadata)
    set_model_props(model, metadata | {CHECKSUM: _checksum(model)})


def _checksum(model: "ModelProto") -> str:
    """SHA-256 of the serialized model without the checksum's own entry."""
    bare = _onnx().ModelProto()
    bare.CopyFrom(model)
    kept = [entry for entry in model.metadata_props if entry.key != CHECKSUM]
    del bare.metadata_props[:]
    bare.metadata_props.extend(kept)
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("onnx", "export", "an ONNX file") from error
    return onnx
