"""Moves and packing. PTX ISA 9.7.9."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder, Reader, Writer, constant, joined, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import move
from ptxgen.instr.model.operands.specification import is_sink, value_of
from ptxgen.instr.model.types import TYPES


@semantics(move.mov)
def copy(op: move.mov, binder: Binder, statement: syntax.Instruction) -> Plain:
    """A whole vector register is packed or unpacked."""
    if len(binder.vector(op.a)) > 1:
        return pack(op, binder, statement)
    if len(binder.vector(op.d)) > 1:
        return unpack(op, binder, statement)
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, a(g))


@semantics(move.mov_pred)
def copy_predicate(op: move.mov_pred, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.predicate(op.a), binder.destination(op.d, "pred")
    return lambda g: d(g, a(g))


def _elements(operand: syntax.Operand, binder: Binder) -> list[syntax.Operand]:
    """The elements of a source; a `_` among them is 0 (measured, ptxas 13.5)."""
    return [syntax.Immediate("0") if is_sink(each) else each for each in binder.vector(operand)]


@semantics(move.mov_vector)
def copy_vector(op: move.mov_vector, binder: Binder, statement: syntax.Instruction) -> Plain:
    """All elements are read before the first is written."""
    sources = [binder.source(element, op.type) for element in _elements(op.a, binder)]
    destinations = [binder.destination(element, op.type) for element in binder.vector(op.d)]

    def run(g: Group) -> None:
        values = [np.array(source(g)) for source in sources]
        for destination, value in zip(destinations, values, strict=True):
            destination(g, value)

    return run


def _part_type(type: str, count: int) -> str:
    return f"b{int(type[1:]) // count}"


@semantics(move.mov_pack, move.mov_pack4)
def pack(op: move.mov_pack | move.mov_pack4, binder: Binder, statement: syntax.Instruction) -> Plain:
    parts = _elements(op.a, binder)
    part = _part_type(op.type, len(parts))
    sources = [binder.source(element, part) for element in parts]
    d, width = binder.destination(op.d, op.type), int(part[1:])
    count = len(parts)
    firsts = [divmod(quarter * count, 4) for quarter in range(4)]
    quarters = [[(parts[index], first + n) for n in range(count)] for index, first in firsts]
    binder.depends(op.d, count * width, quarters, width)

    def run_wide(g: Group) -> None:
        # A register of 128 bits is two words of 64.
        values = [g.full(source(g)).astype(np.uint64) for source in sources]
        if width == 32:
            values = [values[i] | values[i + 1] << np.uint64(32) for i in (0, 2)]
        d(g, np.stack(values, axis=-1))

    if op.type == "b128":
        return run_wide

    def run(g: Group) -> None:
        word = np.zeros((), np.uint64)
        for index, source in enumerate(sources):
            word = word | (np.asarray(source(g)).astype(np.uint64) << np.uint64(index * width))
        d(g, word)

    return run


@semantics(move.mov_unpack, move.mov_unpack4)
def unpack(op: move.mov_unpack | move.mov_unpack4, binder: Binder, statement: syntax.Instruction) -> Plain:
    parts = binder.vector(op.d)
    part = _part_type(op.type, len(parts))
    destinations = [binder.destination(element, part) for element in parts]
    a, width = binder.source(op.a, op.type), int(part[1:])
    count = len(parts)
    for index, element in enumerate(parts):
        quarters = [[(op.a, (4 * index + quarter) // count)] for quarter in range(4)]
        binder.depends(element, width, quarters, count * width)

    def run_wide(g: Group) -> None:
        words = np.asarray(a(g))
        for index, destination in enumerate(destinations):
            word, shift = divmod(index * width, 64)
            destination(g, words[..., word] >> np.uint64(shift))

    if op.type == "b128":
        return run_wide

    def run(g: Group) -> None:
        word = np.asarray(a(g)).astype(np.uint64)
        for index, destination in enumerate(destinations):
            destination(g, word >> np.uint64(index * width))

    return run


_BYTE_MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""The bytes that the modes of prmt choose, the lowest first, by the low two bits of c (9.7.9.7)."""


def selected_constant(mode: str | None, control: int) -> tuple[int, ...]:
    """The digits of a constant c: the number of the byte for each place, the lowest first."""
    return tuple(control >> place & 15 for place in (0, 4, 8, 12)) if mode is None else _BYTE_MODES[mode][control & 3]


def _constant_permutation(a: Reader, b: Reader, d: Writer, digits: tuple[int, ...]) -> Plain:
    """Runs of bytes that stay side by side move together."""
    runs: list[tuple[int, int, int]] = []  # first byte, place, bytes
    for place, digit in enumerate(digits):
        if runs and digit == runs[-1][0] + runs[-1][2] and digit % 4:
            first, start, length = runs[-1]
            runs[-1] = (first, start, length + 1)
        else:
            runs.append((digit, place, 1))

    def moved(word: Any, first: int, place: int, length: int) -> Any:
        mask = np.uint32((1 << 8 * length) - 1 << 8 * place)
        shift = 8 * (place - first % 4)
        word = word << np.uint32(shift) if shift > 0 else word >> np.uint32(-shift) if shift < 0 else word
        return word & mask if length < 4 else word

    def run(g: Group) -> None:
        words = a(g), b(g)
        result: Any = None
        for first, place, length in runs:
            part = moved(words[first // 4], first, place, length)
            result = part if result is None else result | part
        d(g, result)

    return run


@semantics(move.prmt)
def permute(op: move.prmt, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, c = (binder.source(operand, "b32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "b32")
    places = np.arange(4, dtype=np.uint32) * np.uint32(4)

    if value_of(op.c) is not None:
        digits = selected_constant(op.mode, int(constant(op.c, TYPES["u32"])))
        binder.depends(op.d, 32, [[((op.a, op.b)[digit >> 2 & 1], digit & 3)] for digit in digits])
        if max(digits) < 8:
            return _constant_permutation(a, b, d, digits)

    def selected(control: Any) -> Any:
        """Four digits: the number of a byte, and in bit 3 whether its sign is spread."""
        if op.mode is None:
            return (control[..., None] >> places) & np.uint32(15)
        return np.array(_BYTE_MODES[op.mode], np.uint32)[control & np.uint32(3)]

    def run(g: Group) -> None:
        low, high, control = (g.full(each(g), np.uint32) for each in (a, b, c))
        digits = selected(control)
        bytes = parts(low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32), np.uint8)
        chosen = np.take_along_axis(bytes, (digits & np.uint32(7)).astype(np.int64), axis=-1)
        spread = np.where(chosen >> np.uint8(7), np.uint8(255), np.uint8(0))
        d(g, joined(np.where(digits & np.uint32(8), spread, chosen), np.uint32))

    return run
