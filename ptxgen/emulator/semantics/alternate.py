"""Arithmetic on four 8-bit, 6-bit or 4-bit floats, packed in a register. PTX ISA 9.4, 9.7.6."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic.formats import FORMATS, decode, encode
from ptxgen.emulator.load.operands import Binder, Reader
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import alternate

_Alternate = alternate.add | alternate.sub | alternate.mul | alternate.fma


def _elements(binder: Binder, operand: Any, type: str) -> Reader:
    """The values of four packed elements, as .f64."""
    name = "e2m1" if type == "e2m1p4x4" else type.removesuffix("x4")
    width = 4 if type == "e2m1x4" else 8
    read = binder.source(operand, "b16" if width == 4 else "b32")
    shifts = np.arange(4, dtype=np.uint32) * np.uint32(width)
    mask = np.uint32(255 if name == "ue8m0" else (1 << FORMATS[name].bits) - 1)

    def values(g: Group) -> NDArray[np.float64]:
        words = np.asarray(read(g)).astype(np.uint32)[..., None] >> shifts & mask
        return decode(words, name).astype(np.float64)

    return values


@semantics(*get_args(_Alternate))
def arithmetic(op: _Alternate, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Computed in .f64, where products are exact, and sums err only below what decides how the result rounds."""
    a, d = _elements(binder, op.a, op.atype), binder.destination(op.d, "b32")
    b = _elements(binder, op.b, op.btype) if isinstance(op, alternate.mul) else None
    c = None if type(op) is alternate.mul else _elements(binder, op.c, op.dtype)  # type: ignore[union-attr]
    name = op.dtype.removesuffix("x4")
    format = FORMATS[name]
    last, before = (float(decode(np.uint32(format.largest - back), name)) for back in (0, 1))
    # Without .satfinite, e4m3 has NaN for what would round beyond its largest value; ties round to it, as it is even.
    limit = last + (last - before) / 2 if format.infinity is None and not op.satfinite else np.inf
    sign = -1.0 if isinstance(op, alternate.sub) else 1.0

    def run(g: Group) -> None:
        total = np.asarray(a(g))
        with np.errstate(over="ignore", invalid="ignore"):
            if b is not None:
                total = total * b(g)
            if c is not None:
                total = total + sign * np.asarray(c(g))
        words = encode(total, format, "rn", finite=op.satfinite)
        if np.isfinite(limit):
            words = np.where(np.abs(total) > limit, np.uint32(format.nan or 0), words)
        d(g, sum(words[..., place] << np.uint32(8 * place) for place in range(4)))

    return run
