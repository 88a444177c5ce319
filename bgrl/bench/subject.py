"""Which net is measured: speed depends on how it plays, so a trained one if there is any."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.files import shipped
from bgrl.game import BACKGAMMON
from bgrl.nets import Weights
from bgrl.nets.weights import layer_shapes


@dataclass(frozen=True)
class Subject:
    """A net to measure. origin: where it comes from, in words."""

    weights: Weights
    origin: str
    trained: bool

    @property
    def shape(self) -> str:
        """The widths of its hidden layers, such as 128-32."""
        return "-".join(map(str, self.weights.hidden))


def find_subjects(
    net: str | None, shapes: Sequence[tuple[int, ...]], seed: int
) -> dict[tuple[int, ...], Subject | None]:
    """A net for each of `shapes` (the widths of hidden layers), or None where there is none.

    net: a level or a checkpoint folder; None takes the largest fitting one of checkpoints/. A net
    is widened by units that add nothing: it plays the same games at the wider net's cost. When it
    fits into no shape it is measured as it is. Without any trained net, an untrained one of each
    shape is.

    Raises BgrlError when `net` is no checkpoint, or none for backgammon.
    """
    folders = [_folder(net)] if net else _shipped()
    nets = {folder: Weights.load(folder) for folder in sorted(folders)}
    nets = {folder: weights for folder, weights in nets.items() if weights.variant == BACKGAMMON}
    if net and not nets:
        raise BgrlError(f"bench: {net} does not play {BACKGAMMON.name}")
    if not nets:
        return {shape: Subject(_untrained(shape, seed), "untrained", False) for shape in shapes}
    found: dict[tuple[int, ...], Subject | None] = {}
    for shape in shapes:
        fitting = {f: w for f, w in nets.items() if not w.products and _fits(w.hidden, shape)}
        found[shape] = None
        if fitting:
            folder = max(fitting, key=lambda f: fitting[f].n_parameters)
            weights = fitting[folder]
            same = weights.hidden == shape
            origin = f"{folder}" if same else f"{folder}, widened from {weights.hidden}"
            found[shape] = Subject(weights if same else _widened(weights, shape), origin, True)
    if not any(found.values()):
        folder = max(nets, key=lambda f: nets[f].n_parameters)
        found[nets[folder].hidden] = Subject(nets[folder], str(folder), True)
    return found


def _folder(net: str) -> Path:
    for folder in (Path(net), shipped("checkpoints") / net):
        if (folder / "net.json").is_file():
            return folder
    levels = ", ".join(sorted(folder.name for folder in _shipped())) or "there are none"
    raise BgrlError(f"bench: net {net!r} is no checkpoint folder and no level ({levels})")


def _shipped() -> list[Path]:
    return [file.parent for file in shipped("checkpoints").glob("*/net.json")]


def _fits(hidden: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(hidden) == len(shape) and all(a <= b for a, b in zip(hidden, shape, strict=True))


def _widened(weights: Weights, shape: tuple[int, ...]) -> Weights:
    """The same function with hidden layers of the widths `shape`; the added units give 0."""
    layers = []
    for (n_out, n_in), (weight, bias) in zip(
        layer_shapes(weights.encoder.n_inputs, shape), weights.layers, strict=True
    ):
        wide = np.zeros((n_out, n_in), np.float32)
        wide[: weight.shape[0], : weight.shape[1]] = weight
        layers.append((wide, np.pad(bias, (0, n_out - len(bias)))))
    return replace(weights, layers=layers)


def _untrained(shape: tuple[int, ...], seed: int) -> Weights:
    from bgrl.nets import Net

    return Net(get_encoder("tesauro198"), shape).reset(seed).weights()
