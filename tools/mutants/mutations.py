"""What is broken: each mutation replaces the text of one instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen import syntax
from ptxgen.syntax import Address, Immediate, Instruction, Operand, Vector, walk


@dataclass(frozen=True)
class Mutant:
    """One change of a kernel's text: what was done, to which instruction, where."""

    kind: str
    line: int
    column: int
    instruction: str
    start: int
    text: str

    def applied(self, source: str) -> str:
        """The kernel with the change."""
        return source[: self.start] + self.text + source[self.start + len(self.instruction) :]

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {' '.join(self.instruction.split()).rstrip('; ')}"


#: Instructions that order or count and give no result: to be left out.
_DROPPED = re.compile(
    r"(bar|barrier)(\.cta)?\.(sync|arrive|warp)|barrier\.cluster|fence|membar|tcgen05\.(fence|wait|commit|dealloc)"
    r"|wgmma\.(fence|commit_group|wait_group)|mbarrier\.(init|inval|arrive|arrive_drop|expect_tx|complete_tx)\b"
    r"|cp\.async\.(bulk\.)?(commit_group|wait_group|wait_all)|cp\.async\.mbarrier|tensormap\.cp_fenceproxy"
    r"|griddepcontrol|tcgen05\.relinquish_alloc_permit"
)
_WAITS = re.compile(r"mbarrier\.(try|test)_wait")


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a kernel's text, in the order of its lines."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function in syntax.parse(source).functions:
        if function.body is None:
            continue
        for statement in walk(function.body.statements):
            if isinstance(statement, Instruction):
                start = starts[statement.line - 1] + statement.column - 1
                for kind, text in _changes(statement):
                    yield Mutant(kind, statement.line, statement.column, statement.text, start, text)


def _changes(made: Instruction) -> Iterator[tuple[str, str]]:
    opcode = made.opcode
    if _DROPPED.match(opcode):
        yield "dropped", _with(made, f"mov.b64 {made.operands[0]}, 0;") if _has_result(made) else ""
    if _WAITS.match(opcode):
        yield "wait dropped", _with(made, f"setp.eq.u32 {str(made.operands[0]).partition('|')[0]}, 0, 0;")
    yield from _weakened(made)
    yield from _shifted(made)
    yield from _descriptors(made)


def _has_result(made: Instruction) -> bool:
    return made.opcode.startswith("mbarrier.arrive") and str(made.operands[0]).strip() != "_"


def _guard(made: Instruction) -> str:
    return f"{made.guard} " if made.guard else ""


def _with(made: Instruction, text: str) -> str:
    """Another instruction under the same guard."""
    return _guard(made) + text


def _respelled(made: Instruction, opcode: str | None = None, operands: dict[int, object] | None = None) -> str:
    """The instruction with another opcode or other operands."""
    written = [str((operands or {}).get(number, each)).strip() for number, each in enumerate(made.operands)]
    return f"{_guard(made)}{opcode or made.opcode} {', '.join(written)};"


def _computed(made: Instruction, position: int, bits: int, operation: str) -> str:
    """The instruction with an operand that an operation changes first, in a register of its own."""
    operand = str(made.operands[position]).strip()
    name = f"%mutated{bits}"
    changed = _respelled(made, operands={position: name})
    return f"{{ .reg .b{bits} {name}; {operation.format(d=name, a=operand)} {changed} }}"


def _weakened(made: Instruction) -> Iterator[tuple[str, str]]:
    opcode = made.opcode
    if opcode.startswith("barrier.cluster.arrive") and ".relaxed" not in opcode:
        weaker = opcode.replace(".release", "").replace("barrier.cluster.arrive", "barrier.cluster.arrive.relaxed")
        yield "relaxed", _respelled(made, weaker)
    if of_mbarrier := re.match(
        r"(mbarrier\.(?:arrive|arrive_drop)(?:\.expect_tx)?|mbarrier\.(?:try|test)_wait(?:\.parity)?)"
        r"(?:\.(?:release|acquire)\.(\w+))?(?=\.(?:shared|b64))",
        opcode,
    ):
        scope = of_mbarrier[2] or "cta"
        yield "relaxed", _respelled(made, f"{of_mbarrier[1]}.relaxed.{scope}{opcode[of_mbarrier.end() :]}")
    for order in (".release", ".acquire"):
        if opcode.startswith(("atom", "red", "ld", "st")) and order in opcode and "async" not in opcode:
            yield "relaxed", _respelled(made, opcode.replace(order, ".relaxed"))
    if re.match(r"(atom|red|ld|st|fence|mbarrier)\b.*\.(gpu|sys|cluster)\b", opcode) and ".async" not in opcode:
        narrower = re.sub(r"\.(gpu|sys|cluster)(?=\.|$)", ".cta", opcode)
        if narrower != opcode and "mbarrier_init" not in opcode and "proxy" not in opcode:
            yield "of a narrower scope", _respelled(made, narrower)
    if opcode in ("membar.gl", "membar.sys"):
        yield "of a narrower scope", _respelled(made, "membar.cta")
    if opcode in ("fence.proxy.async", "fence.proxy.async.shared::cta"):
        yield "of another state space", _respelled(made, "fence.proxy.async.global")
        yield "of the generic proxy alone", _respelled(made, "fence.acq_rel.cta")
    if opcode.startswith("tcgen05.wait::"):
        other = "st" if "::ld" in opcode else "ld"
        yield f"for tcgen05.{other}", _respelled(made, opcode.replace(opcode[14:16], other, 1))
    if opcode.startswith("tcgen05.fence::"):
        before, after = "before_thread_sync", "after_thread_sync"
        other = opcode.replace(before, after) if before in opcode else opcode.replace(after, before)
        yield "on the other side", _respelled(made, other)
    if opcode == "cp.async.bulk.wait_group":
        yield "of the sources alone", _respelled(made, opcode + ".read")


def _shifted(made: Instruction) -> Iterator[tuple[str, str]]:
    """Stages, parities, masks and counts."""
    opcode, operands = made.opcode, made.operands
    if _WAITS.match(opcode):
        if ".parity" in opcode:
            yield "parity flipped", _flipped(made, 2)
        yield from _stage(made, 1)
    if opcode.startswith("mbarrier.init"):
        yield "count + 1", _counted(made, 1, 1)
        if str(operands[1]).strip() != "1":
            yield "count - 1", _counted(made, 1, -1)
        yield from _stage(made, 0)
    if opcode.startswith(("mbarrier.arrive", "mbarrier.arrive_drop")):
        yield from _stage(made, 1)
        if "expect_tx" in opcode:
            yield "16 bytes more", _counted(made, 2, 16)
            yield "16 bytes less", _counted(made, 2, -16)
        elif len(made.operands) > 2:
            yield "an arrival more", _counted(made, 2, 1)
    if opcode.startswith("mbarrier.expect_tx"):
        yield "16 bytes more", _counted(made, 1, 16)
    if opcode.startswith("tcgen05.commit"):
        yield from _stage(made, 0)
        if "multicast" in opcode:
            yield "mask changed", _computed(made, 1, 16, "xor.b16 {d}, {a}, 1;")
    if re.match(r"cp\.async\.bulk\.tensor.*(mbarrier::complete_tx)", opcode):
        yield from _stage(made, 2)
        if "multicast" in opcode:
            yield "mask changed", _computed(made, 3, 16, "xor.b16 {d}, {a}, 1;")
    if re.match(r"(wgmma|cp\.async|cp\.async\.bulk)\.wait_group", opcode):
        yield "one group less", _counted(made, 0, 1)
    if re.match(r"(bar|barrier)(\.cta)?\.(sync|arrive)", opcode):
        yield "another barrier", _flipped(made, 0)
    if re.match(r"(bar|barrier)(\.cta)?\.(sync|arrive)", opcode) and len(operands) == 2:
        yield "32 threads more", _counted(made, 1, 32)
    if re.match(r"cp\.(reduce\.)?async\.bulk\.(shared|global)", opcode) and len(operands) > 2:
        yield "16 bytes less", _counted(made, 2, -16)
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
        yield "8 registers more", _counted(made, 0, 8)


def _stage(made: Instruction, position: int) -> Iterator[tuple[str, str]]:
    """The mbarrier after this one, 8 bytes on."""
    operand = str(made.operands[position]).strip()
    if not operand.startswith("["):
        return
    inside = operand[1:-1].strip()
    base, _, offset = inside.partition("+")
    if offset.strip().isdigit():
        yield "another stage", _respelled(made, operands={position: f"[{base.strip()}+{int(offset) + 8}]"})
    elif not offset:
        yield "another stage", _respelled(made, operands={position: f"[{base.strip()}+8]"})


def _half(made: Instruction, position: int) -> str:
    operand = made.operands[position]
    if isinstance(operand, Immediate):
        return _respelled(made, operands={position: int(str(operand.evaluate())) // 2})
    return _computed(made, position, 32, "shr.u32 {d}, {a}, 1;")


def _moved(made: Instruction, position: int, change: int) -> str:
    """The instruction at another address in tensor memory."""
    operand = made.operands[position]
    assert isinstance(operand, Address)
    return _respelled(made, operands={position: f"[{str(operand.base).strip()}+{operand.offset + change}]"})


def _flipped(made: Instruction, position: int) -> str:
    """The instruction with the lowest bit of an operand changed."""
    operand = made.operands[position]
    if isinstance(operand, Immediate):
        return _respelled(made, operands={position: int(str(operand.evaluate())) ^ 1})
    return _computed(made, position, 32, "xor.b32 {d}, {a}, 1;")


def _counted(made: Instruction, position: int, change: int) -> str:
    operand: Operand = made.operands[position]
    if isinstance(operand, Immediate):
        return _respelled(made, operands={position: int(str(operand.evaluate())) + change})
    return _computed(made, position, 32, f"add.s32 {{d}}, {{a}}, {change};")


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


def _descriptors(made: Instruction) -> Iterator[tuple[str, str]]:
    """Fields of the descriptors of tensor core instructions, and of tensormaps made by the kernel."""
    opcode = made.opcode
    if opcode.startswith("tcgen05.mma"):
        b = made.operands[2]
        assert b is not None
        idesc = 4 if ".sp" in opcode else 3
        yield from _matrices(made, _MATRIX | _FIXED)
        for what, bit in _IDESC.items():
            yield what, _computed(made, idesc, 32, f"xor.b32 {{d}}, {{a}}, {1 << bit};")
        if "block_scale" in opcode:
            yield "the ids of scale factors", _computed(made, idesc, 32, f"xor.b32 {{d}}, {{a}}, {1 << 5 | 1 << 30};")
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
                    yield "a factor negated", _respelled(made, operands={number: -value})
                else:
                    yield "transposed", _respelled(made, operands={number: 1 - value})
    elif opcode.startswith("tcgen05.cp"):
        yield "the source 16 bytes on", _computed(made, 1, 64, "add.s64 {d}, {a}, 1;")
        for field, bit in (_MATRIX | _FIXED).items():
            yield f"the source's {field}", _computed(made, 1, 64, f"xor.b64 {{d}}, {{a}}, {1 << bit};")
        yield "the next column", _moved(made, 0, 1)
    elif opcode.startswith("tensormap.replace"):
        field = opcode.split(".")[3]
        change, value = _MAP.get(field), len(made.operands) - 1
        if isinstance(change, int):
            yield f"another {field}", _flipped(made, value)
        elif change:
            yield f"another {field}", _computed(made, value, 64 if "s64" in change else 32, change)


def _matrices(made: Instruction, fields: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Changes of the matrices A and B, where they are in shared memory."""
    for position, name in ((1, "A"), (2, "B")):
        if not isinstance(made.operands[position], Address | Vector):
            yield f"{name} 16 bytes on", _computed(made, position, 64, "add.s64 {d}, {a}, 1;")
            for field, bit in fields.items():
                changed = f"xor.b64 {{d}}, {{a}}, {1 << bit};"
                yield f"{name}'s {field}", _computed(made, position, 64, changed)


def _inverted(made: Instruction, position: int) -> str:
    """The instruction with the opposite of a predicate."""
    operand = str(made.operands[position]).strip()
    changed = _respelled(made, operands={position: "%mutatedp"})
    return f"{{ .reg .pred %mutatedp; not.pred %mutatedp, {operand}; {changed} }}"
