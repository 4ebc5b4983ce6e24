"""What one tcgen05.mma multiplies: its shapes, and the MMA of the values that are in memory when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors import BlockScaledInstructionDescriptor, DescriptorError, InstructionDescriptor, ZeroColumnMask
from ptxgen.emulator.arithmetic import matrix_multiply, tensor_sums
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics.tcgen05.elements import Packing, Values, decode, narrow_bits, scale_table
from ptxgen.emulator.semantics.tcgen05.operands import SharedMatrix
from ptxgen.emulator.state.machine import Machine
from ptxgen.layouts.scale_factors import SCALES_PER_ROW, scale_cells
from ptxgen.layouts.tmem import (
    METADATA_CHUNKS,
    WARP_LANES,
    accumulator_cells,
    accumulator_layout,
    bands_of,
    metadata_cells,
    operand_lanes,
    shift_lanes,
)
from ptxgen.syntax import Statement

#: Bytes of K of a dense operand in one instruction: 8 columns of tensor memory. K 96 of 4 bits has 48.
K_BYTES = 32


@dataclass(frozen=True, slots=True)
class Form:
    """What the instruction itself says: kind, pair, .ws, .sp, scale vector ("" without), where A is, .ashift."""

    kind: str
    cta_group: int = 1
    ws: bool = False
    sparse: bool = False
    scale_vector: str = ""
    a_in_tensor_memory: bool = False
    ashift: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Lanes of D that hold columns `first` to `last` of the result."""

    lanes: NDArray[np.int64]
    first: int
    last: int


class Shape:
    """An instruction with its descriptor: sizes, types and cells. `rows` and `columns` are those of one CTA."""

    def __init__(self, form: Form, idesc: InstructionDescriptor | BlockScaledInstructionDescriptor) -> None:
        self.form, self.idesc = form, idesc
        self.m, self.n = idesc.m, idesc.n
        self.rows = idesc.m // form.cta_group
        where = {"cta_group": form.cta_group, "ws": form.ws, "sparse": form.sparse}
        self.layout = accumulator_layout(self.m, **where)
        lanes, columns = self.cells = accumulator_cells(self.m, self.n, **where)
        self.columns = int(columns.max()) + 1
        self.parts = [Part(lanes[:, first], first, first + self.columns) for first in range(0, self.n, self.columns)]
        self.lane_starts = (0, 16) if self.layout in ("C", "F") else (0,)
        self.packed = form.kind in ("mxf4", "mxf4nvf4")
        self.wide = idesc.is_wide if isinstance(idesc, BlockScaledInstructionDescriptor) else idesc.wide_k
        self.k_bytes_a = self.dense_k // 2 if self.packed else K_BYTES * (2 if self.wide else 1)
        self.k_bytes_b = self.k_bytes_a * (2 if form.sparse else 1)

    def bands(self, lane: int) -> list[int]:
        """The bands of the lanes that D takes, where it starts on a lane."""
        return bands_of(np.concatenate([part.lanes for part in self.parts]) + lane)

    @property
    def dense_k(self) -> int:
        """Elements of K of a dense instruction, where the descriptor says it; else 0."""
        return self.idesc.k_of_dense if isinstance(self.idesc, BlockScaledInstructionDescriptor) else 0

    @property
    def columns_of_a(self) -> int:
        """Columns of tensor memory that A takes there."""
        return self.k_bytes_a // 4

    @property
    def d_type(self) -> str:
        """Type of the accumulator."""
        return self.idesc.d_type if isinstance(self.idesc, InstructionDescriptor) else "f32"

    @property
    def selector(self) -> int:
        """Which column holds the metadata."""
        return self.idesc.sparsity_selector if isinstance(self.idesc, InstructionDescriptor) else 0

    @property
    def scales(self) -> int:
        """Scale factors of a row."""
        assert isinstance(self.idesc, BlockScaledInstructionDescriptor)
        return SCALES_PER_ROW[self.form.scale_vector, self.dense_k]

    @property
    def scale_type(self) -> str:
        """Type of the scale factors."""
        assert isinstance(self.idesc, BlockScaledInstructionDescriptor)
        return self.idesc.scale_type

    def packing(self, type: str, *, shared: bool) -> Packing:
        """How elements of a type lie in shared or tensor memory."""
        if self.packed:
            return "packed"
        return "padded" if shared and type in ("e2m1", "e2m3", "e3m2") else "bytes"

    def data_bytes(self, type: str) -> np.uint16:
        """The bytes of a 16-byte unit of shared memory that hold elements, one bit each; the others are padding."""
        if self.packing(type, shared=True) == "padded":
            return np.uint16((1 << 2 * narrow_bits(type)) - 1)
        return np.uint16(0xFFFF)

    def element_bits(self, type: str) -> int:
        """Bits of an element where MN-major addresses count."""
        return matrix_multiply.BITS[type]


@lru_cache(maxsize=1024)
def shape_of(value: int, form: Form) -> Shape:
    """The shape of an instruction descriptor's 32 bits. Raises MemoryFault, with the rule, for an illegal one."""
    try:
        idesc: InstructionDescriptor | BlockScaledInstructionDescriptor
        if form.scale_vector:
            idesc = BlockScaledInstructionDescriptor.decode(value, form.kind, form.cta_group, form.scale_vector)
        else:
            idesc = InstructionDescriptor.decode(value, form.kind, form.cta_group, form.ws)
        _check(form, idesc)
        return Shape(form, idesc)
    except (DescriptorError, ValueError) as error:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR, f"instruction descriptor {value:#010x}", rule=str(error)
        ) from error


def _check(form: Form, idesc: InstructionDescriptor | BlockScaledInstructionDescriptor) -> None:
    if idesc.sparse != form.sparse:
        wanted = "sparse" if form.sparse else "dense"
        raise DescriptorError(f"sparse is {idesc.sparse}, but the instruction multiplies a {wanted} A")
    if form.ashift and idesc.m not in (128, 256):
        raise DescriptorError(f"m must be 128 or 256 with .ashift, not {idesc.m} (PTX ISA 9.7.16.10.9.1)")
    if form.kind == "f16" and idesc.a_type != idesc.b_type:
        raise DescriptorError(
            f"a_type and b_type must be equal with kind::f16, not {idesc.a_type} and {idesc.b_type} (fact f16-mixed)"
        )
    if isinstance(idesc, InstructionDescriptor) and form.ws and idesc.m == 32 and idesc.max_shift:
        raise DescriptorError(f"max_shift must be 0 with M 32, not {idesc.max_shift} (fact max-shift-m32)")
    if form.a_in_tensor_memory and idesc.a_major != "k":
        raise DescriptorError("a_major must be k for A in tensor memory, which cannot be transposed")
    step = 16 * form.cta_group
    if idesc.b_major == "mn" and matrix_multiply.BITS[idesc.b_type] == 8 and idesc.n % step:
        raise DescriptorError(f"n must be a multiple of {step} for MN-major B of 8 bits, not {idesc.n} (table 52)")


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One instruction as issued: where its matrices are. Tensor-memory places are (lane, column).

    `a` and `b` are by CTA of the pair; `slots` are those CTAs, the even one first. `a` is empty where A is in tensor
    memory, at `a_place`. `descriptors` are the bits that name A and B in shared memory.
    """

    descriptors: tuple[int | None, int]
    statement: Statement
    shape: Shape
    slots: Sequence[int]
    d: tuple[int, int]
    a: Sequence[SharedMatrix]
    b: Sequence[SharedMatrix]
    accumulate: bool
    a_place: tuple[int, int] = (0, 0)
    metadata: tuple[int, int] = (0, 0)
    scale_a: tuple[int, int] = (0, 0)
    scale_b: tuple[int, int] = (0, 0)
    lanes_off: NDArray[np.bool_] | None = None
    scale_input: int = 0
    zero_columns: NDArray[np.bool_] | None = None
    column_shift: int = 0


def execute(machine: Machine, call: Call) -> None:
    """Multiply what is in memory now, and put it into D."""
    right = _right(machine, call)
    for index, slot in enumerate(call.slots):
        left = _left(machine, call, index)
        for number, part in enumerate(call.shape.parts):
            columns = right[part.first : part.last]
            factors = _factors(machine, call, slot, number, left, columns)
            _accumulate(machine, call, index, part, factors)
        if call.shape.form.ashift:
            _shift_rows(machine, call, slot)


def _right(machine: Machine, call: Call) -> Values:
    """B, [N, K]: of a pair of CTAs, each has half of the columns."""
    idesc = call.shape.idesc
    halves = [
        _shared_values(machine, call.shape, slot, b, idesc.b_type) for slot, b in zip(call.slots, call.b, strict=True)
    ]
    right = halves[0] if len(halves) == 1 else np.concatenate(halves)
    if idesc.negate_b:
        right = -right
    if call.column_shift:
        right = right[call.column_shift :]
    if call.zero_columns is not None:
        right = np.where(call.zero_columns[:, None], np.float32(0), right)
    return right


def _shared_values(machine: Machine, shape: Shape, slot: int, matrix: SharedMatrix, type: str) -> Values:
    values = decode(matrix.lines(machine, slot), type, shape.packing(type, shared=True))
    return values if matrix.major == "k" else values.T


def _left(machine: Machine, call: Call, index: int) -> Values | None:
    """A in shared memory, [rows, K]; None where each part has its own in tensor memory."""
    if not call.a:
        return None
    idesc = call.shape.idesc
    values = _shared_values(machine, call.shape, call.slots[index], call.a[index], idesc.a_type)
    return -values if idesc.negate_a else values


class Factors(NamedTuple):
    """A [rows, K] and B [columns, K] of a part of D; of a sparse A the columns that are stored."""

    a: Values
    b: Values
    columns: NDArray[np.int64] | None


def _factors(machine: Machine, call: Call, slot: int, number: int, left: Values | None, right: Values) -> Factors:
    """The factors of a part of D."""
    shape = call.shape
    cells = machine.tensor.cells[slot]
    if left is None:
        lane, column = call.a_place
        lanes = _operand_lanes(shape)[number] + lane
        words = np.ascontiguousarray(cells[lanes, column : column + shape.columns_of_a])
        type = shape.idesc.a_type
        left = decode(words.view(np.uint8), type, shape.packing(type, shared=False))
        if shape.idesc.negate_a:
            left = -left
    if not shape.form.sparse:
        return Factors(left, right, None)
    kind = shape.form.kind
    bits = 4 if shape.packed else matrix_multiply.BITS[shape.idesc.a_type]
    metadata = matrix_multiply.checked_metadata(_metadata(cells, call, number), bits, machine, call.statement)
    left = _spread(left, metadata, kind)
    return Factors(left, right, matrix_multiply.chosen_columns(metadata, bits, left.shape[1]))


def _operand_lanes(shape: Shape) -> NDArray[np.int64]:
    form = shape.form
    return operand_lanes(shape.m, cta_group=form.cta_group, ws=form.ws, sparse=form.sparse)


# Sparse A.


def _metadata(cells: NDArray[np.uint32], call: Call, number: int) -> NDArray[np.uint8]:
    """The 4 bits of every chunk: [rows, chunks]."""
    shape, (lane0, column0) = call.shape, call.metadata
    form = shape.form
    lane, column, bit = metadata_cells(
        form.kind, shape.m, selector=shape.selector, cta_group=form.cta_group, ws=form.ws
    )
    words = cells[lane[number] + lane0, column[number] + column0]
    return (words >> bit[number].astype(np.uint32) & np.uint32(15)).astype(np.uint8)


def _spread(stored: Values, metadata: NDArray[np.uint8], kind: str) -> Values:
    """A with its zeros: each chunk's two stored units go to the two places that its bits name, the low bits first.

    A unit is an element (2 of 4), half of one (tf32: 1 of 2, so both places are of one element), or two (4 of 8).
    """
    size, chunks = METADATA_CHUNKS[kind]
    rows = len(stored)
    first, second = metadata & 3, metadata >> 2
    result = np.zeros((rows, chunks, size), np.float32)
    row, chunk = np.indices(metadata.shape)
    if kind == "tf32":
        result[row, chunk, second >> 1] = stored.reshape(rows, chunks)
    else:
        units = result.reshape(rows, chunks, 4, -1)
        given = stored.reshape(rows, chunks, 2, -1)
        units[row, chunk, first] = given[:, :, 0]
        units[row, chunk, second] = given[:, :, 1]
    return result.reshape(rows, -1)


# Scale factors.


def _scales(cells: NDArray[np.uint32], call: Call, part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """SFA of the part's rows, [rows, scales], and SFB of its columns by quarter, [quarters, columns, scales]."""
    shape = call.shape
    idesc = shape.idesc
    assert isinstance(idesc, BlockScaledInstructionDescriptor)
    table = scale_table(idesc.scale_type)
    quarters = part.lanes // WARP_LANES
    lane, column, byte = scale_cells(shape.rows, shape.scales, idesc.sfa_id)
    rows = np.arange(shape.rows)
    scale_a = table[_bytes(cells, lane[quarters, rows], column[0], byte[0], call.scale_a)]
    halves = len(shape.parts)
    lane, column, byte = scale_cells(shape.n, shape.scales, idesc.sfb_id, parts=halves)
    chosen = slice(part.first, part.last)
    copies = [
        _bytes(cells, lane[i, chosen], column[i, chosen], byte[i, chosen], call.scale_b) for i in range(len(lane))
    ]
    return scale_a, table[np.stack(copies)]


def _bytes(
    cells: NDArray[np.uint32],
    lane: NDArray[np.int64],
    column: NDArray[np.int64],
    byte: NDArray[np.int64],
    place: tuple[int, int],
) -> NDArray[np.uint8]:
    words = cells[lane + place[0], column + place[1]]
    return (words >> (8 * byte).astype(np.uint32)).astype(np.uint8)


# D.


def _accumulate(machine: Machine, call: Call, index: int, part: Part, factors: Factors) -> None:
    shape, (lane0, column0) = call.shape, call.d
    target = machine.tensor.cells[call.slots[index]][:, column0 : column0 + shape.columns]
    lanes: NDArray[np.int64] | slice = part.lanes + lane0
    if shape.rows == len(target):
        lanes = slice(None)
    before = target[lanes] if call.accumulate else None
    if shape.d_type == "s32":
        saturate = shape.idesc.saturate  # type: ignore[union-attr]
        product = matrix_multiply.multiply(factors.a, factors.b, wide=shape.form.kind == "ti16")
        words = matrix_multiply.total(product, before, saturate=saturate)
    else:
        if before is not None and shape.d_type == "f16":
            before = before.astype(np.uint16)
        c = None if before is None else _scaled_input(matrix_multiply.addends(before, shape.d_type), call)
        sums = _sums(machine.tensor.cells[call.slots[index]], call, part, factors, c)
        words = tensor_sums.words_of(sums, shape.d_type).astype(np.uint32, copy=False)
    if call.lanes_off is None:
        target[lanes] = words
    else:
        on = ~call.lanes_off[128 * index + part.lanes + lane0]
        target[part.lanes[on] + lane0] = words[on]


def _sums(
    cells: NDArray[np.uint32], call: Call, part: Part, factors: Factors, c: Values | None
) -> NDArray[np.floating]:
    """C plus the product, [rows, columns], as .f32 or .f16."""
    shape, (a, b, columns) = call.shape, factors
    types = shape.idesc.a_type, shape.idesc.b_type, shape.d_type
    if not shape.form.scale_vector:
        return tensor_sums.fused(a, b, c, types, columns=columns)

    def scaled(rows: NDArray[np.bool_] | slice, scale_b: NDArray[np.float64]) -> Values:
        scales, addend = (scale_a[rows], scale_b), None if c is None else c[rows]
        if shape.packed:
            return tensor_sums.fused_groups(
                a[rows], b, addend, scales, sparse=shape.form.sparse, scale_type=shape.scale_type
            )
        stored = None if columns is None else columns[rows]
        return tensor_sums.fused(a[rows], b, addend, types, columns=stored, scales=scales)

    scale_a, copies = _scales(cells, call, part)
    if all(np.array_equal(copies[0], each, equal_nan=True) for each in copies[1:]):
        return scaled(slice(None), copies[0])
    # Each quarter of the lanes takes the scale factors on its own lanes.
    found = np.empty((len(a), len(b)), np.float32)
    quarter = part.lanes // WARP_LANES
    for position, each in enumerate(np.unique(quarter)):
        found[quarter == each] = scaled(quarter == each, copies[position])
    return found


def _scaled_input(before: Values, call: Call) -> Values:
    return before * np.float32(2.0**-call.scale_input) if call.scale_input else before


def _shift_rows(machine: Machine, call: Call, slot: int) -> None:
    """.ashift: each quarter's rows of A move up by one lane, after the MMA (fact shift-direction)."""
    column = call.a_place[1]
    cells = machine.tensor.cells[slot][:, column : column + call.shape.columns_of_a]
    to, source = shift_lanes()
    cells[to] = cells[source]


def zero_columns(value: int, shape: Shape) -> tuple[NDArray[np.bool_] | None, int]:
    """Which columns a mask descriptor of .ws zeroes, None for none, and by how many columns it shifts B."""
    assert isinstance(shape.idesc, InstructionDescriptor)
    try:
        mask = ZeroColumnMask.decode(value, m=shape.m)
        if mask.column_shift > shape.idesc.max_shift:
            raise DescriptorError(
                f"column_shift must be at most the instruction descriptor's max_shift {shape.idesc.max_shift}, "
                f"not {mask.column_shift}"
            )
        bits = mask.mask(shape.n)
    except DescriptorError as error:
        raise MemoryFault(descriptors.ILLEGAL_DESCRIPTOR, f"zero-column mask {value:#018x}", rule=str(error)) from error
    if not bits:
        return None, mask.column_shift
    return np.array([bits >> i & 1 for i in range(shape.n)], np.bool_), mask.column_shift
