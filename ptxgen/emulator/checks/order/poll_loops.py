"""Whether the loop around a poll would end too with another value than the one that it reads.

A waiter that waits for fewer signals than there are passes with the value before the last signal as well as with the
last one. Whether it does follows from the instructions between the load and the branch that ends its loop: they are
executed on the registers of its lanes with the other value, and what they write is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.load.flow import innermost_loop
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.group import Group
from ptxgen.syntax import Instruction

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, Program
    from ptxgen.emulator.observer import MachineView, ProgramView
    from ptxgen.emulator.state.machine import Machine

#: Instructions that are looked at between a poll and the end of its loop.
_MANY = 64
#: Opcodes of extended arithmetic, whose carry is no register of the program.
_CARRIES = re.compile(r"\.cc\b|^(addc|subc|madc)\b")
#: Opcodes of loads of signed values.
_SIGNED = re.compile(r"\.s(8|16|32|64)$")


class _Loop(NamedTuple):
    """The loop around a poll: its blocks by rank, and where the instruction after the poll is, (rank, number)."""

    blocks: frozenset[int]
    begin: tuple[int, int]
    #: The register that the poll writes.
    register: int


class Missed(NamedTuple):
    """A loop that polls in a line has ended without a signal of other warps (`HappensBefore.actors`)."""

    line: int
    writers: frozenset[int]
    store_line: int


class PollLoops(Observer):
    """The loops of a launch that poll memory by strong loads or atomic operations."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: By CTA of the warps that poll (`HappensBefore.actors` by the warps of a CTA).
        self._missed: dict[int, dict[Missed, None]] = {}
        self._program: Program | None = None
        #: By poll; None of what is in no loop, or writes several registers.
        self._loops: dict[Instruction, _Loop | None] = {}
        #: By poll, what `is_local` says; by instruction, what `uses_result` says.
        self._local: dict[Instruction, bool] = {}
        self._used: dict[Instruction, bool] = {}
        #: By poll, what `is_one_of_several` says.
        self._shared: dict[Instruction, bool] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._program = program  # type: ignore[assignment]

    def ends(self, poll: Instruction, warp: int, lanes: NDArray[np.bool_], value: NDArray[np.uint8]) -> bool:
        """Whether all of these lanes (32) of a warp leave the loop around a poll by a branch that depends on it, if it
        gives them the bytes of `value`; False where that does not follow from registers alone.
        """
        if poll not in self._loops:
            self._loops[poll] = self._around(poll)
        loop = self._loops[poll]
        if loop is None:
            return False
        held = self._machine.registers[loop.register]
        saved: dict[int, NDArray[np.generic]] = {}
        if held.ndim != 2 or held.dtype.itemsize < len(value):
            return False
        group = Group(self._machine, np.array([warp]), None if all_set(lanes) else lanes[None])
        try:
            self._save(loop.register, warp, saved)
            held[warp, lanes] = _extended(value, held.dtype, poll.opcode)
            return self._leaves(loop, group, warp, saved)
        finally:
            for index, row in saved.items():
                self._machine.registers[index][warp] = row

    def is_local(self, poll: Instruction) -> bool:
        """Whether what a poll reads, and what is computed from it, serves in its loop alone."""
        if poll not in self._local:
            self._local[poll] = self._stays(poll)
        return self._local[poll]

    def _stays(self, poll: Instruction) -> bool:
        loop = self._loops[poll] if poll in self._loops else self._around(poll)
        if loop is None or self._program is None:
            return False
        made = self._made_of(loop)
        return all(
            rank in loop.blocks or made.isdisjoint(operation.reads | operation.guard_reads)
            for rank, _, operation in self._operations()
        )

    def _made_of(self, loop: _Loop) -> set[int]:
        """The registers that the poll of a loop writes, and those that the loop computes from them."""
        assert self._program is not None
        made, before = {loop.register}, 0
        while before < len(made):
            before = len(made)
            for rank in loop.blocks:
                for operation in self._program.blocks[rank].operations:
                    if not made.isdisjoint(operation.reads):
                        made |= operation.writes
        return made

    def is_one_of_several(self, poll: Instruction) -> bool:
        """Whether the loop around a poll makes other strong loads, too: each alone may not decide whether it ends.

        Not of a load on which no branch of the loop depends, such as one of a sum.
        """
        if poll not in self._shared:
            loop = self._loops[poll] if poll in self._loops else self._around(poll)
            self._shared[poll] = (
                loop is not None
                and self._decides(loop)
                and any(
                    operation.statement is not poll and _is_strong_load(operation.statement.opcode)
                    for rank, _, operation in self._operations()
                    if rank in loop.blocks
                )
            )
        return self._shared[poll]

    def _decides(self, loop: _Loop) -> bool:
        """Whether a branch of a loop depends on what its poll reads."""
        assert self._program is not None
        made = self._made_of(loop)
        return any(
            operation.traits is not None
            and operation.traits.control == "branch"
            and not made.isdisjoint(operation.guard_reads)
            for rank in loop.blocks
            for operation in self._program.blocks[rank].operations
        )

    def uses_result(self, statement: Instruction) -> bool:
        """Whether any instruction reads what an instruction writes to registers."""
        if statement not in self._used:
            written = {
                index
                for _, _, operation in self._operations()
                if operation.statement is statement
                for index in operation.writes
            }
            self._used[statement] = any(
                not written.isdisjoint(operation.reads | operation.guard_reads)
                for _, _, operation in self._operations()
            )
        return self._used[statement]

    def passed(self, actor: int, line: int, writers: Iterable[int], store_line: int) -> None:
        """A warp's poll has found the value before a signal, which ends its loop too."""
        found = self._missed.setdefault(actor // self._machine.warps_per_cta, {})
        if len(found) < _MANY:
            found[Missed(line, frozenset(writers), store_line)] = None

    def missed(self, reader: int, writer: int) -> Missed | None:
        """The signal after what `writer` stores for which no poll of the reader's CTA has waited, if there is one."""
        per_cta = self._machine.warps_per_cta
        near = reader // per_cta == writer // per_cta
        for each in self._missed.get(reader // per_cta, ()):
            if writer in each.writers or (
                not near and any(one // per_cta == writer // per_cta for one in each.writers)
            ):
                return each
        return None

    def _save(self, index: int, warp: int, saved: dict[int, NDArray[np.generic]]) -> None:
        if index not in saved:
            saved[index] = self._machine.registers[index][warp].copy()

    def _leaves(self, loop: _Loop, group: Group, warp: int, saved: dict[int, NDArray[np.generic]]) -> bool:
        """Whether a group leaves a loop before it polls again; the registers that it writes are `saved` before."""
        assert self._program is not None
        blocks, rank, first = self._program.blocks, *loop.begin
        made, steps = {loop.register}, 0  # registers that depend on what the poll reads
        while True:
            block, decides = blocks[rank], False
            goes = block.following
            for operation in block.operations[first:]:
                steps += 1
                traits = operation.traits
                if traits is None or steps > _MANY:
                    return False
                depends = not made.isdisjoint(operation.reads | operation.guard_reads)
                decides |= depends and traits.control == "branch"
                if depends:
                    made |= operation.writes
                elif operation.guard is None:
                    made -= operation.writes
                acting = group
                if operation.guard is not None:
                    chosen = group.narrowed(group.full(operation.guard(group)))
                    if chosen is None:
                        continue
                    acting = chosen
                if traits.control == "branch" and len(block.targets) == 1:
                    if acting.active.sum() != group.active.sum():
                        return False  # some lanes branch, others do not
                    goes = block.targets[0]
                elif not _only_computes(operation):
                    return False
                else:
                    for index in operation.writes:
                        self._save(index, warp, saved)
                    operation.run(acting)
            if goes not in loop.blocks:
                return decides
            rank, first = goes, 0
            if rank == loop.begin[0]:
                return False

    def _around(self, poll: Instruction) -> _Loop | None:
        for rank, number, operation in self._operations():
            if operation.statement is poll:
                blocks = innermost_loop(self._program.successors, rank) if self._program is not None else ()
                if not blocks or len(operation.writes) != 1:
                    return None
                return _Loop(blocks, (rank, number + 1), next(iter(operation.writes)))
        return None

    def _operations(self) -> Iterator[tuple[int, int, Operation]]:
        for rank, block in enumerate(self._program.blocks if self._program is not None else ()):
            for number, operation in enumerate(block.operations):
                yield rank, number, operation


def _is_strong_load(opcode: str) -> bool:
    return opcode.startswith(("ld.volatile.", "ld.relaxed.", "ld.acquire."))


def _only_computes(operation: Operation) -> bool:
    """Whether an instruction does nothing but write registers of its lanes."""
    traits, opcode = operation.traits, operation.statement.opcode
    if traits is None or operation.kind != "plain" or _CARRIES.search(opcode):
        return False
    return traits.lanewise or traits.move or opcode.startswith("nanosleep")


def _extended(value: NDArray[np.uint8], dtype: np.dtype[np.generic], opcode: str) -> np.generic:
    """Loaded bytes as a word of a register, as wide or wider."""
    number = int.from_bytes(value.tobytes(), "little", signed=_SIGNED.search(opcode) is not None)
    return dtype.type(number & ((1 << 8 * dtype.itemsize) - 1))
