"""What the checks of shared memory work with."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.order.by_barriers import ByBarriers
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.raced_reads import RacedReads
from ptxgen.emulator.checks.shared.lanes import LaneAccesses


@dataclass(frozen=True)
class Collaborators:
    """The observers that say why accesses to shared memory are ordered or not, and where findings go."""

    happens_before: HappensBefore
    #: Accesses of the lanes of a warp, and the last accesses of each warp.
    lanes: LaneAccesses
    #: Waits on mbarriers that passed for an earlier phase.
    waits: StaleWaits
    #: Warps that only barriers of the CTA order.
    by_barriers: ByBarriers
    #: Weak loads whose value an atomic operation checks.
    cas_loops: CasLoops
    #: Flags that are polled.
    flags: WeakFlags
    #: Bytes that weak loads read while other warps may store them.
    raced: RacedReads
    findings: Findings
