"""Comparison and selection. PTX ISA 9.7.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arithmetic.single import flush
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import predicate

_Run = Callable[[Group], None]

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


@meaning(predicate.setp)
def compare(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    function = comparison(op.compare, op.type in ("f32", "f64"))
    a, b = binder.source(op.a, op.type), binder.source(op.b, op.type)
    p = binder.destination(op.p, "pred")
    q = binder.destination(op.q, "pred") if op.q is not None else None
    combine = c = None
    if op.combine is not None:
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[op.combine]
        c = binder.predicate(op.c)

    def run(g: Group) -> None:
        x, y = a(g), b(g)
        if op.ftz:
            x, y = flush(x), flush(y)
        result = np.asarray(function(x, y))
        opposite = ~result
        if combine is not None and c is not None:
            third = c(g)
            result, opposite = combine(result, third), combine(opposite, third)
        p(g, result)
        if q is not None:
            q(g, opposite)

    return run


@meaning(predicate.selp)
def select(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    c = binder.predicate(op.c)
    return lambda g: d(g, np.where(c(g), a(g), b(g)))
