"""Moves between registers, packing and permutation. PTX ISA 9.7.9.3, 9.7.9.4 and 9.7.9.7."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model import operands
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import is_sink, register, source, vector
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.syntax import Expression, Immediate, Vector

_B128 = {"b128": Availability("8.3", "sm_70+")}


def _length(form: Any) -> int:
    return int(form.vec[1:])


def _up_to_64_bits(form: Any) -> bool:
    return form.type != "b128"


def _half(form: Any) -> str:
    return f"b{int(form.type[1:]) // 2}"


def _quarter(form: Any) -> str:
    return f"b{int(form.type[1:]) // 4}"


def _has_32_bits(form: Any) -> bool:
    return form.type == "b32"


def _left_out(form: Any) -> str | None:
    """Of two elements one may be `_` beside a register, not beside a constant."""
    elements = form.a.elements if isinstance(form.a, Vector) else ()
    constant = next((item for item in elements if isinstance(item, Immediate | Expression)), None)
    if len(elements) == 2 and constant is not None and any(map(is_sink, elements)):
        return f"{form.form.opcode} requires a register beside _, not {constant}"
    return None


class mov(Instruction, section="9.7.9.3", ptx="1.0", targets=ALL, move=True):
    """d = a: a register, a constant, a special register, or the address of a variable, parameter or function.

    One of d and a may be a whole vector register; its elements stand side by side, the first in the low bits.
    """

    syntax = "mov.type d, a"
    d: OperandLike = register("type", packed=True)
    a: OperandLike = source("type", special=True, symbol=True, packed="d", register_sums=_up_to_64_bits)
    _: KW_ONLY
    type: Literal["b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]
    needs = _B128


class mov_pred(Instruction, section="9.7.9.3", ptx="1.0", targets=ALL, move=True):
    """p = a, on predicates."""

    syntax = "mov.pred d, a"
    d: OperandLike = operands.predicate()
    a: OperandLike = operands.predicate(negatable=True, immediate=True, special=True)


class mov_vector(Instruction, section="9.7.9.3", ptx="1.0", targets=ALL, move=True):
    """d = a, element by element (not in the manual; measured, ptxas 13.5)."""

    syntax = "mov.vec.type d, a"
    d: OperandLike = vector("type", _length, sink=True, scalar=True)
    a: OperandLike = vector("type", _length, sink=_has_32_bits, immediate=True, special=True, scalar=True)
    _: KW_ONLY
    vec: Literal["v2", "v4"]
    type: Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]

    @rule("vector")
    def _width(self) -> str | None:
        """At most 128 bits are moved."""
        if self.vec == "v4" and self.type.endswith("64"):
            return f"mov.v4 requires 16-bit or 32-bit types, not .{self.type}"
        return None

    _l = rule("left-out", reads_operands=True)(_left_out)


class mov_pack(Instruction, section="9.7.9.4", ptx="1.0", targets=ALL, move=True):
    """d = two halves side by side, the first in the low bits.

    The half of a `_`, which no manual has, is zero (measured, ptxas 13.5: in .b32 alone).
    A single element in braces is not PTX, though ptxas 13.5 takes it: it moves a part of the bits (docs/hardware.md).
    """

    syntax = "mov.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = vector(_half, 2, exact=True, sink=_has_32_bits, immediate=True, special=True)
    _: KW_ONLY
    type: Literal["b16", "b32", "b64", "b128"]
    needs = _B128
    _l = rule("left-out", reads_operands=True)(_left_out)


class mov_pack4(Instruction, section="9.7.9.4", ptx="1.0", targets=ALL, move=True):
    """d = four quarters side by side, the first in the low bits; that of a `_` is zero, as in mov_pack."""

    syntax = "mov.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = vector(_quarter, 4, exact=True, sink=_has_32_bits, immediate=True, special=True)
    _: KW_ONLY
    type: Literal["b32", "b64", "b128"]
    needs = _B128


class mov_unpack(Instruction, section="9.7.9.4", ptx="1.0", targets=ALL, move=True):
    """The registers of d = the two halves of a, the low bits in the first."""

    syntax = "mov.type d, a"
    d: OperandLike = vector(_half, 2, sink=True, exact=True)
    a: OperandLike = source("type", special=True, symbol=True, float_sums=False)
    _: KW_ONLY
    type: Literal["b16", "b32", "b64", "b128"]
    needs = _B128


class mov_unpack4(Instruction, section="9.7.9.4", ptx="1.0", targets=ALL, move=True):
    """The registers of d = the four quarters of a, the low bits in the first."""

    syntax = "mov.type d, a"
    d: OperandLike = vector(_quarter, 4, sink=True, exact=True)
    a: OperandLike = source("type", special=True, symbol=True, float_sums=False)
    _: KW_ONLY
    type: Literal["b32", "b64", "b128"]
    needs = _B128


class prmt(Instruction, section="9.7.9.7", ptx="2.0", targets=ALL):
    """The bytes of d = bytes of b:a, which hold bytes 7 to 0, as the four hexadecimal digits of c say.

    Bit 3 of a digit spreads the sign of the byte. With a mode, the two low bits of c choose: four bytes on from there
    (`f4e`), or back (`b4e`), one byte four times (`rc8`), bytes clamped at an edge (`ecl`, `ecr`), one half twice
    (`rc16`).
    """

    syntax = "prmt.b32{.mode} d, a, b, c"
    d: OperandLike = register("b32")
    a: OperandLike = source("b32")
    b: OperandLike = source("b32")
    c: OperandLike = source("b32")
    _: KW_ONLY
    mode: Literal["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"] | None = None
