"""The warps that use a barrier of a CTA, and their instructions. PTX ISA 9.7.13.1.

A barrier counts threads, and does not record which ones. So a warp may arrive for the next generation only after
all arrivals of the one before, and __syncthreads in a branch pairs with whichever bar.sync the other threads reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.syntax import Instruction


@dataclass(slots=True)
class _Generation:
    """The arrivals that complete a barrier once: by warp its epoch and instruction, the thread count that they name
    (None: all of the CTA), and the sites of those of a whole CTA.
    """

    clocks: dict[int, int] = field(default_factory=dict)
    statements: dict[int, Instruction] = field(default_factory=dict)
    sites: dict[int, tuple[Instruction, int]] = field(default_factory=dict)
    threads: int | None = None


class BarrierUses(Observer):
    """Compares each arrival with the generation before, and the sites of one generation; `present` (warps, 32) are the
    threads that have not exited, `live` those at launch.
    """

    def __init__(
        self, happens_before: HappensBefore, present: NDArray[np.bool_], live: NDArray[np.bool_], findings: Findings
    ) -> None:
        self._happens_before, self._present, self._live, self._findings = happens_before, present, live, findings
        #: By slot and number: the arrivals of the current generation, and those of the one before.
        self._now: dict[tuple[int, int], _Generation] = {}
        self._before: dict[tuple[int, int], _Generation] = {}

    def ctas_end(self, slots: Sequence[int]) -> None:
        for table in (self._now, self._before):
            for key in [key for key in table if key[0] in slots]:
                del table[key]

    def ctas_synchronize(
        self, slots: NDArray[np.int64], name: int, statement: Instruction, *, threads: int | None
    ) -> None:
        rows = -1, 32 * self._happens_before.warps
        exited = any_set(self._live.reshape(rows)[slots] != self._present.reshape(rows)[slots])
        whole = bool(exited) and threads is None and _is_aligned(statement)
        for slot in slots.tolist() if self._before or whole else ():
            first = slot * self._happens_before.warps
            if before := self._before.pop((slot, name), None):
                for warp in range(first, first + self._happens_before.warps):
                    self._after(warp, name, before, statement, threads)
            if whole:
                self._require_all(slot, name, statement, first)

    def barrier_arrives(
        self,
        slot: int,
        name: int,
        warp: int,
        lanes: Lanes,
        statement: Instruction,
        *,
        waits: bool,
        threads: int | None,
    ) -> None:
        key = slot, name
        before, now = self._before.get(key), self._now.setdefault(key, _Generation())
        if before is not None:
            self._after(warp, name, before, statement, threads)
        now.threads = threads
        now.clocks[warp], now.statements[warp] = self._happens_before.clock(warp), statement
        if waits and threads is None and _is_aligned(statement):
            now.sites.setdefault(id(statement), (statement, warp))

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        self._before[slot, name] = now = self._now.pop((slot, name))
        if len(now.sites) > 1:
            self._report_sites(name, *list(now.sites.values())[:2])
        elif now.sites:
            self._require_all(slot, name, *next(iter(now.sites.values())))

    def _require_all(self, slot: int, name: int, statement: Instruction, warp: int) -> None:
        """Advise of a barrier of all threads that threads have exited without."""
        per_cta = self._happens_before.warps
        warps = slice(slot * per_cta, (slot + 1) * per_cta)
        live, present = self._live[warps], self._present[warps]
        gone = int(count_nonzero(live)) - int(count_nonzero(present))
        if gone:
            waiter = self._findings.access("waiter", statement, warp)
            self._findings.report(
                barriers.BARRIER_EXITED,
                statement,
                summary=f"{waiter} completes barrier {name} of all {int(live.sum())} threads after {gone} of them have "
                "exited",
                accesses=(waiter,),
                cause=frozenset([causes.barrier(name), causes.wait(statement.line)]),
            )

    def _after(self, warp: int, name: int, before: _Generation, statement: Instruction, threads: int | None) -> None:
        """Find an arrival of the generation before that an arrival is unordered with."""
        members = self._happens_before.members
        others = np.fromiter(before.clocks, np.int64, len(before.clocks))
        clocks = np.fromiter(before.clocks.values(), np.int64, len(before.clocks))
        late = (self._happens_before.clocks[warp, others % members] < clocks) & (others != warp)
        if not any_set(late):
            return
        other = int(others[late.argmax()])
        arriver = self._findings.access("arriver", statement, warp)
        earlier = self._findings.access("arriver", before.statements[other], other)
        rule, fix = "Nothing orders the two arrivals, so either may count in either generation", None
        if threads != before.threads:
            here, there = (f"{count}" if count is not None else "all" for count in (threads, before.threads))
            rule += f". Their thread counts differ: {here} here, {there} in line {earlier.line}"
            fix = "name the same thread count if they belong together, else give each group a barrier number of its own"
        self._findings.report(
            barriers.BARRIER_SHARED,
            statement,
            summary=f"{arriver} arrives at barrier {name}, where {earlier} arrives for the generation before",
            rule=rule,
            fix=fix,
            accesses=(arriver, earlier),
            cause=causes.barrier(name),
        )

    def _report_sites(self, name: int, first: tuple[Instruction, int], second: tuple[Instruction, int]) -> None:
        here, there = (self._findings.access("waiter", *each) for each in (second, first))
        self._findings.report(
            barriers.BARRIER_SITES,
            second[0],
            summary=f"{here} and {there} complete barrier {name} together",
            rule="Without a thread count all threads of the CTA must execute the same bar.sync; here a branch sends "
            "them to different ones",
            accesses=(here, there),
            cause=frozenset([causes.barrier(name), causes.sites(first[1] // self._happens_before.warps)]),
        )


def _is_aligned(statement: Instruction) -> bool:
    """Whether all threads of a warp execute a barrier together."""
    return statement.opcode.startswith("bar.") or ".aligned" in statement.opcode
