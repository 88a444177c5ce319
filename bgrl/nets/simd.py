"""Explicit SIMD for the numba twin: sixteen float32 lanes, whatever the processor's own width.

LLVM splits a sixteen-lane operation into as many as the processor needs. Written out because
LLVM's own vectoriser neither keeps a tile of sums in registers nor drops its aliasing checks, and
the layers here are too small to pay for those. Arrays are flat float32; offsets and strides are
in elements; every width is a multiple of LANES. Nothing is bounds-checked.
"""

import math
from contextlib import contextmanager

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
TILE_ROWS = 4

_FLOAT = ir.FloatType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INT_VECTOR = ir.VectorType(_INT, LANES)


def pad(width: int) -> int:
    """``width`` rounded up to whole vectors."""
    return -(-width // LANES) * LANES


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy whose data starts on a 64-byte boundary: no vector in it lies across two cache lines,
    which is a sixth of the time."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _splat(builder, value):
    vector_type = ir.VectorType(value.type, LANES)
    index = ir.Constant(_INT, 0)
    one = builder.insert_element(ir.Constant(vector_type, ir.Undefined), value, index)
    zeros = ir.Constant(_INT_VECTOR, [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector_type, ir.Undefined), zeros)


def _constant(value):
    return ir.Constant(_VECTOR, [value] * LANES)


def _pointers(context, builder, signature, args):
    """The data pointers of the array arguments, in order, then the other arguments."""
    pointers = []
    rest = []
    for kind, value in zip(signature.args, args, strict=True):
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            pointers.append(builder.bitcast(array.data, _FLOAT.as_pointer()))
        else:
            rest.append(value)
    return pointers, rest


def _load(builder, pointer, offset):
    place = builder.gep(pointer, [offset])
    loaded = builder.load(builder.bitcast(place, _VECTOR.as_pointer()))
    loaded.align = 4
    return loaded


def _store(builder, value, pointer, offset):
    place = builder.bitcast(builder.gep(pointer, [offset]), _VECTOR.as_pointer())
    builder.store(value, place).align = 4


@contextmanager
def _each_vector(builder, width):
    """A loop over the offsets of ``width``'s vectors."""
    start, step = ir.Constant(width.type, 0), ir.Constant(width.type, LANES)
    with cgutils.for_range_slice(builder, start, width, step, inc=True) as (i, _):
        yield i


def _fma(builder, a, b, c):
    return builder.call(_vector_intrinsic(builder, "llvm.fma", 3), [a, b, c])


def _vector_intrinsic(builder, name, n_args):
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * n_args)
    return cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{LANES}f32")


def _maximum(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _make_move_row(relu, factors=1):
    @intrinsic
    def move_row(typingctx, out, out_at, base, base_at, table, plus, minus, width):
        def codegen(context, builder, signature, args):
            (out, base, table), rest = _pointers(context, builder, signature, args)
            out_at, base_at, plus, minus, width = rest
            with _each_vector(builder, width) as i:
                product = None
                at = i
                for _ in range(factors):
                    change = builder.fsub(
                        _load(builder, table, builder.add(plus, at)),
                        _load(builder, table, builder.add(minus, at)),
                    )
                    total = builder.fadd(_load(builder, base, builder.add(base_at, at)), change)
                    if relu:
                        total = _maximum(builder, total, _constant(0.0))
                    product = builder.fmul(product, total) if product else total
                    at = builder.add(at, width)
                _store(builder, product, out, builder.add(out_at, i))
            return context.get_dummy_value()

        i = types.int64
        return types.void(out, i, base, i, table, i, i, i), codegen

    return move_row


# out[..] = base[..] + (table[plus ..] - table[minus ..]), the same but not below 0, and the latter
# times what comes of the next `width` numbers of each.
move_row = _make_move_row(False)
move_row_relu = _make_move_row(True)
move_row_product = _make_move_row(True, factors=2)


@intrinsic
def add_row(typingctx, out, table, row, width):
    """out[..] += table[row ..]."""

    def codegen(context, builder, signature, args):
        (out, table), (row, width) = _pointers(context, builder, signature, args)
        with _each_vector(builder, width) as i:
            total = builder.fadd(_load(builder, out, i), _load(builder, table, builder.add(row, i)))
            _store(builder, total, out, i)
        return context.get_dummy_value()

    return types.void(out, table, types.int64, types.int64), codegen


def _make_copy(factors):
    @intrinsic
    def copy(typingctx, out, out_at, base, base_at, width):
        def codegen(context, builder, signature, args):
            (out, base), (out_at, base_at, width) = _pointers(context, builder, signature, args)
            with _each_vector(builder, width) as i:
                product = None
                at = builder.add(base_at, i)
                for _ in range(factors):
                    value = _maximum(builder, _load(builder, base, at), _constant(0.0))
                    product = builder.fmul(product, value) if product else value
                    at = builder.add(at, width)
                _store(builder, product, out, builder.add(out_at, i))
            return context.get_dummy_value()

        i = types.int64
        return types.void(out, i, base, i, i), codegen

    return copy


# out[..] = max(base[..], 0), and the same times what comes of the next `width` numbers.
relu_copy = _make_copy(1)
product_copy = _make_copy(2)


@intrinsic
def positive_lanes(typingctx, x, x_at, x_stride):
    """Bit mask (int64) of the lanes at ``x[x_at:]`` that are positive in any of TILE_ROWS rows."""

    def codegen(context, builder, signature, args):
        (x,), (x_at, x_stride) = _pointers(context, builder, signature, args)
        highest = _load(builder, x, x_at)
        for _ in range(TILE_ROWS - 1):
            x_at = builder.add(x_at, x_stride)
            highest = _maximum(builder, highest, _load(builder, x, x_at))
        positive = builder.fcmp_ordered(">", highest, _constant(0.0))
        return builder.zext(builder.bitcast(positive, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(x, types.int64, types.int64), codegen


def _make_tile(vectors):
    """A kernel for TILE_ROWS rows by ``vectors`` vectors of a dense layer, sums in registers.

    It takes the inputs numbered by the first ``k`` > 0 of ``used`` (int64[>= k]); the others must
    be 0.
    """
    rows = TILE_ROWS

    @intrinsic
    def tile(
        typingctx, out, out_at, out_stride, x, x_at, x_stride, w, w_at, w_stride, bias_at,
        used, k, relu,
    ):  # fmt: skip
        def codegen(context, builder, signature, args):
            (out, x, w, used), rest = _pointers(context, builder, signature, args)
            out_at, out_stride, x_at, x_stride, w_at, w_stride, bias_at, k, relu = rest
            word = k.type
            used = builder.bitcast(used, word.as_pointer())

            def at(base, index, stride):
                return builder.add(base, builder.mul(ir.Constant(word, index), stride))

            bias = [
                _load(builder, w, builder.add(bias_at, ir.Constant(word, v * LANES)))
                for v in range(vectors)
            ]
            x_rows = [at(x_at, r, x_stride) for r in range(rows)]
            before = builder.basic_block
            loop = builder.append_basic_block("tile_loop")
            done = builder.append_basic_block("tile_done")
            builder.branch(loop)
            builder.position_at_end(loop)
            turn = builder.phi(word)
            turn.add_incoming(ir.Constant(word, 0), before)
            sums = [[builder.phi(_VECTOR) for _ in range(vectors)] for _ in range(rows)]
            index = builder.load(builder.gep(used, [turn]))
            w_row = builder.add(w_at, builder.mul(index, w_stride))
            w_vectors = [
                _load(builder, w, builder.add(w_row, ir.Constant(word, v * LANES)))
                for v in range(vectors)
            ]
            new = []
            for r in range(rows):
                factor = builder.load(builder.gep(x, [builder.add(x_rows[r], index)]))
                factor.align = 4
                factor = _splat(builder, factor)
                new.append(
                    [_fma(builder, factor, w_vectors[v], sums[r][v]) for v in range(vectors)]
                )
            following = builder.add(turn, ir.Constant(word, 1))
            builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
            turn.add_incoming(following, loop)
            for r in range(rows):
                for v in range(vectors):
                    sums[r][v].add_incoming(bias[v], before)
                    sums[r][v].add_incoming(new[r][v], loop)
            builder.position_at_end(done)
            floor = builder.select(
                builder.icmp_signed("!=", relu, ir.Constant(relu.type, 0)),
                ir.Constant(_FLOAT, 0.0),
                ir.Constant(_FLOAT, -math.inf),
            )
            floor = _splat(builder, floor)
            for r in range(rows):
                for v in range(vectors):
                    place = builder.add(at(out_at, r, out_stride), ir.Constant(word, v * LANES))
                    _store(builder, _maximum(builder, new[r][v], floor), out, place)
            return context.get_dummy_value()

        i = types.int64
        return types.void(out, i, i, x, i, i, w, i, i, i, used, i, i), codegen

    return tile


tile_1 = _make_tile(1)
tile_2 = _make_tile(2)


@intrinsic
def sigmoid_vector(typingctx, out, out_at):
    """Replace the LANES logits at ``out[out_at:]`` by their sigmoids, to about 2e-7.

    exp by Cody and Waite's range reduction and a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2].
    """

    def codegen(context, builder, signature, args):
        (out,), (out_at,) = _pointers(context, builder, signature, args)
        x = builder.fneg(_load(builder, out, out_at))
        low, high = _constant(-80.0), _constant(80.0)
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
        x = builder.select(builder.fcmp_ordered(">", x, high), high, x)
        rint = _vector_intrinsic(builder, "llvm.rint", 1)
        n = builder.call(rint, [builder.fmul(x, _constant(1.4426950408889634))])
        r = _fma(builder, n, _constant(-0.693359375), x)
        r = _fma(builder, n, _constant(2.12194440e-4), r)
        power = _constant(1 / 720)
        for factor in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
            power = _fma(builder, power, r, _constant(factor))
        exponent = builder.fptosi(n, _INT_VECTOR)
        exponent = builder.add(exponent, ir.Constant(_INT_VECTOR, [127] * LANES))
        exponent = builder.shl(exponent, ir.Constant(_INT_VECTOR, [23] * LANES))
        power = builder.fmul(power, builder.bitcast(exponent, _VECTOR))
        one = _constant(1.0)
        _store(builder, builder.fdiv(one, builder.fadd(one, power)), out, out_at)
        return context.get_dummy_value()

    return types.void(out, types.int64), codegen
