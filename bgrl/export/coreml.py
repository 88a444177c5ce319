"""A net as a Core ML package for Apple's devices: the same graph as :mod:`bgrl.export.onnx`.

It is built from Core ML's own operations, not converted from another format, in float32
throughout (Core ML's default of float16 costs accuracy), for iOS 15 and macOS 12 on. The batch may
be 1 to 4096 boards. Converting works on Linux; running the result needs macOS.
"""

import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bgrl.errors import MissingExtra
from bgrl.export.onnx import INPUT, LAYOUT, OUTPUT, PERSPECTIVE
from bgrl.files import atomic_dir
from bgrl.game.board import BAR, HOME, OFF, POINTS, SLOTS
from bgrl.game.outcomes import OUTPUTS
from bgrl.nets import Weights

MOST_BOARDS = 4096


def write_coreml(weights: Weights, folder: str | os.PathLike) -> Path:
    """Publish ``weights`` as the package ``folder`` (.mlpackage), replacing one that is there.

    Raises MissingExtra without coremltools.
    """
    coremltools = _coremltools()
    size = coremltools.RangeDim(1, MOST_BOARDS, default=1)
    model = coremltools.convert(
        build_program(weights),
        convert_to="mlprogram",
        compute_precision=coremltools.precision.FLOAT32,
        minimum_deployment_target=coremltools.target.iOS15,
        inputs=[coremltools.TensorType(name=INPUT, shape=(size, 2, SLOTS))],
        skip_model_load=True,
    )
    model.short_description = f"bgrl net {weights.hash}: {PERSPECTIVE}"
    model.input_description[INPUT] = LAYOUT
    model.output_description[OUTPUT] = ", ".join(OUTPUTS)
    model.user_defined_metadata.update(
        {
            "net": weights.hash,
            "variant": weights.variant.name,
            "encoder": f"{weights.encoder.name} {weights.encoder.version} {weights.encoder.hash}",
        }
    )
    folder = Path(folder)
    with atomic_dir(folder) as beside:
        # The library insists on the ending; the temporary folder has another.
        package = beside / "net.mlpackage"
        model.save(os.fspath(package))
        for part in list(package.iterdir()):
            shutil.move(part, beside / part.name)
        package.rmdir()
        # It leaves files that only their owner may read.
        for file in beside.rglob("*"):
            file.chmod(0o755 if file.is_dir() else 0o644)
    return folder


def run_coreml(package: str | os.PathLike, boards: np.ndarray) -> np.ndarray | None:
    """The probabilities float32[N, 5] that Core ML gives for ``boards`` int8[N, 2, 26].

    None where there is no Core ML to run it, which is anywhere but on macOS.
    """
    if sys.platform != "darwin":
        return None
    coremltools = _coremltools()
    model = coremltools.models.MLModel(
        os.fspath(package), compute_units=coremltools.ComputeUnit.CPU_ONLY
    )
    batches = np.split(boards, range(MOST_BOARDS, len(boards), MOST_BOARDS))
    found = [model.predict({INPUT: batch.astype(np.float32)})[OUTPUT] for batch in batches]
    return np.concatenate(found)


def build_program(weights: Weights) -> Any:
    """The MIL program of ``weights``; raises MissingExtra without coremltools."""
    coremltools = _coremltools()
    from coremltools.converters.mil import Builder as op
    from coremltools.converters.mil.mil import get_new_symbol, types

    spec = op.TensorSpec(shape=(get_new_symbol(), 2, SLOTS), dtype=types.fp32)
    marks = np.zeros((2, SLOTS, 5), np.float32)
    marks[0, OFF, 0] = 1  # the player on roll has borne off
    marks[1, OFF, 1] = 1  # the opponent has borne off
    marks[0, POINTS - HOME + 1 :, 2] = 1  # the player on roll in the opponent's home or on the bar
    marks[1, POINTS - HOME + 1 :, 3] = 1  # the opponent likewise
    marks[1, OFF + 1 :, 4] = 1  # the opponent has checkers left
    zero, one = np.float32(0), np.float32(1)
    encoder = weights.encoder
    cap = np.minimum(encoder.cap, np.finfo(np.float32).max)
    slots = np.tile(np.arange(SLOTS, dtype=np.float32), 2)

    def column(x: Any, k: int) -> Any:
        return op.gather(x=x, indices=np.array([k], np.int32), axis=1)

    def program(board: Any) -> Any:
        flat = op.reshape(x=board, shape=[-1, 2 * SLOTS])
        counts = op.gather(x=flat, indices=encoder.slots.astype(np.int32), axis=1)
        ramps = op.mul(x=op.sub(x=counts, y=encoder.shift), y=encoder.scale)
        x = op.minimum(x=op.maximum(x=ramps, y=zero), y=cap)
        for i, (weight, bias) in enumerate(weights.layers):
            x = op.linear(x=x, weight=weight, bias=bias)
            x = op.relu(x=x) if i < len(weights.layers) - 1 else op.sigmoid(x=x)
            if i == 0 and weights.products:
                a, b = np.arange(2 * weights.hidden[0], dtype=np.int32).reshape(2, -1)
                x = op.mul(x=op.gather(x=x, indices=a, axis=1), y=op.gather(x=x, indices=b, axis=1))
        p = [column(x, k) for k in range(5)]
        some = op.clip(x=op.matmul(x=flat, y=marks.reshape(2 * SLOTS, 5)), alpha=zero, beta=one)
        own_off, their_off, own_behind, their_behind, going_on = (column(some, k) for k in range(5))
        over = op.sub(x=one, y=going_on)
        occupied = op.mul(x=op.clip(x=flat, alpha=zero, beta=one), y=slots)
        sides = op.reshape(x=occupied, shape=[-1, 2, SLOTS])
        rearmost = op.reduce_max(x=sides, axes=[2], keep_dims=False)
        both = op.matmul(x=rearmost, y=np.ones((2, 1), np.float32))
        contact = op.clip(x=op.sub(x=both, y=np.float32(BAR - 1)), alpha=zero, beta=one)

        def gammon(raw: Any, most: Any, off: Any) -> Any:
            return op.mul(x=op.minimum(x=raw, y=most), y=op.sub(x=one, y=off))

        def backgammon(raw: Any, most: Any, behind: Any) -> Any:
            return op.mul(x=op.minimum(x=raw, y=most), y=op.maximum(x=behind, y=contact))

        win = op.mul(x=p[0], y=going_on)
        win_gammon = gammon(p[1], win, their_off)
        win_backgammon = backgammon(p[2], win_gammon, their_behind)
        lose_gammon = gammon(op.maximum(x=p[3], y=over), op.sub(x=one, y=win), own_off)
        lose_backgammon = backgammon(op.maximum(x=p[4], y=over), lose_gammon, own_behind)
        outputs = (win, win_gammon, win_backgammon, lose_gammon, lose_backgammon)
        return op.concat(values=outputs, axis=1, name=OUTPUT)

    # The builder names the program's input after the function's argument: INPUT.
    return op.program(input_specs=[spec], opset_version=coremltools.target.iOS15)(program)


def _coremltools() -> Any:
    # It warns about frameworks that are not used here, and that this system cannot run Core ML.
    logging.disable(logging.WARNING)
    try:
        import coremltools
    except ImportError as error:
        raise MissingExtra("coremltools", "export", "a Core ML package") from error
    finally:
        logging.disable(logging.NOTSET)
    return coremltools
