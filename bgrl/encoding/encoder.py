"""What an encoder is: a list of clipped ramps, each over the checkers of one slot.

Input ``i`` of a net is ``min(max((n - shift[i]) * scale[i], 0), cap[i])`` in float32, where ``n``
is the number of checkers in slot ``slots[i]`` of the flattened board (``side * 26 + slot``, see
:mod:`bgrl.game.board`). A thermometer unit "n >= k" is the ramp with shift k - 1, scale 1 and cap
1. Being data, an encoder computes the same bits in numpy, numba, torch, ONNX and in an app, and
since every input looks at one slot only, a first layer over them is a sum of table rows.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit

from bgrl.game.board import BAR, OFF, SLOTS


@njit(cache=True, nogil=True)
def _encode(boards, slots, shift, scale, cap, out):
    counts = np.empty(boards.shape[1], np.float32)
    for row in range(boards.shape[0]):
        for slot in range(boards.shape[1]):
            counts[slot] = boards[row, slot]
        for i in range(slots.shape[0]):
            ramp = (counts[slots[i]] - shift[i]) * scale[i]
            out[row, i] = min(max(ramp, np.float32(0)), cap[i])


@dataclass(frozen=True)
class Encoder:
    """A named, versioned list of inputs.

    ``slots`` is int64[n], ``shift``, ``scale`` and ``cap`` are float32[n]; ``source`` says where
    the encoding was published.
    """

    name: str
    version: int
    source: str
    slots: np.ndarray = field(repr=False)
    shift: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    cap: np.ndarray = field(repr=False)

    @property
    def n_inputs(self) -> int:
        """Number of net inputs."""
        return len(self.slots)

    @cached_property
    def hash(self) -> str:
        """12 hex digits of the SHA-256 of the definition; the name does not count."""
        definition = [
            [int(slot), float(shift), float(scale), float(cap)]
            for slot, shift, scale, cap in zip(
                self.slots, self.shift, self.scale, self.cap, strict=True
            )
        ]
        return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:12]

    def encode(self, boards: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Inputs float32[N, n_inputs] of ``boards`` int8[N, 2, 26] (or int8[2, 26] for one).

        ``out`` is filled and returned if given. Releases the GIL.
        """
        boards = np.ascontiguousarray(boards, dtype=np.int8)
        flat = boards.reshape(-1, 2 * SLOTS)
        if out is None:
            out = np.empty((len(flat), self.n_inputs), np.float32)
        _encode(flat, self.slots, self.shift, self.scale, self.cap, out)
        return out[0] if boards.ndim == 2 else out

    def table(self, checkers: int) -> np.ndarray:
        """What each slot adds to each input: float32[52, checkers + 1, n_inputs].

        The inputs of a board are the sum over its slots of ``table[slot, count]``.
        """
        table = np.zeros((2 * SLOTS, checkers + 1, self.n_inputs), np.float32)
        counts = np.arange(checkers + 1, dtype=np.float32)[:, None]
        ramps = np.clip((counts - self.shift) * self.scale, 0, self.cap)
        for i, slot in enumerate(self.slots):
            table[slot, :, i] = ramps[:, i]
        return table

    def describe(self, i: int) -> str:
        """Input ``i`` in words, such as ``opponent's point 6: n >= 2``."""
        side, slot = divmod(int(self.slots[i]), SLOTS)
        owner = "opponent's" if side else "own"
        place = {OFF: "borne off", BAR: "bar"}.get(slot, f"point {slot}")
        shift, scale, cap = (float(a[i]) for a in (self.shift, self.scale, self.cap))
        if cap == 0:
            return "always 0"
        if shift == -1 and scale == 1 and cap == 1:
            return "always 1"
        if scale == 1 and cap == 1:
            return f"{owner} {place}: n >= {shift + 1:g}"
        ramp = f"(n - {shift:g})" if shift else "n"
        limit = "" if np.isinf(cap) else f", at most {cap:g}"
        return f"{owner} {place}: {ramp} / {1 / scale:g}{limit}"


class EncoderBuilder:
    """Collects inputs in order; ``build`` makes the encoder."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, float, float]] = []

    def at_least(self, side: int, slot: int, count: int) -> None:
        """1 if the slot holds ``count`` checkers or more, else 0."""
        self._rows.append((side * SLOTS + slot, count - 1, 1, 1))

    def ramp(self, side: int, slot: int, above: float, divide: float) -> None:
        """(n - above) / divide, never negative."""
        self._rows.append((side * SLOTS + slot, above, float(np.float32(1 / divide)), np.inf))

    def constant(self, value: int) -> None:
        """Always 0 or always 1."""
        self._rows.append((OFF, -1, 1, value))

    def build(self, name: str, version: int, source: str) -> Encoder:
        """The encoder of all inputs so far."""
        rows = np.array(self._rows, dtype=np.float64)
        shift, scale, cap = (np.ascontiguousarray(rows[:, i], np.float32) for i in (1, 2, 3))
        return Encoder(name, version, source, rows[:, 0].astype(np.int64), shift, scale, cap)
