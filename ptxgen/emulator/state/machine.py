"""The state of a launch: resident CTAs, their registers and memories, and barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.engines.cp_async import WarpCopies
from ptxgen.emulator.engines.timeline import Action, Timeline
from ptxgen.emulator.engines.work import LANE_MASKS, WARP, AsyncWork
from ptxgen.emulator.load.registers import UNSIGNED, Register
from ptxgen.emulator.load.shared_names import SharedNames
from ptxgen.emulator.memory import GlobalMemory, MemoryFault, SharedMemory, TensorMemory
from ptxgen.emulator.memory.bank import Bank
from ptxgen.emulator.memory.global_memory import POISON_BYTE
from ptxgen.emulator.memory.strong_loads import StrongLoads
from ptxgen.emulator.native.library import pointer_to
from ptxgen.emulator.observer import Events, Observer
from ptxgen.emulator.state.bulk_groups import BulkGroups
from ptxgen.emulator.state.clusters import RANK_SHIFT, Clusters
from ptxgen.emulator.state.config import MachineConfig
from ptxgen.emulator.state.convergence import Convergence
from ptxgen.emulator.state.mbarriers import MBarrier, Polled
from ptxgen.emulator.state.names import Names
from ptxgen.emulator.state.perturbation import Perturbation
from ptxgen.emulator.state.register_pool import RegisterPool
from ptxgen.emulator.state.signals import Signal
from ptxgen.emulator.state.special_registers import SpecialRegisters
from ptxgen.emulator.state.stack import ThreadStack
from ptxgen.emulator.state.tensor_transfers import TensorTransfers
from ptxgen.emulator.state.warpgroups import Warpgroups

#: Wake key of griddepcontrol.wait.
GRIDS_BEFORE = "the end of the grids before"


class Machine:
    """`slots` CTAs run at a time, each with `warps_per_cta` warps; `warp` is number `warp % warps_per_cta` of slot
    `warp // warps_per_cta`. The CTAs of a cluster lie in consecutive slots (`clusters`).
    """

    def __init__(
        self,
        config: MachineConfig,
        memory: GlobalMemory,
        timeline: Timeline,
        findings: Findings,
        perturbation: Perturbation | None = None,
    ) -> None:
        shape, slots = config.shape, config.slots
        self.config, self.shape, self.memory, self.timeline = config, shape, memory, timeline
        self.findings = findings
        #: Target of the module.
        self.target = config.target
        self.parameters = np.frombuffer(config.parameters + bytes(64), np.uint8)
        self.threads = prod(shape.block)
        self.warps_per_cta = -(-self.threads // 32)
        self.slots = slots
        self.warps = slots * self.warps_per_cta
        self.clusters = Clusters(shape.grid, shape.cluster, slots, self.warps_per_cta)
        self.cta_slot = self.clusters.cta_slot
        #: Output of printf.
        self.printed: list[str] = []
        #: Counts whatever changes state that other threads can see; unchanged, no wait can end.
        self.effects = 0
        #: Counts stores to memory that other threads can see, also those that change nothing.
        self.stores = 0
        #: True: lanes run ahead of others of their warp because nothing else can run.
        self.idle = False
        #: The program's registers: (warps, 32) words each.
        self.registers: list[NDArray[Any]] = []
        #: The carry of extended arithmetic, a register that no program names.
        self.carry = np.zeros((self.warps, 32), np.bool_)
        self.registers.append(self.carry)
        #: Lanes that wait for others of their warp.
        self.convergence = Convergence()
        #: True: the program reads a clock, so a repeated launch may differ.
        self.reads_time = config.reads_time
        self.banks = {"param": Bank(config.parameters, "the kernel's parameters"), "const": config.constants}
        self.stack = ThreadStack(self.warps, config.variables.frames[config.entry])
        self.registers += [self.stack.site, self.stack.pointer]
        #: The perturbation of a rerun: replaces what the launch should not have read.
        self.perturbation = perturbation
        shared_bytes = config.variables.shared_end + shape.shared_bytes
        groups = config.uses_reserved_shared
        dynamic = shape.shared_bytes if config.variables.has_dynamic else None
        self.shared = SharedMemory(slots, shared_bytes, groups=groups, dynamic=dynamic)
        self.tensor = TensorMemory(slots)
        if perturbation is not None:
            if perturbation.shared:
                self.shared = SharedMemory(slots, shared_bytes, perturbation.byte, groups=groups, dynamic=dynamic)
            if "tensor" in perturbation.sources:
                self.tensor = TensorMemory(slots, 0x01010101 * perturbation.byte)
            if "local" in perturbation.sources:
                self.stack.memory.poison(perturbation.byte)
        self.mbarriers: list[dict[int, MBarrier]] = [{} for _ in range(slots)]
        #: By warp, the object whose phase it has last tested, if that had not ended.
        self.polled: dict[int, Polled] = {}
        #: Objects that mbarrier.inval has ended, by slot and offset.
        self.ended_mbarriers: list[dict[int, MBarrier]] = [{} for _ in range(slots)]
        #: The observers of the launch.
        self.events = Events()
        #: True if others than the checks observe the launch.
        self.is_observed = False
        #: Values of strong loads.
        self.strong_loads = StrongLoads()
        initial = config.register_count
        #: Registers by warp, None where their number is undetermined.
        self.register_pool = RegisterPool(initial, slots, self.warps_per_cta) if initial is not None else None
        self.unfenced: dict[int, list[MBarrier]] = {}
        self.inflight = np.zeros(slots, np.int64)
        #: Asynchronous work that has been issued.
        self._issued = 0
        #: tcgen05.ld and st, and bulk stores, that warps have not waited for.
        self.transfers, self.bulk_groups = TensorTransfers(), BulkGroups()
        #: The MMAs that warpgroups have in flight.
        self.warpgroups = Warpgroups(
            self.warps, self.warps_per_cta, findings, config.accumulators, config.accumulator_copies
        )
        #: cp.async copies not yet waited for, by warp.
        self.copies: dict[int, WarpCopies] = {}
        #: Registers whose next read is an event for observers.
        self.watched: set[int] = set()
        self.wake: Callable[[object], None] = lambda key: None
        #: Takes the next cluster that has not begun out of the grid: its number, None if there is none.
        self.cancel: Callable[[], int | None] = lambda: None
        #: CTAs that have let dependent grids begin, and have not ended; whether there have been any.
        self.released: set[int] = set()
        self.releases = False
        #: Callback: True while grids before this one are running.
        self.waits_for_grids: Callable[[], bool] = lambda: False
        thread = (np.arange(self.warps) % self.warps_per_cta)[:, None] * 32 + np.arange(32)
        self.live = thread < self.threads
        #: Threads that have not left the kernel.
        self.present = np.zeros((self.warps, 32), np.bool_)
        #: %ctaid of each warp, and the CTA of the grid in each slot.
        self.cta = np.zeros((self.warps, 3), np.uint32)
        self.cta_number = np.full(self.slots, -1, np.int64)
        self._shared_addresses: dict[tuple[int, np.dtype[Any]], NDArray[Any]] = {}
        self.special = SpecialRegisters(
            shape, self.clusters, self.cta, self.shared.size, config.workspace, config.multiprocessors, timeline
        )
        #: The registers of each width together, and which of `registers` they are.
        self._pooled = range(len(self.registers), len(self.registers) + len(config.registers))
        self._pools = self._allocate(config.registers)
        #: Registers as other types of their width, by the number of the view.
        self.views = [self.registers[index].view(dtype) for index, dtype in config.views]
        #: Names of the variables and stages in a CTA's shared memory, by address.
        self.shared_names = SharedNames(config.variables, config.regions, self.shared.size)
        findings.names = self.names = Names(self.clusters, self.cta, self.shared_names, memory)

    def _allocate(self, registers: Sequence[Register]) -> list[tuple[NDArray[np.uint8], int]]:
        """Make the program's registers: those of a width are one array. Its bytes, and what each is at first."""
        numbers: dict[int, list[int]] = {}
        for number, register in enumerate(registers, self._pooled.start):
            numbers.setdefault(register.bits, []).append(number)
        pools: list[tuple[NDArray[np.uint8], int]] = []
        #: By pool, the numbers of its registers.
        self._numbers = list(numbers.values())
        self.registers += [self.carry] * len(registers)
        for bits, chosen in numbers.items():
            shape = (len(chosen), self.warps, 32, 2) if bits == 128 else (len(chosen), self.warps, 32)
            pool = np.empty(shape, UNSIGNED[bits])
            bytes = pool.view(np.uint8).reshape(len(chosen), self.warps, -1)
            pools.append((bytes, 0 if bits == 1 else POISON_BYTE))
            bytes[:] = pools[-1][1]
            for place, number in enumerate(chosen):
                self.registers[number] = pool[place]
        if self.perturbation is not None:
            self._perturb(slice(None))
        return pools

    def _perturb(self, warps: slice | NDArray[np.int64]) -> None:
        """What a rerun puts into uninitialized registers of these warps."""
        assert self.perturbation is not None
        for number in self._pooled:
            if number in self.perturbation.sources:
                self._empty(number, warps)

    @cached_property
    def register_addresses(self) -> int:
        """The address of an array of the addresses of all registers so far, for machine code."""
        found = self._addresses = np.zeros(len(self.registers), np.uint64)
        for numbers, (pool, _) in zip(self._numbers, self._pools, strict=True):
            found[numbers] = pointer_to(pool) + np.arange(len(pool)) * pool[0].nbytes
        for number in (*range(self._pooled.start), *range(self._pooled.stop, len(self.registers))):
            found[number] = pointer_to(self.registers[number])
        return pointer_to(found)

    def add_register(self, register: NDArray[Any]) -> None:
        """Another register of the program, (warps, 32) or more, uninitialized."""
        self.registers.append(register)
        self._empty(len(self.registers) - 1, slice(None))

    def _empty(self, number: int, warps: slice | NDArray[np.int64]) -> None:
        """Make a register of some warps uninitialized, as for a new CTA: predicates are false."""
        register = self.registers[number]
        if self.perturbation is not None and number in self.perturbation.sources:
            filled = register[warps]
            self.perturbation.fill(filled, number)
            register[warps] = filled
        elif register.dtype == np.bool_:
            register[warps] = False
        else:
            register.view(np.uint8).reshape(len(register), -1)[warps] = POISON_BYTE

    def while_reading(self, numbers: Sequence[int]) -> AbstractContextManager[None]:
        """While these asynchronous operations read shared memory, which a rerun changes for them."""
        return nullcontext() if self.perturbation is None else self.perturbation.during(self.shared, numbers)

    def has_written(self, number: int) -> None:
        """A copy has written to shared memory, which a rerun changes where another copy may be writing too."""
        if self.perturbation is not None:
            self.perturbation.after(self.shared, number)

    def shared_address(self, address: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An address in the own CTA's shared memory as the cluster sees it: (warps, 1), with the rank of each CTA."""
        found = self._shared_addresses.get((address, dtype))
        if found is None:
            found = (self.clusters.cta_rank[:, None] << RANK_SHIFT | address).astype(dtype)
            self._shared_addresses[address, dtype] = found
        return found

    def observe(self, checks: Sequence[Observer], others: Sequence[Observer]) -> None:
        """Have the checks and others observe the launch, which has not begun."""
        self.events, self.is_observed = Events([*checks, *others]), bool(others)
        self.findings.reported = self.events.finding_reported

    # CTAs.

    def begin_clusters(self, residents: Sequence[int], numbers: Sequence[int]) -> None:
        """Put clusters of the grid, by number, into the slots of resident ones."""
        clusters, per_cta = self.clusters, self.warps_per_cta
        ctas = clusters.ctas(numbers)
        slots = (np.array(residents, np.int64)[:, None] * clusters.size + np.arange(clusters.size)).ravel()
        warps = (slots[:, None] * per_cta + np.arange(per_cta)).ravel()
        self.cta[warps] = np.repeat(ctas, per_cta, axis=0)
        self.present[warps] = self.live[warps]
        if self.register_pool is not None:
            self.register_pool.begin(slots, warps)
        used = slots[self.cta_number[slots] >= 0]
        if len(used):
            self._clear(used, (used[:, None] * per_cta + np.arange(per_cta)).ravel())
        x, y, _ = self.shape.grid
        self.cta_number[slots] = ctas[:, 0] + x * (ctas[:, 1] + y * ctas[:, 2])
        self.events.ctas_begin(slots)

    def _clear(self, slots: NDArray[np.int64], warps: NDArray[np.int64]) -> None:
        """Clear what earlier CTAs left in these slots, whose warps are `warps`."""
        for pool, initial in self._pools:
            pool[:, warps] = initial
        if self.perturbation is not None:
            self._perturb(warps)
        for index in range(len(self.registers)):
            if index not in self._pooled:
                self._empty(index, warps)
        for table in (
            self.transfers.loads,
            self.transfers.stores,
            self.bulk_groups.groups,
            self.copies,
            self.unfenced,
            self.polled,
        ):
            if table:
                for warp in warps.tolist():
                    table.pop(warp, None)
        self.warpgroups.clear(warps)
        self.stack.clear(warps)
        self.shared.clear(slots)
        self.tensor.clear(slots)
        for slot in slots.tolist():
            if self.mbarriers[slot]:
                self.mbarriers[slot] = {}
            if self.ended_mbarriers[slot]:
                self.ended_mbarriers[slot] = {}
        self.events.slots_reused(slots)

    def warp_name(self, warp: int) -> str:
        """A warp, for messages."""
        return f"warp {warp % self.warps_per_cta} of {self.cta_name(int(self.cta_slot[warp]))}"

    def cta_name(self, slot: int) -> str:
        """The CTA in a slot, as its %ctaid."""
        x, y, z = self.cta[slot * self.warps_per_cta]
        return f"CTA ({x}, {y}, {z})"

    # Asynchronous work and barriers.

    def issue(
        self,
        what: str,
        statement: syntax.Statement,
        slot: int,
        warp: int,
        lanes: NDArray[np.bool_] | int = WARP,
        *,
        pipe: object = None,
        swizzle: str | None = None,
    ) -> AsyncWork:
        """A warp issues asynchronous work for a CTA; `lanes` are a mask (32,), or the number of one."""
        self._issued += 1
        mask = lanes if isinstance(lanes, np.ndarray) else LANE_MASKS[lanes]
        work = AsyncWork(self._issued, what, statement, slot, warp, mask, pipe, self.timeline.now, swizzle)
        self.events.work_issued(work)
        return work

    def submit(
        self,
        slot: int | NDArray[np.int64],
        statement: syntax.Statement,
        action: Action,
        *,
        pipe: object = None,
        works: Sequence[AsyncWork] = (),
        reading: Sequence[AsyncWork] = (),
    ) -> None:
        """Queue what completes these works, of a CTA, or of several at once; its fault is that of `statement`.

        `reading`: works whose sources it reads; another action completes them.
        """
        self.inflight[slot] += 1
        self.effects += 1

        def run() -> None:
            self.inflight[slot] -= 1
            self.effects += 1
            try:
                action()
            except MemoryFault as fault:
                fault.statement = fault.statement or statement
                raise
            for work in works:
                self.events.work_completed(work)

        self.timeline.submit(run, pipe=pipe, works=works or reading)

    def mbarrier(self, slot: int, address: int, warp: int, statement: syntax.Statement) -> MBarrier:
        """The object at a shared address, as `warp` uses it. Raises MemoryFault if there is none."""
        found = self.mbarriers[slot].get(address)
        if found is None:
            raise MemoryFault(
                mbarriers.MBARRIER_UNINITIALIZED,
                f"no mbarrier at {self.findings.name('shared', address)}",
                rule="mbarrier.init of this address is missing",
                cause=causes.NO_INIT,
            )
        self.events.mbarrier_used(warp, slot, found, statement)
        return found

    def settle(self, slot: int, barrier: MBarrier) -> None:
        """Start the next phase of a barrier if this one is complete, and wake the warps that wait for it."""
        self.effects += 1
        if barrier.is_complete:
            self.events.mbarrier_phase_ends(barrier)
            barrier.end_phase()
            self.wake(("mbarrier", slot, barrier.address))

    def promise(self, slot: int, address: int, warp: int, signal: Signal) -> MBarrier:
        """`warp` issues an operation that will signal an mbarrier. Raises MemoryFault if there is none."""
        barrier = self.mbarrier(slot, address, warp, signal.statement)
        self.events.signal_promised(warp, barrier, signal)
        barrier.under_way.append(signal)
        return barrier

    def complete_on(self, slot: int, address: int, signal: Signal) -> None:
        """An asynchronous copy completes on an mbarrier."""
        barrier = self.mbarriers[slot].get(address)
        if barrier is None:
            raise MemoryFault(
                mbarriers.MBARRIER_UNINITIALIZED,
                f"a copy completes on {self.findings.name('shared', address)}, which is no mbarrier",
                rule="mbarrier.init of this address is missing, or mbarrier.inval came before the copy was complete",
                cause=causes.NO_INIT,
            )
        barrier.over(signal)
        self.events.signal_arrives(barrier, signal)
        barrier.complete(signal.size, signal.statement, signal.operation)
        self.settle(slot, barrier)

    def arrive_on(self, slot: int, barrier: MBarrier, signal: Signal, count: int = 1) -> None:
        """Asynchronous work is complete: its arrival on an mbarrier."""
        barrier.over(signal)
        self.events.signal_arrives(barrier, signal)
        barrier.arrive(count, signal.statement)
        self.settle(slot, barrier)

    def lanes_arrive_on(self, slot: int, barrier: MBarrier, signal: Signal, warp: int, lanes: int) -> None:
        """The same for so many lanes of a warp, each with an arrival of its own: a phase may end among them."""
        first = barrier.phase
        while lanes:
            counted = min(lanes, barrier.pending) or 1
            self.arrive_on(slot, barrier, signal, counted)
            lanes -= counted
            if lanes and barrier.phase != first:
                self.events.arrivals_split(warp, slot, barrier, first, signal.statement)
