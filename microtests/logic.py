"""Bitwise logic and shifts. References from PTX ISA 9.7.8."""

from __future__ import annotations

from typing import Any

from microtests.harness.lanes import lanewise
from ptxgen.instr import logic
from ptxgen.instr.model.types import TYPES


@lanewise(logic.and_, logic.and_pred)
def and_(form: Any, a: int, b: int) -> int:
    return a & b


@lanewise(logic.or_, logic.or_pred)
def or_(form: Any, a: int, b: int) -> int:
    return a | b


@lanewise(logic.xor, logic.xor_pred)
def xor(form: Any, a: int, b: int) -> int:
    return a ^ b


@lanewise(logic.not_)
def not_(form: Any, a: int) -> int:
    return ~a


@lanewise(logic.not_pred)
def not_pred(form: Any, a: int) -> int:
    return 1 - a


@lanewise(logic.cnot)
def cnot(form: Any, a: int) -> int:
    return int(a == 0)


def _lop3(a: int, b: int, c: int, lut: int) -> int:
    found = 0
    for index in range(8):
        if lut >> index & 1:
            found |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return found & 0xFFFFFFFF


@lanewise(logic.lop3, constants={"lut": (0x00, 0x01, 0x80, 0x96, 0xE8, 0xCA, 0x3C, 0x47, 0xFE, 0xFF)})
def lop3(form: Any, a: int, b: int, c: int, lut: int) -> int:
    return _lop3(a, b, c, lut)


@lanewise(logic.lop3_bool, constants={"lut": (0x80, 0xC0, 0x96)}, outputs={"d", "p"})
def lop3_bool(form: Any, a: int, b: int, c: int, q: int, lut: int) -> tuple[int, int]:
    found = _lop3(a, b, c, lut)
    nonzero = int(found != 0)
    return found, nonzero | q if form.combine == "or" else nonzero & q


@lanewise(logic.shf)
def shf(form: Any, a: int, b: int, c: int) -> int:
    amount = c & 31 if form.mode == "wrap" else min(c, 32)
    both = b << 32 | a
    return both >> amount if form.direction == "r" else both << amount >> 32


@lanewise(logic.shl)
def shl(form: Any, a: int, b: int) -> int:
    return a << b if b < TYPES[form.type].bits else 0


@lanewise(logic.shr)
def shr(form: Any, a: int, b: int) -> int:
    return a >> min(b, TYPES[form.type].bits)
