"""Matrix descriptors that take an MMA out of the variable in which its operand begins.

A variable that is only the base of more memory bounds nothing: JAX's Mosaic GPU declares one byte,
`__dynamic_shmem__0`, and begins its dynamic shared memory there. Such are the last variable where the launch has
dynamic shared memory after it, any variable that a copy has filled past its end, and any to whose address the program
adds its size or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.shared_names import SharedPart
from ptxgen.emulator.load.variables import Location
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observer import MachineView, Observer, ProgramView
from ptxgen.syntax import Address, Immediate, Name

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, Program

_PRODUCTS = frozenset(["tcgen05.mma", "wgmma.mma_async"])


class OperandRegions(Observer):
    """Compares the bytes that MMAs read with the variables and regions of shared memory.

    `parts` are those that bound what begins in them (`SharedNames.bounding`).
    """

    def __init__(self, parts: Sequence[SharedPart], findings: Findings) -> None:
        self._parts, self._findings = list(parts), findings
        #: First and last bytes of operands that lie in one part.
        self._right: set[tuple[int, int]] = set()
        self._program: Program | None = None

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        if self._parts:
            self._program = program  # type: ignore[assignment]

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        if len(granules) and self._parts:
            first, last = (int(each.reduce(granules)) * GRANULE for each in (np.minimum, np.maximum))
            self._parts = [each for each in self._parts if not each.start <= first < each.start + each.size <= last]

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        if work.what not in _PRODUCTS or not len(granules):
            return
        first, last = int(granules.min()) * GRANULE, int(granules.max()) * GRANULE + GRANULE - 1
        if (first, last) in self._right:
            return
        if self._program is not None:  # the first operand: only now does the text matter
            passed, self._program = _passed(self._program), None
            self._parts = [each for each in self._parts if passed.get(each.start, 0) < each.size]
        begins = [each for each in self._parts if each.start <= first < each.start + each.size]
        if not begins or any(last < each.start + each.size for each in begins):
            self._right.add((first, last))
            return
        part = min(begins, key=lambda each: each.size)
        reader = self._findings.access("reader", work.statement, work.warp, slot=slot, space="shared", address=first)
        self._findings.report(
            descriptors.OPERAND_REGION,
            work.statement,
            summary=f"{reader} reads an operand from {first:#x} to {last:#x}, which begins in {part.name}",
            rule=f"{part.name} ends at {part.start + part.size - 1:#x}; the rest is "
            f"{self._findings.name('shared', part.start + part.size)}",
            accesses=(reader,),
            cause=frozenset([causes.past_operand(work.statement.line)]),
        )


class _Passed(dict[int, int]):
    """What `_passed` finds in a program, which keeps it for later launches."""


def _passed(program: Program) -> _Passed:
    """The largest number that the program adds to the address of each shared variable, by its start."""
    known = program.found.get(_Passed)
    if isinstance(known, _Passed):
        return known
    bases: dict[int, tuple[int, int]] = {}
    found = program.found[_Passed] = _Passed()
    for operation in (each for block in program.blocks for each in block.operations):
        for operand in operation.statement.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Name):
                _note(found, _place(operation, operand.base, bases), operand.offset)
        if (sum := _sum(operation, bases)) is not None:
            (register,) = operation.writes
            bases[register] = sum
            _note(found, sum, 0)
    return found


def _note(found: dict[int, int], place: tuple[int, int] | None, offset: int) -> None:
    if place is not None:
        start, past = place
        found[start] = max(found.get(start, 0), past + offset)


def _place(operation: Operation, name: Name, bases: dict[int, tuple[int, int]]) -> tuple[int, int] | None:
    """The start of the shared variable that a name stands for, and how far past it; None for any other name."""
    what = operation.names(name.text)
    if isinstance(what, Register):
        return bases.get(what.index)
    return (what.address, 0) if isinstance(what, Location) and what.space == "shared" and what.size else None


def _sum(operation: Operation, bases: dict[int, tuple[int, int]]) -> tuple[int, int] | None:
    """The same for what an instruction copies, or makes by adding a number to it."""
    name, terms = operation.statement.opcode.split(".")[0], operation.statement.operands[1:]
    if name not in ("mov", "cvta", "cvt", "add") or len(operation.writes) != 1:
        return None
    if not terms or not isinstance(terms[0], Name):
        return None
    place = _place(operation, terms[0], bases)
    if place is None or name != "add":
        return place
    return (place[0], place[1] + int(terms[1].value)) if isinstance(terms[1], Immediate) else None
