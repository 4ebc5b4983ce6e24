"""Registers that are read before anything is written to them.

Most registers are written on every path to where they are read, as the program's text shows. Only the others are
tracked while it runs. As an address or a guard such a value is an error. Elsewhere compilers pass on values that do
not matter: Triton's reductions shuffle registers that only some lanes have loaded. Then a rerun shows whether results
depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Finding
from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks.registry import uninitialized
from ptxgen.emulator.checks.uninitialized.taint import Taint
from ptxgen.emulator.load.operands import constant
from ptxgen.emulator.load.register_use import Use
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import Immediate, Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, RegisterFlow
    from ptxgen.emulator.state.group import Group
    from ptxgen.emulator.state.machine import Machine

_WORD = re.compile(r"[%$\w]+")
_WRITTEN = np.array(True)
_EQUALITY = re.compile(r"setp\.(equ?|neu?)\.")


@dataclass(slots=True)
class _Read:
    """A read of a tracked register by a statement, whose scope has `names`: in which lanes it is `written`."""

    register: int
    written: NDArray[np.bool_]
    statement: Statement
    names: Callable[[str], Any]

    @property
    def name(self) -> str:
        """Its name for messages."""
        words = _WORD.findall(self.statement.text)
        return next((word for word in words if _is_register(self.names(word), self.register)), "a register")


def _unwritten(written: NDArray[np.bool_], g: Group) -> bool:
    """Whether any lane of a group has not written a register."""
    here = written[g.warps]
    return count_nonzero(here) != here.size and any_set(g.active & ~here)


class Unwritten:
    """Tracks which lanes have written some registers, and reports reads of the others."""

    def __init__(self, machine: Machine, flow: RegisterFlow) -> None:
        self._machine = machine
        self._writers = flow.writers
        # Registers that the same instructions write, as those of an accumulator, are followed together.
        together: dict[frozenset[int], NDArray[np.bool_]] = {}
        for register in flow.followed:
            together.setdefault(flow.writers[register], np.zeros((machine.warps, 32), np.bool_))
        self._written = {register: together[flow.writers[register]] for register in flow.followed}
        # Registers are emptied for each CTA, and so are these.
        machine.registers.extend(together.values())
        self._taint = Taint(machine, flow.tainted, self._written, recursive=flow.recursive)
        self._flow = flow

    def watch(self, operation: Operation) -> Operation:
        """An instruction that reports what it reads too early, and marks what it writes."""
        if not self._flow.touches(operation.use):
            return operation
        statement, names, guard = operation.statement, operation.names, operation.guard
        if guard is not None:
            guard = self.watched_guard(guard, operation.guard_reads, statement, names)
        use = operation.use
        if operation.guard_reads:
            use = replace(use, reads=use.reads - operation.guard_reads)
        run = self.watched(operation.run, use, statement, names)
        if run is operation.run and guard is operation.guard:
            return operation
        return replace(operation, guard=guard, run=run)

    def watched(
        self, run: Callable[..., Any], use: Use, statement: Statement, names: Callable[[str], Any]
    ) -> Callable[..., Any]:
        """An instruction's `run` that reports what it reads too early, and marks what it writes."""
        run = self._taint.watched(run, use)
        vital = self._reads(use.vital, statement, names)
        others = self._reads(use.reads - use.vital, statement, names)
        added = self._reads(use.adds, statement, names)
        # Each array once: registers that are written together have one.
        arrays = {id(self._written[each]): self._written[each] for each in use.writes & self._written.keys()}
        writes = list(arrays.values())
        if not (vital or others or added or writes):
            return run

        def watched(g: Group, *rest: Any) -> Any:
            for read in vital:
                if _unwritten(read.written, g):
                    self._report(read, g, statement)
            for read in tuple(others):
                if _unwritten(read.written, g):
                    self._suspect(read, use, g, statement)
                    others.remove(read)  # one report is enough
            if added:
                adding = g.active & use.if_true(g) if use.if_true is not None else g.active
                for read in list(added):
                    if any_set(adding & ~read.written[g.warps]):
                        self._suspect(read, use, g, statement)
                        added.remove(read)
            result = run(g, *rest)
            for array in writes:
                g.store(array, _WRITTEN)
            return result

        return watched

    def watched_guard(
        self, guard: Callable[..., Any], use: frozenset[int], statement: Statement, names: Callable[[str], Any]
    ) -> Callable[..., Any]:
        """Check a guard, which all lanes that reach the instruction read."""
        guard = self._taint.watched_guard(guard, use)
        reads = self._reads(use, statement, names)
        if not reads:
            return guard

        def watched(g: Group) -> Any:
            for read in reads:
                if _unwritten(read.written, g):
                    self._report(read, g, statement)
            return guard(g)

        return watched

    def _report(self, read: _Read, g: Group, statement: Statement) -> None:
        found = self._found(read, g, statement, "An address or a guard must not depend on it")
        self._machine.findings.keep(found, cause=("register", read.name))

    def _suspect(self, read: _Read, use: Use, g: Group, statement: Statement) -> None:
        plain = use.stores or not self._writers[read.register]
        found = self._found(read, g, statement, "Nothing has written it")
        suspects = self._machine.findings.suspects
        suspects.report(read.register, found, plain=plain, cause=("register", read.name))
        self._taint.begin()
        if (
            isinstance(statement, Instruction)
            and _EQUALITY.match(statement.opcode)
            and read.register not in suspects.compared
        ):
            value = self._compared_with(read, g, statement)
            if value is not None:
                suspects.compared[read.register] = value

    def _compared_with(self, read: _Read, g: Group, statement: Instruction) -> int | None:
        """The bits of the other operand of a comparison, in the first lane whose value is uninitialized: a rerun tries
        them, since no other bytes are equal to it.
        """
        operands, type = statement.operands[1:3], statement.opcode.rpartition(".")[2]
        others = [each for each in operands if not _is_register(read.names(str(each)), read.register)]
        if len(others) != 1 or type not in TYPES:
            return None
        if isinstance(others[0], Immediate):
            return int.from_bytes(np.asarray(constant(others[0], TYPES[type])).tobytes(), "little")
        other = read.names(str(others[0]))
        if not isinstance(other, Register):
            return None
        position, lane = np.argwhere(g.active & ~read.written[g.warps])[0].tolist()
        return int.from_bytes(self._machine.registers[other.index][g.warps][position, lane].tobytes(), "little")

    def _found(self, read: _Read, g: Group, statement: Statement, rule: str) -> Finding:
        lanes = g.active & ~read.written[g.warps]
        position = int(lanes.any(axis=1).argmax())
        bits = int(bits_of(lanes[position]))
        reader = self._machine.findings.access("reader", statement, int(g.indices[position]), lanes=bits, space="reg")
        reader = replace(reader, name=read.name)
        return uninitialized.UNINITIALIZED_REGISTER.finding(
            statement,
            summary=f"{reader} reads uninitialized register {read.name}",
            rule=rule,
            accesses=(reader,),
        )

    def _reads(self, registers: frozenset[int], statement: Statement, names: Callable[[str], Any]) -> list[_Read]:
        """The registers that are tracked."""
        if registers.isdisjoint(self._written):
            return []
        return [_Read(each, self._written[each], statement, names) for each in registers & self._written.keys()]


def _is_register(named: object, index: int) -> bool:
    return isinstance(named, Register) and named.index == index
