"""The trackers that code without events reaches."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.emulator.checks.global_memory.accesses import GlobalAccesses
from ptxgen.emulator.checks.global_memory.copies import GlobalCopies
from ptxgen.emulator.checks.global_memory.events import GlobalEvents
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.global_memory.tensormaps import Tensormaps
from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.mbarrier.transactions import Transactions
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.cta_exit import CtaExit
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.checks.tensor.accesses import TensorAccesses
from ptxgen.emulator.checks.tensor.fences import TensorFences


@dataclass(frozen=True)
class Checks:
    """The trackers of a launch with checks, for what does not emit events yet."""

    order: HappensBefore
    waits: StaleWaits
    lanes: LaneAccesses
    shared: SharedAccesses
    exits: CtaExit
    tensor: TensorAccesses
    tensor_fences: TensorFences
    transactions: Transactions
    global_events: GlobalEvents
    global_accesses: GlobalAccesses
    global_copies: GlobalCopies
    grid_races: GridRaces
    tensormaps: Tensormaps
