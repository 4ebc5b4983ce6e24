"""What is broken: each mutation replaces the text of one instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxgen.audit.mutant import Change, Mutant, computed, counted, every, respelled
from ptxgen.audit.weaken import WAITS, dropped, fewer_groups, weakened
from ptxgen.syntax import Address, Immediate, Instruction, Vector


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a kernel's text, in the order of its lines."""
    return every(source, _changes)


def _changes(made: Instruction) -> Iterator[Change]:
    yield from dropped(made)
    yield from weakened(made)
    yield from _shifted(made)
    yield from _descriptors(made)


def _shifted(made: Instruction) -> Iterator[Change]:
    """Stages, parities, masks and counts."""
    opcode, operands = made.opcode, made.operands
    if WAITS.match(opcode):
        if ".parity" in opcode:
            yield "parity flipped", _flipped(made, 2)
        yield from _stage(made, 1)
    if opcode.startswith("mbarrier.init"):
        yield "count + 1", counted(made, 1, 1)
        if str(operands[1]).strip() != "1":
            yield "count - 1", counted(made, 1, -1)
        yield from _stage(made, 0)
    if opcode.startswith(("mbarrier.arrive", "mbarrier.arrive_drop")):
        yield from _stage(made, 1)
        if "expect_tx" in opcode:
            yield "16 bytes more", counted(made, 2, 16)
            yield "16 bytes less", counted(made, 2, -16)
        elif len(made.operands) > 2:
            yield "an arrival more", counted(made, 2, 1)
    if opcode.startswith("mbarrier.expect_tx"):
        yield "16 bytes more", counted(made, 1, 16)
    if opcode.startswith("tcgen05.commit"):
        yield from _stage(made, 0)
        if "multicast" in opcode:
            yield "mask changed", computed(made, 1, 16, "xor.b16 {d}, {a}, 1;")
    if re.match(r"cp\.async\.bulk\.tensor.*(mbarrier::complete_tx)", opcode):
        yield from _stage(made, 2)
        if "multicast" in opcode:
            yield "mask changed", computed(made, 3, 16, "xor.b16 {d}, {a}, 1;")
    yield from fewer_groups(made)
    if re.match(r"(bar|barrier)(\.cta)?\.(sync|arrive)", opcode):
        yield "another barrier", _flipped(made, 0)
    if re.match(r"(bar|barrier)(\.cta)?\.(sync|arrive)", opcode) and len(operands) == 2:
        yield "32 threads more", counted(made, 1, 32)
    if re.match(r"cp\.(reduce\.)?async\.bulk\.(shared|global)", opcode) and len(operands) > 2:
        yield "16 bytes less", counted(made, 2, -16)
    if opcode.startswith("mapa"):
        yield "another CTA", _flipped(made, 2)
    if opcode.startswith("tcgen05.alloc"):
        yield "half the columns", _half(made, 1)
    if opcode.startswith("tcgen05.dealloc"):
        yield "half the columns", _half(made, 1)
    if opcode.startswith("tcgen05.ld"):
        yield "another quadrant", _moved(made, 1, 32 << 16)
        yield "the next column", _moved(made, 1, 1)
    if opcode.startswith("tcgen05.st"):
        yield "another quadrant", _moved(made, 0, 32 << 16)
        yield "the next column", _moved(made, 0, 1)
    if opcode.startswith("setmaxnreg"):
        yield "8 registers more", counted(made, 0, 8)


def _stage(made: Instruction, position: int) -> Iterator[Change]:
    """The mbarrier after this one, 8 bytes on."""
    operand = str(made.operands[position]).strip()
    if not operand.startswith("["):
        return
    inside = operand[1:-1].strip()
    base, _, offset = inside.partition("+")
    if offset.strip().isdigit():
        yield "another stage", respelled(made, operands={position: f"[{base.strip()}+{int(offset) + 8}]"})
    elif not offset:
        yield "another stage", respelled(made, operands={position: f"[{base.strip()}+8]"})


def _half(made: Instruction, position: int) -> str:
    operand = made.operands[position]
    if isinstance(operand, Immediate):
        return respelled(made, operands={position: int(str(operand.evaluate())) // 2})
    return computed(made, position, 32, "shr.u32 {d}, {a}, 1;")


def _moved(made: Instruction, position: int, change: int) -> str:
    """The instruction at another address in tensor memory."""
    operand = made.operands[position]
    assert isinstance(operand, Address)
    return respelled(made, operands={position: f"[{str(operand.base).strip()}+{operand.offset + change}]"})


def _flipped(made: Instruction, position: int) -> str:
    """The instruction with the lowest bit of an operand changed."""
    operand = made.operands[position]
    if isinstance(operand, Immediate):
        return respelled(made, operands={position: int(str(operand.evaluate())) ^ 1})
    return computed(made, position, 32, "xor.b32 {d}, {a}, 1;")


#: Fields of the instruction descriptor, by what changes: the bit that flips. Those of scale factors stay as they are.
_IDESC = {
    "N": 18,
    "M": 24,
    "the type of A": 7,
    "the type of B": 10,
    "A negated": 13,
    "A transposed": 15,
    "B transposed": 16,
}
#: Fields of the descriptor of a matrix in shared memory; the fixed bits are those of tcgen05.
_MATRIX = {"swizzle": 62, "stride": 36, "leading offset": 20, "base offset": 49}
_FIXED = {"fixed bits": 47}
#: Fields of a tensormap, by what changes: how the new value follows from the old one.
_MAP = {
    "global_address": "add.s64 {d}, {a}, 16;",
    "rank": 1,
    "box_dim": "add.s32 {d}, {a}, 8;",
    "global_dim": "shr.u32 {d}, {a}, 1;",
    "global_stride": "add.s64 {d}, {a}, 16;",
    "element_stride": "add.s32 {d}, {a}, 1;",
    "elemtype": 1,
    "swizzle_mode": 1,
    "interleave_layout": 1,
    "fill_mode": 1,
}


def _descriptors(made: Instruction) -> Iterator[Change]:
    """Fields of the descriptors of tensor core instructions, and of tensormaps made by the kernel."""
    opcode = made.opcode
    if opcode.startswith("tcgen05.mma"):
        b = made.operands[2]
        assert b is not None
        idesc = 4 if ".sp" in opcode else 3
        yield from _matrices(made, _MATRIX | _FIXED)
        for what, bit in _IDESC.items():
            yield what, computed(made, idesc, 32, f"xor.b32 {{d}}, {{a}}, {1 << bit};")
        if "block_scale" in opcode:
            yield "the ids of scale factors", computed(made, idesc, 32, f"xor.b32 {{d}}, {{a}}, {1 << 5 | 1 << 30};")
            yield "A's scale factors", _moved(made, idesc + 1, 4)
            yield "B's scale factors", _moved(made, idesc + 2, 4)
        accumulate = idesc + (3 if "block_scale" in opcode else 1)
        if accumulate < len(made.operands) and str(made.operands[accumulate]).strip()[0] in "%p":
            yield "adds where it sets, and the reverse", _inverted(made, accumulate)
    elif opcode.startswith("wgmma.mma_async"):
        yield from _matrices(made, _MATRIX)
        for number in range(4 + (".sp" in opcode) * 2, len(made.operands)):
            operand = made.operands[number]
            if isinstance(operand, Immediate):
                value = int(str(operand.evaluate()))
                if value in (1, -1) and number < 6 + (".sp" in opcode) * 2:
                    yield "a factor negated", respelled(made, operands={number: -value})
                else:
                    yield "transposed", respelled(made, operands={number: 1 - value})
    elif opcode.startswith("tcgen05.cp"):
        yield "the source 16 bytes on", computed(made, 1, 64, "add.s64 {d}, {a}, 1;")
        for field, bit in (_MATRIX | _FIXED).items():
            yield f"the source's {field}", computed(made, 1, 64, f"xor.b64 {{d}}, {{a}}, {1 << bit};")
        yield "the next column", _moved(made, 0, 1)
    elif opcode.startswith("tensormap.replace"):
        field = opcode.split(".")[3]
        change, value = _MAP.get(field), len(made.operands) - 1
        if isinstance(change, int):
            yield f"another {field}", _flipped(made, value)
        elif change:
            yield f"another {field}", computed(made, value, 64 if "s64" in change else 32, change)


def _matrices(made: Instruction, fields: dict[str, int]) -> Iterator[Change]:
    """Changes of the matrices A and B, where they are in shared memory."""
    for position, name in ((1, "A"), (2, "B")):
        if not isinstance(made.operands[position], Address | Vector):
            yield f"{name} 16 bytes on", computed(made, position, 64, "add.s64 {d}, {a}, 1;")
            for field, bit in fields.items():
                changed = f"xor.b64 {{d}}, {{a}}, {1 << bit};"
                yield f"{name}'s {field}", computed(made, position, 64, changed)


def _inverted(made: Instruction, position: int) -> str:
    """The instruction with the opposite of a predicate."""
    operand = str(made.operands[position]).strip()
    changed = respelled(made, operands={position: "%mutatedp"})
    return f"{{ .reg .pred %mutatedp; not.pred %mutatedp, {operand}; {changed} }}"
