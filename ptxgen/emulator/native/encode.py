"""Which operation of the library a declared instruction is, and its operands: registers by index, and constants.

An instruction that is none of them, or has an operand of another kind, gives None: the NumPy code executes it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.constants import constant
from ptxgen.emulator.load.names import Names
from ptxgen.emulator.load.program import Operation
from ptxgen.emulator.load.registers import UNSIGNED, Register
from ptxgen.emulator.memory.access import WINDOWS
from ptxgen.emulator.native.library import Library
from ptxgen.emulator.native.tables import provide
from ptxgen.instr import address, conversion, floating, integer, logic, move, predicate
from ptxgen.instr.integer import doubled
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.types import TYPES

#: `struct operation` of lanes.h.
_PACKED = struct.Struct("=IIi2i3i8B3Q")
#: Its flags.
_INVERT = (1 << 0, 1 << 1, 1 << 2)
_SIGNED = (1 << 3, 1 << 4)
_FTZ, _SAT = 1 << 5, 1 << 6
_COMBINED = {None: 0, "and": 1 << 7, "or": 1 << 8, "xor": 1 << 9}
#: Where flags have the table of lop3.
_TABLE = 16
_NO_REGISTER = -1

#: The name of an operation, its results and sources with their types, and flags.
_Operand = tuple[Any, str]
_Described = tuple[str, Sequence[_Operand], Sequence[_Operand], int]
_INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")


class _NotHere(Exception):
    """The NumPy code executes this instruction."""


def encode(operation: Operation, library: Library) -> bytes | None:
    """An instruction as the library has it, None if it does not."""
    op = operation.instruction
    if operation.kind != "plain" or op is None or (describe := _DESCRIBED.get(type(op))) is None:
        return None
    try:
        name, results, sources, flags = describe(op)
        number = library.numbers.get(name)
        if number is None:
            return None
        guard = _guard(operation.statement.guard, operation.names)
        to = [_result(operand, type, operation.names) for operand, type in results]
        given = [_source(operand, type, operation.names) for operand, type in sources]
    except _NotHere:
        return None
    provide(library, name)
    for place, (_, wanted) in enumerate(results):
        flags |= _SIGNED[place] if TYPES[wanted].kind == "signed" else 0
    for place, (_, _, _, inverted) in enumerate(given):
        flags |= _INVERT[place] if inverted else 0
    while len(to) < 2:
        to.append((_NO_REGISTER, 0))
    while len(given) < 3:
        given.append((_NO_REGISTER, 0, 0, False))
    registers = [each for each, _ in to], [each for each, _, _, _ in given]
    sizes = [size for _, size in to], [size for _, size, _, _ in given]
    values = [value for _, _, value, _ in given]
    return _PACKED.pack(number, flags, guard, *registers[0], *registers[1], *sizes[0], *sizes[1], 0, 0, 0, *values)


def encoded_guard(operation: Operation) -> int | None:
    """The guard of an instruction as the library has it, None if it has no such guards."""
    try:
        return _guard(operation.statement.guard, operation.names)
    except _NotHere:
        return None


def _guard(guard: syntax.Guard | None, names: Names) -> int:
    if guard is None:
        return 0
    found = names(guard.register)
    if not isinstance(found, Register) or not found.is_predicate:
        raise _NotHere
    return -(found.index + 1) if guard.negated else found.index + 1


def _register(operand: Any, type: str, names: Names) -> Register | None:
    """The register that an operand names, None if it names none. It has room for the type."""
    found = names(operand.text) if isinstance(operand, syntax.Name) else None
    if not isinstance(found, Register):
        return None
    wanted = TYPES[type]
    if found.is_predicate != (wanted.kind == "predicate") or found.bits == 128 or found.bytes < wanted.bytes:
        raise _NotHere
    return found


def _result(operand: Any, type: str, names: Names) -> tuple[int, int]:
    """A register and its bytes; none for `_`, or where the instruction has no such result."""
    if operand is None or (isinstance(operand, syntax.Name) and operand.text == "_"):
        return _NO_REGISTER, 0
    found = _register(operand, type, names)
    if found is None:
        raise _NotHere
    return found.index, found.bytes


def _source(operand: Any, type: str, names: Names) -> tuple[int, int, int, bool]:
    """A register, its bytes, the value if it is a constant instead, and whether a predicate is read negated."""
    if type == "pred":
        inverted = isinstance(operand, syntax.Negation)
        operand = operand.operand if isinstance(operand, syntax.Negation) else operand
        if operand is None:
            return _NO_REGISTER, 0, 0, False
        if isinstance(operand, syntax.Immediate):
            return _NO_REGISTER, 0, int(bool(operand.value)), inverted
        found = _register(operand, type, names)
        if found is None:
            raise _NotHere
        return found.index, 1, 0, inverted
    if (found := _register(operand, type, names)) is not None:
        return found.index, found.bytes, 0, False
    if isinstance(operand, np.generic):
        return _NO_REGISTER, 0, int(operand), False
    named = isinstance(operand, syntax.Expression) and any(isinstance(each, syntax.Name) for each in operand.operands)
    if not isinstance(operand, syntax.Immediate | syntax.Expression) or named:
        raise _NotHere
    try:
        value = constant(operand, TYPES[type])
    except ValueError:
        raise _NotHere from None
    return _NO_REGISTER, 0, int(np.asarray(value).view(UNSIGNED[TYPES[type].bits])), False


# The instructions.

_DESCRIBED: dict[type[Instruction], Callable[[Any], _Described]] = {}


def _describes(*forms: type[Instruction]) -> Callable[[Callable[[Any], _Described]], Callable[[Any], _Described]]:
    """Decorator: the function describes these declarations. It raises _NotHere for those that the library lacks."""

    def register(function: Callable[[Any], _Described]) -> Callable[[Any], _Described]:
        _DESCRIBED.update(dict.fromkeys(forms, function))
        return function

    return register


def _bits(type: str) -> int:
    return TYPES[type].bits


def _only(*conditions: object) -> None:
    """Raise _NotHere unless all hold."""
    if not all(conditions):
        raise _NotHere


def _same(op: Any, name: str, operands: str, flags: int = 0) -> _Described:
    """d and sources of one type."""
    return name, [(op.d, op.type)], [(getattr(op, each), op.type) for each in operands], flags


_WORDS: dict[type[Instruction], tuple[str, str]] = {
    integer.add: ("add", "ab"), integer.sub: ("sub", "ab"), integer.neg: ("neg", "a"),
    logic.and_: ("and", "ab"), logic.or_: ("or", "ab"), logic.xor: ("xor", "ab"), logic.not_: ("not", "a"),
    integer.popc: ("popc", "a"), integer.clz: ("clz", "a"), integer.brev: ("brev", "a"),
}  # fmt: skip


@_describes(integer.add, integer.sub, integer.neg, logic.and_, logic.or_, logic.xor, logic.not_, integer.brev)
def _word(op: Any) -> _Described:
    _only("x" not in op.type)
    name, operands = _WORDS[type(op)]
    return _same(op, f"{name}_b{_bits(op.type)}", operands)


@_describes(integer.popc, integer.clz)
def _count(op: Any) -> _Described:
    return f"{_WORDS[type(op)][0]}_b{_bits(op.type)}", [(op.d, "u32")], [(op.a, op.type)], 0


@_describes(integer.abs, integer.div, integer.rem)
def _signed_or_not(op: Any) -> _Described:
    _only(op.type in _INTEGERS)
    return _same(op, f"{op.form.opcode}_{op.type}", "a" if isinstance(op, integer.abs) else "ab")


@_describes(integer.min, integer.max)
def _extremum(op: Any) -> _Described:
    _only(op.type in _INTEGERS, not op.relu)
    return _same(op, f"{op.form.opcode}_{op.type}", "ab")


@_describes(integer.mul, integer.mad)
def _product(op: Any) -> _Described:
    operands = "ab" if isinstance(op, integer.mul) else "abc"
    kind = f"b{_bits(op.type)}" if op.half == "lo" else op.type
    return _same(op, f"{op.form.opcode}_{op.half}_{kind}", operands)


@_describes(integer.mul_wide, integer.mad_wide)
def _wide_product(op: Any) -> _Described:
    sources = [(op.a, op.type), (op.b, op.type)]
    if isinstance(op, integer.mad_wide):
        sources.append((op.c, doubled(op)))
    return f"{op.form.opcode.replace('.', '_')}_{op.type}", [(op.d, doubled(op))], sources, 0


@_describes(integer.bfe)
def _field(op: Any) -> _Described:
    return f"bfe_{op.type}", [(op.d, op.type)], [(op.a, op.type), (op.b, "u32"), (op.c, "u32")], 0


@_describes(logic.shl, logic.shr)
def _shift(op: Any) -> _Described:
    signed = isinstance(op, logic.shr) and TYPES[op.type].kind == "signed"
    kind = "b" if isinstance(op, logic.shl) else "s" if signed else "u"
    return f"{op.form.opcode}_{kind}{_bits(op.type)}", [(op.d, op.type)], [(op.a, op.type), (op.b, "u32")], 0


@_describes(logic.lop3)
def _table(op: Any) -> _Described:
    words = [(op.a, "b32"), (op.b, "b32"), (op.c, "b32")]
    return "lop3_b32", [(op.d, "b32")], words, (int(op.lut.evaluate()) & 0xFF) << _TABLE


@_describes(logic.shf)
def _funnel(op: Any) -> _Described:
    words = [(op.a, "u32"), (op.b, "u32"), (op.c, "u32")]
    return f"shf_{op.direction}_{op.mode}", [(op.d, "b32")], words, 0


@_describes(move.prmt)
def _permute(op: Any) -> _Described:
    _only(op.mode is None)
    return "prmt_b32", [(op.d, "b32")], [(op.a, "b32"), (op.b, "b32"), (op.c, "b32")], 0


@_describes(logic.and_pred, logic.or_pred, logic.xor_pred)
def _predicates(op: Any) -> _Described:
    name = op.form.opcode.partition(".")[0]
    return f"{name}_pred", [(op.d, "pred")], [(op.a, "pred"), (op.b, "pred")], 0


@_describes(logic.not_pred, move.mov_pred)
def _predicate(op: Any) -> _Described:
    return f"{op.form.opcode.partition('.')[0]}_pred", [(op.d, "pred")], [(op.a, "pred")], 0


@_describes(move.mov)
def _move(op: Any) -> _Described:
    _only(op.type != "b128")
    return _same(op, f"mov_b{_bits(op.type)}", "a")


@_describes(move.mov_pack)
def _pack(op: Any) -> _Described:
    _only(op.type != "b128", isinstance(op.a, syntax.Vector) and len(op.a.elements) == 2)
    return f"pack_{op.type}", [(op.d, op.type)], [(each, f"b{_bits(op.type) // 2}") for each in op.a.elements], 0


@_describes(move.mov_unpack)
def _unpack(op: Any) -> _Described:
    _only(op.type != "b128", isinstance(op.d, syntax.Vector) and len(op.d.elements) == 2)
    return f"unpack_{op.type}", [(each, f"b{_bits(op.type) // 2}") for each in op.d.elements], [(op.a, op.type)], 0


@_describes(address.cvta, address.cvta_to)
def _generic(op: Any) -> _Described:
    base = np.uint64(WINDOWS[op.space.split("::")[0]])
    _only(op.size == "u64")
    name = "add_b64" if isinstance(op, address.cvta) else "sub_b64"
    return name, [(op.d, "u64")], [(op.a, "u64"), (base, "u64")], 0


_ALIASES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@_describes(predicate.setp)
def _compare(op: Any) -> _Described:
    wanted, compare = TYPES[op.type], _ALIASES.get(op.compare, op.compare)
    _only(wanted.kind != "float" or op.type in ("f32", "f64"))
    kind = op.type
    if wanted.kind != "float":
        equal = compare in ("eq", "ne")
        kind = f"{'b' if equal else 's' if wanted.kind == 'signed' else 'u'}{wanted.bits}"
    flags = _COMBINED[op.combine] | (_FTZ if getattr(op, "ftz", False) else 0)
    sources = [(op.a, op.type), (op.b, op.type)]
    if op.combine is not None:
        sources.append((op.c, "pred"))
    return f"setp_{compare}_{kind}", [(op.p, "pred"), (op.q, "pred")], sources, flags


@_describes(predicate.selp)
def _select(op: Any) -> _Described:
    return f"selp_b{_bits(op.type)}", [(op.d, op.type)], [(op.a, op.type), (op.b, op.type), (op.c, "pred")], 0


@_describes(floating.add, floating.sub, floating.mul)
def _sum(op: Any) -> _Described:
    _only(op.rounding in (None, "rn"))
    return _same(op, f"{op.form.opcode}_{op.type}", "ab", _FTZ * bool(op.ftz) | _SAT * bool(op.sat))


@_describes(floating.fma, floating.mad)
def _fused(op: Any) -> _Described:
    _only(op.rounding in (None, "rn"))
    if op.type == "f64":
        return _same(op, "fma_f64", "abc")
    name = "fma_ftz_f32" if op.ftz else "fma_sat_f32" if op.sat else "fma_f32"
    return _same(op, name, "abc", _FTZ * bool(op.ftz) | _SAT * bool(op.sat))


@_describes(floating.add_f32x2, floating.sub_f32x2, floating.mul_f32x2, floating.fma_f32x2)
def _pair(op: Any) -> _Described:
    _only(op.rounding in (None, "rn"))
    operands = "abc" if isinstance(op, floating.fma_f32x2) else "ab"
    sources = [(getattr(op, each), "b64") for each in operands]
    return f"{op.form.opcode}_f32x2", [(op.d, "b64")], sources, _FTZ * bool(op.ftz)


@_describes(floating.div, floating.rcp, floating.sqrt)
def _quotient(op: Any) -> _Described:
    _only(op.rounding == "rn", op.type == "f32")
    return _same(op, f"{op.form.opcode}_rn_f32", "ab" if isinstance(op, floating.div) else "a", _FTZ * bool(op.ftz))


@_describes(floating.rcp_approx, floating.sqrt_approx, floating.rsqrt, floating.lg2, floating.ex2, floating.tanh)
def _approximation(op: Any) -> _Described:
    ftz = not isinstance(op, floating.tanh) and op.ftz
    return f"{op.form.opcode}_approx_f32", [(op.d, "f32")], [(op.a, "f32")], _FTZ * bool(ftz)


@_describes(floating.sin, floating.cos)
def _circular(op: Any) -> _Described:
    _only(not op.two_pi)
    return f"{op.form.opcode}_approx_f32", [(op.d, "f32")], [(op.a, "f32")], 0


@_describes(floating.div_full, floating.div_approx)
def _fast_quotient(op: Any) -> _Described:
    name = "div_full_f32" if isinstance(op, floating.div_full) else "div_approx_f32"
    return name, [(op.d, "f32")], [(op.a, "f32"), (op.b, "f32")], _FTZ * bool(op.ftz)


@_describes(floating.abs, floating.neg)
def _sign(op: Any) -> _Described:
    return _same(op, f"{op.form.opcode}_{op.type}", "a", _FTZ * bool(op.ftz))


@_describes(floating.min, floating.max)
def _float_extremum(op: Any) -> _Described:
    _only(not op.NaN, not op.xorsign)
    return _same(op, f"{op.form.opcode}_{op.type}", "ab", _FTZ * bool(op.ftz))


@_describes(conversion.cvt)
def _convert(op: Any) -> _Described:
    _only(not op.ftz, not op.sat, not op.pzo)
    if op.atype.lstrip("us").isdigit() and op.dtype.lstrip("us").isdigit():
        name = f"cvt_b{_bits(op.dtype)}_{op.atype}"
    elif op.rounding is None:
        name = f"cvt_{op.dtype}_{op.atype}"
    else:
        name = f"cvt_{op.rounding}_{op.dtype}_{op.atype}"
    return name, [(op.d, op.dtype)], [(op.a, op.atype)], 0


@_describes(conversion.cvt_half, conversion.cvt_half2)
def _convert_half(op: Any) -> _Described:
    _only(op.rounding == "rn", not op.relu, not op.satfinite, not op.pzo)
    one = isinstance(op, conversion.cvt_half)
    sources = [(op.a, "f32")] if one else [(op.a, "f32"), (op.b, "f32")]
    return f"cvt_rn_{op.dtype}_f32", [(op.d, "b16" if one else "b32")], sources, 0
