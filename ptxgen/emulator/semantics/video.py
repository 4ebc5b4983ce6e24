"""Video instructions: arithmetic on bytes and halves that selectors pick. PTX ISA 9.7.18.

The packed ones (vadd2, vset4, ...) do what the manual says (measured, H200, driver 580.159.04, ptxas 13.0, 2026-11-23:
1,188 forms, 512 random inputs each). Of the scalar ones what ptxas makes of .sat, .min, .max, .shr7, .shr15 and a
destination .h1 differs from the manual's words, so that a kernel which reaches one of those ends as incomplete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import video

Words = NDArray[Any]
Compute = Callable[[Words, Words], Words]

_Arithmetic = video.vadd | video.vsub | video.vabsdiff | video.vmin | video.vmax
_Halves = video.vadd2 | video.vsub2 | video.vavrg2 | video.vabsdiff2 | video.vmin2 | video.vmax2
_Bytes = video.vadd4 | video.vsub4 | video.vavrg4 | video.vabsdiff4 | video.vmin4 | video.vmax4
_Packed = _Halves | _Bytes | video.vset2 | video.vset4

_COMPARE: dict[str, Compute] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_WORD = 0xFFFFFFFF


def _average(a: Words, b: Words) -> Words:
    """Rounded away from zero."""
    total = a + b
    return np.where(total >= 0, total + 1, total) >> 1


_COMPUTE: dict[str, Compute] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": _average,
}


def _name(form: object) -> str:
    return type(form).__name__


def _extended(words: Words, bits: int, signed: bool) -> Words:
    """The low bits of words as 64-bit integers, by the sign of their type."""
    low = words.astype(np.int64) & ((1 << bits) - 1)
    return (low ^ 1 << bits - 1) - (1 << bits - 1) if signed else low


def _clamped(values: Words, bits: int, signed: bool) -> Words:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return np.clip(values, low, high)


def _inserted(word: Words, value: Words, first: int, bits: int) -> Words:
    """A word with the low bits of a value from its bit `first` on."""
    mask = (1 << bits) - 1 << first
    return word & ~mask | value << first & mask


def _part(operand: syntax.Operand, binder: Binder, type: str) -> tuple[Callable[[Group], Words], bool]:
    """How a source of a scalar instruction is read, extended to 64 bits, and whether a minus precedes it."""
    negative = isinstance(operand, syntax.Negation)
    inner = operand.operand if isinstance(operand, syntax.Negation) else operand
    selector = inner.component if isinstance(inner, syntax.Name) else None
    plain = syntax.Name(inner.base) if isinstance(inner, syntax.Name) else inner
    read = binder.source(plain, "u32")
    bits = 32 if selector is None else 8 if selector[0] == "b" else 16
    first = 0 if selector is None else int(selector[1]) * bits
    return lambda g: _extended(np.asarray(read(g)).astype(np.int64) >> first, bits, type == "s32"), negative


def _result(d: syntax.Operand, binder: Binder) -> tuple[Callable[[Group, Words], None], str | None]:
    """How the destination is written, and its selector."""
    assert isinstance(d, syntax.Name)
    write = binder.destination(syntax.Name(d.base), "u32")
    return lambda g, value: write(g, (np.asarray(value) & _WORD).astype(np.uint32)), d.component


def _refuse(statement: syntax.Instruction) -> Unmodelled:
    return Unmodelled(f"{statement.opcode} as ptxas translates it, which differs from the manual (PTX ISA 9.7.18)")


@semantics(video.vadd, video.vsub, video.vabsdiff, video.vmin, video.vmax, video.vset, video.vshl, video.vshr)
def scalar(
    op: _Arithmetic | video.vset | video.vshl | video.vshr, binder: Binder, statement: syntax.Instruction
) -> Plain:
    a, _ = _part(op.a, binder, op.atype)
    b, _ = _part(op.b, binder, "u32" if isinstance(op, video.vshl | video.vshr) else op.btype)
    write, selector = _result(op.d, binder)
    third = binder.source(op.c, "u32") if op.c is not None and (op.op2 or selector) else None
    if selector == "h1" or op.op2 in ("min", "max") or (not isinstance(op, video.vset) and op.sat):
        raise _refuse(statement)
    bits = 0 if selector is None else 8 if selector[0] == "b" else 16
    first = 0 if selector is None else int(selector[1]) * bits

    def compute(left: Words, right: Words) -> Words:
        if isinstance(op, video.vset):
            return _COMPARE[op.compare](left, right).astype(np.int64)
        if isinstance(op, video.vshl | video.vshr):
            count = np.minimum(right, 32) if op.mode == "clamp" else right & 31
            return left << count if isinstance(op, video.vshl) else left >> count
        return _COMPUTE[_name(op)](left, right)

    def run(g: Group) -> None:
        value = compute(a(g), b(g))
        if third is not None:
            c = np.asarray(third(g)).astype(np.int64)
            value = value + c if selector is None else _inserted(c, value, first, bits)
        write(g, value)

    return run


@semantics(video.vmad)
def multiply_add(op: video.vmad, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Modulo 2^32 the signs of types and product matter only as each source is extended."""
    (a, minus_a), (b, minus_b), (c, minus_c) = (
        _part(operand, binder, type) for operand, type in ((op.a, op.atype), (op.b, op.btype), (op.c, "u32"))
    )
    write, _ = _result(op.d, binder)
    if op.sat or op.scale:
        raise _refuse(statement)

    def run(g: Group) -> None:
        product, third = a(g) * b(g), c(g)
        product = -product if minus_a != minus_b else product
        write(g, product + (-third if minus_c else third) + op.po)

    return run


@semantics(
    video.vadd2, video.vsub2, video.vavrg2, video.vabsdiff2, video.vmin2, video.vmax2, video.vset2,
    video.vadd4, video.vsub4, video.vavrg4, video.vabsdiff4, video.vmin4, video.vmax4, video.vset4,
)  # fmt: skip
def packed(op: _Packed, binder: Binder, statement: syntax.Instruction) -> Plain:
    count = int(_name(op)[-1])
    bits = 32 // count
    write, written = _result(op.d, binder)
    left, right, third = (
        binder.source(syntax.Name(each.base) if isinstance(each, syntax.Name) else each, "u32")
        for each in (op.a, op.b, op.c)
    )
    numbers = range(count)
    chosen = [_picked(op.a, numbers), _picked(op.b, range(count, 2 * count))]
    parts = sorted(map(int, written[1:])) if written else numbers
    types = op.atype, op.btype
    compares = isinstance(op, video.vset2 | video.vset4)
    compute = _COMPARE[op.compare] if compares else _COMPUTE[_name(op)[:-1]]
    clamps, signed = (False, False) if compares else (op.sat, op.dtype == "s32")

    def run(g: Group) -> None:
        words = [np.asarray(each(g)).astype(np.int64) for each in (left, right)]
        result = np.asarray(third(g)).astype(np.int64)
        for number in parts:
            pair = [
                _extended(words[at[number] // count] >> at[number] % count * bits, bits, type == "s32")
                for at, type in zip(chosen, types, strict=True)
            ]
            value = compute(*pair).astype(np.int64)
            value = _clamped(value, bits, signed) if clamps else value
            result = result + value if op.add else _inserted(result, value, number * bits, bits)
        write(g, result)

    return run


def _picked(operand: syntax.Operand, default: range) -> list[int]:
    """Which of the parts of both sources each part of an operand is, the lowest first."""
    selector = operand.component if isinstance(operand, syntax.Name) else None
    return [int(each) for each in reversed(selector[1:])] if selector else list(default)
