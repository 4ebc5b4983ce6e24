"""Operations on multimem addresses, each of which stands for the same place in several GPUs. PTX ISA 9.7.9.14.

Their asynchronous copies are in `bulk`.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.expanded import element_result
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, register, source, vector
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability, Target
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import Immediate, Vector

_Global = Literal["global"]
_Scope = Literal["cta", "cluster", "gpu", "sys"]
_Vector = Literal["v2", "v4", "v8"]
_Integer = Literal["b32", "b64", "u32", "u64", "s32", "s64"]
_Float = Literal["f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "e5m2", "e5m2x2", "e5m2x4", "e4m3", "e4m3x2", "e4m3x4"]
_HALF = ("f16", "f16x2", "bf16", "bf16x2")
_NARROW = ("e5m2", "e5m2x2", "e5m2x4", "e4m3", "e4m3x2", "e4m3x4")
_FP8 = Availability("8.6", "sm_100f sm_110f sm_120a sm_121a")
_NEEDS = {**dict.fromkeys(_NARROW, _FP8), "acc::f16": _FP8, "acc::f32": Availability("8.2", "sm_90+")}
_TYPES = {
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    "add": ("u32", "s32", "u64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64")),
}


def _count(form: Any) -> int:
    return int(form.vec[1:]) if form.vec else 1


def _order(form: Any) -> str | None:
    """A scope goes with an order, and an order that is not weak with a scope."""
    ordered = form.sem not in (None, "weak")
    if ordered == bool(form.scope):
        return None
    if form.scope:
        return f"{form.form.opcode} has the scope .{form.scope} but no order; write .relaxed.{form.scope}"
    return f"{form.form.opcode}.{form.sem} requires a scope, as in .{form.sem}.gpu"


def _operation(form: Any) -> str | None:
    """Each operation has its types."""
    legal = _TYPES[form.op]
    if form.type in legal:
        return None
    return f"{form.form.opcode}.{form.op} requires {' '.join('.' + name for name in legal)}, not .{form.type}"


def _width(form: Any) -> str | None:
    """32, 64 or 128 bits together; .f64 alone."""
    bits = _count(form) * TYPES[form.type].bits
    if bits in (32, 64, 128) and not (form.vec and form.type == "f64"):
        return None
    found = f".{form.vec}.{form.type}" if form.vec else f".{form.type}"
    return f"{form.form.opcode} requires 32, 64 or 128 bits, or .f64 without a vector, not {found}"


def _float_operation(form: Any) -> str | None:
    """.f32 and .f64 are added only."""
    if form.op != "add" and form.type in ("f32", "f64"):
        return f"{form.form.opcode} of .{form.type} requires .add, not .{form.op}"
    return None


class _Load(Instruction, opcode="multimem.ld_reduce", section="9.7.9.14", ptx="8.1", targets="sm_90+"):
    _: KW_ONLY
    sem: Literal["weak", "relaxed", "acquire"] | None = None
    scope: _Scope | None = None
    space: _Global | None = None
    _s = rule("order")(_order)

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        if self.sem in ("relaxed", "acquire"):
            yield from element_result(self, target, resolve)


class ld_reduce(_Load):
    """d = the values of all GPUs at a, reduced by `op`."""

    syntax = "multimem.ld_reduce{.sem}{.scope}{.space}.op.type d, [a]"
    d: OperandLike = register("type")
    a: OperandLike = address("space", variables=("global",), memory="read")
    _: KW_ONLY
    op: Literal["and", "or", "xor", "add", "min", "max"]
    type: _Integer
    _o = rule("operation")(_operation)


class ld_reduce_float(_Load):
    """d = the values of all GPUs at a, reduced by `op`; `acc` adds in a wider format."""

    syntax = "multimem.ld_reduce{.sem}{.scope}{.space}.op{.acc}{.vec}.type d, [a]"
    d: OperandLike = vector("type", _count, scalar=True, sink=True, braced=True)
    a: OperandLike = address("space", variables=("global",), memory="read")
    _: KW_ONLY
    op: Literal["add", "min", "max"]
    acc: Literal["f32", "f16"] | None = modifier("acc::", default=None)
    vec: _Vector | None = None
    type: _Float
    needs = _NEEDS
    _w = rule("width")(_width)
    _o = rule("operation")(_float_operation)

    @rule("accumulator")
    def _accumulator(self) -> str | None:
        """acc::f32 is for sums of 16-bit formats, acc::f16 for sums of 8-bit formats."""
        legal = _HALF if self.acc == "f32" else _NARROW
        if self.acc is None or (self.op == "add" and self.type in legal):
            return None
        return f".acc::{self.acc} requires .add of {' '.join('.' + name for name in legal)}, not .{self.op}.{self.type}"


def _bits(item: object) -> int | None:
    """The bits of a floating-point constant in hexadecimal; None for others."""
    return item.width if isinstance(item, Immediate) else None


class _Store(Instruction, opcode="multimem.st", section="9.7.9.14", ptx="8.1", targets="sm_90+"):
    a: OperandLike = address("space", variables=("global",), memory="write")
    _: KW_ONLY
    sem: Literal["weak", "relaxed", "release"] | None = None
    scope: _Scope | None = None
    space: _Global | None = None
    _s = rule("order")(_order)


class st(_Store):
    """The values of all GPUs at a = b."""

    syntax = "multimem.st{.sem}{.scope}{.space}.type [a], b"
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Integer


class st_float(_Store):
    """The values of all GPUs at a = b."""

    syntax = "multimem.st{.sem}{.scope}{.space}{.vec}.type [a], b"
    b: OperandLike = vector("type", _count, scalar=True, immediate=True, braced=True)
    _: KW_ONLY
    vec: _Vector | None = None
    type: _Float
    needs = _NEEDS
    _w = rule("width")(_width)

    @rule("constants", reads_operands=True)
    def _constants(self) -> str | None:
        """No constant of 64 bits after one of 32 bits, nor in all places (measured, ptxas 13.5)."""
        elements = self.b.elements if isinstance(self.b, Vector) else ()
        wide = [item for item in elements if isinstance(value_of(item), float) and _bits(item) != 32]
        single_first = bool(elements) and _bits(elements[0]) == 32
        if self.type == "f32" and wide and (single_first or len(wide) == len(elements)):
            return f"multimem.st of .f32 takes constants of 32 bits, as in 0f00000000, not {wide[0]}"
        return None


class _Reduce(Instruction, opcode="multimem.red", section="9.7.9.14", ptx="8.1", targets="sm_90+"):
    a: OperandLike = address("space", variables=("global",), memory="read-write")
    _: KW_ONLY
    sem: Literal["relaxed", "release"] | None = None
    scope: _Scope | None = None
    space: _Global | None = None
    _s = rule("order")(_order)


class red(_Reduce):
    """The values of all GPUs at a become the result of `op` with b; in system scope unless said otherwise."""

    syntax = "multimem.red{.sem}{.scope}{.space}.op.type [a], b"
    b: OperandLike = source("type")
    _: KW_ONLY
    op: Literal["and", "or", "xor", "add", "min", "max"]
    type: _Integer
    _o = rule("operation")(_operation)


class red_float(_Reduce):
    """The values of all GPUs at a become the result of `op` with b."""

    syntax = "multimem.red{.sem}{.scope}{.space}.op{.vec}.type [a], b"
    b: OperandLike = vector("type", _count, scalar=True, immediate=True, braced=True)
    _: KW_ONLY
    op: Literal["add", "min", "max"]
    vec: _Vector | None = None
    type: Literal["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"]
    _w = rule("width")(_width)
    _o = rule("operation")(_float_operation)

    @rule("extremes")
    def _extremes(self) -> str | None:
        """min and max take vectors (measured, ptxas 13.5)."""
        if self.op == "add" or self.vec:
            return None
        return f"multimem.red.{self.op} of .{self.type} requires a vector, as in .v2.{self.type}"


class st_async(
    Instruction,
    opcode="multimem.st.async",
    section="9.7.9.14",
    ptx="9.3",
    targets="sm_100+",
    completed_by="the end of the CTA",
):
    """As st.release, without waiting for it (measured, ptxas 13.5)."""

    syntax = "multimem.st.async.release.scope{.space}.type [a], b"
    a: OperandLike = address("space", variables=("global",), memory="write")
    b: OperandLike = source("type", wide=lambda form: form.type[0] != "f")
    _: KW_ONLY
    scope: Literal["gpu", "sys"]
    space: _Global | None = None
    type: Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]


class red_async(
    Instruction,
    opcode="multimem.red.async",
    section="9.7.9.14",
    ptx="9.3",
    targets="sm_100+",
    completed_by="the end of the CTA",
):
    """As red.release, without waiting for it (measured, ptxas 13.5)."""

    syntax = "multimem.red.async.release.scope{.space}.add.type [a], b"
    a: OperandLike = address("space", variables=("global",), memory="read-write")
    b: OperandLike = source("type", sums=False, plain=True)
    _: KW_ONLY
    scope: Literal["gpu", "sys"]
    space: _Global | None = None
    type: Literal["u32", "u64", "s32"]
