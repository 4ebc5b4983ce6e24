"""Counters of loops: by how much a pass moves them, and how many passes a loop has between constants."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ptxgen.sass.canonical import FILES, REGISTER
from ptxgen.sass.flow import ENTRY, Flow, Loop, Register
from ptxgen.sass.listing import Instruction

_COMPARE = re.compile(r"U?ISETP$")
_ADD = re.compile(r"U?IADD3?$|VIADD$|IMAD$")
#: Operands of an addition without a value: zero registers and predicates.
_NO_VALUE = re.compile(r"U?RZ|!?U?PT")
#: The condition of BRA.U.
_UNIFORM = re.compile(r"!?UP\d")
_MOVE = re.compile(r"U?MOV$|IMAD$|CS2R$|HFMA2(?:\.MMA)?$")
_CONSTANT = re.compile(r"-?0x[0-9a-f]+")


@dataclass(frozen=True)
class Counter:
    """What ends a loop: the constant that a pass adds to a register, without its sign, and the passes if known."""

    step: int
    passes: int | None


def counter_of(flow: Flow, loop: Loop) -> Counter | None:
    """The counter with which the branch back, or out, is decided; None where no constant is added to one.

    The step is read from the text of the instructions, since dumps and cubins of CUDA 12 do not say what each of them
    reads; the passes, which take the definition from before the loop, are not known there.
    """
    body = flow.instructions(loop)
    for at, branch in reversed([*enumerate(body)]):
        condition = branch.predicate or next(filter(_UNIFORM.fullmatch, branch.operands), "")  # BRA.U !UP0, ...
        if branch.opcode != "BRA" or not condition:
            continue
        predicate = condition.lstrip("@!")
        compare = next(
            (each for each in reversed(body[:at]) if _COMPARE.match(each.opcode) and predicate in each.operands[:2]),
            None,
        )
        for register in compare.operands[2:] if compare is not None else ():
            for each in body:
                step = _added(each, register)
                if step and compare is not None:
                    return Counter(step, _passes(flow, loop, branch, compare, each))
    return None


def _passes(flow: Flow, loop: Loop, branch: Instruction, compare: Instruction, add: Instruction) -> int | None:
    """The passes of a loop whose counter goes from a constant to a constant, compared after the addition.

    The branch must leave the loop or begin the next pass, by this comparison alone, of what this addition alone made:
    the stage of a ring, which a pass may set to 0, is no counter.
    """
    following = flow.blocks[flow.block_of[branch.index]].following
    if len(following) != 2 or len(set(following) - loop.blocks) != 1:
        return None
    operands = ["0x0" if each in ("RZ", "URZ") else each for each in compare.operands[2:4]]
    bounds = [int(each, 0) for each in operands if _CONSTANT.fullmatch(each)]
    counter = next((REGISTER.fullmatch(each) for each in operands if REGISTER.fullmatch(each)), None)
    kinds = {"NE", "LT", "GT", "GE", "LE", "EQ"} & set(compare.modifiers)
    if len(bounds) != 1 or counter is None or len(kinds) != 1:
        return None
    conditions = [name for name in flow.definitions[branch.index] if "PRED" in name[0]]
    if len(conditions) != 1 or _sources(flow, branch, conditions[0]) != {compare.index}:
        return None
    name = FILES[counter[1]], int(counter[2])
    if _sources(flow, compare, name) != {add.index}:
        return None
    before = _sources(flow, add, name) - {add.index}
    first = next(iter(before), ENTRY)
    start = constant_of(flow.function.instructions[first]) if len(before) == 1 and first != ENTRY else None
    step = _signed(add)
    if start is None or not step:
        return None
    distance = ((bounds[0] - start + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    if distance * step < 0:
        return None
    to_the_bound = kinds <= ({"GT", "LE"} if step > 0 else {"GE", "LT"})
    passes = -(-abs(distance) // abs(step))
    return max(passes + (to_the_bound and distance % step == 0), 1)


def _sources(flow: Flow, reader: Instruction, name: Register) -> frozenset[int]:
    """What may have written a register that an instruction reads; ptxas's subroutines keep those of their callers."""
    found = flow.definitions[reader.index].get(name, frozenset())
    return frozenset(each for each in found if each == ENTRY or flow.function.instructions[each].opcode != "CALL")


def constant_of(each: Instruction) -> int | None:
    """The constant that an instruction moves to a register; None where it does something else."""
    sources = each.operands[1:]
    if each.predicate or not _MOVE.match(each.opcode):
        return None
    if each.opcode.startswith("HFMA2"):
        return _halves(sources)
    if each.opcode == "IMAD" and each.modifiers[:1] != ("MOV",):
        return None
    value = sources[-1]
    return 0 if value in ("RZ", "URZ", "SRZ") else int(value, 0) & 0xFFFFFFFF if _CONSTANT.fullmatch(value) else None


def _halves(sources: Sequence[str]) -> int | None:
    """`HFMA2 R9, -RZ, RZ, 0, 2.384e-07`: the constant whose halves are these two numbers, as ptxas moves small ones."""
    if len(sources) != 4 or sources[0].lstrip("-") != "RZ" or sources[1].lstrip("-") != "RZ":
        return None
    try:
        high, low = (struct.unpack("<H", struct.pack("<e", float(each)))[0] for each in sources[2:])
    except (ValueError, OverflowError):
        return None
    return high << 16 | low


def _signed(add: Instruction) -> int:
    """The constant of an addition with its sign, of 32 bits."""
    values = [int(each, 0) for each in add.operands[1:] if _CONSTANT.fullmatch(each)]
    value = values[-1] if add.opcode != "IMAD" else next((each for each in values if each != 1), 1)
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _added(each: Instruction, register: str) -> int:
    """The constant that an instruction adds to a register, without its sign; 0 where it does something else."""
    if not _ADD.match(each.opcode) or not each.operands or each.operands[0] != register or each.predicate:
        return 0
    sources = [operand for operand in each.operands[1:] if not _NO_VALUE.fullmatch(operand)]
    if each.opcode == "IMAD":
        if each.modifiers != ("IADD",) or "0x1" not in sources:
            return 0
        sources.remove("0x1")  # the factor
    constants = [int(operand, 0) for operand in sources if _CONSTANT.fullmatch(operand)]
    if len(sources) != 2 or len(constants) != 1 or register not in sources:
        return 0
    value = constants[0] & 0xFFFFFFFF
    return min(value, (1 << 32) - value)
