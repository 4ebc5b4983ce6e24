"""From a parsed kernel to executable blocks: names resolved, instructions recognised, meanings bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.device import Kernel
from ptxgen.emulator.flow import execution_order
from ptxgen.emulator.memory.global_memory import POISON_BYTE
from ptxgen.emulator.registers import _UNSIGNED, Binder, Reader, Unmodelled
from ptxgen.emulator.semantics import Meaning, find
from ptxgen.emulator.variables import Place, Variables
from ptxgen.instr.form import Instruction
from ptxgen.instr.recognise import Unrecognised, recognise
from ptxgen.instr.scope import Scope, declare, declare_labels, declare_parameters
from ptxgen.instr.types import TYPES

if TYPE_CHECKING:
    from ptxgen.emulator.group import Group
    from ptxgen.emulator.machine import Machine

#: Rank of the place after the last instruction: lanes there have left the kernel.
EXITED = 1 << 30


@dataclass(slots=True, eq=False)
class Operation:
    """One instruction bound to a machine: `run(group)` does it; `guard` reads its predicate."""

    statement: syntax.Instruction
    kind: Literal["plain", "gate", "end"]
    run: Callable[..., Any]
    guard: Reader | None
    reads: frozenset[int]
    writes: frozenset[int]


@dataclass(slots=True)
class Block:
    """Instructions that run one after the other. Only the first may be a gate, only the last an end.

    `following` is the rank of the block after it in the text, `target` that of its branch.
    """

    operations: list[Operation] = field(default_factory=list)
    following: int = EXITED
    target: int = EXITED
    aligned: bool = False
    """Whether it has an instruction that wants all threads of the warp (.aligned, bar)."""


@dataclass(slots=True)
class _Line:
    """An instruction of the body with the names of its scope, before blocks are made."""

    statement: syntax.Instruction
    names: _Names
    meaning: Meaning | None = None
    instruction: Instruction | None = None
    missing: str = ""


class _Names:
    """Registers, variables and labels of a scope; labels map to instruction indexes."""

    def __init__(self, outer: _Names | None, scope: Scope) -> None:
        self.outer = outer
        #: What `ptxgen.check` resolves names with.
        self.scope = scope
        self.registers: dict[str, NDArray[Any]] = {}
        self.ranges: dict[str, tuple[int, Callable[[], NDArray[Any]]]] = {}
        self.places: dict[str, Place] = {}
        self.labels: dict[str, int] = {}

    def __call__(self, name: str) -> NDArray[Any] | Place | None:
        scope: _Names | None = self
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        while scope is not None:
            found = scope.registers.get(name)
            if found is not None:
                return found
            numbered = scope.ranges.get(prefix)
            if numbered and 0 < len(number) < 12 and int(number) < numbered[0]:
                made = scope.registers[name] = numbered[1]()
                return made
            place = scope.places.get(name)
            if place is not None:
                return place
            scope = scope.outer
        return None

    def label(self, name: str) -> int | None:
        scope: _Names | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.outer
        return None


class Program:
    """A kernel's blocks, by rank: the lower of two divergent places runs first."""

    def __init__(self, kernel: Kernel, variables: Variables, machine: Machine) -> None:
        self.machine = machine
        self._variables = variables
        self._lines: list[_Line] = []
        outer = self._module_names(kernel.module)
        names = _Names(outer, Scope(outer.scope))
        declare_parameters(names.scope, kernel.entry)
        for info in kernel.parameters:
            names.places[info.name] = Place("param", info.offset, info.size)
        assert kernel.entry.body is not None
        self._read(kernel.entry.body, names)
        for line in self._lines:
            self._recognise(line)
        self.blocks = self._make_blocks()
        if machine.ordering is not None:
            for operation in (operation for block in self.blocks for operation in block.operations):
                operation.run = machine.warpgroups.watched(
                    operation.run, operation.reads, operation.writes, operation.statement
                )

    def _module_names(self, module: syntax.Module) -> _Names:
        """The names that all functions of a module know."""
        names = _Names(None, Scope())
        names.places.update(self.machine.image.places)
        for item in module.items:
            declare(names.scope, item)
            names.places.update(self._variables.of(item))
        return names

    def _read(self, block: syntax.Block, names: _Names) -> None:
        declare_labels(names.scope, block.statements)
        for statement in block.statements:
            if isinstance(statement, syntax.RegisterDeclaration):
                self._declare(names, statement)
            elif isinstance(statement, syntax.Variable):
                names.places.update(self._variables.of(statement))
            if not isinstance(statement, syntax.Label):
                declare(names.scope, statement)
        for statement in block.statements:
            if isinstance(statement, syntax.Label):
                names.labels[statement.name] = len(self._lines)
            elif isinstance(statement, syntax.Block):
                self._read(statement, _Names(names, Scope(names.scope)))
            elif isinstance(statement, syntax.Instruction):
                self._lines.append(_Line(statement, names))

    def _declare(self, names: _Names, statement: syntax.RegisterDeclaration) -> None:
        kind = TYPES.get(statement.type)
        if kind is None or statement.vector:
            return  # the use of such a register ends as incomplete

        def make() -> NDArray[Any]:
            shape = (self.machine.warps, 32, 2) if kind.bits == 128 else (self.machine.warps, 32)
            made = np.zeros(shape, _UNSIGNED[kind.bits])
            if kind.bits > 1:
                made.view(np.uint8)[...] = POISON_BYTE
            self.machine.registers.append(made)
            return made

        for name, count in statement.declarators:
            if count is None:
                names.registers[name] = make()
            else:
                names.ranges[name] = (count, make)

    def _recognise(self, line: _Line) -> None:
        found = recognise(line.statement, line.names.scope)
        if isinstance(found, Unrecognised):
            line.missing = found.problems[0].message
            return
        line.instruction = found
        line.meaning = find(type(found))
        if line.meaning is None:
            line.missing = f"the emulator has no meaning for {found.form.key} yet"
        elif line.meaning.kind == "end" and hasattr(found, "target") and self._target(line) is None:
            line.meaning, line.missing = None, f"there is no label {vars(found)['target']}"

    # Blocks.

    def _make_blocks(self) -> list[Block]:
        lines = self._lines
        leaders = {0, len(lines)}  # the last block is empty: lanes that come there leave
        for index, line in enumerate(lines):
            kind = line.meaning.kind if line.meaning else "plain"
            if kind == "gate":
                leaders.add(index)
            elif kind == "end":
                leaders.add(index + 1)
                target = self._target(line)
                if target is not None:
                    leaders.add(target)
        starts = sorted(leaders)
        # Labels inside a block begin none unless a branch goes there.
        ends = [*starts[1:], len(lines)]
        number = {start: position for position, start in enumerate(starts)}
        successors: list[list[int]] = []
        for start, end in zip(starts, ends, strict=True):
            edges: list[int] = []
            if start < end:
                last = lines[end - 1]
                target = self._target(last)
                if self._falls_through(last):
                    edges.append(number[end])
                if target is not None:
                    edges.append(number[target])
            successors.append(edges)
        order = execution_order(successors)
        rank = {position: place for place, position in enumerate(order)}
        blocks: list[Block] = []
        for position in order:
            start, end = starts[position], ends[position]
            block = Block()
            if start < end:
                block.following = rank[number[end]]
                target = self._target(lines[end - 1])
                if target is not None:
                    block.target = rank[number[target]]
            block.operations = [self._bind(line, block) for line in lines[start:end]]
            block.aligned = any(_wants_whole_warp(operation.statement.opcode) for operation in block.operations)
            blocks.append(block)
        return blocks

    def _target(self, line: _Line) -> int | None:
        if line.instruction is None or line.meaning is None or line.meaning.kind != "end":
            return None
        label = getattr(line.instruction, "target", None)
        return line.names.label(str(label)) if label is not None else None

    @staticmethod
    def _falls_through(line: _Line) -> bool:
        unconditional = line.meaning is not None and line.meaning.leaves and line.statement.guard is None
        return not unconditional

    def _bind(self, line: _Line, block: Block) -> Operation:
        binder = Binder(self.machine, line.names)
        statement = line.statement
        guard: Reader | None = None
        kind: Literal["plain", "gate", "end"] = "plain"
        run: Callable[..., Any]
        try:
            if statement.guard is not None:
                name = syntax.Name(statement.guard.register)
                guard = binder.predicate(syntax.Negation(name) if statement.guard.negated else name)
            if line.meaning is None or line.instruction is None:
                run = self._incomplete(statement, line.missing)
            else:
                kind = line.meaning.kind
                run = line.meaning.bind(line.instruction, binder, statement, block)
        except Unmodelled as missing:
            kind, run = "plain", self._incomplete(statement, f"the emulator does not model {missing} here")
        return Operation(statement, kind, run, guard, frozenset(binder.reads), frozenset(binder.writes))

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
