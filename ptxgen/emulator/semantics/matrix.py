"""Matrices between shared memory and the registers of a warp. PTX ISA 9.7.14.5.15 to 9.7.14.5.17.

Threads give the addresses of rows of 16 bytes; which thread gets which element is in `ptxgen.layouts.fragments`.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic import matrix_multiply
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import load_words, store_words
from ptxgen.emulator.memory.global_memory import SHARED_WINDOW, WINDOW_BYTES
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import matrix
from ptxgen.instr.model.form import Instruction
from ptxgen.layouts.fragments import (
    PACKED_BITS,
    MatrixShape,
    inverse,
    load_fragment,
    store_fragment,
    transpose_fragments,
)

#: Bytes of a row, which an address gives.
_ROW = 16
_WORD = np.dtype(np.uint32)
_Unpacking = matrix.ldmatrix_m8n16_unpack | matrix.ldmatrix_m16n16_unpack
_Load = matrix.ldmatrix | matrix.ldmatrix_m16n16 | _Unpacking
_Store = matrix.stmatrix | matrix.stmatrix_m16n8
_SHAPES: dict[type[Instruction], MatrixShape] = {
    matrix.ldmatrix: "m8n8",
    matrix.ldmatrix_m16n16: "m16n16",
    matrix.ldmatrix_m8n16_unpack: "m8n16",
    matrix.ldmatrix_m16n16_unpack: "m16n16",
    matrix.stmatrix: "m8n8",
    matrix.stmatrix_m16n8: "m16n8",
}


def _transposed(op: _Load | _Store) -> bool:
    """Only m8n8 has a choice: each of the others has one of the two."""
    if isinstance(op, matrix.ldmatrix | matrix.stmatrix):
        return op.trans
    return not isinstance(op, matrix.ldmatrix_m8n16_unpack)


def _addressed(
    g: Group, op: _Load | _Store, addresses: NDArray[np.int64], rows: int
) -> tuple[Group | None, NDArray[np.int64]]:
    """The threads that give the addresses of so many rows, and these as shared addresses: (warps, 32)."""
    offsets = np.array(g.full(addresses), np.int64)
    givers = np.zeros((g.size, 32), np.bool_)
    givers[:, :rows] = True
    part = g.narrowed(givers)
    if op.space is None and part is not None:
        offsets -= SHARED_WINDOW
        outside = givers & g.active & ((offsets < 0) | (offsets >= WINDOW_BYTES))
        if any_set(outside):
            address = int(offsets[outside][0]) + SHARED_WINDOW
            raise MemoryFault(memory.NOT_SHARED, f"generic address {address:#x} is not in shared memory")
    return part, offsets


@semantics(*get_args(_Load))
def load(op: _Load, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Elements of 6 and 4 bits go to the low bits of a byte each, the rest of it zero.

    CUTLASS says so of b4x16_p64 (include/cute/atom/mma_traits_sm120.hpp, fp4_shift_A); 6 bits are inferred.
    """
    fragment = load_fragment(_SHAPES[type(op)], op.num, _transposed(op))
    row, element = fragment
    packed = PACKED_BITS[op.src] if isinstance(op, _Unpacking) else None
    bits = 32 // row.shape[2]
    address = binder.address(op.addr)
    destinations = [binder.destination(each, "b32") for each in binder.vector(op.r)]

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        part, offsets = _addressed(g, op, address(g), int(row.max()) + 1)
        if part is None:
            return
        words = load_words(part, "shared", offsets, _WORD, _ROW // 4, statement)
        rows = np.ascontiguousarray(np.stack(words, axis=-1)).view(np.uint8)  # [warps, 32, 16]
        elements = unpacked(rows, packed) if packed else rows.view(f"u{bits // 8}")
        registers = _join(elements[:, row, element])
        for index, destination in enumerate(destinations):
            destination(g, registers[..., index])

    return run


def unpacked(rows: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Rows of 16 elements of 6 or 4 bits, the first in the lowest bits, and padding: a byte for each element."""
    taken = matrix_multiply.split(np.ascontiguousarray(rows[..., : 2 * bits]), 1).reshape(*rows.shape[:-1], 16, bits)
    return np.packbits(taken, axis=-1, bitorder="little")[..., 0]


def _join(elements: NDArray[Any]) -> NDArray[np.uint32]:
    """Elements of registers, [..., registers, elements], as registers."""
    return np.ascontiguousarray(elements).view(np.uint32)[..., 0]


@semantics(*get_args(_Store))
def store(op: _Store, binder: Binder, statement: syntax.Instruction) -> Plain:
    fragment = store_fragment(_SHAPES[type(op)], op.num, _transposed(op))
    bits = 32 // fragment[0].shape[2]
    rows = int(fragment[0].max()) + 1
    holder = inverse(fragment, rows, 8 * _ROW // bits)
    address = binder.address(op.addr)
    sources = [binder.source(each, "b32") for each in binder.vector(op.r)]

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        part, offsets = _addressed(g, op, address(g), rows)
        if part is None:
            return
        registers = np.stack([g.full(source(g)) for source in sources], axis=-1)
        elements = matrix_multiply.split(registers, bits).reshape(g.size, -1)
        words = np.zeros((g.size, 32, _ROW // 4), np.uint32)
        words[:, :rows] = np.ascontiguousarray(elements[:, holder]).view(np.uint32)
        store_words(part, "shared", offsets, _WORD, [words[..., i] for i in range(_ROW // 4)], statement)

    return run


@semantics(matrix.movmatrix)
def transpose(op: matrix.movmatrix, binder: Binder, statement: syntax.Instruction) -> Plain:
    given, taken = transpose_fragments()
    holder = inverse(given, 8, 8)[taken]
    source, destination = binder.source(op.a, "b32"), binder.destination(op.d, "b32")

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        elements = matrix_multiply.split(g.full(source(g)), 16).reshape(g.size, -1)
        destination(g, _join(elements[:, holder])[..., 0])

    return run
