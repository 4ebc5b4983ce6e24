"""Comparison and selection. PTX ISA 9.7.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arithmetic import half
from ptxgen.emulator.arithmetic.formats import FORMATS, decode
from ptxgen.emulator.arithmetic.single import flush
from ptxgen.emulator.load.operands import Binder, joined, numpy_type, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import predicate
from ptxgen.instr.model.types import TYPES

_ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def comparison(name: str, is_float: bool) -> Callable[[Any, Any], Any]:
    """The comparison as a function of arrays. Float comparisons with a NaN are false, those ending in u true."""
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name not in _ORDERED:
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    function = _ORDERED[name]
    if is_float and name == "ne":  # NumPy's != is true for NaN, PTX's .ne is not
        return lambda a, b: function(a, b) & ~(np.isnan(a) | np.isnan(b))
    return function


def _combination(op: _Setp | _Set, binder: Binder) -> Callable[[Group, Any], Any]:
    """The result of a comparison combined with the predicate c, if the instruction does so."""
    if op.combine is None:
        return lambda g, result: result
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[op.combine]
    c = binder.predicate(op.c)
    return lambda g, result: combine(result, c(g))


def _compared(op: _Setp | _Set, binder: Binder, type: str) -> Callable[[Group], Any]:
    """The comparison of a and b; of packed types with a last axis of two, the low halves first."""
    base, packed = type.removesuffix("x2"), type.endswith("x2")
    is_float = base in ("f16", "bf16", "f32", "f64")
    function = comparison(op.compare, is_float)
    if base in ("f16", "bf16"):
        word = "b32" if packed else "b16"
        reads = binder.source(op.a, word), binder.source(op.b, word)

        def value(word: Any) -> Any:
            word = parts(word, np.uint16) if packed else np.asarray(word)
            return decode(half.flush(word, FORMATS[base]) if op.ftz else word, base)

        return lambda g: np.asarray(function(value(reads[0](g)), value(reads[1](g))))
    a, b = binder.source(op.a, type), binder.source(op.b, type)
    if op.ftz:
        return lambda g: np.asarray(function(flush(a(g)), flush(b(g))))
    return lambda g: np.asarray(function(a(g), b(g)))


_Setp = predicate.setp | predicate.setp_half | predicate.setp_half2


@semantics(*get_args(_Setp))
def compare(op: _Setp, binder: Binder, statement: syntax.Instruction) -> Plain:
    """q is the opposite of p, or the comparison of the high halves."""
    result_of, combined = _compared(op, binder, op.type), _combination(op, binder)
    packed = op.type.endswith("x2")
    p = binder.destination(op.p, "pred")
    second = None if isinstance(op, predicate.setp_half) else op.q
    q = binder.destination(second, "pred") if second is not None else None

    def run(g: Group) -> None:
        result = result_of(g)
        first, other = (result[..., 0], result[..., 1]) if packed else (result, ~result)
        first = combined(g, first)
        if q is not None:
            other = combined(g, other)
            q(g, other)
        p(g, first)

    return run


#: Results of set that are true: integers are all ones.
_TRUE: dict[str, int] = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}


_Set = predicate.set | predicate.set_half | predicate.set_of_half | predicate.set_half2


@semantics(*get_args(_Set))
def set_register(op: _Set, binder: Binder, statement: syntax.Instruction) -> Plain:
    result_of, combined = _compared(op, binder, op.stype), _combination(op, binder)
    packed = op.stype.endswith("x2")
    type = f"b{TYPES[op.dtype].bits}"
    d = binder.destination(op.d, type)
    ones = (1 << (16 if packed else TYPES[op.dtype].bits)) - 1
    word = (np.uint16 if packed else numpy_type(TYPES[type]).type)(_TRUE.get(op.dtype.removesuffix("x2"), ones))

    def run(g: Group) -> None:
        result = result_of(g)
        if packed:
            halves = [np.where(combined(g, result[..., place]), word, np.uint16(0)) for place in (0, 1)]
            d(g, joined(np.stack(np.broadcast_arrays(*halves), axis=-1), np.uint32))
        else:
            d(g, np.where(combined(g, result), word, word.dtype.type(0)))

    return run


@semantics(predicate.set_packed)
def set_elements(op: predicate.set_packed, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Elements are all ones where the comparison holds (PTX ISA 9.4, 9.7.7.1)."""
    a, b, d = binder.source(op.a, "b32"), binder.source(op.b, "b32"), binder.destination(op.d, "b32")
    element = np.dtype(f"{'i' if op.type[0] == 's' else 'u'}{32 // int(op.type[-1]) // 8}")

    def run(g: Group) -> None:
        left, right = (parts(np.asarray(word), element.type) for word in np.broadcast_arrays(a(g), b(g)))
        d(g, joined(np.where(_ORDERED[op.compare](left, right), ~element.type(0), element.type(0)), np.uint32))

    return run


@semantics(predicate.selp)
def select(op: predicate.selp, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    c = binder.predicate(op.c)
    return lambda g: d(g, np.where(c(g), a(g), b(g)))


@semantics(predicate.slct, predicate.slct_float)
def select_by_sign(op: predicate.slct | predicate.slct_float, binder: Binder, statement: syntax.Instruction) -> Plain:
    """a where c is 0 or more; -0.0 is, NaN is not (9.7.6.4)."""
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    c = binder.source(op.c, "s32" if isinstance(op, predicate.slct) else "f32")
    ftz = isinstance(op, predicate.slct_float) and op.ftz

    def run(g: Group) -> None:
        sign = flush(c(g)) if ftz else np.asarray(c(g))
        d(g, np.where(sign >= 0, a(g), b(g)))

    return run
