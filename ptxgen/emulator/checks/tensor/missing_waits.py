"""Why an access to tensor memory comes too early, and what orders it.

A schedule may issue an MMA while a warp is still between its tcgen05.st and the wait that follows: then the wait is not
what is missing, but the synchronization after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import Event, StaleWaits
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.load.program import Operation, Program

#: Instructions by which a warp gives others leave to go on.
_RELEASES = ("bar.", "barrier.", "mbarrier.arrive", "st.release", "red.release", "atom.")


#: The fix where two warps have not synchronized their accesses to tensor memory.
_SYNCHRONIZE = (
    "bar.sync or an mbarrier between line {} and line {}, with tcgen05.fence::before_thread_sync before and "
    "tcgen05.fence::after_thread_sync after it"
)


class MissingWaits:
    """What the warps of two unordered accesses have not done, and the fix."""

    def __init__(self, happens_before: HappensBefore, waits: StaleWaits, findings: Findings) -> None:
        self._happens_before, self._waits, self._findings = happens_before, waits, findings
        self._program: Program | None = None
        #: The threads (warp, lane) that have executed a tcgen05.commit, by the CTA slot and its line.
        self._commits: dict[tuple[int, int], set[tuple[int | None, int | None]]] = {}

    def launch_begins(self, program: Program) -> None:
        """A launch of a program begins."""
        self._program = program

    def committed(self, work: AsyncWork) -> None:
        """A thread executes a tcgen05.commit."""
        self._commits.setdefault((work.slot, work.statement.line), set()).add((work.warp, work.lane))

    def of_load(
        self, warp: int, reader: int, event: Event, load: Statement | None, statement: Statement
    ) -> tuple[str, str | None]:
        """Why an access of a warp is unordered with another one's load, and the fix; None: that of the check."""
        if load is None:
            return "The two warps have not synchronized since the load", None
        early = self._waits.released_early(reader, warp, event.clock)
        if early is not None:
            return (
                f"Its warp arrives on {early[0]} in line {early[1]}, before the load",
                f"mbarrier.arrive on {early[0]} after line {load.line} and tcgen05.wait::ld",
            )
        if event.clock == PENDING and not awaited_in_text(self._program, load, "tcgen05.wait::ld"):
            return "No tcgen05.wait::ld follows the load", f"tcgen05.wait::ld after line {load.line}"
        if reader == warp:
            return "The load has not completed", None
        fix = _SYNCHRONIZE.format(*sorted((load.line, statement.line)))
        return "The two warps have not synchronized since the load", fix

    def of_operation(self, warp: int, which: str, earlier: AsyncOperation, statement: Statement) -> tuple[str, str]:
        """Why an operation is not complete for the `which` warp, and the fix."""
        line, own = earlier.statement.line, earlier.warp
        if earlier.what == "tcgen05.st":
            if own is None or own == warp:
                return f"The {which} warp has not waited for the store", f"tcgen05.wait::st after line {line}"
            awaited = earlier.number in self._happens_before.observed[own].operations
            if awaited or awaited_in_text(self._program, earlier.statement, "tcgen05.wait::st"):
                return (
                    "Its warp waits for the store, but the two warps have not synchronized since",
                    _SYNCHRONIZE.format(*sorted((line, statement.line))),
                )
            return (
                "No tcgen05.wait::st of its warp follows the store",
                f"tcgen05.wait::st after line {line}, before the two warps synchronize",
            )
        early = self._waits.released_early(warp, own, full=earlier.mbarrier)
        if early is not None:
            return (
                f"The {which} warp arrives on {early[0]} in line {early[1]}, before this access: the next "
                f"{earlier.what} may begin from then on",
                f"mbarrier.arrive on {early[0]} after line {statement.line} and tcgen05.wait::ld",
            )
        missing = f"The {which} warp has not waited for the tcgen05.commit of that operation"
        if earlier.mbarrier is not None:
            name = self._findings.name("shared", earlier.mbarrier)
            return missing, f"wait for {name}, on which its tcgen05.commit arrives, before line {statement.line}"
        commit = line_in_text(self._program, earlier.statement, "tcgen05.commit")
        threads = self._commits.get((earlier.slot, commit), set()) if commit is not None else set()
        if threads - {(earlier.warp, earlier.lane)}:
            missing = (
                f"The tcgen05.commit of line {commit} is by another thread than the one that has issued the operation, "
                "and covers only what its own thread has issued"
            )
            return missing, (
                f"let the thread of line {line} execute line {commit}, and wait for its mbarrier before line "
                f"{statement.line}"
            )
        return missing, (
            f"tcgen05.commit by the issuing thread after line {line}, and a wait for its mbarrier before line "
            f"{statement.line}"
        )


def awaited_in_text(program: Program | None, access: Statement | None, wait: str) -> bool:
    """Whether an instruction `wait` ("tcgen05.wait::st") follows an access, before any release."""
    return line_in_text(program, access, wait, before=_RELEASES) is not None


def line_in_text(
    program: Program | None, access: Statement | None, opcode: str, *, before: tuple[str, ...] = ()
) -> int | None:
    """The line of the first instruction whose opcode begins so after an access, and `before` others; None: none."""
    for operation in _behind(program, access):
        if operation.statement.opcode.startswith(opcode):
            return operation.statement.line
        if before and operation.statement.opcode.startswith(before):
            return None
    return None


def _behind(program: Program | None, access: Statement | None) -> Iterator[Operation]:
    """The instructions after one, where no branch is taken."""
    if program is None or not isinstance(access, Instruction):
        return
    places = (
        (rank, index + 1)
        for rank, block in enumerate(program.blocks)
        for index, operation in enumerate(block.operations)
        if operation.statement is access
    )
    rank, index = next(places, (len(program.blocks), 0))
    seen = set[int]()
    while rank < len(program.blocks) and rank not in seen:
        seen.add(rank)
        yield from program.blocks[rank].operations[index:]
        rank, index = program.blocks[rank].following, 0
