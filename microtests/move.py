"""Moves, packing and permutation. References from PTX ISA 9.7.9."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.lanes import lanewise
from ptxgen.instr import move
from ptxgen.instr.model.types import TYPES


@lanewise(move.mov, only_if=lambda form: form.type != "b128")
def mov(form: Any, a: int) -> int:
    return a


@lanewise(move.mov_pred)
def mov_pred(form: Any, a: int) -> int:
    return a


@lanewise(move.mov_vector)
def mov_vector(form: Any, a: tuple[int, ...]) -> tuple[int, ...]:
    return a


def _halves_have_registers(form: Any) -> bool:
    """.b128 is left out: it is loaded otherwise."""
    return form.type != "b128"


@lanewise(move.mov_pack, move.mov_pack4, only_if=_halves_have_registers)
def pack(form: Any, a: tuple[int, ...]) -> int:
    bits = TYPES[form.type].bits // len(a)
    return sum(part << (bits * i) for i, part in enumerate(a))


@lanewise(move.mov_unpack, move.mov_unpack4, only_if=_halves_have_registers)
def unpack(form: Any, a: int) -> tuple[int, ...]:
    count = 4 if "4" in form.form.key else 2
    bits = TYPES[form.type].bits // count
    return tuple(a >> (bits * i) for i in range(count))


#: The bytes that the modes of prmt choose for the low two bits of c: PTX ISA, table of 9.7.9.7.
_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@lanewise(move.prmt)
def prmt(form: Any, a: int, b: int, c: int) -> int:
    both = b << 32 | a
    control = _MODES[form.mode][c & 3] if form.mode else c
    found = 0
    for i in range(4):
        digit = control >> 4 * i & 0xF
        byte = both >> 8 * (digit & 7) & 0xFF
        if form.mode is None and digit & 8:
            byte = 0xFF if byte & 0x80 else 0
        found |= byte << 8 * i
    return found


@microtest(2, 4)
def b128(draft: Draft, parts: int) -> None:
    """128 bits packed from halves or quarters and taken apart the other way."""
    kind: Any = f"b{128 // parts}"
    other: Any = f"b{128 // (6 - parts)}"
    values = np.random.default_rng(11).integers(0, 2**64, (64, 2), dtype=np.uint64)
    draft.launch(block=64)
    tid = draft.thread
    source, out = (draft.offset(each, tid, 16) for each in (draft.input(values), draft.output(values)))
    wide, given, found = draft.reg("b128"), draft.regs(kind, parts), draft.regs(other, 6 - parts)
    for number, register in enumerate(given):
        draft.load_into(register, source, number * 16 // parts)
    pack_, unpack_ = (move.mov_pack, move.mov_unpack4) if parts == 2 else (move.mov_pack4, move.mov_unpack)
    draft(pack_(wide, given, type="b128"), unpack_(found, wide, type="b128"))
    for number, register in enumerate(found):
        draft.store(out, register, number * 16 // (6 - parts))
