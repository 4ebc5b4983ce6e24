"""What a warp's instructions cost to issue, from the machine code that ptxas makes of each line of the PTX.

A basic block of the SASS issues in order: each instruction after the stall count of the one before it, and after the
scoreboards that it waits for. The cycles that this takes are those of the line that the instruction comes from. A load
of global memory ends when memory answers: a line names the loads whose scoreboards it waits for, which may have been
issued in another basic block or in the iteration before. Of the copies that ptxas makes of a basic block of the PTX
(unrolled loops and their remainders, retries of a wait out of line), the one with the most instructions counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ptxgen.sass.control import NO_BARRIER
from ptxgen.sass.flow import Flow
from ptxgen.sass.listing import Function, Instruction
from ptxgen.timing.multiprocessor import Multiprocessor

#: The pipe of a scheduler that executes an opcode, or "shared", the SM's path to shared memory; others share the issue
#: slots alone.
_PIPES = {
    **dict.fromkeys(("MUFU", "F2F", "I2F", "F2I", "POPC", "FLO", "BREV"), "xu"),
    **dict.fromkeys(("IMAD", "IDP", "FFMA", "FADD", "FMUL"), "fma"),
    **dict.fromkeys(("LOP3", "IADD3", "VIADD", "LEA", "SHF", "PRMT", "ISETP", "SEL", "FSEL", "FMNMX", "FSETP"), "alu"),
    **dict.fromkeys(("F2FP", "I2FP", "VIADDMNMX", "VABSDIFF", "VOTE"), "alu"),
    **dict.fromkeys(("DFMA", "DADD", "DMUL", "DSETP"), "fp64"),
    **dict.fromkeys(("HMMA", "IMMA", "DMMA"), "mma"),
    **dict.fromkeys(("SHFL", "REDUX", "MATCH", "MOVM"), "shared"),
    "FENCE": "fence",
}
#: Waits of these are those of the asynchronous work itself, which the schedule has.
_WORK = ("WARPGROUP", "DEPBAR", "BAR", "UCGABAR", "WARPSYNC")
#: Loads of global memory, whose results come when memory has them.
_LOADS = frozenset({"LDG", "LD", "ATOMG", "ATOM"})
#: Loads and stores of shared memory, bytes of a lane by modifier, and modifiers of fences that only a CTA waits for.
_SHARED, _WIDTHS = frozenset({"LDS", "STS", "LD", "ST"}), {"64": 8, "128": 16}
_OF_CTA = frozenset({"ALL", "SC", "CTA"})
_BRANCHES = frozenset({"BRA", "BRX", "JMP", "JMX", "CALL", "RET", "BRXU", "JMXU"})
#: SASS opcodes that one PTX instruction becomes exactly once, so that they count the copies of a basic block.
_ANCHORS = ("LDS", "STS", "LDSM", "STSM", "LDG", "STG", "SYNCS", "UTMA", "UBLK", "BAR", "MUFU", "SHFL", "LDTM", "STTM")
_ANCHORS += ("UTC", "HGMMA", "QGMMA", "IGMMA", "BGMMA", "FFMA", "ATOM", "RED", "FENCE", "F2FP")
#: Cycles until a scoreboard says that operands have been read, and until an opcode without a latency has a result.
_READ, _OTHER = 12.0, 12.0


@dataclass(slots=True)
class Cost:
    """One execution of a PTX line by a warp.

    - `cycles`: until the next line; `issues`: issue slots; `pipes`: cycles of pipes by name.
    - `beside`: cycles more of those pipes, and as many of issue, while wgmma accumulates in registers.
    - `latency`: cycles until a load of global memory by the line has its result; 0 for other lines.
    - `loads`: the lines for whose loads of global memory this one waits.
    - `shared`: bytes of a lane of its widest load or store of shared memory: more than those of the PTX where ptxas has
      made one of several lines; 0 for a line without any, as those others are.
    - `copies`: how many copies of the line ptxas has made of one, whose cost is divided among them.
    """

    cycles: float = 0.0
    issues: float = 0.0
    pipes: dict[str, float] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    latency: float = 0.0
    loads: frozenset[int] = frozenset()
    shared: int = 0
    copies: int = 1

    def share(self, copies: int) -> Cost:
        """The cost of one of so many copies."""
        pipes, beside = ({name: cycles / copies for name, cycles in each.items()} for each in (self.pipes, self.beside))
        return replace(
            self, cycles=self.cycles / copies, issues=self.issues / copies, pipes=pipes, beside=beside, copies=copies
        )


@dataclass
class _Part:
    """What a line has in one basic block of the SASS."""

    cost: Cost = field(default_factory=Cost)
    code: list[Instruction] = field(default_factory=list)

    @property
    def anchors(self) -> int:
        """The least count of an opcode that an instruction of the PTX makes once; 0 without any."""
        counts = Counter(each.opcode for each in self.code if each.opcode.startswith(_ANCHORS))
        return min(counts.values(), default=0)


_NO_COST = Cost()
#: Bytes of a line of the instruction cache.
_CODE_LINE = 128

#: By number of the SASS block, what a line has there.
_Parts = dict[int, _Part]


@dataclass(frozen=True)
class Costs:
    """The costs by PTX line, and the machine code that they count."""

    lines: Mapping[int, Cost]
    code: Mapping[int, Sequence[Instruction]]

    @classmethod
    def of(cls, function: Function, machine: Multiprocessor, blocks: Iterable[Sequence[int]]) -> Costs:
        """Of a kernel's SASS; `blocks` are the PTX lines of each basic block of the PTX."""
        flow = Flow(function)
        waited_for = _awaited(flow)
        parts, depth = _parts(flow, machine, waited_for), [0] * len(flow.blocks)
        for loop in flow.loops:
            for number in loop.blocks:
                depth[number] += 1
        costs, code = dict[int, Cost](), dict[int, Sequence[Instruction]]()
        for lines in blocks:
            here = [line for line in dict.fromkeys(lines) if line in parts]
            total: Counter[int] = Counter()
            for line in here:
                total.update({number: len(part.code) for number, part in parts[line].items()})
            if not total:
                continue
            best = min(total, key=lambda number: (-total[number], number))
            chosen = {line: number for line in here if (number := _largest(parts[line], best, depth)) is not None}
            copies: dict[int, int] = {}
            for number in set(chosen.values()):
                counts = [parts[line][number].anchors for line in here if chosen.get(line) == number]
                copies[number] = min((count for count in counts if count), default=1)
            for line, number in chosen.items():
                part = parts[line][number]
                costs[line], code[line] = part.cost.share(copies[number]), part.code
                costs[line].shared = max(each.cost.shared for each in parts[line].values())
            _postpone(here, chosen, costs, code, waited_for)
        return cls(costs, code)


@dataclass(slots=True)
class BlockCost:
    """One execution of a block of the PTX by a warp: as `Cost`, of all its lines.

    - `waits`: for each line that waits for loads, the cycles of the lines before it since the last such line, the lines
      of the loads, and the copies of the line.
    - `after`: the cycles from the last such line on.
    - `code`: numbers of the lines of the instruction cache.
    - `shares`: by PTX line, the part of the cycles.
    """

    waits: list[tuple[float, frozenset[int], int]] = field(default_factory=list)
    after: float = 0.0
    issues: float = 0.0
    pipes: dict[str, float] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    more: float = 0.0
    code: list[int] = field(default_factory=list)
    shares: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[int], costs: Costs) -> BlockCost:
        """Of the PTX lines of a block; those of several statements count once."""
        made, code = cls(), set[int]()
        for line in dict.fromkeys(lines):
            cost = costs.lines.get(line, _NO_COST)
            if cost.loads:
                made.waits.append((made.after, cost.loads, cost.copies))
                made.after = 0.0
            made.after += cost.cycles
            made.issues += cost.issues
            for mine, parts in ((made.pipes, cost.pipes), (made.beside, cost.beside)):
                for name, cycles in parts.items():
                    mine[name] = mine.get(name, 0.0) + cycles
            code.update(each.address // _CODE_LINE for each in costs.code.get(line, ()))
            made.shares[line] = cost.cycles
        made.more, made.code = sum(made.beside.values()), sorted(code)
        total = sum(made.shares.values())
        made.shares = {line: cycles / total for line, cycles in made.shares.items() if cycles}
        return made


def _largest(parts: _Parts, best: int, depth: Sequence[int]) -> int | None:
    """The block of the SASS that counts for a line: that of its basic block, else the one with most of the line.

    None where that is outside of a loop that the basic block is in: the line costs nothing there.
    """
    inside = [number for number in parts if depth[number] >= depth[best]]
    return best if best in parts else min(inside, key=lambda number: (-len(parts[number].code), number), default=None)


def _postpone(
    lines: Sequence[int],
    chosen: Mapping[int, int],
    costs: Mapping[int, Cost],
    code: Mapping[int, Sequence[Instruction]],
    waited_for: Mapping[int, frozenset[int]],
) -> None:
    """Let lines of a basic block wait for loads only after the later lines whose loads ptxas issues before the wait.

    `lines` are in the order of the PTX, in which the schedule takes them; the line after the last of those loads waits.
    """
    loads = {
        line: min(each.index for each in code[line] if each.opcode in _LOADS)
        for line in lines
        if line in chosen and costs[line].latency
    }
    position = {line: number for number, line in enumerate(lines)}
    for line in [each for each in lines if each in chosen and costs[each].loads]:
        waits = min((each.index for each in code[line] if each.index in waited_for), default=None)
        if waits is None:
            continue
        before = [
            position[each]
            for each, index in loads.items()
            if position[each] > position[line] and index < waits and chosen[each] == chosen[line]
        ]
        after = next((each for each in lines[max(before, default=-1) + 1 :] if each in chosen), None)
        if not before or after is None or after == line:
            continue
        costs[after].loads |= costs[line].loads
        costs[line].loads = frozenset()


def _parts(flow: Flow, machine: Multiprocessor, waited_for: Mapping[int, frozenset[int]]) -> dict[int, _Parts]:
    """What each line has in each basic block of the SASS."""
    latency = {name: figure.value for name, figure in machine.latency.items()}
    pipes = {name: figure.value for name, figure in machine.pipe.items()}
    beside = {name: figure.value for name, figure in machine.beside_mma.items()}
    found: dict[int, _Parts] = defaultdict(dict)
    function = flow.function
    for block in flow.blocks:
        now = 0.0
        ready = dict[int, float]()
        free = dict[str, float]()  # by pipe
        for each in function.instructions[block.start : block.end]:
            control, waited = each.control, 0.0
            if not each.opcode.startswith(_WORK):
                waited = max(max((ready.get(number, 0.0) for number in control.waits), default=0.0) - now, 0.0)
            for number in control.waits:
                ready.pop(number, None)
            if name := _PIPES.get(each.opcode):
                busy = _busy(each, pipes)
                waited = max(waited, free.get(name, 0.0) - now)
                free[name] = now + waited + busy
            now += waited
            if control.read != NO_BARRIER:
                ready[control.read] = now + _READ
            if control.write != NO_BARRIER and each.opcode not in _LOADS:
                ready[control.write] = now + latency.get(each.opcode, _OTHER)
            step = float(max(control.stall, 1)) + (machine.branch.value if _taken(each, function) else 0.0)
            if each.opcode == "MEMBAR" and not _OF_CTA.issuperset(each.modifiers):
                step += machine.fence.value
            now += step
            if each.ptx_line is None or each.opcode == "NOP":
                continue
            part = found[each.ptx_line].setdefault(block.number, _Part())
            part.code.append(each)
            part.cost.cycles += waited + step
            part.cost.issues += 1
            if each.opcode in _SHARED:
                width = next((_WIDTHS[name] for name in each.modifiers if name in _WIDTHS), 4)
                part.cost.shared = max(part.cost.shared, width)
            if each.opcode in _LOADS:
                part.cost.latency = latency[each.opcode]
            if each.index in waited_for:
                part.cost.loads |= waited_for[each.index]
            if name:
                part.cost.pipes[name] = part.cost.pipes.get(name, 0.0) + _busy(each, pipes)
                if more := beside.get(each.opcode):
                    part.cost.beside[name] = part.cost.beside.get(name, 0.0) + more
    return found


def _busy(each: Instruction, pipes: Mapping[str, float]) -> float:
    """Cycles of its pipe; a number of an opcode with a modifier, the last that has one, comes before the opcode's."""
    names = [f"{each.opcode}.{modifier}" for modifier in reversed(each.modifiers)]
    return next((pipes[name] for name in [*names, each.opcode] if name in pipes), 1.0)


#: By scoreboard, the PTX lines of loads that it counts.
_Pending = dict[int, frozenset[int]]


def _awaited(flow: Flow) -> dict[int, frozenset[int]]:
    """By instruction that waits for scoreboards, the PTX lines of the loads that may be in flight on them."""
    entering: list[_Pending] = [{} for _ in flow.blocks]
    found = dict[int, frozenset[int]]()
    left = [block.number for block in reversed(flow.blocks)]
    while left:
        block = flow.blocks[left.pop()]
        pending = dict(entering[block.number])
        for each in flow.function.instructions[block.start : block.end]:
            lines = frozenset[int]().union(*(pending.pop(number, ()) for number in each.control.waits))
            if lines:
                found[each.index] = lines
            if each.opcode in _LOADS and each.control.write != NO_BARRIER and each.ptx_line is not None:
                pending[each.control.write] = pending.get(each.control.write, frozenset()) | {each.ptx_line}
        for target in block.following:
            known = entering[target]
            more = {number: lines for number, lines in pending.items() if not lines <= known.get(number, frozenset())}
            if more:
                entering[target] = known | {number: known.get(number, frozenset()) | more[number] for number in more}
                left.append(target)
    return found


def _taken(each: Instruction, function: Function) -> bool:
    """Whether a branch counts as taken: without a predicate, or back."""
    if each.opcode not in _BRANCHES:
        return False
    back = any(function.labels.get(target, each.index + 1) <= each.index for target in each.targets)
    return not each.predicate or back
