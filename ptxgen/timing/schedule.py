"""The machine schedule: virtual time is the cycle of a described machine.

Beside `eager`, `late` and `random` (`ptxgen.emulator.engines.timeline`): it says at which cycle each warp issues next,
from the machine code of its instructions, and at which cycle each asynchronous work completes, from the units of its
SM. It executes nothing itself: it is told of instructions, waits and works by the events of the launch.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.engines.timeline import Action, Timeline
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.load.unused import Unused
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import MachineView, Observer, ProgramView
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.layouts.banks import BANK_BYTES, BANKS, LINE_BYTES, wavefronts
from ptxgen.syntax import Instruction, Statement
from ptxgen.timing.engines import Engines, Shared
from ptxgen.timing.issue import BlockCost, Cost, Costs
from ptxgen.timing.l1 import SECTOR

_NO_COST = Cost()
#: Suffix of the names of copies from shared to global memory.
_COPIES_OUT = ("store", "reduction")
_SCHEDULERS = 4
_FLOATS = re.compile(r"\.(?:f|bf)\d+")
#: Cycles that warps may lie apart which execute a block at a time.
_TOGETHER = 4


@lru_cache(maxsize=1024)
def _path(opcode: str) -> tuple[bool, bool]:
    """Whether an access of global memory reads, and whether it looks for its sectors in L1 and keeps them there."""
    name, *modifiers = opcode.split(".")
    return name in ("ld", "ldu", "cp"), not {"cg", "cv", "volatile", "L1::no_allocate"}.intersection(modifiers)


def _wavefronts(addresses: NDArray[np.int64], active: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Cycles of shared memory for each warp's access; one where a whole warp needs no more than a word of each bank.

    A K block of nvcc's sgemm_tiled with 8 LDS.128 at one address a warp says so: 2200 cycles, with four each 2950.
    """
    took, _ = wavefronts(addresses, active, size)
    if size <= BANK_BYTES:
        return took
    for position in np.flatnonzero(took > 1).tolist():
        first = np.unique(addresses[position][active[position]]) // BANK_BYTES
        words = np.unique(first[:, None] + np.arange(size // BANK_BYTES))
        if len(words) <= BANKS and len(np.unique(words % BANKS)) == len(words):
            took[position] = 1
    return took


class DataNeededError(Exception):
    """A load that decides something reads shared memory to which a copy has moved no data."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What a warp did from one cycle to another: "issue" at PTX lines, or what it waited for, and at which line."""

    warp: int
    begin: float
    end: float
    what: str
    line: int


class MachineSchedule(Timeline, Observer):
    """Cycles of a launch. `engines` by SM; `sm_of` gives the SM of a CTA slot; `costs` come with the program."""

    paces = True

    def __init__(
        self,
        costs: Callable[[ProgramView], Costs],
        engines: Sequence[Engines],
        *,
        computes: bool = True,
        record: bool = True,
    ) -> None:
        super().__init__("machine", 0)
        self.computes, self._record = computes, record
        self._costs_of, self.engines = costs, engines
        self.sm = engines[0].sm
        #: The cycle at which each warp issues next, and since when it waits.
        self._at: list[float] = []
        self._waits: dict[int, tuple[float, object, int]] = {}
        self.segments: list[Segment] = []
        self._open: dict[int, tuple[float, int]] = {}
        self._ended: dict[int, float] = {}
        self._arrived: dict[int, float] = {}
        self._lines: Mapping[int, Cost] = {}
        #: Blocks of the PTX and lines of the instruction cache that each SM has executed.
        self._fetched = set[tuple[int, int]]()
        self._fetched_code = set[tuple[int, int]]()
        self._issue: dict[tuple[int, int], Shared] = defaultdict(Shared)
        self._pipe: dict[tuple[int, int, str], Shared] = defaultdict(Shared)
        #: By warp and PTX line, the cycle at which the last load of global memory there has its result.
        self._loads: dict[tuple[int, int], float] = {}
        #: Likewise of cp.async, from its issue until the emulator queues it.
        self._copies: dict[tuple[int, int], float] = {}
        #: Copies to global memory by number, from their issue until they are complete.
        self._reading: dict[int, tuple[AsyncWork, Action, float]] = {}
        self._looks: dict[int, int] = {}
        #: Blocks with a wait at a barrier of the cluster, and with an arrival that releases; warps that wait at one.
        self._meets, self._releases, self._meeting = set[int](), set[int](), set[int]()
        self._barriers: dict[tuple[int, int], float] = {}
        self._machine: MachineView | None = None
        self._begun = set[int]()
        self._parts: dict[int, float] = {}
        #: Instructions of warps, costs of blocks by rank, and the cycles that warps have spent there.
        self.issued = 0.0
        self._blocks: dict[int, BlockCost] = {}
        self._spent: dict[int, float] = defaultdict(float)
        #: Begin and end of each CTA that has run, by slot.
        self.ctas: list[tuple[int, float, float]] = []
        self._cta_begins: dict[int, float] = {}
        #: Loads whose results decide something, and by slot the granules of shared memory that hold no data.
        self._deciding = frozenset[Statement]()
        self._missing: dict[int, NDArray[np.bool_]] = {}

    # The policy.

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._machine = machine
        self._at = [0.0] * len(machine.cta_slot)
        self._slot = [int(each) for each in machine.cta_slot]
        assert isinstance(program, Program)
        self._program = program
        if not self.computes:
            self._deciding = Unused.of(program).loads
        self._costs = self._costs_of(program)
        self._lines = self._costs.lines
        for rank, block in enumerate(program.blocks):
            opcodes = [each.statement.opcode for each in block.operations if isinstance(each.statement, Instruction)]
            if any(each.startswith("barrier.cluster.wait") for each in opcodes):
                self._meets.add(rank)
            if any(each.startswith("barrier.cluster.arrive") and ".relaxed" not in each for each in opcodes):
                self._releases.add(rank)

    @property
    def warps_per_cta(self) -> int:
        assert self._machine is not None
        return self._machine.warps_per_cta

    def _sm(self, slot: int) -> int:
        return slot % len(self.engines)

    def pick(self, ready: NDArray[np.bool_], current: NDArray[np.int64]) -> tuple[NDArray[np.int64], int] | None:
        """The ready warps with the earliest cycles that stand at one pc; what completes before comes first."""
        assert self._machine is not None
        while True:
            warps = np.flatnonzero(ready).tolist()
            if not warps:
                return None
            at = self._at
            cycle = min(at[warp] for warp in warps)
            if self._queue and self._queue[0][0] <= cycle:
                self.jump()
                continue
            first = min((warp for warp in warps if at[warp] == cycle), key=lambda warp: current[warp])
            pc, last = int(current[first]), cycle + _TOGETHER
            self.now = int(cycle)
            return np.array([warp for warp in warps if at[warp] <= last and current[warp] == pc], np.int64), pc

    def submit(self, action: Action, *, pipe: object = None, works: Sequence[AsyncWork] = ()) -> None:
        now = float(self.now)
        if len(works) == 1 and works[0].what.endswith(_COPIES_OUT) and works[0].number not in self._reading:
            self._stores(works[0], action, now)
            return
        due = max((self._completes(work, now) for work in works), default=now)
        if pipe is not None:
            due = self._pipes[pipe] = max(due, self._pipes.get(pipe, 0.0))
        self._sequence += 1
        heapq.heappush(self._queue, (due, self._sequence, action))

    def _completes(self, work: AsyncWork, now: float) -> float:
        engines, sm = self.engines[self._sm(work.slot)], self.sm
        if work.mma is not None:
            return engines.mma(work, now)
        if work.number in self._reading:
            del self._reading[work.number]
            return now + sm.store_end.value
        if work.what in ("st.async", "red.async"):
            return engines.peer_store(work, now)
        if work.what in ("tcgen05.ld", "tcgen05.st"):
            return engines.tensor_transfer(work, now)
        if work.what == "tcgen05.commit":
            return now
        if work.what == "cp.async":
            return self._copies.pop((work.warp, work.statement.line), now)
        if work.bytes:
            return engines.load(work, now)
        return now + sm.latency["LDG"].value

    def _stores(self, work: AsyncWork, action: Action, now: float) -> None:
        """A copy to global memory begins to read its source, in turns with others of its SM."""
        engines = self.engines[self._sm(work.slot)]
        self._reading[work.number] = work, action, now
        engines.stores.add(now, work.number, engines.store_takes(work))
        self._look(engines)

    def _look(self, engines: Engines) -> None:
        """Queue a look at the stores of an SM, for when the next one is through."""
        self._sequence += 1
        due, number = engines.stores.due, self._sequence
        self._looks[engines.number] = number

        def look() -> None:
            if self._looks[engines.number] != number:
                return  # another store has come meanwhile
            for through in engines.stores.through(due):
                work, action, issued = self._reading[through]
                engines.store_read(work, issued, due)
                action()
            if engines.stores.left:
                self._look(engines)

        heapq.heappush(self._queue, (due, number, look))

    def advance(self, steps: int) -> None:
        """Blocks take no time of their own: instructions do."""

    def jump(self) -> bool:
        """Do the next work, at its cycle; nothing that completes later is skipped."""
        if not self._queue:
            return False
        due, _, action = heapq.heappop(self._queue)
        self.now = int(due)
        action()
        return True

    def blocks(self, warp: int, key: object, statement: Instruction) -> None:
        self._close(warp)
        self._waits[warp] = self._at[warp], key, statement.line
        if isinstance(key, tuple) and key[0] == "cluster":
            self._meeting.add(warp)

    def wakes(self, warp: int, key: object) -> None:
        since, _, line = self._waits.pop(warp, (self._at[warp], key, 0))
        begin = float(self.now)
        if isinstance(key, tuple) and key[0] == "mbarrier" and self._machine is not None:
            barrier = self._machine.mbarriers[key[1]].get(key[2])
            begin = max(begin, self._ended.get(id(barrier), 0.0))
        if isinstance(key, tuple) and key[0] == "cluster":
            begin += self.sm.cluster_barrier.value
        elif isinstance(key, tuple) and key[0] in ("mbarrier", "bulk group", "tcgen05.wait"):
            begin += self.sm.wake.value
        end = max(since, begin)
        self._at[warp] = end
        if self._record and end > since:
            self.segments.append(Segment(warp, since, end, self._name(key), line))
        self._open[warp] = end, line

    def _name(self, key: object) -> str:
        if isinstance(key, tuple) and key[0] == "mbarrier" and self._machine is not None:
            barrier = self._machine.mbarriers[key[1]].get(key[2])
            return barrier.name.partition(" (")[0] if barrier is not None else f"mbarrier at {key[2]:#x}"
        if isinstance(key, tuple):
            return next((each for each in key if isinstance(each, str)), type(key).__name__.lower())
        return str(key)

    def _close(self, warp: int) -> None:
        begin, line = self._open.pop(warp, (self._at[warp], 0))
        if self._record and self._at[warp] > begin:
            self.segments.append(Segment(warp, begin, self._at[warp], "issue", line))

    # Events.

    def ctas_begin(self, slots: NDArray[np.int64]) -> None:
        assert self._machine is not None
        per_cta = self._machine.warps_per_cta
        for slot in map(int, slots):
            begin = float(self.now)
            if slot in self._begun:
                plain = self.engines[self._sm(slot)].plain
                begin += (self.sm.next_plain if plain else self.sm.next_cta).value
            else:  # an SM has its next CTA when all others have one
                begin += slot // len(self.engines) * self.sm.dispatch.value * self.engines[0].machine.sms.value
            self._begun.add(slot)
            self._cta_begins[slot] = begin
            for warp in range(slot * per_cta, (slot + 1) * per_cta):
                self._at[warp] = begin
                self._open[warp] = begin, 0

    def ctas_end(self, slots: Sequence[int]) -> None:
        assert self._machine is not None
        per_cta = self._machine.warps_per_cta
        for slot in slots:
            warps = range(slot * per_cta, (slot + 1) * per_cta)
            for warp in warps:
                self._close(warp)
            end = max(self._at[warp] for warp in warps)
            engines, left = self.engines[self._sm(slot)], end
            if engines.stored:
                end += self.sm.drain.value
            self.now = max(self.now, int(left if engines.plain else end))
            end = max(end, engines.settled)
            self.ctas.append((slot, self._cta_begins[slot], end))

    def runs(self, warps: Sequence[int], rank: int) -> None:
        assert self._machine is not None
        if (cost := self._blocks.get(rank)) is None:
            lines = (each.statement.line for each in self._program.blocks[rank].operations)
            cost = self._blocks[rank] = BlockCost.of(lines, self._costs)
        per_cta, latest = self._machine.warps_per_cta, 0.0
        for warp in warps:
            begin = self._at[warp]
            for cycles, lines, copies in cost.waits:
                begin += cycles
                for line in lines:
                    # Loads of unrolled copies of the line are in flight together.
                    begin += max(self._loads.pop((warp, line), 0.0) - begin, 0.0) / copies
            sm = self._sm(self._slot[warp])
            if (sm, rank) not in self._fetched:
                self._fetched.add((sm, rank))
                missing = [(sm, each) for each in cost.code if (sm, each) not in self._fetched_code]
                self._fetched_code.update(missing)
                cold = self.sm.fetch_cold.value if self.engines[sm].share.cold else 0.0
                begin += len(missing) * (self.sm.fetch.value + cold)
            scheduler = sm, warp % per_cta % _SCHEDULERS
            part = self._part(self.engines[sm].accumulating(begin)) if cost.more else 0.0
            more = part * cost.more
            slot = self._issue[scheduler].take(begin, cost.issues + more)
            end = max(begin + cost.after, slot + cost.issues) + more
            for name, busy in cost.pipes.items():
                if part:
                    busy += part * cost.beside.get(name, 0.0)
                pipe = self.engines[sm].shared if name == "shared" else self._pipe[(*scheduler, name)]
                end = max(end, pipe.take(begin, busy) + busy)
            if rank in self._meets:
                # The last to come does not wait, and takes as long.
                end += 0 if warp in self._meeting else self.sm.cluster_barrier.value
                self._meeting.discard(warp)
            if rank in self._releases:
                end += self.sm.cluster_release.value
                self.engines[sm].synchronized = True
            self._spent[rank] += end - self._at[warp]
            self._at[warp] = end
            latest = max(latest, end)
            self.issued += cost.issues
        self.now = int(latest)

    def _part(self, registers: int) -> float:
        """The part of `beside_mma` that arithmetic takes more while wgmma accumulates in so many registers."""
        if registers not in self._parts:
            known = {0: 0.0, **{count: part.value for count, part in self.sm.beside_part.items()}, 64: 1.0}
            self._parts[registers] = float(np.interp(registers, list(known), list(known.values())))
        return self._parts[registers]

    @property
    def line_cycles(self) -> dict[int, float]:
        """Cycles of warps by PTX line."""
        found: dict[int, float] = defaultdict(float)
        for rank, cycles in self._spent.items():
            for line, part in self._blocks[rank].shares.items():
                found[line] += cycles * part
        return found

    def memory_requested(self, access: MemoryAccess) -> None:
        active, places = access.active, access.places
        if access.space == "global":
            self._global(access)
        elif places.inside is not None:
            opcode, size = access.statement.opcode, access.size
            copies = opcode.startswith("cp")
            base = places.inside - places.inside.min() // LINE_BYTES * LINE_BYTES
            if opcode.startswith(("ld.", "st.")):
                width = self._lines.get(access.statement.line, _NO_COST).shared
                if not width:
                    return  # another line's load or store has these bytes too
                size = max(size, width)
                base = base // size * size
            took = _wavefronts(np.where(active, base, 0), active, size)
            for warp, waves in zip(access.warps.tolist(), took.tolist(), strict=True):
                engines = self.engines[self._sm(self._slot[warp])]
                begin = engines.shared.take(self._at[warp], waves)
                if not copies:  # cp.async writes later
                    self._at[warp] = max(self._at[warp], begin + waves - 1)

    def _global(self, access: MemoryAccess) -> None:
        """Warps load or store global memory: sectors that are not in L1 take the SM's share of the L2."""
        active, places, line = access.active, access.places, access.statement.line
        reads, cached = _path(access.statement.opcode)
        copies, waited_for = access.statement.opcode.startswith("cp"), self._lines.get(line, _NO_COST).latency
        for position, warp in enumerate(access.warps.tolist()):
            sectors = np.unique(places.offsets[position][active[position]] // SECTOR).tolist()
            if not sectors:
                continue
            engines, now = self.engines[self._sm(self._slot[warp])], self._at[warp]
            if not reads:
                self._at[warp] += engines.global_store(now, sectors)
                continue
            ready = engines.global_load(now, sectors, cached=cached and access.order is None, copies=copies)
            if copies:
                self._copies[warp, line] = ready
            elif waited_for:
                self._loads[warp, line] = ready

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        active, places, line = access.active, access.places, access.statement.line
        for position, warp in enumerate(access.warps.tolist()):
            lanes = active[position]
            if not lanes.any():
                continue
            engines, now = self.engines[self._sm(self._slot[warp])], self._at[warp]
            if access.space == "global":
                at = places.offsets[position][lanes].tolist()
                done = engines.global_atomic(now, at, floats=_FLOATS.search(access.statement.opcode) is not None)
                latency = self._lines.get(line, _NO_COST).latency
                if latency and ".acq" in access.statement.opcode:  # nothing may follow before it is done
                    self._at[warp] = done + latency
                elif latency:
                    self._loads[warp, line] = done + latency
            elif places.inside is not None:
                busiest = np.bincount(places.inside[position][lanes] // BANK_BYTES % BANKS).max()
                cycles = float(busiest) * self.sm.atomic_lane.value
                self._at[warp] = max(now, engines.shared.take(now, cycles) + cycles - 1)

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        if self._deciding:
            assert self._machine is not None
            if slot not in self._missing:
                self._missing[slot] = np.zeros(self._machine.shared.size // GRANULE + 1, np.bool_)
            self._missing[slot][granules] = True

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[np.generic]]) -> None:
        if self._missing and access.places.inside is not None:
            for slot, granules in self._shared_granules(access):
                self._missing[slot][granules] = False

    def memory_loads(self, access: MemoryAccess) -> None:
        """Raises DataNeededError, for the launch to run again with data."""
        if not self._missing or access.places.inside is None or access.statement not in self._deciding:
            return
        if any(self._missing[slot][granules].any() for slot, granules in self._shared_granules(access)):
            raise DataNeededError(access.statement.opcode)

    def _shared_granules(self, access: MemoryAccess) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The granules of an access by slot, of those slots to which copies have written."""
        places = access.places
        assert places.slots is not None
        assert places.inside is not None
        slots = np.broadcast_to(places.slots, places.inside.shape)
        for slot in set(slots[access.active].tolist()).intersection(self._missing):
            here = places.inside[access.active & (slots == slot)]
            yield slot, np.concatenate([here // GRANULE, (here + access.size - 1) // GRANULE])

    def barrier_arrives(
        self,
        slot: int,
        name: int,
        warp: int,
        lanes: NDArray[np.bool_],
        statement: Instruction,
        *,
        waits: bool,
        threads: int | None,
    ) -> None:
        key = slot, name
        self._barriers[key] = max(self._barriers.get(key, 0.0), self._at[warp])
        if waits:
            self.blocks(warp, ("barrier", name), statement)

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        self._release(warps, self._barriers.pop((slot, name), float(self.now)), name)

    def ctas_synchronize(
        self, slots: NDArray[np.int64], name: int, statement: Instruction, *, threads: int | None
    ) -> None:
        assert self._machine is not None
        per_cta = self._machine.warps_per_cta
        for slot in map(int, slots):
            warps = list(range(slot * per_cta, (slot + 1) * per_cta))
            for warp in warps:
                self.blocks(warp, ("barrier", name), statement)
            self._release(warps, max(self._at[warp] for warp in warps), name)

    def _release(self, warps: Sequence[int], last: float, name: int) -> None:
        """A barrier of a CTA, at which the last warp has arrived at a cycle, lets these go on."""
        end = last + self.sm.barrier.value + self.sm.barrier_warp.value * len(warps)
        for warp in warps:
            since, _, line = self._waits.pop(warp)
            self._at[warp] = end
            if self._record:
                self.segments.append(Segment(warp, since, end, f"barrier {name}", line))
            self._open[warp] = end, line

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
        self._arrived[id(mbarrier)] = max(self._arrived.get(id(mbarrier), 0.0), self._at[warp])

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        self._ended[id(mbarrier)] = max(float(self.now), self._arrived.pop(id(mbarrier), 0.0))

    def mbarrier_waited(
        self,
        warp: int,
        lanes: NDArray[np.bool_],
        mbarrier: MBarrier,
        statement: Statement,
        *,
        relaxed: bool,
        cluster: bool,
        result: int,
    ) -> None:
        self._at[warp] = max(self._at[warp], self._ended.get(id(mbarrier), 0.0))
