"""The checks of a launch, composed: each gets what it works with by its constructor."""

from __future__ import annotations

from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.efficiency import Efficiency
from ptxgen.emulator.checks.global_memory.accesses import GlobalAccesses
from ptxgen.emulator.checks.global_memory.copies import GlobalCopies
from ptxgen.emulator.checks.global_memory.events import GlobalEvents
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.global_memory.lanes import LaneOrder
from ptxgen.emulator.checks.global_memory.read_only import ReadOnlyLoads
from ptxgen.emulator.checks.global_memory.store_extents import StoreExtents
from ptxgen.emulator.checks.global_memory.tensormap_uses import TensormapUses
from ptxgen.emulator.checks.global_memory.tensormaps import Tensormaps
from ptxgen.emulator.checks.mbarrier.initialization import Initialization
from ptxgen.emulator.checks.mbarrier.invalidation import Invalidation
from ptxgen.emulator.checks.mbarrier.phases import Phases
from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.mbarrier.transactions import Transactions
from ptxgen.emulator.checks.order.barrier_uses import BarrierUses
from ptxgen.emulator.checks.order.barriers import ClusterBarrierClocks, CtaBarrierClocks
from ptxgen.emulator.checks.order.by_barriers import ByBarriers
from ptxgen.emulator.checks.order.fences import FenceClocks
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.launch_control import LaunchControl
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.order.poll_loops import PollLoops
from ptxgen.emulator.checks.order.stale_loads import StaleLoads
from ptxgen.emulator.checks.order.strong_accesses import StrongAccesses
from ptxgen.emulator.checks.order.strong_instructions import StrongInstructions
from ptxgen.emulator.checks.order.waits import WaitClocks
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.raced_reads import RacedReads
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.collaborators import Collaborators
from ptxgen.emulator.checks.shared.cta_exit import CtaExit
from ptxgen.emulator.checks.shared.generic_copies import GenericCopies
from ptxgen.emulator.checks.shared.instructions import SharedInstructions
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.checks.shared.operand_layouts import OperandLayouts
from ptxgen.emulator.checks.shared.operand_regions import OperandRegions
from ptxgen.emulator.checks.tensor.accesses import TensorAccesses
from ptxgen.emulator.checks.tensor.fences import TensorFences
from ptxgen.emulator.checks.tensor.operand_cells import OperandCells
from ptxgen.emulator.checks.tensor.order import TensorOrder
from ptxgen.emulator.checks.tensor.overlaps import OperandOverlaps
from ptxgen.emulator.checks.tensor.pair_allocation import PairAllocation
from ptxgen.emulator.checks.uninitialized.local_memory import LocalAccesses
from ptxgen.emulator.checks.uninitialized.registers import Unwritten
from ptxgen.emulator.checks.warps.duplicate_copies import DuplicateCopies
from ptxgen.emulator.checks.warps.lane_stores import LaneStores
from ptxgen.emulator.checks.warps.shuffles import Shuffles
from ptxgen.emulator.checks.warps.warpgroup_registers import WarpgroupRegisters
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.schedule.code import Watcher
from ptxgen.emulator.state.machine import Machine


def checks_of(machine: Machine, *, advice: float | None) -> list[Observer]:
    """What checks a machine's launch; from `advice` times the time of memory that they need also its accesses."""
    findings, clusters, slots, bytes = machine.findings, machine.clusters, machine.slots, machine.shared.pitch
    order = HappensBefore(slots, machine.warps_per_cta, clusters.size, findings, clusters=clusters.count)
    mbarriers = MbarrierOrder(order)
    cas_loops, poll_loops = CasLoops(), PollLoops(machine)
    flags = WeakFlags(order, poll_loops)
    raced = RacedReads(flags)
    waits = StaleWaits(order, mbarriers, machine.mbarriers)
    lanes = LaneAccesses(order, slots, bytes, cas_loops, findings)
    by_barriers = ByBarriers(order)
    shared = SharedAccesses(
        Collaborators(order, lanes, waits, by_barriers, cas_loops, flags, raced, findings), slots, bytes
    )
    tensor_fences = TensorFences(machine.warps_per_cta)
    tensor = TensorAccesses(order, tensor_fences, waits, slots, findings)
    lane_order = LaneOrder(order, lanes.interval, findings)
    order.attach(lanes, lane_order, tensor_fences, tensor)
    cluster_barriers = ClusterBarrierClocks(order, findings)
    exits = CtaExit(order, cluster_barriers, shared, findings)
    strong = StrongAccesses(order, findings)
    if machine.config.has_strong_loads:
        machine.strong_loads = strong.stale = StaleLoads(
            order, lanes.interval, machine.timeline, poll_loops, strong.published
        )
        order.sequences = True
    wait_clocks = WaitClocks(order, mbarriers, waits, machine.watched)
    tensormaps = Tensormaps(order, findings)
    transactions = Transactions(order, machine.mbarriers, findings)
    events = GlobalEvents(order, lanes.interval, machine.memory.extent, cas_loops, flags, raced, findings)
    grids = GridRaces(order, events, findings)
    accesses = GlobalAccesses(order, lanes, events, grids, lane_order, findings)
    copies = GlobalCopies(order, events, grids, machine.memory, findings)
    observers: list[Observer] = [
        cas_loops,
        flags,
        poll_loops,
        transactions,
        strong,
        by_barriers,
        # Compares arrivals before they are ordered.
        BarrierUses(order, machine.present, machine.live, findings),
        order,
        CtaBarrierClocks(order),
        cluster_barriers,
        wait_clocks,
        FenceClocks(order, wait_clocks, strong),
        TensorOrder(order, wait_clocks, tensor_fences),
        tensormaps,
        TensormapUses(order, flags, findings),
        grids,
        copies,
        LaunchControl(order, findings),
        lanes.exchanges,
        # Compares copies with their readers before they are overwritten.
        OperandLayouts(shared, slots, findings),
        shared,
        tensor_fences,
        tensor,
        OperandOverlaps(findings),
        OperandCells(machine.cta_slot, findings),
        PairAllocation(order, findings),
        exits,
        Phases(order, mbarriers, waits, findings),
        mbarriers,
        Initialization(order, mbarriers, findings),
        Invalidation(order, mbarriers, findings),
        # Strong accesses come last: what they release and acquire counts after them.
        accesses,
        SharedInstructions(order, lanes, shared, flags),
        GenericCopies(order, lanes, shared),
        LaneStores(findings),
        OperandRegions(machine.shared_names.bounding, findings),
        DuplicateCopies(findings),
        Shuffles(machine.live, machine.present, findings),
        LocalAccesses(machine.stack.memory, findings),
        StrongInstructions(strong, flags),
        WarpgroupRegisters(machine.warps_per_cta, machine.present, findings),
    ]
    if machine.config.has_read_only_loads:
        observers.append(ReadOnlyLoads(machine.memory.extent, findings))
    if advice is not None:
        observers += [Efficiency(machine.cta_slot, findings, advice), StoreExtents(findings)]
    return observers


def watchers(machine: Machine, program: Program) -> list[Watcher]:
    """What watches the instructions of a program for uninitialized registers."""
    return [Unwritten(machine, program.register_flow).watch] if program.register_flow.followed else []
