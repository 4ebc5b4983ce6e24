"""Events of a launch, and their observers.

The emulator's state (warps, memories, barriers, engines) is independent of the checks: it emits events to
`machine.events`. An observer overrides the methods of the events that it handles; the others cost one call of an empty
function. Checks of races, the taint of registers, traces and the timing model are observers. Events return nothing:
what an observer needs later it keeps itself, by the number of the mbarrier or of the asynchronous work.

Warps are numbers of resident ones (`machine.cta_slot` gives the CTA slot). `lanes` are bool arrays of shape (32,) where
the event is of one warp, (warps, 32) where it is of several. Granules are numbers of 16 bytes of a CTA's shared memory,
bands numbers of 16 lanes of tensor memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Finding, Kernel, Status
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.engines.matrix_operands import MatrixOperand
    from ptxgen.emulator.engines.timeline import Timeline
    from ptxgen.emulator.engines.work import AsyncWork
    from ptxgen.emulator.load.registers import Register
    from ptxgen.emulator.load.shared_names import SharedNames
    from ptxgen.emulator.memory import GlobalMemory, SharedMemory, TensorMemory
    from ptxgen.emulator.memory.located import MemoryAccess
    from ptxgen.emulator.state.mbarriers import MBarrier
    from ptxgen.emulator.state.names import Names
    from ptxgen.emulator.state.signals import Signal
    from ptxgen.emulator.state.tensor_transfers import TensorLoad

Lanes = NDArray[np.bool_]
AnObserver = TypeVar("AnObserver", bound="Observer")


class MachineView(Protocol):
    """What observers see of the machine of a launch (`ptxgen.emulator.state.machine`)."""

    #: Its `now` is the virtual time, in blocks that have run.
    timeline: Timeline
    warps_per_cta: int
    #: The CTA slot of each warp.
    cta_slot: NDArray[np.int64]
    #: %ctaid, linear, by CTA slot.
    cta_number: NDArray[np.int64]
    memory: GlobalMemory
    shared: SharedMemory
    tensor: TensorMemory
    #: The mbarriers of each CTA slot, by offset in its shared memory.
    mbarriers: list[dict[int, MBarrier]]
    shared_names: SharedNames
    names: Names
    #: (warps, 32) words each, by the number of the register.
    registers: list[NDArray[Any]]

    def warp_name(self, warp: int) -> str: ...
    def cta_name(self, slot: int) -> str: ...


class ProgramView(Protocol):
    """What observers see of the program of a launch (`ptxgen.emulator.load.program`)."""

    kernel: Kernel
    uses_reserved_shared: bool

    def registers_at(self, line: int) -> dict[str, Register]: ...


class Observer:
    """Handles events of one launch; every method is empty here."""

    # The launch.

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        """A launch begins; nothing has run yet."""

    def instruction_issued(
        self, warps: NDArray[np.int64], lanes: Lanes, executes: Lanes, statement: Instruction
    ) -> None:
        """Lanes of warps reach an instruction together; its guard lets those that are in `executes` execute it, now
        or once what they wait for has come.
        """

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        """The CTAs in these slots have ended, and others are about to begin there."""

    def ctas_begin(self, slots: NDArray[np.int64]) -> None:
        """CTAs begin in these slots; those of a cluster together, the one of rank 0 first."""

    def ctas_end(self, slots: Sequence[int]) -> None:
        """The last threads of the CTAs in these slots have exited."""

    def grid_follows(self, before: Events) -> None:
        """This grid begins while the one before it, with these events, may still run (griddepcontrol)."""

    def finding_reported(self, finding: Finding) -> None:
        """A check, or the machine itself, reports a finding for the first time."""

    def launch_deadlocks(self, may_execute: Callable[[int, Statement], bool]) -> None:
        """No warp can proceed; `may_execute` says whether one would come to a statement if it could."""

    def launch_ends(self, status: Status) -> None:
        """The launch has ended, with this status."""

    # Barriers of CTAs and clusters, and convergence of lanes.

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
        """Lanes of a warp arrive at barrier `name` of a CTA; without `waits` they do not block (bar.arrive). It
        expects so many threads, all of the CTA where it names no number.
        """

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        """All threads that a barrier expects have arrived; `warps` have waited there."""

    def ctas_synchronize(
        self, slots: NDArray[np.int64], name: int, statement: Instruction, *, threads: int | None
    ) -> None:
        """All warps of each of these CTAs arrive at barrier `name` together, so that none has to wait."""

    def cluster_arrives(
        self, warp: int, lanes: Lanes, phase: int, statement: Statement, *, relaxed: bool, unwaited: bool
    ) -> None:
        """Lanes of a warp arrive at their cluster's barrier in a phase; `unwaited`: some did not wait for the last."""

    def cluster_leaves(self, warp: int, lanes: Lanes) -> None:
        """Lanes of a warp exit that have not arrived in the present phase of their cluster's barrier."""

    def cluster_phase_ends(self, cluster: int) -> None:
        """A phase of the barrier of a resident cluster ends."""

    def cluster_waits(self, warp: int, lanes: Lanes, phase: int, statement: Statement) -> None:
        """Lanes of a warp have waited for a phase of their cluster's barrier."""

    def lanes_converge(self, warps: NDArray[np.int64]) -> None:
        """All lanes of each of these warps that have not exited synchronize (bar.warp.sync)."""

    def lane_groups_converge(self, warp: int, groups: Sequence[int]) -> None:
        """Only lanes of these groups (bits) of a warp synchronize, those of each with each other."""

    def lanes_exchange(self, warps: NDArray[np.int64], lanes: Lanes, statement: Instruction) -> None:
        """These lanes of warps, (warps, 32), exchange values: shuffles, votes, reductions of a warp."""

    def shuffle_undefined(
        self, warps: NDArray[np.int64], lanes: Lanes, sources: NDArray[np.int64], statement: Instruction
    ) -> None:
        """These lanes of warps get the value of a lane of `sources` (warps, 32) that does not take part."""

    def registers_set(self, warp: int, statement: Instruction, count: int) -> None:
        """A warp has executed setmaxnreg: each of its threads has so many registers now."""

    # Fences.

    def fence(
        self,
        warps: NDArray[np.int64],
        lanes: Lanes,
        *,
        acquires: bool,
        releases: bool,
        sequences: bool,
        proxy: bool,
        scope: str | None,
    ) -> None:
        """Threads execute a fence or membar; `sequences`: fence.sc, `proxy`: it is one of the async proxy too."""

    def proxy_fence(self, warps: NDArray[np.int64], lanes: Lanes, *, shared: bool, heap: bool) -> None:
        """Threads execute fence.proxy.async for shared memory, for global memory (`heap`), or for both."""

    def mbarrier_init_fence(self, warp: int, mbarriers: Sequence[MBarrier]) -> None:
        """A warp's fence makes the init of mbarriers, which it has made, visible to the async proxy."""

    def tensormap_release(self) -> None:
        """A thread executes fence.proxy.tensormap::generic.release."""

    def tensormap_acquire(self, warp: int, address: int) -> None:
        """A thread executes fence.proxy.tensormap::generic.acquire on a map in global memory."""

    def tensor_fence(self, warps: NDArray[np.int64], lanes: Lanes, *, before: bool) -> None:
        """Threads execute tcgen05.fence::before_thread_sync, or ::after_thread_sync if not `before`."""

    # Mbarriers.

    def mbarrier_initialized(self, warp: int, slot: int, mbarrier: MBarrier) -> None:
        """A warp makes an mbarrier in the shared memory of a CTA."""

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        """A warp executes mbarrier.inval: the object is gone."""

    def mbarrier_used(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        """A warp uses an mbarrier in any way, or issues what will signal it."""

    def mbarriers_updated(
        self, warp: int, lanes: int, slot: int, statement: Statement, *, arrives: bool, relaxed: bool
    ) -> None:
        """Lanes (bits) of a warp are about to update mbarriers by one instruction, the first of them in CTA `slot`."""

    def mbarrier_updated(
        self,
        warp: int,
        slot: int,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        expects: bool,
        arrives: bool,
        scope: str | None,
    ) -> None:
        """A lane of a warp is about to update an mbarrier: it `expects` bytes (expect_tx), it `arrives`, or both; with
        neither it executes mbarrier.complete_tx.
        """

    def mbarrier_counts_copies(
        self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement, *, increments: bool
    ) -> None:
        """Lanes of a warp execute cp.async.mbarrier.arrive: with `increments` (no .noinc) they are about to raise the
        pending count of this phase.
        """

    def signal_promised(self, warp: int, mbarrier: MBarrier, signal: Signal) -> None:
        """A warp issues asynchronous work that will signal an mbarrier."""

    def copy_signals(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        """That work is a copy, which completes in the async proxy."""

    def arrivals_split(self, warp: int, slot: int, mbarrier: MBarrier, first: int, statement: Statement) -> None:
        """Asynchronous arrivals of a warp's lanes by one instruction count in phase `first` and in later ones."""

    def signal_arrives(self, mbarrier: MBarrier, signal: Signal) -> None:
        """Asynchronous work completes bytes on an mbarrier, or arrives on it."""

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        """All that the present phase of an mbarrier expects has come; the next phase is about to begin."""

    def mbarrier_polled(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        """A test or wait of a warp finds a phase not ended."""

    def ended_mbarrier_waited(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        """A warp waits for a phase that had ended before mbarrier.inval, which it comes after."""

    # Waits.

    def mbarrier_waited(
        self,
        warp: int,
        lanes: Lanes,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        relaxed: bool,
        cluster: bool,
        result: int,
    ) -> None:
        """Lanes of a warp find a phase of an mbarrier ended, with scope .cta or .cluster; register `result` says so."""

    def grid_released(self, warps: NDArray[np.int64]) -> None:
        """Warps have executed griddepcontrol.launch_dependents."""

    def grids_waited(self, warps: NDArray[np.int64]) -> None:
        """Warps have waited for the grids before by griddepcontrol.wait."""

    def registers_read(self, warps: NDArray[np.int64], registers: Set[int]) -> None:
        """Warps read registers, by number, that an observer has put into `machine.watched`."""

    # Accesses to memory by instructions.

    def memory_requested(self, access: MemoryAccess) -> None:
        """A load, store or cp.async accesses bytes at the addresses of its lanes: hardware takes the same ones."""

    def memory_loads(self, access: MemoryAccess) -> None:
        """Lanes load; a strong load (volatile, relaxed, acquire) has an order."""

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        """Lanes are about to store values, neighboring words of each lane; a strong store has an order."""

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        """Lanes are about to change memory by an atomic operation, one after the other: the active lanes in the order
        of `turns`, or without it in that of warps and lanes. It `returns` what it finds there (red does not), and
        `uses` it (exch does not).
        """

    def strong_stores_done(self, data: NDArray[np.uint8], found: NDArray[Any] | None) -> None:
        """The strong stores that were about to change these bytes of memory have done so; or the atomic operations of
        one word, with what each active lane has found there.
        """

    def block_stored(self, warp: int, lane: int, slot: int, start: int, size: int, statement: Instruction) -> None:
        """st.bulk: a thread has stored `size` bytes, a multiple of 8, from an offset of a CTA's shared memory on."""

    def tensormap_changes(self, warp: int, address: int, statement: Instruction) -> None:
        """tensormap.replace: a thread is about to change a map at an address in global memory."""

    def shared_tensormaps_change(self, maps: Sequence[tuple[int, int, int, int]], statement: Instruction) -> None:
        """tensormap.replace: threads are about to change maps in shared memory: (warp, lane, CTA slot, offset) each."""

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Instruction) -> None:
        """tensormap.cp_fenceproxy: a warp copies a map from shared memory to an address in global memory, and releases
        it to the tensormap proxy.
        """

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Instruction, *, prefetches: bool = False
    ) -> None:
        """A warp's tensor copy, or its prefetch, reads its map, these bytes, at an address in global memory."""

    def constant_tensormap_used(
        self, warp: int, data: bytes, statement: Instruction, *, prefetches: bool = False
    ) -> None:
        """A warp's tensor copy, or its prefetch, reads a map among the kernel's parameters: these bytes."""

    def heap_grows(self, bytes: int) -> None:
        """Arrays lie in so many bytes of global memory from now on (`GlobalMemory.extent`)."""

    # Asynchronous work.

    def work_issued(self, work: AsyncWork) -> None:
        """Threads issue asynchronous work. What it reads and writes comes right after, before it does so."""

    def work_completed(self, work: AsyncWork) -> None:
        """Asynchronous work completes, at the current virtual time."""

    def work_signals(self, work: AsyncWork, signal: Signal, offset: int) -> None:
        """Work will arrive on mbarriers when it completes, among them the one at an offset of shared memory."""

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        """Work that these warps issue together will read these bytes (masks) of granules, with the swizzle that its
        descriptor names.
        """

    def operand_read(
        self, work: AsyncWork, slot: int, operand: MatrixOperand, sum: Hashable, *, accumulates: bool
    ) -> None:
        """An MMA will read A or B in shared memory, for the accumulator `sum`; it overwrites that, or accumulates."""

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        """Work will write these granules."""

    def work_reads_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        """Work will read these granules of the heap; those outside it are a fault later."""

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        """Work will write these granules of the heap, or reduce into them."""

    def work_awaited(self, warp: int, lanes: Lanes, works: Sequence[AsyncWork], *, reads: bool = False) -> None:
        """Lanes of a warp have waited for works of its own; with `reads` only until they had read their sources."""

    def copies_issued(
        self, works: Sequence[AsyncWork], access: MemoryAccess, sources: NDArray[np.int64], read: NDArray[np.int64]
    ) -> None:
        """cp.async: each warp issues one of the works. Lanes copy `read` bytes (warps, 32) from `sources`, offsets of
        the heap, and zeros after them, to what they access in their own CTA's memory.
        """

    def copies_awaited(self, warp: int, works: Sequence[AsyncWork], signaled: Sequence[AsyncWork]) -> None:
        """A warp has waited for its cp.async; for those `signaled` an mbarrier has got an arrival before."""

    def copies_arrive_later(self, warp: int, works: Sequence[AsyncWork], signal: Signal) -> None:
        """cp.async.mbarrier.arrive by a warp: an arrival once these cp.async of its lanes complete."""

    def copies_arrive(self, warp: int, works: Sequence[AsyncWork]) -> None:
        """An mbarrier gets the arrival for these cp.async, the first for each."""

    def async_store_issued(self, work: AsyncWork, offsets: NDArray[np.int64], size: int, signal: Signal) -> None:
        """Lanes of a warp issue st.async or red.async of `size` bytes each to offsets (lanes,) of a CTA's memory."""

    def bulk_group_committed(self, warp: int, lanes: Lanes) -> None:
        """Lanes of a warp close their bulk group."""

    def bulk_groups_awaited(self, warp: int, lanes: Lanes) -> None:
        """Lanes of a warp have waited for all their bulk groups: what is in them has read its source and tensormap."""

    def response_issued(self, work: AsyncWork, slots: Sequence[int], granules: NDArray[np.int64]) -> None:
        """A request for launch control will write its response to these granules of CTAs' memories."""

    def response_refuses(self, work: AsyncWork) -> None:
        """The response says that there is no cluster left."""

    def warpgroup_issues(self, warps: Sequence[int]) -> None:
        """The warps of a warpgroup issue a wgmma.mma_async together."""

    # Tensor memory.

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        """A warp's tcgen05.ld will read columns of bands of its quarter of the lanes."""

    def tensor_loads_awaited(self, warp: int, loads: Sequence[TensorLoad]) -> None:
        """A warp has executed tcgen05.wait::ld, with these tcgen05.ld in flight."""

    def tensor_load_used(self, warp: int, load: TensorLoad) -> None:
        """A warp reads a register of this tcgen05.ld, for which it has not waited."""

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        """A warp's tcgen05.st will write columns of bands of its quarter of the lanes."""

    def tensor_stores_awaited(self, warp: int, works: Sequence[AsyncWork]) -> None:
        """A warp has waited for its tcgen05.st."""

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        """A tcgen05 operation will read an operand (`A`, `the scale factors of A`) in tensor memory."""

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        """A tcgen05.mma, cp or shift will write columns, or add to them."""

    def accumulator_written(
        self,
        work: AsyncWork,
        slot: int,
        bands: list[int],
        columns: range,
        type: str,
        place: tuple[int, int],
        cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        """These columns, which a tcgen05.mma has been found to write, are an accumulator of this type: element (m, n)
        has the lane and column of `cells` from `place` on.
        """

    def pair_allocates(self, warp: int, peer: int, statement: Instruction) -> None:
        """A warp requests columns of tensor memory in both CTAs of its pair; `peer` is the slot of the other one."""

    def pair_frees(self, warp: int, peer: int, columns: range, statement: Statement) -> None:
        """A warp frees columns in its pair of CTAs, before they are `tensor_freed` in its own; a warp of the other CTA,
        in slot `peer`, has to do the same.
        """

    def tensor_freed(self, warp: int, slot: int, columns: range, statement: Statement) -> None:
        """A warp frees columns of tensor memory."""

    def tensor_committed(
        self, warp: int, signal: Signal, commits: Sequence[tuple[int, AsyncWork]], offset: int
    ) -> None:
        """tcgen05.commit: the mbarrier at an offset gets an arrival in each of these (slot, its work)."""

    # Shared memory.

    def shared_stored(
        self, warp: int, granules: NDArray[np.int64], bytes: NDArray[np.uint16], statement: Statement
    ) -> None:
        """A warp's instruction writes bytes (masks) of granules of its own CTA."""


Handler = Callable[..., None]


def _nobody(*_: object, **__: object) -> None:
    """Handles an event without observers."""


def _everyone(handlers: Sequence[Handler]) -> Handler:
    def emit(*arguments: object, **named: object) -> None:
        for handler in handlers:
            handler(*arguments, **named)

    return emit


def handlers(base: type, observers: Sequence[object]) -> dict[str, Handler]:
    """By name of an event, a method of `base`, what passes it to the observers that override it, in their order."""
    found: dict[str, Handler] = dict.fromkeys(_events(base), _nobody)
    for name, numbers in _handling(base, tuple(map(type, observers))):
        found[name] = _handler(name, [observers[number] for number in numbers])
    return found


def _handler(name: str, observers: Sequence[object]) -> Handler:
    each = [getattr(observer, name) for observer in observers]
    if len(each) < 2:
        return each[0] if each else _nobody
    return _everyone(each)


@cache
def _handling(base: type, kinds: tuple[type, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The events that some of these classes override, and the numbers of those: launches have the same ones."""
    found: dict[str, list[int]] = {}
    for number, kind in enumerate(kinds):
        for name in _handled(base, kind):
            found.setdefault(name, []).append(number)
    return tuple((name, tuple(numbers)) for name, numbers in found.items())


@cache
def _events(base: type) -> tuple[str, ...]:
    """The events of a class of observers."""
    return tuple(name for name in vars(base) if not name.startswith("_"))


@cache
def _handled(base: type, kind: type) -> tuple[str, ...]:
    """The names of the events that a class overrides."""
    return tuple(name for name in _events(base) if getattr(kind, name) is not vars(base)[name])


class Events(Observer):
    """Passes each event to the observers that handle it."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self.observers = tuple(observers)
        self._handling = dict(_handling(Observer, tuple(map(type, observers))))

    def find(self, kind: type[AnObserver]) -> AnObserver | None:
        """The observer of a class, if there is one."""
        return next((each for each in self.observers if isinstance(each, kind)), None)

    def observes(self, name: str) -> bool:
        """Whether any observer handles an event; test it before work that only the event needs."""
        return name in self._handling

    def handler(self, name: str) -> Handler:
        """What passes an event to the observers that override it, in their order."""
        return _handler(name, [self.observers[number] for number in self._handling.get(name, ())])


class _Event:
    """An attribute of `Events`: an event's handler, made when the first such event occurs; most launches have few."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, events: Events, owner: type[Events]) -> Handler:
        made = vars(events)[self.name] = events.handler(self.name)
        return made


for _name in _events(Observer):
    setattr(Events, _name, _Event(_name))
