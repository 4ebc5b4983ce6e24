"""Races in shared memory: accesses that meet others of which their warp does not know, and how that is told.

What orders them in time alone, though not by the manual's words, makes it advice: a relaxed arrival at the cluster's
barrier within a CTA, and products that a warpgroup issues together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.causes import Cause
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import Event
from ptxgen.emulator.checks.order.mbarrier_scope import RELEASES
from ptxgen.emulator.checks.order.strong_accesses import report_unfenced
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation, VectorClock
from ptxgen.emulator.checks.registry import mbarriers, races
from ptxgen.emulator.checks.shared.granules import GRANULE, Masks, distinct
from ptxgen.emulator.checks.shared.last_accesses import ThreadAccesses
from ptxgen.emulator.checks.shared.strong_stores import StrongStores

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

#: What reads rows of which the accumulator's reader may drop some.
_PRODUCTS = ("tcgen05.mma", "wgmma.mma_async")
#: What writes shared memory without regard to whether anybody reads it: prefetches into L2 drop their copies there.
_COPIES = ("tensor copy", "bulk copy")
_RELAXED = "barrier.cluster.arrive.relaxed alone, which releases nothing"


class SharedRaces:
    """Accesses against the last ones to the same granules, which `SharedAccesses` keeps; `stores` are those of threads."""

    def __init__(self, happens_before: HappensBefore, stores: ThreadAccesses, findings: Findings) -> None:
        self._happens_before, self._stores, self._findings = happens_before, stores, findings
        #: What products, by number, read while it may be overwritten: (CTA slot, granules).
        self.read_too_early: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        #: What copies, by number, write while another copy may be writing it.
        self.written_at_once: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        #: Lines of the cp.async and st.async instructions that have run.
        self.copy_lines: dict[int, str] = {}

    def against_own_copies(
        self, access: AsyncOperation, row: int, granules: NDArray[np.int64], masks: Masks, verb: str
    ) -> None:
        """The warp's own copies there, for which it has not waited."""
        line = self._stores.pending(access.slot, row % self._happens_before.members, granules, masks)
        if line is not None:
            self._race(access, verb, f"the {self.copy_lines.get(line, 'copy')} of line {line}")

    def against_operations(
        self, access: AsyncOperation, row: int, slot: int, granules: NDArray[np.int64], numbers: NDArray[np.int64],
        verb: str, known: VectorClock,
    ) -> None:  # fmt: skip
        """Asynchronous operations on these granules (numbers; 0: none) of whose completion `known` does not tell."""
        for number in distinct(numbers).tolist():
            if number and number not in known.operations:
                earlier = self._happens_before.operations.get(number)
                if earlier is not None:
                    why, parity = self._happens_before.waits.why(
                        row, Event(number), reads=verb == "reads", by=access.number
                    )
                    places = (slot, np.array(granules)[numbers == number])
                    product = next((each for each in (access, earlier) if each.what in _PRODUCTS), None)
                    copies = verb == "overwrites" and access.what in _COPIES and earlier.what in _COPIES
                    if product is not None:
                        self.read_too_early.setdefault(product.number, []).append(places)
                    if copies:
                        for each in (access, earlier):
                            self.written_at_once.setdefault(each.number, []).append(places)
                    reads = product is not None or copies
                    cause = earlier.cause | self._happens_before.waits.missed(row) if parity else earlier.cause
                    at = int(places[1][0]) * GRANULE
                    self._async_race(access, row, slot, at, verb, earlier, why, parity, reads=reads, cause=cause)

    def against_warps(
        self, access: AsyncOperation, row: int, accesses: ThreadAccesses | StrongStores, slot: int,
        granules: NDArray[np.int64], masks: Masks | np.uint16, verb: str, known: VectorClock, *, loads: bool = False,
    ) -> None:  # fmt: skip
        """The last `accesses` of other warps to these bytes, of which `known` does not tell."""
        what = "load" if loads else "store"
        for warp, line, clock in accesses.unordered(
            slot, row % self._happens_before.members, granules, masks, known.clocks
        ):
            copied = clock == PENDING and line in self.copy_lines
            kind = self.copy_lines[line] if copied else what
            where = f"the {kind} of line {line} by {self._happens_before.member_name(row, warp)}"
            other = row - row % self._happens_before.members + warp
            unfenced_side = self._happens_before.unfenced_side(row, other, clock)
            if unfenced_side:
                report_unfenced(self._findings, where, unfenced_side, access.statement)
                continue
            relaxed = self._happens_before.ordered_by_relaxed_arrival(row, other, clock)
            if relaxed and other // self._happens_before.warps == row // self._happens_before.warps == slot:
                self._findings.add(
                    "missing-fence",
                    f"this access and {where} are ordered by {_RELAXED}: leave .relaxed out, or put "
                    "fence.acq_rel.cluster before it",
                    access.statement,
                    severity="advice",
                )
                continue
            by_product = self._ordered_by_product(access, row, what, line, warp, clock, verb, known)
            if by_product:
                self._findings.add("shared-race", by_product, access.statement, severity="advice")
                continue
            event = Event(member=warp, clock=clock)
            why, parity = self._happens_before.waits.why(row, event, reads=verb == "reads", by=access.number)
            if relaxed and not why:
                why = f"; there is {_RELAXED}"
            lack = "for which that warp has not waited" if copied else "with which its warp has not synchronized"
            self._report(access, verb, f"{where}, {lack}{why}", parity)
        if access.what in ("load", "store"):
            self._against_scopes(access, row, accesses, what, slot, granules, masks, verb)

    def _ordered_by_product(
        self, access: AsyncOperation, row: int, what: str, line: int, warp: int, clock: int, verb: str,
        known: VectorClock,
    ) -> str:  # fmt: skip
        """A message where a product that a warpgroup issues together puts another warp's access in order, or empty."""
        if what == "load" and self._happens_before.before_product(row, known, warp, clock):
            return (
                f"the {access.what} {verb} data of the load of line {line} by warps that have not told its warp: only "
                "another of their warpgroup has, after a wgmma.mma_async"
            )
        if what == "store" and access.what.startswith("wgmma") and self._happens_before.same_warpgroup(row, warp):
            return (
                f"the {access.what} reads data of the store of line {line} by other warps of its warpgroup, with "
                "which its warp has not synchronized: only the product, which all of them issue, comes after it"
            )
        return ""

    def _against_scopes(
        self, access: AsyncOperation, row: int, accesses: ThreadAccesses | StrongStores, what: str, slot: int,
        granules: NDArray[np.int64], masks: Masks | np.uint16, verb: str,
    ) -> None:  # fmt: skip
        """Advice: hardware has been seen to order what the default scope of mbarriers does not (docs/checks.md)."""
        scopes = self._happens_before.scopes
        for warp, line, narrow in scopes.conflicts(row, self._happens_before.warps, accesses, slot, granules, masks):
            if line not in self.copy_lines:
                self._findings.add(
                    "narrow-scope",
                    f"the {access.what} {verb} data of the {what} of line {line} by "
                    f"{self._happens_before.member_name(row, warp)}, and only an mbarrier orders them, whose {narrow} is of "
                    f"scope .cta, which does not include the other thread; it takes .{RELEASES[narrow]}.cluster",
                    access.statement,
                    severity="advice",
                )

    def _async_race(
        self, access: AsyncOperation, row: int, slot: int, at: int, verb: str, earlier: AsyncOperation, why: str,
        parity: bool, *, reads: bool, cause: Cause,
    ) -> None:  # fmt: skip
        """An access at an offset of a CTA's memory while an asynchronous operation may be there, since no wait orders
        them; `why` is what a wait of the warp has to do with it, and `parity` whether a wrong one explains it.
        """
        role, other_role = ("reader" if verb == "reads" else "writer"), ("reader" if verb.endswith("by") else "writer")
        found = self._findings.access(role, access.statement, row, slot=slot, space="shared", address=at)
        other = self._findings.access(other_role, earlier.statement, earlier.row, slot=slot, space="shared", address=at)
        does = "reads" if role == "reader" else "overwrites"
        doing = "reading" if other_role == "reader" else "writing"
        barrier = f" on {self._findings.name('shared', earlier.mbarrier)}" if earlier.mbarrier is not None else ""
        self._findings.report(
            mbarriers.MBARRIER_PARITY if parity else races.SHARED_RACE,
            access.statement,
            summary=f"{found} {does} {found.place} while {other.opcode} of line {other.line} may still be {doing} it",
            rule=why[2:3].upper() + why[3:] or f"The thread has not waited for its completion{barrier}",
            accesses=(found, other),
            reads=reads and not parity,
            cause=cause,
        )

    def _race(self, access: AsyncOperation, verb: str, what: str) -> None:
        self._report(access, verb, f"{what}, whose completion its thread has not waited for", parity=False)

    def _report(self, access: AsyncOperation, verb: str, what: str, parity: bool) -> None:
        data = "data of " if verb in ("reads", "overwrites") else ""
        code = "mbarrier-parity" if parity else "shared-race"
        self._findings.add(code, f"the {access.what} {verb} {data}{what}", access.statement)
