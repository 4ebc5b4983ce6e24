"""From a parsed kernel to executable blocks: names resolved, instructions recognized, meanings bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.device import Kernel
from ptxgen.emulator.checks.uninitialized.registers import Unwritten, Use, never_sure
from ptxgen.emulator.checks.uninitialized.taint import is_lanewise
from ptxgen.emulator.load.calls import Callee, Calls, callees_first
from ptxgen.emulator.load.flow import execution_order
from ptxgen.emulator.load.names import Names
from ptxgen.emulator.load.operands import _UNSIGNED, Binder, Reader, Unmodelled
from ptxgen.emulator.load.variables import Place, Variables
from ptxgen.emulator.semantics import Meaning, find
from ptxgen.emulator.state.warpgroups import is_move
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import Unrecognized, recognize
from ptxgen.instr.model.scope import Scope, declare, declare_labels, declare_parameters, list_behind, names_in
from ptxgen.instr.model.types import TYPES

if TYPE_CHECKING:
    from ptxgen.emulator.state.group import Group
    from ptxgen.emulator.state.machine import Machine

#: Rank of the place after the last instruction: lanes there have left the kernel.
EXITED = 1 << 30
#: What follows the last block of a function: the place where it was called.
RETURNED = EXITED + 1


@dataclass(slots=True, eq=False)
class Operation:
    """One instruction bound to a machine: `run(group)` does it; `guard` reads its predicate."""

    statement: syntax.Instruction
    kind: Literal["plain", "gate", "end"]
    run: Callable[..., Any]
    guard: Reader | None
    reads: frozenset[int]
    writes: frozenset[int]
    #: The same for the check of registers that nothing has written, and what the guard reads.
    use: Use
    guard_reads: frozenset[int]
    names: Names


@dataclass(slots=True)
class Block:
    """Instructions that run one after the other. Only the first may be a gate, only the last an end.

    `following` is the rank of the block after it in the text, `targets` those of its branch.
    """

    operations: list[Operation] = field(default_factory=list)
    following: int = EXITED
    targets: list[int] = field(default_factory=list)
    aligned: bool = False
    """Whether it has an instruction that wants all threads of the warp (.aligned, bar)."""
    strong: bool = False
    """Whether it has strong accesses."""
    separable: bool = False
    """Whether lanes may do it apart, for the sake of its strong accesses: it does not want all threads of the warp, nor
    lead back, so that those who come first wait for the others.
    """


@dataclass(slots=True)
class _Line:
    """An instruction of the body with the names of its scope, before blocks are made."""

    statement: syntax.Instruction
    names: Names
    meaning: Meaning | None = None
    instruction: Instruction | None = None
    missing: str = ""


@dataclass(slots=True, eq=False)
class _Body:
    """A function: its names, its lines (`end` is the None behind them), and its registers as far as they are used."""

    function: syntax.Function
    names: Names
    start: int
    end: int
    registers: list[NDArray[Any]]


class Program:
    """A kernel's blocks, by rank: the lower of two divergent places runs first."""

    def __init__(
        self, kernel: Kernel, functions: Sequence[syntax.Function], variables: Variables, machine: Machine
    ) -> None:
        self.machine = machine
        self._variables = variables
        #: The lines of all bodies, one after the other; None stands for the end of each.
        self._lines: list[_Line | None] = []
        self.calls = Calls(machine)
        outer = self._module_names(kernel.module)
        self._bodies = [self._body(function, outer) for function in functions]
        for info in kernel.parameters:
            self._bodies[0].names.places[info.name] = Place("param", info.offset, info.size)
        for line in self._lines:
            if line is not None:
                self._recognize(line, kernel.recognized)
        #: The rank of the block in which threads begin.
        self.entry = 0
        self.blocks = self._make_blocks()
        operations = [operation for block in self.blocks for operation in block.operations]
        moves = [operation for operation in operations if is_move(operation.statement)]
        machine.warpgroups.follow_copies([(o.reads, o.writes) for o in moves])
        if machine.ordering is not None:
            self._watch_registers()
        for operation in moves if machine.ordering is None else operations:  # moves wait for accumulators
            operation.run = machine.warpgroups.watched(
                operation.run, operation.reads, operation.writes, operation.statement
            )

    def _module_names(self, module: syntax.Module) -> Names:
        """The names that all functions of a module know."""
        names = Names(None, Scope())
        names.places.update(self.machine.image.places)
        for item in module.items:
            declare(names.scope, item)
            names.places.update(self._variables.of(item))
        return names

    def _body(self, function: syntax.Function, outer: Names) -> _Body:
        """Read the body of a function: its lines, and the registers that it has."""
        names = Names(outer, Scope(outer.scope))
        declare_parameters(names.scope, function)
        names.places.update(self._variables.of(function))
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
        declare_labels(names.scope, block.statements)
        for statement in block.statements:
            if isinstance(statement, syntax.RegisterDeclaration):
                self._declare(names, statement.declarators, statement.type, statement.vector)
            elif isinstance(statement, syntax.Variable):
                names.places.update(self._variables.of(statement))
                names.places.update(self.machine.image.of(statement))
            if not isinstance(statement, syntax.Label):
                declare(names.scope, statement)
        for index, statement in enumerate(block.statements):
            if isinstance(statement, syntax.Label):
                behind = list_behind(block.statements, index)
                if behind is None:
                    names.labels[statement.name] = len(self._lines)
                elif isinstance(behind, syntax.Directive):
                    names.lists[statement.name] = list(names_in(behind))
            elif isinstance(statement, syntax.Block):
                self._read(statement, Names(names, Scope(names.scope)))
            elif isinstance(statement, syntax.Instruction):
                self._lines.append(_Line(statement, names))

    def _declare(self, names: Names, declared: Iterable[tuple[str, int | None]], type: str, vector: int | None) -> None:
        kind = TYPES.get(type)
        if kind is None:
            return  # the use of such a register ends as incomplete

        def make() -> NDArray[Any]:
            shape = (self.machine.warps, 32, 2) if kind.bits == 128 else (self.machine.warps, 32)
            made = np.zeros(shape, _UNSIGNED[kind.bits])
            self.machine.add_register(made)
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

    def _recognize(self, line: _Line, known: dict[int, Instruction | Unrecognized]) -> None:
        found = known.get(id(line.statement))
        if found is None:
            found = known[id(line.statement)] = recognize(line.statement, line.names.scope)
        if isinstance(found, Unrecognized):
            line.missing = found.problems[0].message
            return
        line.instruction = found
        line.meaning = find(type(found))
        if line.meaning is None:
            line.missing = f"the emulator has no meaning for {found.form.key} yet"
        elif line.meaning.kind == "end" and None in self._labels(line):
            line.meaning, line.missing = None, f"a label of {line.statement.text} is not there"

    # Blocks.

    def _make_blocks(self) -> list[Block]:
        """Blocks in the order of execution: of functions those called first, so that their callers wait for them."""
        names, recursive = callees_first([body.function for body in self._bodies])
        bodies = {body.function.name: body for body in self._bodies}
        order: list[tuple[int, int, _Body]] = []
        ranks: dict[int, int] = {}
        for name in names:
            starts, successors = self._graph(bodies[name])
            ends = [*starts[1:], starts[-1]]
            for position in execution_order(successors):
                ranks[starts[position]] = len(order)
                order.append((starts[position], ends[position], bodies[name]))
        self.entry = ranks[self._bodies[0].start]
        for body in self._bodies[1:]:
            callee = Callee(body.function, body.names, self._variables.frames[body.function.name], ranks[body.start])
            self.calls.callees[body.function.name] = callee
        blocks = [self._block(start, end, body, ranks) for start, end, body in order]
        for rank, block in enumerate(blocks):
            forward = min([block.following, *block.targets]) > rank
            calls = bool(block.operations) and block.operations[-1].statement.opcode.startswith("call")
            block.separable = block.strong and forward and not calls and not block.aligned
        for name in recursive:
            self.calls.callees[name].saved.extend(bodies[name].registers)
        return blocks

    def _graph(self, body: _Body) -> tuple[list[int], list[list[int]]]:
        """Where the blocks of a body start, the last at its end, and which follow each."""
        leaders = {body.start, body.end}  # the last block is empty: lanes that come there leave
        for index in range(body.start, body.end):
            line = self._lines[index]
            assert line is not None
            kind = line.meaning.kind if line.meaning else "plain"
            if kind == "gate":
                leaders.add(index)
            elif kind == "end":
                leaders.add(index + 1)
                leaders.update(target for target in self._labels(line) if target is not None)
        # Labels inside a block begin none unless a branch goes there.
        starts = sorted(leaders)
        number = {start: position for position, start in enumerate(starts)}
        successors: list[list[int]] = []
        for end in starts[1:]:
            line = self._lines[end - 1]
            assert line is not None
            edges = [number[end]] if self._falls_through(line) else []
            successors.append(edges + [number[target] for target in self._labels(line) if target is not None])
        return starts, [*successors, []]

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
        block.aligned = any(_wants_whole_warp(operation.statement.opcode) for operation in block.operations)
        return block

    def _labels(self, line: _Line) -> list[int | None]:
        """Where a branch may go; None is a label that is not there."""
        if line.instruction is None or line.meaning is None or line.meaning.kind != "end":
            return []
        label, labels = (getattr(line.instruction, name, None) for name in ("target", "labels"))
        if label is not None:
            return [line.names.label(str(label))]
        if labels is None:
            return []
        names = line.names.list(str(labels))
        return [None] if names is None else [line.names.label(name) for name in names]

    @staticmethod
    def _falls_through(line: _Line) -> bool:
        unconditional = line.meaning is not None and line.meaning.leaves and line.statement.guard is None
        return not unconditional

    def _bind(self, line: _Line, block: Block, in_entry: bool) -> Operation:
        binder = Binder(self.machine, line.names, in_entry, self.calls, block.targets, block.following)
        statement = line.statement
        guard: Reader | None = None
        guard_reads: frozenset[int] = frozenset()
        kind: Literal["plain", "gate", "end"] = "plain"
        run: Callable[..., Any]
        try:
            if statement.guard is not None:
                name = syntax.Name(statement.guard.register)
                guard = binder.predicate(syntax.Negation(name) if statement.guard.negated else name)
                guard_reads = frozenset(binder.reads)
            if line.meaning is None or line.instruction is None:
                run = self._incomplete(statement, line.missing)
            else:
                kind = line.meaning.kind
                run = line.meaning.bind(line.instruction, binder, statement)
        except Unmodelled as missing:
            kind, run = "plain", self._incomplete(statement, f"the emulator does not model {missing} here")
        reads, writes, touched, vital = map(frozenset, (binder.reads, binder.writes, binder.touched, binder.vital))
        block.strong = block.strong or binder.strong
        stores = statement.opcode.startswith(("st.", "atom.", "red."))
        use = Use(
            reads | binder.inputs, writes | touched, vital, guard is not None, stores,
            frozenset(binder.adds), binder.if_true, is_lanewise(statement.opcode), binder.lanes, binder.quarters,
        )  # fmt: skip
        return Operation(statement, kind, run, guard, reads, writes, use, guard_reads, line.names)

    def _watch_registers(self) -> None:
        """Follow the registers that may be read before they are written."""
        entries = {self.entry: frozenset[int]()}
        for callee in self.calls.callees.values():
            named = (*callee.function.parameters, *callee.function.returns)
            entries[callee.rank] = frozenset(id(callee.names(each.name)) for each in named)
        by_block = [[operation.use for operation in block.operations] for block in self.blocks]
        here = range(len(self.blocks))
        successors = [[rank for rank in (block.following, *block.targets) if rank in here] for block in self.blocks]
        followed = never_sure(by_block, successors, entries)
        if not followed:
            return
        operations = [operation for block in self.blocks for operation in block.operations]
        recursive = any(callee.saved for callee in self.calls.callees.values())
        uses = [operation.use for operation in operations]
        unwritten = Unwritten(self.machine, followed, uses, recursive=recursive)
        for operation in operations:
            statement, names = operation.statement, operation.names
            if operation.guard is not None:
                operation.guard = unwritten.watched_guard(operation.guard, operation.guard_reads, statement, names)
            use = replace(operation.use, reads=operation.use.reads - operation.guard_reads)
            operation.run = unwritten.watched(operation.run, use, statement, names)

    def _incomplete(self, statement: syntax.Instruction, message: str) -> Callable[[Group], None]:
        def run(group: Group) -> None:
            raise Incomplete(statement, message)

        return run


def _wants_whole_warp(opcode: str) -> bool:
    return ".aligned" in opcode or opcode.startswith(("bar.sync", "bar.cta.sync"))


class Incomplete(Exception):
    """The kernel reached something that the emulator does not model."""

    def __init__(self, statement: syntax.Instruction | None, message: str) -> None:
        self.statement = statement
        super().__init__(message)
