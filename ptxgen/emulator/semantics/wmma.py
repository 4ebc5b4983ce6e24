"""wmma: load, multiply and store matrices whose fragments have no documented layout. PTX ISA 9.7.14.4.

The layout is our own (`layouts.fragments.wmma_elements`), the same for all loads of a matrix whatever its layout in
memory. Of B its columns are the lines.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic import matrix_multiply
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory.access import load_words, parts_of, store_words
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.mma import Layout, WmmaMma, accumulator_bits, product_of
from ptxgen.emulator.state.group import Group
from ptxgen.instr import wmma
from ptxgen.instr.model.fragments import dimensions
from ptxgen.layouts.fragments import wmma_elements

_Transfer = wmma.load | wmma.load_c | wmma.store_d


class _Matrix(NamedTuple):
    """A matrix [lines, depth] in memory: bits of an element, and whether neighbors of a line lie side by side."""

    lines: int
    depth: int
    bits: int
    along: bool

    @property
    def stride(self) -> int:
        """Elements from one line, or where lines lie across one column, to the next, when none is given."""
        return self.depth if self.along else self.lines


def _matrix(op: _Transfer) -> _Matrix:
    m, n, k = dimensions(op.shape)
    which = op.matrix if isinstance(op, wmma.load) else "c"
    lines, depth = {"a": (m, k), "b": (n, k), "c": (m, n)}[which]
    return _Matrix(lines, depth, matrix_multiply.BITS[op.type], (op.layout == "col") == (which == "b"))


class _Places:
    """Where the elements of a fragment lie in memory."""

    def __init__(self, op: _Transfer, binder: Binder) -> None:
        self.matrix = matrix = _matrix(op)
        self.count = len(binder.vector(op.r))
        numbers = wmma_elements(matrix.lines, matrix.depth, matrix.bits, self.count)
        #: Elements of less than 8 bits are read by registers, which hold neighbors of a line.
        self.bits = 32 if matrix.bits < 8 else matrix.bits
        numbers = numbers if matrix.bits >= 8 else numbers[..., :1]
        self.line, self.column = np.divmod(numbers.reshape(32, -1), matrix.depth)
        self.dtype = np.dtype(f"u{self.bits // 8}")
        self.address = binder.address(op.addr)
        self.stride = binder.source(op.stride, "u32") if op.stride is not None else None

    def addresses(self, g: Group) -> NDArray[np.int64]:
        """Of each place of each thread: [places, warps, 32]."""
        matrix = self.matrix
        stride = g.full(self.stride(g) if self.stride is not None else matrix.stride).astype(np.int64)
        slow, fast = (self.line, self.column) if matrix.along else (self.column, self.line)
        element = slow.T[:, None, :] * stride + fast.T[:, None, :]
        return g.full(self.address(g)) + element * matrix.bits // 8


@semantics(wmma.load, wmma.load_c)
def load(op: wmma.load | wmma.load_c, binder: Binder, statement: syntax.Instruction) -> Plain:
    places = _Places(op, binder)
    destinations = [binder.destination(each, f"b{max(places.bits, 32)}") for each in binder.vector(op.r)]

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        addresses = places.addresses(g)
        elements = np.zeros((g.size, 32, len(addresses)), places.dtype)
        for index, where in enumerate(addresses):
            for space, inside, part, chosen in parts_of(g, op.space, np.ascontiguousarray(where)):
                (words,) = load_words(part, space, inside, places.dtype, 1, statement, measured=False)
                elements[chosen, :, index] = np.where(part.active, words, elements[chosen, :, index])
        registers = matrix_multiply.join(elements.reshape(g.size, 32, places.count, -1), places.bits)
        for index, destination in enumerate(destinations):
            destination(g, registers[..., index])

    return run


@semantics(wmma.store_d)
def store(op: wmma.store_d, binder: Binder, statement: syntax.Instruction) -> Plain:
    places = _Places(op, binder)
    sources = [binder.source(each, f"b{max(places.bits, 32)}") for each in binder.vector(op.r)]

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        registers = np.stack([g.full(source(g)) for source in sources], axis=-1)
        elements = matrix_multiply.split(registers, places.bits).reshape(g.size, 32, -1)
        for index, where in enumerate(places.addresses(g)):
            for space, inside, part, chosen in parts_of(g, op.space, np.ascontiguousarray(where)):
                store_words(part, space, inside, places.dtype, [elements[chosen, :, index]], statement, measured=False)

    return run


@semantics(*get_args(WmmaMma))
def multiply(op: WmmaMma, binder: Binder, statement: syntax.Instruction) -> Plain:
    m, n, k = dimensions(op.shape)
    bits, (c_bits, d_bits) = matrix_multiply.BITS[op.type], accumulator_bits(op)

    def numbers(operand: syntax.Operand, lines: int, depth: int, bits: int) -> NDArray[np.int64]:
        return wmma_elements(lines, depth, bits, len(binder.vector(operand)))

    def holders(operand: syntax.Operand, lines: int, depth: int, bits: int) -> NDArray[np.int64]:
        found = np.zeros(lines * depth, np.int64)
        held = numbers(operand, lines, depth, bits).ravel()
        found[held] = np.arange(len(held))
        return found.reshape(lines, depth)

    layout = Layout(
        holders(op.a, m, k, bits), holders(op.b, n, k, bits), holders(op.c, m, n, c_bits), numbers(op.d, m, n, d_bits)
    )
    return product_of(op, binder, statement, layout, (op.type, op.type), bits)
