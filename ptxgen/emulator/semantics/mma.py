"""mma.sync: MMAs in the registers of a warp, dense, sparse and with scale factors. PTX ISA 9.7.14.5.

`ptxgen.layouts.fragments` maps elements to lanes, `ptxgen.emulator.arithmetic.tensor_sums` rounds the sums. Products
of .f64 are fused multiply-adds in the order of K (the manual leaves it open; measured, H200).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.dtypes import DTYPES
from ptxgen.emulator.arithmetic import matrix_multiply, split_multiply, sum_rules, tensor_sums
from ptxgen.emulator.arithmetic.exact import fused
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import mma, wmma
from ptxgen.instr.model.fragments import dimensions
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.layouts import fragments
from ptxgen.layouts.fragments import Fragment, inverse

_Values = NDArray[np.float32]
_SparseScaled = mma.sp_mxf8f6f4 | mma.sp_mxf4 | mma.sp_mxf4nvf4
_Scaled = mma.mxf8f6f4 | mma.mxf4 | mma.mxf4nvf4 | _SparseScaled
_Sparse = mma.sp_f16 | mma.sp_bf16 | mma.sp_tf32 | mma.sp_f8 | mma.sp_f8f6f4 | mma.sp_i8 | mma.sp_i4 | _SparseScaled
_Dense = mma.f16 | mma.bf16 | mma.tf32 | mma.f64 | mma.f8 | mma.f8f6f4 | mma.i8 | mma.i4 | mma.b1
_Mma = mma.f16_m8n8k4 | _Dense | _Sparse | _Scaled
_Integer = mma.i8 | mma.i4 | mma.sp_i8 | mma.sp_i4 | wmma.mma_i8 | wmma.mma_i4
WmmaMma = wmma.mma_f16 | wmma.mma_bf16 | wmma.mma_tf32 | wmma.mma_f64 | wmma.mma_i8 | wmma.mma_i4 | wmma.mma_b1


class Layout(NamedTuple):
    """Where elements are: of each of A [m, stored k], B [n, k] and C [m, n] the number in [32, registers, elements];
    of D the other way round, [32, registers, elements] of numbers in [m, n].
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    c: NDArray[np.int64]
    d: NDArray[np.int64]


@lru_cache(maxsize=128)
def _layout(shape: str, bits: int, sparse: bool, c_bits: int, d_bits: int) -> Layout:
    m, n, k = dimensions(shape)
    stored = k // 2 if sparse else k
    return _of(
        fragments.a_fragment(m, stored, bits),
        fragments.b_fragment(k, n, bits),
        fragments.accumulator_fragment(m, n, c_bits),
        fragments.accumulator_fragment(m, n, d_bits),
        (m, n, k, stored),
    )


def _of(a: Fragment, b: Fragment, c: Fragment, d: Fragment, sizes: tuple[int, int, int, int]) -> Layout:
    m, n, k, stored = sizes
    return Layout(inverse(a, m, stored), inverse(b, k, n).T, inverse(c, m, n), d[0] * n + d[1])


@lru_cache(maxsize=16)
def _quad_layout(a_layout: Any, b_layout: Any, c_bits: int, d_bits: int) -> Layout:
    """m8n8k4 of .f16: its four products one below the other, each index with the product's number first."""
    product = fragments.quad_products()[:, None, None]

    def stacked(fragment: Fragment, rows: int, columns: int) -> NDArray[np.int64]:
        row, column = fragment
        return inverse((row + rows * product, column), 4 * rows, columns).reshape(4, rows, columns)

    d_row, d_column = fragments.quad_accumulator_fragment(d_bits)
    return Layout(
        stacked(fragments.quad_a_fragment(a_layout), 8, 4),
        stacked(fragments.quad_b_fragment(b_layout), 4, 8).swapaxes(1, 2),
        stacked(fragments.quad_accumulator_fragment(c_bits), 8, 8),
        (product * 8 + d_row) * 8 + d_column,
    )


def _types(op: _Mma) -> tuple[str, str]:
    """The types of A and B."""
    return op.atype, op.btype


class _Operand:
    """A matrix in registers, or constants in their place: its words, split into elements."""

    def __init__(self, operand: syntax.Operand, binder: Binder, bits: int, *, converts: bool = False) -> None:
        self.bits = bits
        self.readers: list[Reader] = [
            _constant(each, bits, converts=converts)
            if isinstance(each, syntax.Immediate | syntax.Expression)
            else binder.source(each, "b64" if bits == 64 else "b32")
            for each in binder.vector(operand)
        ]

    def __call__(self, g: Group, places: NDArray[np.int64]) -> NDArray[Any]:
        """The elements at these places of [32, registers, elements]: [warps, ...]."""
        words = np.stack([g.full(reader(g)) for reader in self.readers], axis=-1)
        return np.ascontiguousarray(matrix_multiply.split(words, self.bits).reshape(g.size, -1)[:, places])


def _constant(operand: syntax.Immediate | syntax.Expression, bits: int, *, converts: bool) -> Reader:
    """Reads a constant as a register's word: the low bits of an integer, of a float, or of a double (decimals).

    A double is converted where ptxas takes the instruction apart (SASS of ptxas 13.5.37).
    """
    value = value_of(operand)
    if value is None:
        raise Unmodelled(f"the operand {operand}")
    if isinstance(value, int):
        word = value
    elif isinstance(operand, syntax.Immediate) and operand.width == 32:
        word = operand.bits or 0
    elif converts:
        with np.errstate(over="ignore"):
            word = int(np.float64(value).astype(np.float32).view(np.uint32))
    else:
        word = int(np.float64(value).view(np.uint64))
    found = np.uint64(word & (1 << 64) - 1) if bits == 64 else np.uint32(word & (1 << 32) - 1)
    return lambda g: found


@semantics(*get_args(_Mma))
def multiply(op: _Mma, binder: Binder, statement: syntax.Instruction) -> Plain:
    sparse, c_bits, d_bits = isinstance(op, _Sparse), *accumulator_bits(op)
    if isinstance(op, mma.f16_m8n8k4):
        layout = _quad_layout(op.alayout, op.blayout, c_bits, d_bits)
    else:
        layout = _layout(op.shape, op.bits, sparse, c_bits, d_bits)
    metadata = _Metadata(op, binder, statement) if isinstance(op, _Sparse) else None
    scales = _Scales(op, binder) if isinstance(op, _Scaled) else None
    return product_of(op, binder, statement, layout, _types(op), op.bits, metadata, scales)


def accumulator_bits(op: _Mma | WmmaMma) -> tuple[int, int]:
    """Bits of an element of C and of D."""
    return DTYPES[_c_type(op)].bits, DTYPES[op.dtype].bits


def _c_type(op: _Mma | WmmaMma) -> str:
    return op.ctype if isinstance(op, mma.f16_m8n8k4 | wmma.mma_f16) else op.dtype


def product_of(
    op: _Mma | WmmaMma,
    binder: Binder,
    statement: syntax.Instruction,
    layout: Layout,
    types: tuple[str, str],
    bits: int,
    metadata: _Metadata | None = None,
    scales: _Scales | None = None,
) -> Plain:
    """An instruction with operands d, a, b and c in registers of this layout."""
    d_type, c_type = op.dtype, _c_type(op)
    c_bits, d_bits = accumulator_bits(op)
    a, b = _Operand(op.a, binder, bits), _Operand(op.b, binder, bits)
    c = _Operand(op.c, binder, c_bits, converts=_is_taken_apart(op, binder))
    destinations = [binder.destination(each, "b64" if d_bits == 64 else "b32") for each in binder.vector(op.d)]
    packed, rounding = bits == 4, (isinstance(op, mma.f64 | wmma.mma_f64) and op.rounding) or "rn"
    xor = isinstance(op, mma.b1 | wmma.mma_b1) and op.op == "xor"
    saturate = isinstance(op, _Integer) and op.satfinite
    add = _sum(op, binder, types, c_type, d_type) if d_type in ("f16", "f32") else None

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        left, right, before = a(g, layout.a), b(g, layout.b), c(g, layout.c)
        if d_type == "f64":
            words = _fused(left, right, before, rounding)
        else:
            values = (
                matrix_multiply.decode(left, types[0], packed=packed),
                matrix_multiply.decode(right, types[1], packed=packed),
            )
            columns = metadata(g) if metadata is not None else None
            if columns is not None:
                values = matrix_multiply.dense(values[0], columns, values[1].shape[-1]), values[1]
            if add is None:
                product = matrix_multiply.multiply(*values)
                if xor:
                    ones = [each.sum(axis=-1) for each in values]
                    product = ones[0][..., :, None] + ones[1][..., None, :] - 2 * product
                words = matrix_multiply.total(product, before, saturate=saturate)
            else:
                c_values = matrix_multiply.addends(before, c_type)
                sums = add(*values, c_values, columns) if scales is None else scales.sum(g, *values, c_values, columns)
                words = tensor_sums.words_of(sums, d_type)
        ordered = matrix_multiply.join(words.reshape(g.size, -1)[:, layout.d], d_bits)
        for index, destination in enumerate(destinations):
            destination(g, ordered[..., index])

    return run


def _is_taken_apart(op: _Mma | WmmaMma, binder: Binder) -> bool:
    """Whether ptxas makes MMAs of halves and additions of it, since the target has none of 8-bit floats."""
    generation = sum_rules.generation_of(binder.program.hardware)
    eight = isinstance(op, mma.f8 | mma.f8f6f4 | mma.sp_f8 | mma.sp_f8f6f4)
    return eight and generation is not None and generation.f8 is None


def _sum(
    op: _Mma | WmmaMma, binder: Binder, types: tuple[str, str], c_type: str, d_type: str
) -> Callable[[_Values, _Values, _Values, NDArray[np.int64] | None], NDArray[Any]]:
    """How the instruction adds products to C: in one sum, or in the steps that ptxas or the hardware makes of it."""
    target = binder.program.hardware
    generation = sum_rules.generation_of(target)
    if generation is None:
        raise Unmodelled(f"{op.opcode_text} on {target}, which has no tensor cores,")
    rule, split = generation.rule_of(types[0]), split_multiply
    if isinstance(op, mma.f16_m8n8k4) and not generation.quads:
        return lambda a, b, c, columns: split.multiply_adds(a, b, c, c_type, d_type)
    if isinstance(op, mma.f8 | mma.sp_f8) and generation.f8 is None:
        return lambda a, b, c, columns: split.halves(a, b, c, d_type, columns, rule)
    # wmma of .tf32 is two products of K 4 everywhere.
    size = 4 if isinstance(op, wmma.mma_tf32) else generation.steps.get(types[0], dimensions(op.shape)[2])
    size *= 2 if isinstance(op, _Sparse) else 1
    # wmma with C or D of .f32 converts the other.
    wide = "f32" if "f32" in (c_type, d_type) else d_type

    def add(a: _Values, b: _Values, c: _Values, columns: NDArray[np.int64] | None) -> NDArray[Any]:
        sums = split.steps(a, b, c, (*types, wide), rule, size, columns)
        with np.errstate(over="ignore"):
            return sums.astype(np.float16) if d_type == "f16" else sums

    return add


def _fused(a: NDArray[np.uint64], b: NDArray[np.uint64], c: NDArray[np.uint64], rounding: str) -> NDArray[np.uint64]:
    left, right, total = a.view(np.float64), b.view(np.float64), c.view(np.float64)
    for k in range(left.shape[-1]):
        x, y = left[:, :, None, k], right[:, None, :, k]
        following = fused(x, y, total, rounding)
        if any_set(np.isnan(following)):
            following = np.where(np.isnan(following), _nan(x, y, total), following)
        total = following
    return np.ascontiguousarray(total).view(np.uint64)


def _nan(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """The NaN of a * b + c: that of b, c or a, the first that is one, made quiet, else a negative one (seen, H200)."""
    made = np.full(np.broadcast_shapes(a.shape, b.shape, c.shape), 0xFFF8 << 48, np.uint64).view(np.float64)
    for each in (a, c, b):
        made = np.where(np.isnan(each), each, made)
    return (made.view(np.uint64) | np.uint64(1 << 51)).view(np.float64)


class _Metadata:
    """The columns of the stored elements of a sparse A."""

    def __init__(self, op: _Sparse, binder: Binder, statement: syntax.Instruction) -> None:
        self.word, self.bits, self.statement = binder.source(binder.vector(op.e)[0], "b32"), op.bits, statement
        self.k = dimensions(op.shape)[2]
        self.thread, self.bit = fragments.metadata_places(self.k, op.bits, int(op.f.evaluate()))
        self.ordered = isinstance(op, mma.sp_f8f6f4 | _SparseScaled) or op.variant != "sp"

    def __call__(self, g: Group) -> NDArray[np.int64]:
        """[warps, m, k / 2]."""
        words = np.asarray(g.full(self.word(g)))[:, self.thread]
        nibbles = ((words >> self.bit.astype(np.uint32)) & np.uint32(15)).astype(np.uint8)
        nibbles = matrix_multiply.checked_metadata(nibbles, self.bits, g.machine, self.statement, ordered=self.ordered)
        return matrix_multiply.chosen_columns(nibbles, self.bits, self.k)


class _Scales:
    """The scale factors of blocks of A's rows and B's columns. PTX ISA 9.7.14.3."""

    def __init__(self, op: _Scaled, binder: Binder) -> None:
        size = op.scale_vec or op.default_size
        assert size is not None
        self.count = int(size[0])
        self.type = op.stype if isinstance(op, mma.mxf4nvf4 | mma.sp_mxf4nvf4) else "ue8m0"
        self.types = _types(op)
        self.groups = op.bits == 4
        self.words = [binder.source(binder.vector(each)[0], "b32") for each in (op.scale_a, op.scale_b)]
        self.selectors = [
            [binder.source(each, "u16") for each in selector.elements] for selector in (op.selector_a, op.selector_b)
        ]

    def _factors(self, g: Group, index: int) -> NDArray[np.float64]:
        """[warps, rows, factors]; the selector is the same in all threads of a warp. Raises MemoryFault."""
        selectors = np.stack([np.asarray(g.full(reader(g)))[:, 0] for reader in self.selectors[index]], axis=-1)
        octets = np.ascontiguousarray(g.full(self.words[index](g))).view(np.uint8).reshape(g.size, 32, 4)
        found: NDArray[np.uint8] | None = None
        for byte, thread in np.unique(selectors, axis=0).tolist():
            try:
                lane, place = fragments.scale_places("ab"[index], self.count, byte, thread)  # type: ignore[arg-type]
            except ValueError as error:
                where = f"scale selector {{{byte}, {thread}}} of {'AB'[index]}"
                raise MemoryFault(descriptors.ILLEGAL_DESCRIPTOR, where, rule=str(error)) from error
            found = np.zeros((g.size, *lane.shape), np.uint8) if found is None else found
            warps = (selectors == (byte, thread)).all(axis=-1)
            found[warps] = octets[warps][:, lane, place]
        assert found is not None
        return matrix_multiply.scale_factors(found, self.type)

    def sum(
        self, g: Group, a: _Values, b: _Values, c: _Values, columns: NDArray[np.int64] | None
    ) -> NDArray[np.float32]:
        """C and the scaled products of all blocks."""
        factors = self._factors(g, 0), self._factors(g, 1)
        if self.groups:
            return tensor_sums.fused_groups(a, b, c, factors, sparse=columns is not None, scale_type=self.type)
        return tensor_sums.fused(a, b, c, (*self.types, "f32"), columns=columns, scales=factors)
