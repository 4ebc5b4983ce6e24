"""The units of a multiprocessor as servers: when each asynchronous work begins and completes, in cycles.

A server is free from a cycle on; work takes it for its interval and ends after a latency. Numbers are those of
`multiprocessor`, and of `machines` for what all SMs share.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.timing.l1 import L1, LINE, SECTOR
from ptxgen.timing.machines import Machine
from ptxgen.timing.multiprocessor import Multiprocessor

_ROW, _SECTOR = 128, 32
#: Bytes of global memory whose atomic operations one unit of the L2 does: 32 lanes take about as long on one line, on
#: two (Triton's histogram) and on 32 lines in 4 KB (bench/data/h200-more.json).
PLACE = 4096


@dataclass(frozen=True)
class Share:
    """What one SM has of memory: bytes per cycle of the L2 and of memory, and the part of its loads that misses.

    `copies_in`: bytes per cycle of cp.async; `copies`: that copies to global memory store. `outside`: rows per cycle of
    boxes entirely outside of their tensor, for the SMs of a cluster together; `outside_row`: cycles of a row outside of
    a box partly inside. `l1`: bytes of the L1 cache. `evicted`: bytes that the L2 writes to memory for each that comes
    from there. `cold`: what the SM loads for the first time comes from memory, whoever of the SMs has it first.
    `atomics`: SMs whose atomic operations on global memory take turns, since they are at the same places.
    """

    l2: float
    loads: float
    stores: float
    memory: float
    misses: float = 0.0
    store_misses: float = 0.0
    copies_in: float = 37.0
    copies: float = 32.0
    outside: float = 1.0
    outside_row: float = 1.0
    l1: float = 0.0
    evicted: float = 0.0
    cold: bool = False
    atomics: float = 1.0


@dataclass(slots=True)
class Server:
    """A unit that serves one after the other. `busy`: cycles in all."""

    free: float = 0.0
    busy: float = 0.0

    def take(self, now: float, cycles: float) -> float:
        """Serve for so many cycles from `now` on or later; when it begins."""
        begin = max(self.free, now)
        self.free = begin + cycles
        self.busy += cycles
        return begin


#: Cycles of a stretch in which the schedule counts how busy a unit is, and by how much later a unit must be free than a
#: request for it comes, to look for idle cycles before.
_STRETCH, _AHEAD = 32, 64


@dataclass(slots=True)
class Shared(Server):
    """A unit that takes requests of many warps, not always in the order of their cycles.

    A warp runs a whole basic block at once, so that its requests may lie after those which another makes later. Such a
    request takes cycles that earlier ones have left idle.
    """

    used: dict[int, float] = field(default_factory=dict)

    def take(self, now: float, cycles: float) -> float:
        if not cycles:
            return now
        if self.free - now <= _AHEAD:
            begin = max(self.free, now)
            self.free = begin + cycles
        else:
            begin = self._idle(now)
            self.free = max(self.free, begin + cycles)
        self.busy += cycles
        number, used = int(begin) // _STRETCH, self.used
        while cycles > 0:
            room = _STRETCH - used.get(number, 0.0)
            if room > 0:
                used[number] = used.get(number, 0.0) + min(room, cycles)
                cycles -= room
            number += 1
        return begin

    def _idle(self, now: float) -> float:
        """The first cycle from `now` on that lies in a stretch with idle cycles."""
        number, used = int(now) // _STRETCH, self.used
        while (have := used.get(number, 0.0)) >= _STRETCH:
            number += 1
        return max(now, number * _STRETCH + have)


@dataclass(slots=True)
class Turns:
    """A unit that serves its requests at a time, each at an equal part of its rate. `busy`: cycles in all."""

    busy: float = 0.0
    #: Cycles of the unit that each request still needs, at a cycle.
    left: dict[int, float] = field(default_factory=dict)
    at: float = 0.0

    def add(self, now: float, request: int, cycles: float) -> None:
        """A request comes that needs so many cycles of the unit."""
        self._advance(now)
        self.left[request] = cycles
        self.busy += cycles

    @property
    def due(self) -> float:
        """The cycle at which the next request is through, if none comes before."""
        return self.at + min(self.left.values()) * len(self.left)

    def through(self, now: float) -> list[int]:
        """Take away the requests that are through at a cycle."""
        self._advance(now)
        done = [request for request, cycles in self.left.items() if cycles < 1e-6]
        for request in done:
            del self.left[request]
        return done

    def _advance(self, now: float) -> None:
        passed = max(now - self.at, 0.0)
        for request in self.left:
            self.left[request] -= passed / len(self.left)
        self.at = max(now, self.at)


@dataclass(frozen=True, slots=True)
class Span:
    """Asynchronous work on a unit of an SM, for the timeline: cycles from issue, and from begin to end of service."""

    unit: str
    sm: int
    issued: float
    begin: float
    end: float
    number: int
    line: int
    bytes: int = 0


@dataclass
class Engines:
    """The units of one SM."""

    machine: Machine
    sm: Multiprocessor
    share: Share
    number: int
    tensor: Server = field(default_factory=Server)
    tma: Server = field(default_factory=Server)
    stores: Turns = field(default_factory=Turns)
    peers: Server = field(default_factory=Server)
    l2: Shared = field(default_factory=Shared)
    memory: Shared = field(default_factory=Shared)
    shared: Shared = field(default_factory=Shared)
    #: The unit that serves boxes outside of their tensors, for all SMs of a cluster.
    outside: Shared = field(default_factory=Shared)
    tensor_memory: dict[int, Server] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    #: Stretches of cycles in which wgmma accumulates in registers: begins, ends, and registers of a thread.
    accumulates: tuple[list[float], list[float], list[int]] = field(default_factory=lambda: ([], [], []))
    #: True: no copy was issued since a barrier of the cluster.
    synchronized: bool = False
    #: Bytes that the SM has loaded and stored.
    loaded: int = 0
    stored: int = 0

    #: The units of the L2 by place of PLACE bytes with atomic operations, and when all are known to be done.
    atomics: dict[int, Shared] = field(default_factory=dict)
    settled: float = 0.0
    #: The first place of each such operation: at least one of each array.
    atomics_at: set[int] = field(default_factory=set[int])
    #: Places in global memory that warps have loaded past L1, and stored: at least one of each array.
    loads_at: set[int] = field(default_factory=set[int])
    stores_at: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self._l1, self._touched = L1(self.share.l1), set[int]()

    @property
    def plain(self) -> bool:
        """Whether CTAs load and store without TMA, and so have no tensormaps."""
        return not (self.tma.busy or self.stores.busy)

    def _span(self, unit: str, work: AsyncWork, now: float, begin: float, end: float) -> float:
        self.spans.append(Span(unit, self.number, now, begin, end, work.number, work.statement.line, work.bytes))
        return end

    def mma(self, work: AsyncWork, now: float) -> float:
        """When an MMA is complete."""
        shape, sm = work.mma, self.sm
        assert shape is not None
        columns = shape.n / self.machine.mma_columns.value
        if shape.ctas == 2 and shape.m == 128:
            columns /= 2
        read = (shape.m / shape.ctas if shape.a_in_shared else 0) + shape.n / shape.ctas
        interval = max(columns, read * 32 / self.machine.shared_bandwidth.value)
        if not shape.a_in_shared:
            interval = max(columns, 16) + sm.mma_registers.value
        begin = self.tensor.take(now + sm.mma_start.value, interval)
        if shape.registers:
            self._accumulate(begin, begin + interval, shape.registers)
        return self._span("tensor", work, now, begin, begin + interval + sm.mma_tail.value)

    def _accumulate(self, begin: float, end: float, registers: int) -> None:
        begins, ends, counts = self.accumulates
        if ends and begin == ends[-1] and registers == counts[-1]:
            ends[-1] = end
            return
        begins.append(begin)
        ends.append(end)
        counts.append(registers)

    def accumulating(self, cycle: float) -> int:
        """The registers of each thread in which wgmma accumulates at a cycle; 0 while none runs."""
        begins, ends, counts = self.accumulates
        number = bisect_right(begins, cycle) - 1
        return counts[number] if number >= 0 and cycle < ends[number] else 0

    def load(self, work: AsyncWork, now: float) -> float:
        """When a bulk or tensor copy to shared memory has arrived."""
        sm = self.sm
        inside = rows = -(-work.bytes // _ROW)
        if (box := work.box) is not None:
            rows = len(box.rows.offsets) * -(-box.row_bytes // _ROW)
            inside = int(np.count_nonzero(box.rows.inside)) * -(-box.row_bytes // _ROW) if box.valid.any() else 0
        # A row of the box takes whole sectors of the L2; what is longer than a row of shared memory, whole lines.
        sectors = _ROW // _SECTOR if box is None else min(-(-box.row_bytes // _SECTOR), _ROW // _SECTOR)
        size = inside * sectors * _SECTOR
        busy = (
            inside * sm.tma_row.value + (rows - inside) * self.share.outside_row if inside else rows * sm.tma_row.value
        )
        busy = max(sm.tma_gap.value, busy)
        begin = self.tma.take(now, busy)
        if self.tensor.free > begin:
            self.tensor.free += rows * sm.mma_fill.value
        arrived = begin + busy + sm.tma_latency.value + self._fetch(begin, size, self.share.l2)
        if not inside:
            cycles = rows / self.share.outside
            arrived = max(arrived, self.outside.take(begin, cycles) + cycles + sm.tma_latency.value)
        if work.destinations > 1:
            arrived += sm.tma_multicast.value
        if self.synchronized:
            arrived += sm.tma_synchronized.value
            self.synchronized = False
        return self._span("tma", work, now, begin, arrived)

    def _fetch(self, now: float, size: int, rate: float, *, least: float = 0.0) -> float:
        """Cycles by which the shares of L2 and memory delay so many bytes beyond their own service.

        `least`: bytes that the L2 counts for them at least.
        """
        if not size:
            return 0.0
        self.loaded += size
        l2 = self.l2.take(now, max(size, least) / rate)
        waited = l2 - now
        if misses := self.share.misses:
            taken = size * misses * (1 + self.share.evicted) / self.share.memory
            memory = self.memory.take(now, taken)
            waited = max(waited, memory + taken - now - size / rate)
            waited += misses * self.sm.memory_latency.value
        return waited

    def store_takes(self, work: AsyncWork) -> float:
        """Cycles that a copy to global memory takes of the unit that reads its source."""
        rows = -(-work.bytes // _ROW)
        self.stored += work.bytes
        cycles = max(self.sm.tma_gap.value, rows * self.sm.store_row.value, work.bytes / self.share.copies)
        if self.share.store_misses:
            cycles = max(cycles, work.bytes * self.share.store_misses / self.share.memory)
        return cycles

    def store_read(self, work: AsyncWork, issued: float, now: float) -> None:
        """A copy to global memory has read its source."""
        self._span("store", work, issued, issued, now)

    def peer_store(self, work: AsyncWork, now: float) -> float:
        """When a warp's st.async or red.async is in the shared memory of its destination."""
        sm = self.sm
        busy = work.bytes / sm.peer_bytes.value
        return self.peers.take(now, busy) + busy + sm.peer_latency.value

    def global_load(self, now: float, sectors: Sequence[int], *, cached: bool, copies: bool = False) -> float:
        """When a warp's load of these sectors of global memory has its result; `cached` in L1, or past it.

        A line a cycle goes to the registers; what `copies` to shared memory takes its cycles there.
        """
        lines = 0 if copies else len({each // (LINE // SECTOR) for each in sectors})
        begin = self.shared.take(now, lines)
        missing, ready = self._l1.lookup(sectors) if cached else (sectors, 0.0)
        if len(missing) < len(sectors):
            ready = max(ready, begin + self.sm.l1_latency.value)
        if missing:
            # The L2 takes no less for a sector alone in its line than for most of the line.
            least = len({each // (LINE // SECTOR) for each in missing}) * self.sm.load_line.value
            rate = self.share.copies_in if copies else self.share.loads
            waited = self._fetch(begin, len(missing) * SECTOR, rate, least=least)
            if self.share.cold and not self._touched.issuperset(missing):
                waited += (1 - self.share.misses) * self.sm.memory_latency.value
                self._touched.update(missing)
            self.loads_at.add(missing[0] * SECTOR)
            come = begin + self.sm.latency["LDG"].value + waited
            if cached:
                self._l1.fill(missing, come)
            ready = max(ready, come)
        return ready

    def global_store(self, now: float, sectors: Sequence[int]) -> float:
        """Cycles by which a warp's store of these sectors of global memory waits for the SM's share."""
        size = len(sectors) * SECTOR
        self.stored += size
        self.stores_at.add(sectors[0] * SECTOR)
        lines = len({each // (LINE // SECTOR) for each in sectors})
        least = lines * self.sm.store_line.value * _SECTOR  # at 32 bytes per cycle, which an SM alone has
        waited = self.l2.take(now, max(size / self.share.stores, least / _SECTOR)) - now
        if self.share.store_misses:
            taken = size * self.share.store_misses / self.share.memory
            waited = max(waited, self.memory.take(now, taken) - now)
        return waited

    def global_atomic(self, now: float, places: Sequence[int], *, floats: bool = False) -> float:
        """When the L2 has done a warp's atomic operation, after those of other SMs; `places`: of each lane."""
        sm = self.sm
        times = self.share.atomics * (sm.atomic_float.value if floats else 1.0)
        done = now
        self.atomics_at.add(places[0])
        for place, words in Counter(each // PLACE for each in set(places)).items():
            cycles = max(words * sm.atomic_word.value, sm.atomic.value) * times
            done = max(done, self.atomics.setdefault(place, Shared()).take(now, cycles) + cycles)
        self.settled = max(self.settled, done + sm.latency["LDG"].value)
        return done

    def tensor_transfer(self, work: AsyncWork, now: float) -> float:
        """When a tcgen05.ld or st of a warp is complete."""
        server = self.tensor_memory.setdefault(work.warp, Server())
        busy = work.bytes / self.sm.tensor_load_bytes.value
        begin = server.take(now, busy)
        return self._span("tensor memory", work, now, begin, begin + busy + self.sm.tensor_load.value)
