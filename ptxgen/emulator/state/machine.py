"""The state of a launch: resident CTAs, their registers and memories, barriers, and what the checks know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.device import LaunchShape, SharedRegion
from ptxgen.emulator.checks.efficiency import Efficiency
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.accesses import GlobalAccesses
from ptxgen.emulator.checks.global_memory.copies import GlobalCopies
from ptxgen.emulator.checks.global_memory.events import GlobalEvents
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.global_memory.tensormaps import Tensormaps
from ptxgen.emulator.checks.mbarrier.transactions import Signal, Transactions
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarrier_scope import Told
from ptxgen.emulator.checks.order.stale_loads import StaleLoads
from ptxgen.emulator.checks.order.strong_accesses import StrongAccesses
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.checks.uninitialized.rerun import Perturbation
from ptxgen.emulator.engines.cp_async import WarpCopies
from ptxgen.emulator.engines.timeline import Action, Timeline
from ptxgen.emulator.load.image import Image
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.load.shared_names import SharedNames
from ptxgen.emulator.memory import GlobalMemory, MemoryFault, SharedMemory, TensorMemory
from ptxgen.emulator.memory.bank import Bank
from ptxgen.emulator.memory.global_memory import POISON_BYTE
from ptxgen.emulator.state.clusters import RANK_SHIFT, Clusters
from ptxgen.emulator.state.convergence import Convergence
from ptxgen.emulator.state.mbarriers import MBarrier, Polled
from ptxgen.emulator.state.places import Places
from ptxgen.emulator.state.register_pool import RegisterPool, initial_count
from ptxgen.emulator.state.special_registers import special_registers
from ptxgen.emulator.state.stack import ThreadStack
from ptxgen.emulator.state.warpgroups import Warpgroups

#: What griddepcontrol.wait waits for.
GRIDS_BEFORE = "the end of the grids before"


class Machine:
    """`slots` CTAs run at a time, each with `warps_per_cta` warps; warp `row` is warp `row % warps_per_cta` of slot
    `row // warps_per_cta`. The CTAs of a cluster lie in consecutive slots (`clusters`).
    """

    def __init__(
        self,
        shape: LaunchShape,
        memory: GlobalMemory,
        parameters: bytes,
        program: Program,
        image: Image,
        *,
        slots: int,
        timeline: Timeline,
        checks: bool,
        advice: bool = False,
        perturbation: Perturbation | None = None,
        regions: Sequence[SharedRegion] = (),
    ) -> None:
        self.shape, self.memory, self.timeline = shape, memory, timeline
        #: What the module was written for.
        self.target = program.target
        self.parameters = np.frombuffer(parameters + bytes(64), np.uint8)
        self.threads = prod(shape.block)
        self.warps_per_cta = -(-self.threads // 32)
        self.slots = slots
        self.warps = slots * self.warps_per_cta
        self.clusters = Clusters(shape.grid, shape.cluster, slots, self.warps_per_cta)
        self.row_slot = self.clusters.row_slot
        self.findings = Findings(checks)
        #: What threads have printed.
        self.printed: list[str] = []
        #: Counts whatever changes state that other threads can see; unchanged, nobody's waiting can end.
        self.effects = 0
        #: The program's registers: (warps, 32) words each.
        self.registers: list[NDArray[Any]] = []
        #: The carry of extended arithmetic, a register that no program names.
        self.carry = np.zeros((self.warps, 32), np.bool_)
        self.registers.append(self.carry)
        #: Lanes that wait for others of their warp.
        self.convergence = Convergence()
        #: Whether the program reads a clock, so that it may do the same again with another result.
        self.reads_time = program.reads_time
        self.image = image
        self.banks = {"param": Bank(parameters, "the kernel's parameters"), "const": image.constants}
        self.stack = ThreadStack(self.warps, program.variables.frames[program.kernel.entry.name])
        self.registers += [self.stack.site, self.stack.pointer]
        #: What memory holds in a rerun in place of what a launch should not have read.
        self.perturbation = perturbation
        shared_bytes = program.variables.shared_end + shape.shared_bytes
        self.shared, self.tensor = SharedMemory(slots, shared_bytes), TensorMemory(slots)
        if perturbation is not None:
            if perturbation.shared:
                self.shared = SharedMemory(slots, shared_bytes, perturbation.byte)
            if "tensor" in perturbation.sources:
                self.tensor = TensorMemory(slots, 0x01010101 * perturbation.byte)
            if "local" in perturbation.sources:
                self.stack.memory.poison(perturbation.byte)
        self.mbarriers: list[dict[int, MBarrier]] = [{} for _ in range(slots)]
        #: By warp, the object whose phase it has last tested, if that had not ended.
        self.polled: dict[int, Polled] = {}
        #: Objects that mbarrier.inval has ended, by slot and offset.
        self.ended_mbarriers: list[dict[int, MBarrier]] = [{} for _ in range(slots)]
        self.happens_before: HappensBefore | None = None
        self.global_events: GlobalEvents | None = None
        self.global_accesses: GlobalAccesses | None = None
        self.global_copies: GlobalCopies | None = None
        self.grid_races: GridRaces | None = None
        self.strong_accesses: StrongAccesses | None = None
        if checks:
            self.happens_before = HappensBefore(
                slots, self.warps_per_cta, self.clusters.size, self.shared.pitch, self.findings, self.mbarriers,
                clusters=self.clusters.count,
            )  # fmt: skip
            self.global_events = GlobalEvents(self.happens_before, len(memory.data), self.findings)
            self.grid_races = GridRaces(self.happens_before, self.global_events, self.findings)
            self.global_accesses = GlobalAccesses(
                self.happens_before, self.global_events, self.grid_races, self.findings
            )
            self.global_copies = GlobalCopies(self.happens_before, self.global_events, self.grid_races, self.findings)
            self.strong_accesses = StrongAccesses(self.happens_before, self.findings)
        self.efficiency = Efficiency() if advice else None
        self.transactions = (
            Transactions(self.happens_before, self.findings) if self.happens_before is not None else None
        )
        self.tensormaps = Tensormaps(self.findings) if checks else None
        initial = initial_count(program.kernel.entry)
        #: Registers by warp, None where nothing tells how many there are.
        self.register_pool = RegisterPool(initial, slots, self.warps_per_cta) if initial is not None else None
        self.unfenced: dict[int, list[MBarrier]] = {}
        self.inflight = np.zeros(slots, np.int64)
        #: Loads from tensor memory whose registers have not arrived: row -> [(registers, statement)].
        self.pending_loads: dict[int, list[PendingLoad]] = {}
        #: Stores to tensor memory that have not arrived.
        self.pending_stores: dict[int, list[PendingStore]] = {}
        self.tensor_operations: dict[int, list[int]] = {}
        #: What warpgroups have under way in the tensor core.
        self.warpgroups = Warpgroups(
            self.warps, self.warps_per_cta, self.findings, program.accumulators, program.accumulator_copies
        )
        #: Bulk stores of a warp by group, the open group last.
        self.bulk_groups: dict[int, list[list[PendingStore]]] = {}
        #: What warps copy by cp.async and have not waited for.
        self.copies: dict[int, WarpCopies] = {}
        #: What warps learn when they look at the result of a wait: predicate register -> row -> knowledge, lanes.
        self.unread: dict[int, dict[int, tuple[VectorClock, NDArray[np.bool_], Told | None]]] = {}
        #: What relaxed waits of a warp order once it executes a fence that acquires.
        self.unfenced_waits: dict[int, VectorClock] = {}
        self.wake: Callable[[object], None] = lambda key: None
        #: Takes the next cluster that has not begun out of the grid: its number, None if there is none.
        self.cancel: Callable[[], int | None] = lambda: None
        #: CTAs that have let dependent grids begin, and have not ended; whether there have been any.
        self.released: set[int] = set()
        self.releases = False
        #: Whether grids before this one are still running.
        self.waits_for_grids: Callable[[], bool] = lambda: False
        #: The clusters that have had a refusal of clusterlaunchcontrol.try_cancel, by its operation's number.
        self.refused: dict[int, list[int]] = {}
        thread = (np.arange(self.warps) % self.warps_per_cta)[:, None] * 32 + np.arange(32)
        self.live = thread < self.threads
        #: Threads that have not left the kernel.
        self.present = np.zeros((self.warps, 32), np.bool_)
        #: %ctaid of each warp, and the CTA of the grid in each slot.
        self.cta = np.zeros((self.warps, 3), np.uint32)
        self.cta_number = np.full(self.slots, -1, np.int64)
        self._shared_addresses: dict[tuple[int, np.dtype[Any]], NDArray[Any]] = {}
        self.special = special_registers(self)
        for register in program.registers:
            shape_of = (self.warps, 32, 2) if register.bits == 128 else (self.warps, 32)
            self.add_register(np.zeros(shape_of, register.dtype))
        #: Registers as other types of their width, by the number of the view.
        self.views = [self.registers[index].view(dtype) for index, dtype in program.views]
        if program.has_strong_loads:
            self.expect_strong_loads()
        names = SharedNames(program.variables, regions, self.shared.size)
        self.findings.places = self.places = Places(self.clusters, self.cta, names, memory)

    def add_register(self, register: NDArray[Any]) -> None:
        """One more register of the program, (warps, 32) or more, that holds nothing yet."""
        self.registers.append(register)
        self._empty(len(self.registers) - 1, slice(None))

    def _empty(self, number: int, rows: slice | NDArray[np.int64]) -> None:
        """Let a register of some warps hold nothing, as for a CTA that begins: predicates are false."""
        register = self.registers[number]
        if self.perturbation is not None and number in self.perturbation.sources:
            filled = register[rows]
            self.perturbation.fill(filled)
            register[rows] = filled
        elif register.dtype == np.bool_:
            register[rows] = False
        else:
            register.view(np.uint8).reshape(len(register), -1)[rows] = POISON_BYTE

    def while_reading(self, numbers: Sequence[int]) -> AbstractContextManager[None]:
        """While these asynchronous operations read shared memory, which a rerun changes for them."""
        return nullcontext() if self.perturbation is None else self.perturbation.during(self, numbers)

    def has_written(self, number: int) -> None:
        """A copy has written to shared memory, which a rerun changes where another copy may be writing too."""
        if self.perturbation is not None:
            self.perturbation.after(self, number)

    def shared_address(self, address: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An address in the own CTA's shared memory as the cluster sees it: (warps, 1), with the rank of each CTA."""
        found = self._shared_addresses.get((address, dtype))
        if found is None:
            found = (self.clusters.row_rank[:, None] << RANK_SHIFT | address).astype(dtype)
            self._shared_addresses[address, dtype] = found
        return found

    def expect_strong_loads(self) -> None:
        """The program has strong loads: they may give older values, unless all is to happen as early as legal."""
        strong = self.strong_accesses
        if strong is not None and self.happens_before is not None and self.timeline.schedule != "eager":
            strong.stale = strong.stale or StaleLoads(self.happens_before, self.timeline)
            self.happens_before.sequences = True

    # CTAs.

    def begin_clusters(self, places: Sequence[int], numbers: Sequence[int]) -> None:
        """Put clusters of the grid, by number, into the slots of resident ones."""
        clusters, warps = self.clusters, self.warps_per_cta
        if self.refused:
            for place in places:
                self.refused.pop(place, None)
        ctas = clusters.ctas(numbers)
        slots = (np.array(places, np.int64)[:, None] * clusters.size + np.arange(clusters.size)).ravel()
        rows = (slots[:, None] * warps + np.arange(warps)).ravel()
        self.cta[rows] = np.repeat(ctas, warps, axis=0)
        self.present[rows] = self.live[rows]
        if self.register_pool is not None:
            self.register_pool.begin(slots, rows)
        used = slots[self.cta_number[slots] >= 0]
        if len(used):
            self._clear(used, (used[:, None] * warps + np.arange(warps)).ravel())
        x, y, _ = self.shape.grid
        self.cta_number[slots] = ctas[:, 0] + x * (ctas[:, 1] + y * ctas[:, 2])

    def _clear(self, slots: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Empty what the CTAs before have left in these slots, whose warps are `rows`."""
        for index in range(len(self.registers)):
            self._empty(index, rows)
        for table in (
            self.pending_loads,
            self.pending_stores,
            self.bulk_groups,
            self.copies,
            self.unfenced,
            self.unfenced_waits,
            self.polled,
            *self.unread.values(),
        ):
            if table:
                for row in rows.tolist():
                    table.pop(row, None)
        self.warpgroups.clear(rows)
        self.stack.clear(rows)
        self.shared.clear(slots)
        self.tensor.clear(slots)
        for slot in slots.tolist():
            if self.mbarriers[slot]:
                self.mbarriers[slot] = {}
            if self.ended_mbarriers[slot]:
                self.ended_mbarriers[slot] = {}
            if self.tensor_operations:
                self.tensor_operations.pop(slot, None)
        if self.strong_accesses is not None:
            self.strong_accesses.clear(slots)
        if self.happens_before is not None:
            self.happens_before.clear(slots)

    def warp_name(self, row: int) -> str:
        """A warp, for messages."""
        return f"warp {row % self.warps_per_cta} of {self.cta_name(int(self.row_slot[row]))}"

    def cta_name(self, slot: int) -> str:
        """The CTA in a slot, as its %ctaid."""
        x, y, z = self.cta[slot * self.warps_per_cta]
        return f"CTA ({x}, {y}, {z})"

    # Asynchronous work and barriers.

    def submit(
        self, slot: int | NDArray[np.int64], statement: syntax.Statement, action: Action, *, pipe: object = None
    ) -> None:
        """Queue asynchronous work of a CTA, or of several at once; a fault in it is the fault of `statement`."""
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

        self.timeline.submit(run, pipe=pipe)

    def mbarrier(self, slot: int, address: int, row: int, statement: syntax.Statement) -> MBarrier:
        """The object at a shared address, as warp `row` uses it. Raises MemoryFault if there is none."""
        found = self.mbarriers[slot].get(address)
        if found is None:
            raise MemoryFault(
                mbarriers.MBARRIER_UNINITIALIZED,
                f"no mbarrier at {self.findings.name('shared', address)}",
                rule="mbarrier.init of this address is missing",
            )
        happens_before = self.happens_before
        if happens_before is not None and row != found.made_by and not happens_before.has_observed_init(row, found):
            apart = self.row_slot[row] != self.row_slot[found.made_by]
            relaxed = happens_before.ordered_by_relaxed_arrival(row, found.made_by, found.made_at)
            if relaxed:
                rule = "Only barrier.cluster.arrive.relaxed lies between them, which orders nothing by itself"
                fix = "fence.mbarrier_init.release.cluster before the barrier.cluster.arrive.relaxed"
            else:
                rule = "The two warps have not synchronized since the init"
                fix = f"{'fence.mbarrier_init and barrier.cluster' if apart else 'a barrier'} between the two"
            user = self.findings.access("accessor", statement, row, slot=slot, space="shared", address=address)
            init = self.findings.access(
                "initializer", found.statement, found.made_by, slot=slot, space="shared", address=address
            )
            self.findings.report(
                mbarriers.MBARRIER_INIT_RACE,
                statement,
                summary=f"{user} uses {user.place} before {init}{' of a peer CTA' if apart else ''} is visible to it",
                rule=rule,
                fix=fix,
                accesses=(user, init),
                severity="advice" if relaxed else "error",
            )
        return found

    def learn_when_read(
        self, row: int, predicate: int, known: VectorClock, lanes: NDArray[np.bool_], told: Told | None
    ) -> None:
        """A wait succeeded for some lanes. It orders later accesses only in a program that looks at its result. `told`
        is what of it scopes include.
        """
        if self.happens_before is not None:
            unread = self.unread.setdefault(predicate, {})
            unread[row] = known, lanes | unread[row][1] if row in unread else lanes, told

    def learn_at_fence(self, row: int, known: VectorClock) -> None:
        """A relaxed wait succeeded. It orders later accesses only after a fence."""
        if self.happens_before is not None:
            if row in self.unfenced_waits:
                self.unfenced_waits[row].join(known)
            else:
                self.unfenced_waits[row] = known.copy()

    def learn(self, rows: NDArray[np.int64], reads: frozenset[int]) -> None:
        """These warps read registers; if one is the result of a wait, they learn what it tells."""
        assert self.happens_before is not None
        for predicate in reads & self.unread.keys():
            waiting = self.unread[predicate]
            for row in rows:
                acquired = waiting.pop(int(row), None)
                if acquired is not None:
                    self.happens_before.acquire(int(row), *acquired)
            if not waiting:
                del self.unread[predicate]

    def settle(self, slot: int, barrier: MBarrier) -> None:
        """End the phase of a barrier if it is complete, and wake who waits for it."""
        self.effects += 1
        if barrier.is_complete:
            if self.transactions is not None:
                self.transactions.phase_ends(barrier)
            barrier.end_phase()
            self.wake(("mbarrier", slot, barrier.address))

    def promise(self, slot: int, address: int, row: int, signal: Signal) -> MBarrier:
        """Warp `row` issues what will signal an mbarrier. Raises MemoryFault if there is none."""
        barrier = self.mbarrier(slot, address, row, signal.statement)
        if self.transactions is not None and signal.size:
            self.transactions.issued(barrier, row, signal)
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
            )
        barrier.over(signal)
        barrier.complete(signal.size, signal.statement, signal.operation)
        self.settle(slot, barrier)

    def arrive_on(self, slot: int, barrier: MBarrier, signal: Signal, count: int = 1) -> None:
        """What an asynchronous operation arrives on an mbarrier for is over."""
        barrier.over(signal)
        barrier.account.closed = True
        barrier.arrive(count, signal.statement)
        self.settle(slot, barrier)


class PendingLoad:
    """A tcgen05.ld on its way: the registers that it will write, what it reads, how it completes, if it has."""

    __slots__ = ("bands", "columns", "complete", "done", "registers", "statement")

    def __init__(
        self, registers: frozenset[int], statement: syntax.Statement, bands: list[int], columns: range, complete: Action
    ) -> None:
        self.registers, self.statement, self.complete = registers, statement, complete
        self.bands, self.columns = bands, columns
        self.done = False


_WARP = np.ones(32, np.bool_)


class PendingStore:
    """A store on its way: the lanes, (32), that issued it, whether it has read its source and arrived, its number in
    the happens-before relation, and what `GlobalCopies` knows it by. `finish` lets one to tensor memory arrive at once.
    """

    __slots__ = ("done", "finish", "lanes", "operation", "read", "stamp")

    def __init__(self, lanes: NDArray[np.bool_] = _WARP) -> None:
        self.lanes = lanes
        self.done, self.read, self.operation, self.stamp = False, False, 0, 0
        self.finish: Callable[[], None] | None = None
