"""From a parsed kernel to executable blocks: names resolved, instructions recognized, semantics bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.collection import paused_collection
from ptxgen.device import Kernel
from ptxgen.emulator.checks.registry import Check, launches
from ptxgen.emulator.load.calls import Callee, Calls, callees_first, reachable
from ptxgen.emulator.load.flow import execution_order, joining, shortest_cycle
from ptxgen.emulator.load.image import Layout
from ptxgen.emulator.load.names import Names
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled
from ptxgen.emulator.load.register_use import Use, never_sure, tainted, writers_of
from ptxgen.emulator.load.registers import RESERVED, Register
from ptxgen.emulator.load.variables import Location, Variables
from ptxgen.emulator.semantics import Semantics, find, reason
from ptxgen.emulator.state.warpgroups import is_move
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import Unrecognized
from ptxgen.instr.model.scope import list_behind, names_in
from ptxgen.instr.model.targets import Target
from ptxgen.instr.model.traits import Traits
from ptxgen.instr.model.types import TYPES

if TYPE_CHECKING:
    from ptxgen.emulator.state.group import Group

_NONE = frozenset[int]()
#: Rank of the pc after the last instruction: lanes there have left the kernel.
EXITED = 1 << 30
#: The successor of the last block of a function: its call site.
RETURNED = EXITED + 1


@dataclass(slots=True, eq=False)
class Operation:
    """One instruction: `run(group)` executes it for the warps of a group; `guard` reads its predicate."""

    statement: syntax.Instruction
    kind: Literal["plain", "blocking", "terminator"]
    run: Callable[..., Any]
    guard: Reader | None
    reads: frozenset[int]
    writes: frozenset[int]
    #: The same for the check of uninitialized registers, and what the guard reads.
    use: Use
    guard_reads: frozenset[int]
    names: Names
    #: None if the text is no instruction of the model.
    traits: Traits | None
    #: None if nothing executes it.
    instruction: Instruction | None = None
    #: Instructions of this run, in order; empty for a single instruction.
    parts: tuple[Operation, ...] = ()


@dataclass(slots=True)
class Block:
    """Instructions that run one after the other. Only the first may block, only the last be a terminator.

    `following` is the rank of the block after it in the text, `targets` those of its branch.
    """

    operations: list[Operation] = field(default_factory=list)
    following: int = EXITED
    targets: list[int] = field(default_factory=list)
    aligned: bool = False
    """Whether it has an instruction that requires all threads of the warp (.aligned, bar)."""
    strong: bool = False
    """Whether it has strong accesses."""
    resumes: bool = False
    """Whether it is the rest of a block after a strong access: others may run in between."""
    continues: bool = False
    """Whether it is the rest of a basic block that `Program(divided=..., longest=...)` has divided."""
    separable: bool = False
    """Whether lanes may run it separately, for the sake of its strong accesses: it does not require the whole warp,
    nor go on to what does, nor branch back, so that the first lanes wait for the others.
    """

    @property
    def begins_aligned(self) -> bool:
        """Whether its first instruction requires all threads of the warp."""
        traits = self.operations[0].traits if self.operations else None
        return traits is not None and traits.aligned

    @property
    def successors(self) -> list[int]:
        """The blocks that may come next."""
        last = self.operations[-1] if self.operations else None
        leaves = last is not None and last.guard is None and last.traits is not None and last.traits.terminator
        return self.targets if leaves else [self.following, *self.targets]


#: Opcodes of accesses by which CTAs synchronize: strong loads and stores, and atomics of integers.
_SYNCHRONIZES = re.compile(
    r"^(?!.*\.shared)((atom|red)\..*\.[usb](32|64)$|(ld|st)\..*(volatile|relaxed|acquire|release|mmio))"
)
#: Opcodes of strong stores and atomics, such as give a lock back.
_PUBLISHES = re.compile(r"^(atom|red)\b|^st\..*(volatile|relaxed|release|mmio)|^mbarrier\..*arrive")


#: Opcodes of strong accesses and atomics in any state space.
_STRONG = re.compile(r"^(atom|red|multimem)\b|^(ld|st)\..*(volatile|relaxed|acquire|release|mmio)")


@dataclass(slots=True)
class _Line:
    """An instruction of the body with the names of its scope, before blocks are made."""

    statement: syntax.Instruction
    names: Names
    semantics: Semantics | None = None
    instruction: Instruction | None = None
    missing: str = ""


def _orders(line: _Line) -> bool:
    """Whether the order of an instruction and those of other warps may matter beyond races."""
    traits = line.instruction.traits if line.instruction is not None else None
    synchronizes = traits is not None and (traits.synchronizes or traits.asynchronous)
    return synchronizes or _STRONG.search(line.statement.opcode) is not None


def _stands_alone(line: _Line) -> bool:
    """Whether an instruction blocks, or accesses memory, so that its cycle matters by itself."""
    traits = line.instruction.traits if line.instruction is not None else None
    spaces = traits.spaces_read | traits.spaces_written if traits is not None else frozenset[str]()
    return (line.semantics is not None and line.semantics.kind == "blocking") or not spaces <= {"param", "const"}


@dataclass(slots=True, eq=False)
class _Body:
    """A function: its names, its lines (`end` is the None after them), and its registers as far as they are used."""

    function: syntax.Function
    names: Names
    start: int
    end: int
    registers: list[Register]


#: A block that machine code executes as a whole: addresses and numbers in the order of `struct block` of blocks.c.
BlockCode = tuple[int, int, int, int, int, int, int]


class NativeBlocks:
    """What is known of blocks as machine code: how often each has run, and the runs of its instructions."""

    def __init__(self, blocks: int) -> None:
        self.times = [0] * blocks
        #: By rank, the block with its runs for launches without observers; None until built.
        self.unwatched: list[Block | None] = [None] * blocks
        #: The code of instructions by `id`, None of those that the NumPy code executes.
        self.codes: dict[int, bytes | None] = {}
        #: Operations of runs, by the `id` of each of their instructions.
        self.runs: dict[tuple[int, ...], Operation] = {}
        #: The code of each of them, by its `id`.
        self.held: dict[int, NDArray[np.uint8]] = {}
        #: By rank, machine code of whole blocks for launches without observers; None where it covers only a part.
        self.whole: list[BlockCode | None] = [None] * blocks


@dataclass(frozen=True)
class RegisterFlow:
    """What the text says of registers that may be read before they are written, for `checks.uninitialized`.

    `followed` are those, `writers` the numbers of the instructions that write each, `tainted` all to which values made
    of them may go, `recursive` whether functions call themselves.
    """

    followed: frozenset[int]
    writers: Mapping[int, frozenset[int]]
    tainted: frozenset[int]
    recursive: bool
    #: By `id` of an instruction's use, whether it reads or writes one of them: launches share it.
    touched: dict[int, bool] = field(default_factory=dict)

    def touches(self, use: Use) -> bool:
        """Whether an instruction reads or writes a register that is followed or tainted."""
        found = self.touched.get(id(use))
        if found is None:
            tracked = self.followed | self.tainted
            found = self.touched[id(use)] = not all(map(tracked.isdisjoint, (use.reads, use.writes, use.adds)))
        return found


class Program:
    """A kernel's blocks, by rank: of divergent lanes those with the lower pc run first.

    It is independent of the machine: launches share one, which `of` keeps with the kernel.
    """

    def __init__(self, kernel: Kernel, hardware: Target, *, divided: bool = False, longest: int = 0) -> None:
        #: True if blocks end before and after each instruction that synchronizes, for `emulator.explore` and timing.
        self._divided_everywhere = divided
        #: The most instructions of a block; 0 for any number.
        self._longest = longest
        #: The architecture that executes the kernel, whose tensor cores decide how sums are rounded.
        self.kernel, self.hardware = kernel, hardware
        functions = reachable(kernel.module, kernel.entry)
        self.variables = Variables(kernel.module, functions)
        self.layout = Layout(kernel.module)
        #: The registers that the program declares and uses.
        self.registers: list[Register] = []
        #: Registers seen as another type of their width: (index of the register, type).
        self.views: list[tuple[int, np.dtype[Any]]] = []
        #: Their numbers, by the index of the register and the character of the type.
        self._view_of: dict[tuple[int, str], int] = {}
        #: True where the program reads a clock; has strong loads; has loads through the read-only path.
        self.reads_time = self.has_strong_loads = self.has_read_only_loads = False
        #: True: the program uses the shared memory that the system reserves for cooperative groups.
        self.uses_reserved_shared = False
        #: Registers of accumulators and of A of wgmma, by index: their numbers in `Warpgroups`.
        self.accumulators: dict[int, int] = {}
        #: The lines of all bodies, one after the other; None stands for the end of each.
        self._lines: list[_Line | None] = []
        self.calls = Calls()
        outer = self._module_names(kernel.module)
        self._bodies = [self._body(function, outer) for function in functions]
        for info in kernel.parameters:
            self._bodies[0].names.locations[info.name] = Location(
                "param", info.offset, info.size, unit=TYPES[info.type].bytes
            )
        for line in self._lines:
            if line is not None:
                self._recognize(line)
        #: The rank of the block in which threads begin.
        self.entry = 0
        self.blocks = self._make_blocks()
        #: All operations, in the order of the blocks.
        self.operations = [operation for block in self.blocks for operation in block.operations]
        self.accumulator_copies = self._accumulator_copies()
        self._may_poll: dict[tuple[int, int], bool] = {}
        #: Results of checks on the text, by their own keys; launches share them.
        self.found: dict[object, object] = {}
        #: Machine code that `native.runs` makes of the blocks, by rank.
        self.native = NativeBlocks(len(self.blocks))

    @classmethod
    def of(cls, kernel: Kernel, hardware: Target, *, divided: bool = False, longest: int = 0) -> Program:
        """The program of a kernel, made once for each architecture."""
        key = cls, hardware, divided, longest
        found = kernel.cache.get(key)
        if not isinstance(found, Program):
            with paused_collection():
                found = kernel.cache[key] = cls(kernel, hardware, divided=divided, longest=longest)
        return found

    # Registers.

    def registers_at(self, line: int) -> dict[str, Register]:
        """The registers that are in scope at an instruction of the text and that the program uses, by name."""
        for each in self._lines:
            if each is not None and each.statement.line == line:
                return each.names.in_scope()
        return {}

    def register(self, bits: int) -> Register:
        """A new register of the program."""
        made = Register(RESERVED + len(self.registers), bits)
        self.registers.append(made)
        return made

    def view(self, register: Register, dtype: np.dtype[Any]) -> int:
        """The number of a view of a register as another type of the same width."""
        key = register.index, dtype.char
        found = self._view_of.get(key)
        if found is None:
            found = self._view_of[key] = len(self.views)
            self.views.append((register.index, dtype))
        return found

    def follow(self, registers: Sequence[Register]) -> tuple[int, ...]:
        """Have the registers of an accumulator, or of A, followed: their numbers."""
        return tuple(self.accumulators.setdefault(each.index, len(self.accumulators)) for each in registers)

    def _accumulator_copies(self) -> frozenset[int]:
        """Registers to which `mov` may copy accumulators, through any number of them."""
        moves = [each for each in self.operations if is_move(each.traits)] if self.accumulators else []
        known = set(self.accumulators)
        while found := {to for each in moves if not each.reads.isdisjoint(known) for to in each.writes} - known:
            known |= found
        return frozenset(known - self.accumulators.keys())

    @cached_property
    def register_flow(self) -> RegisterFlow:
        """Which registers may be read before they are written."""
        entries = {self.entry: frozenset[int]()}
        for callee in self.calls.callees.values():
            named = [callee.names(each.name) for each in (*callee.function.parameters, *callee.function.returns)]
            entries[callee.rank] = frozenset(each.index for each in named if isinstance(each, Register))
        by_block = [[operation.use for operation in block.operations] for block in self.blocks]
        here = range(len(self.blocks))
        successors = [[rank for rank in (block.following, *block.targets) if rank in here] for block in self.blocks]
        followed = never_sure(by_block, successors, entries)
        uses = [operation.use for operation in self.operations]
        recursive = any(callee.saved for callee in self.calls.callees.values())
        return RegisterFlow(followed, writers_of(uses, followed), tainted(uses, followed), recursive)

    @cached_property
    def successors(self) -> list[list[int]]:
        """The blocks to which each block leads within its function."""
        here, successors = range(len(self.blocks)), list[list[int]]()
        for block in self.blocks:
            last = block.operations[-1] if block.operations else None
            leaves = last is not None and last.guard is None and last.traits is not None and last.traits.terminator
            successors.append([rank for rank in (*block.targets, *[block.following] * (not leaves)) if rank in here])
        return successors

    def may_poll(self, first: int, last: int) -> bool:
        """Whether what ends a loop, the blocks of these ranks, may depend on memory or on other warps.

        A loop that only counts does not wait for others, though it changes nothing that they see.
        """
        found = self._may_poll.get((first, last))
        if found is None:
            operations = [each for block in self.blocks[first : last + 1] for each in block.operations]
            found = self._may_poll[first, last] = self.reads_time or _depends_on_others(operations)
        return found

    @cached_property
    def polls_atomically(self) -> bool:
        """Whether a loop has an atomic operation that gives back what it finds."""
        return any(
            bool(shortest_cycle(self.successors, rank))
            for rank, block in enumerate(self.blocks)
            if any(operation.statement.opcode.startswith("atom.") for operation in block.operations)
        )

    def leads_to(self, rank: int, statement: syntax.Statement) -> bool:
        """Whether a path from the start of a block comes to a statement, within its function."""
        return any(
            each.statement is statement for block in self.reached(rank) for each in self.blocks[block].operations
        )

    def reached(self, rank: int) -> set[int]:
        """A block and those to which there are paths from it, within its function."""
        seen, pending = set[int](), [rank] if rank in range(len(self.blocks)) else []
        while pending:
            block = pending.pop()
            if block not in seen:
                seen.add(block)
                pending += self.successors[block]
        return seen

    @cached_property
    def unconverged(self) -> frozenset[int]:
        """The `id` of each statement that lanes may come to from paths that have joined, without a .sync since then."""
        ordered = [[(id(each.statement), each.traits) for each in block.operations] for block in self.blocks]
        converging = [any(traits is not None and traits.converges for _, traits in each) for each in ordered]
        found: set[int] = set()
        for statements, joins in zip(ordered, joining(self.successors, converging), strict=True):
            for number, traits in statements if joins else ():
                if traits is not None and traits.converges:
                    break
                found.add(number)
        return frozenset(found)

    def _module_names(self, module: syntax.Module) -> Names:
        """The names that are visible in all functions of a module."""
        names = Names(None, self.kernel.analysis.scope(module))
        names.locations.update(self.layout.locations)
        for item in module.items:
            names.locations.update(self.variables.of(item))
        return names

    def _body(self, function: syntax.Function, outer: Names) -> _Body:
        """Read the body of a function: its lines, and the registers that it has."""
        names = Names(outer, self.kernel.analysis.scope(function))
        names.locations.update(self.variables.of(function))
        start = len(self._lines)
        if function.kind == "func":
            for parameter in (*function.returns, *function.parameters):
                if parameter.space == "reg":
                    self._declare(names, [(parameter.name, None)], parameter.type, parameter.vector)
        assert function.body is not None
        self._read(function.body, names)
        self._lines.append(None)
        return _Body(function, names, start, len(self._lines) - 1, names.made)

    def _read(self, block: syntax.Block, names: Names) -> None:
        for statement in block.statements:
            if isinstance(statement, syntax.RegisterDeclaration):
                self._declare(names, statement.declarators, statement.type, statement.vector)
            elif isinstance(statement, syntax.Variable):
                names.locations.update(self.variables.of(statement))
                names.locations.update(self.layout.of(statement))
        for index, statement in enumerate(block.statements):
            if isinstance(statement, syntax.Label):
                behind = list_behind(block.statements, index)
                if behind is None:
                    names.labels[statement.name] = len(self._lines)
                elif isinstance(behind, syntax.Directive):
                    names.lists[statement.name] = list(names_in(behind))
            elif isinstance(statement, syntax.Block):
                self._read(statement, Names(names, self.kernel.analysis.scope(statement)))
            elif isinstance(statement, syntax.Instruction):
                self._lines.append(_Line(statement, names))

    def _declare(self, names: Names, declared: Iterable[tuple[str, int | None]], type: str, vector: int | None) -> None:
        kind = TYPES.get(type)
        if kind is None:
            return  # the use of such a register ends as incomplete

        def make() -> Register:
            made = self.register(kind.bits)
            names.made.append(made)
            return made

        for name, count in declared:
            if vector and count is None:
                names.vectors[name] = vector
                names.registers.update({f"{name}.{axis}": make() for axis in "xyzw"[:vector]})
            elif vector:
                names.vector_ranges[name] = (count or 0, vector, make)
            elif count is None:
                names.registers[name] = make()
            else:
                names.ranges[name] = (count, make)

    def _recognize(self, line: _Line) -> None:
        found = self.kernel.analysis.instruction(line.statement, line.names.scope)
        if isinstance(found, Unrecognized):
            line.missing = found.problems[0].message
            return
        line.instruction = found
        line.semantics = find(type(found))
        if line.semantics is None:
            why = reason(found.form.key)
            line.missing = f"the emulator does not model {line.statement.opcode}" + (f": {why}" if why else "")
        elif line.semantics.kind == "terminator" and None in self._labels(line):
            line.semantics, line.missing = None, f"a label of {line.statement.text} is not there"

    # Blocks.

    def _make_blocks(self) -> list[Block]:
        """Blocks in the order of execution: of functions those called first, so that their callers wait for them."""
        names, recursive = callees_first([body.function for body in self._bodies])
        bodies = {body.function.name: body for body in self._bodies}
        order: list[tuple[int, int, _Body]] = []
        resumes: list[bool] = []
        continues: list[bool] = []
        ranks: dict[int, int] = {}
        for name in names:
            starts, successors, resumed, continued = self._graph(bodies[name])
            ends = [*starts[1:], starts[-1]]
            for position in execution_order(successors):
                ranks[starts[position]] = len(order)
                order.append((starts[position], ends[position], bodies[name]))
                resumes.append(starts[position] in resumed)
                continues.append(starts[position] in continued)
        self.entry = ranks[self._bodies[0].start]
        for body in self._bodies[1:]:
            callee = Callee(body.function, body.names, self.variables.frames[body.function.name], ranks[body.start])
            self.calls.callees[body.function.name] = callee
        blocks = [self._block(start, end, body, ranks) for start, end, body in order]
        for rank, block in enumerate(blocks):
            forward = min([block.following, *block.targets]) > rank
            last = block.operations[-1].traits if block.operations else None
            calls = last is not None and last.control == "call"
            waits = block.aligned or any(blocks[each].begins_aligned for each in block.successors if each < len(blocks))
            block.separable = block.strong and forward and not calls and not waits
            block.resumes, block.continues = resumes[rank], continues[rank]
        for name in recursive:
            self.calls.callees[name].saved.extend(bodies[name].registers)
        return blocks

    def _graph(self, body: _Body) -> tuple[list[int], list[list[int]], set[int], set[int]]:
        """Where the blocks of a body start, the last at its end, which follow each, and which `Block.resumes` and
        `Block.continues`.
        """
        leaders = {body.start, body.end}  # the last block is empty: lanes that reach it exit
        published = False
        for index in range(body.start, body.end):
            line = self._lines[index]
            assert line is not None
            kind = line.semantics.kind if line.semantics else "plain"
            if published and line.instruction is not None and line.instruction.traits.aligned:
                leaders.add(index)  # the first lanes wait there for the others, which may wait for what is published
                published = False
            published = kind == "plain" and (published or _PUBLISHES.search(line.statement.opcode) is not None)
            if kind == "blocking":
                leaders.add(index)
                if line.statement.guard is not None:
                    leaders.add(index + 1)  # lanes that it does not stop wait there for the others
            elif kind == "terminator":
                if line.instruction is not None and line.instruction.traits.aligned:
                    leaders.add(index)  # lanes that wait there for others have executed what precedes it
                leaders.add(index + 1)
                leaders.update(target for target in self._labels(line) if target is not None)
        # Labels inside a block begin none unless a branch targets them.
        continued = self._parts_of_blocks(body, leaders)
        resumed = self._divided(body, leaders | continued)
        starts = sorted(leaders | continued | resumed)
        number = {start: position for position, start in enumerate(starts)}
        successors: list[list[int]] = []
        for end in starts[1:]:
            line = self._lines[end - 1]
            assert line is not None
            edges = [number[end]] if self._falls_through(line) else []
            successors.append(edges + [number[target] for target in self._labels(line) if target is not None])
        return starts, [*successors, []], resumed, continued

    def _parts_of_blocks(self, body: _Body, leaders: set[int]) -> set[int]:
        """Where basic blocks, which begin at `leaders`, are divided.

        At what synchronizes, and with a limit of their length also at accesses of memory and what blocks.
        """
        found, length = set[int](), 0
        for index in range(body.start, body.end):
            line = self._lines[index]
            assert line is not None
            if (self._divided_everywhere and _orders(line)) or (self._longest and _stands_alone(line)):
                found.update((index, index + 1))
            if index in leaders or index in found or (self._longest and length == self._longest):
                found.add(index)
                length = 0
            length += 1
        return found - leaders

    def _divided(self, body: _Body, leaders: set[int]) -> set[int]:
        """Where blocks go on with a second access by which CTAs synchronize, and so on."""
        found, before = set[int](), False
        for index in range(body.start, body.end):
            line = self._lines[index]
            assert line is not None
            before = before and index not in leaders
            if _SYNCHRONIZES.search(line.statement.opcode):
                found.update([index] if before else [])
                before = True
        return found

    def _block(self, start: int, end: int, body: _Body, ranks: dict[int, int]) -> Block:
        block = Block()
        in_entry = body is self._bodies[0]
        lines = [line for line in self._lines[start:end] if line is not None]
        if lines:
            block.following = ranks[end]
            block.targets = [ranks[target] for target in self._labels(lines[-1]) if target is not None]
        else:
            block.following = EXITED if in_entry else RETURNED
        block.operations = [self._bind(line, block, in_entry) for line in lines]
        block.aligned = any(each.traits is not None and each.traits.aligned for each in block.operations)
        return block

    def _labels(self, line: _Line) -> list[int | None]:
        """Where a branch may go; None is a label that is not there."""
        targets = line.instruction.traits.targets if line.instruction is not None else ()
        found: list[int | None] = []
        for target in targets:
            written = str(getattr(line.instruction, target))
            names = line.names.list(written) or [written]
            found += [line.names.label(name) for name in names]
        return found

    @staticmethod
    def _falls_through(line: _Line) -> bool:
        unconditional = line.semantics is not None and line.semantics.leaves and line.statement.guard is None
        return not unconditional

    def _bind(self, line: _Line, block: Block, in_entry: bool) -> Operation:
        binder = Binder(self, line.names, in_entry, block.targets, block.following)
        statement = line.statement
        guard: Reader | None = None
        guard_reads = _NONE
        kind: Literal["plain", "blocking", "terminator"] = "plain"
        run: Callable[..., Any]
        instruction: Instruction | None = None
        try:
            if statement.guard is not None:
                name = syntax.Name(statement.guard.register)
                guard = binder.predicate(syntax.Negation(name) if statement.guard.negated else name)
                guard_reads = frozenset(binder.reads)
            if line.semantics is None or line.instruction is None:
                run = self._incomplete(statement, line.missing)
            else:
                kind = line.semantics.kind
                run = line.semantics.bind(line.instruction, binder, statement)
                instruction = line.instruction
        except Unmodelled as missing:
            kind, run = "plain", self._incomplete(statement, f"the emulator does not model {missing} here")
        reads = frozenset(binder.reads) if binder.reads else _NONE
        writes = frozenset(binder.writes) if binder.writes else _NONE
        block.strong = block.strong or binder.strong
        traits = line.instruction.traits if line.instruction is not None else None
        use = Use(
            reads | binder.inputs if binder.inputs else reads,
            writes | binder.touched if binder.touched else writes,
            frozenset(binder.vital) if binder.vital else _NONE,
            guard is not None,
            stores=traits is not None and traits.stores,
            adds=frozenset(binder.adds) if binder.adds else _NONE,
            if_true=binder.if_true,
            lanewise=traits is not None and traits.lanewise,
            lanes=binder.lanes,
            quarters=binder.quarters,
        )
        return Operation(statement, kind, run, guard, reads, writes, use, guard_reads, line.names, traits, instruction)

    def _incomplete(self, statement: syntax.Instruction, message: str) -> Callable[[Group], None]:
        def run(group: Group) -> None:
            raise Incomplete(statement, message)

        return run


def _depends_on_others(operations: Sequence[Operation]) -> bool:
    """Whether branches of a loop depend on what it reads from memory, or on what synchronizes."""
    deciding, before = set[int](), -1
    for each in operations:
        traits = each.traits
        if traits is None or traits.synchronizes or each.kind == "blocking" or traits.control == "call":
            return True
        if each.kind == "terminator":
            deciding |= each.guard_reads | each.use.reads
    while len(deciding) > before:
        before = len(deciding)
        for each in operations:
            if not each.use.writes.isdisjoint(deciding):
                if each.traits is None or not each.traits.spaces_read <= {"param", "const"}:
                    return True
                deciding |= each.use.reads | each.guard_reads
    return False


class Incomplete(Exception):
    """The kernel reached something that the emulator does not model, or a limit: what `check` says."""

    def __init__(
        self, statement: syntax.Instruction | None, message: str, check: Check = launches.NOT_MODELLED
    ) -> None:
        self.statement, self.check = statement, check
        super().__init__(message)
