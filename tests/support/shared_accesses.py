"""The tracker of shared memory without a launch, for one CTA of two warps with 4096 bytes."""

from __future__ import annotations

from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.order.by_barriers import ByBarriers
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.raced_reads import RacedReads
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.collaborators import Collaborators
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.engines.work import WARP, AsyncWork
from ptxgen.syntax import Statement


def shared_accesses(findings: Findings) -> tuple[HappensBefore, SharedAccesses]:
    order, cas_loops = HappensBefore(1, 2, 1, findings), CasLoops()
    lanes = LaneAccesses(order, 1, 4096, cas_loops, findings)
    order.attach(lanes)
    waits, flags = StaleWaits(order, MbarrierOrder(order), [{}]), WeakFlags(order)
    given = Collaborators(order, lanes, waits, ByBarriers(order), cas_loops, flags, RacedReads(flags), findings)
    return order, SharedAccesses(given, 1, 4096)


def issue(order: HappensBefore, what: str, statement: Statement) -> AsyncOperation:
    """Warp 0 issues asynchronous work."""
    work = AsyncWork(len(order.operations) + 1, what, statement, 0, 0, WARP, None, 0)
    order.work_issued(work)
    return order.operations[work.number]
