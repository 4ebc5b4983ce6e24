"""`predict`: the cycles of a launch on a described machine.

The CTAs that one SM runs, one cluster after the other, are emulated under the machine schedule; the SM has its share of
what all SMs use. Clusters that repeat are simulated a few times, the others take as long as the last of them; likewise
the tiles over which a cluster walks (`walk`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Literal

from ptxgen import limits
from ptxgen.device import DeviceArray, Extent, Kernel, LaunchShape
from ptxgen.emulator import Emulator
from ptxgen.emulator.device import EmulatedArray
from ptxgen.emulator.engines.timeline import Timeline
from ptxgen.emulator.load.directives import with_directives
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.observer import ProgramView
from ptxgen.instr.model.targets import parse_target, runs_on
from ptxgen.sass import Function
from ptxgen.sass import load as load_sass
from ptxgen.syntax import Instruction, walk
from ptxgen.timing.engines import PLACE, Engines, Share, Shared
from ptxgen.timing.issue import Costs
from ptxgen.timing.l1 import carveout
from ptxgen.timing.machines import MACHINES, Machine
from ptxgen.timing.multiprocessor import MULTIPROCESSORS, Multiprocessor
from ptxgen.timing.prediction import Prediction, TimingError, made
from ptxgen.timing.schedule import DataNeededError, MachineSchedule
from ptxgen.timing.walk import Walk, lengths, period

L2 = Literal["warm", "cold"]
#: Clusters in a row that an SM simulates before those that follow count as equal.
_ROUNDS = 3
#: Most blocks of instructions that a launch may execute.
_MOST_STEPS = 3_000_000
#: A row of shared memory as TMA writes it.
_ROW_BYTES = 128
#: Instructions that a warp executes before the units and warps with earlier cycles are looked at again.
_LONGEST = 32


@dataclass(frozen=True)
class Traffic:
    """What the loads and stores of a whole grid move, where it is known: the part of loads that comes from memory.

    `store_misses`: bytes that go to memory for each that is stored; `evicted`: for each that is loaded from there.
    `cold`: what an SM loads for the first time comes from memory. `atomics`: the part of the arrays with atomic
    operations that those of one SM are at.
    """

    misses: float
    store_misses: float = 0.0
    evicted: float = 0.0
    cold: bool = False
    atomics: float = 0.0


@dataclass(frozen=True)
class _Work:
    """The clusters of one SM: every `slots`-th of the grid's `count`, `resident` at a time.

    `tiles`: those over which the grid's clusters walk; `cancels`: the clusters take over others' by launch control.
    """

    shape: LaunchShape
    count: int
    slots: int
    resident: int
    tiles: int
    cancels: bool

    @property
    def order(self) -> range:
        return range(0, self.count, self.slots)

    @property
    def walked(self) -> int:
        """The tiles of the first cluster, if only some of them need be simulated; else 0."""
        if self.cancels:
            return len(self.order) if self.resident == 1 else 0
        alone = len(self.order) == 1 and self.shape.grid[1:] == self._cluster[1:]
        return -(-self.tiles // self.count) if alone else 0

    @property
    def _cluster(self) -> tuple[int, int, int]:
        return self.shape.cluster or (1, 1, 1)

    def lengths(self) -> Iterator[int]:
        """Of how many tiles a cluster may be simulated instead of all, the fewest first."""
        for few in lengths(self.walked):
            steps = -(-self.tiles // few)
            if self.cancels or -(-self.tiles // steps) == few:
                yield few

    def part(self, few: int) -> tuple[tuple[int, int, int], Sequence[int]]:
        """The grid, and the clusters of it that are simulated, so that one walks over so many tiles."""
        if self.cancels:
            return self.shape.grid, self.order[:few] if few else self.order
        if few < self.walked:
            return (-(-self.tiles // few) * self._cluster[0], *self.shape.grid[1:]), (0,)
        repeats = -(-len(self.order) // self.resident) > _ROUNDS + 1
        return self.shape.grid, self.order[: _ROUNDS * self.resident] if repeats else self.order

    def times(self, few: int) -> float:
        """How often the part of so many tiles is in the launch."""
        if few < self.walked and not self.cancels:
            return self.tiles / few
        return self.count / max(len(self.part(few)[1]), 1)


@lru_cache(maxsize=32)
def sass_of(text: str, entry: str) -> Function:
    """The machine code of an entry, with the PTX line of each instruction. Raises what `ptxgen.sass.load` does."""
    return load_sass(text.encode()).kernel(entry)


@lru_cache(maxsize=32)
def _costs(text: str, entry: str, machine: str, lines: tuple[tuple[int, ...], ...]) -> Costs:
    return Costs.of(sass_of(text, entry), MULTIPROCESSORS[machine], lines)


def costs_of(kernel: Kernel, sm: Multiprocessor, program: ProgramView) -> Costs:
    """The costs of a kernel's lines; the basic blocks of its program say which are unrolled."""
    assert isinstance(program, Program)
    blocks: list[tuple[int, ...]] = []
    for block in program.blocks:
        lines = tuple(each.statement.line for each in block.operations)
        if block.continues:
            blocks[-1] += lines
        else:
            blocks.append(lines)
    return _costs(kernel.text, kernel.entry.name, sm.name, tuple(blocks))


class TimedEmulator(Emulator):
    """An emulator whose time is that of `sms` multiprocessors of a machine, which run the clusters of `sample`.

    `computes`: False where no data are computed on which neither control flow nor addresses depend. `launch` raises
    DataNeededError where they turn out to depend on what a copy brings.
    """

    def __init__(
        self,
        machine: Machine,
        share: Share,
        *,
        sms: int = 1,
        sample: Sequence[int] | None = None,
        computes: bool = True,
        resident: int = 1,
    ) -> None:
        super().__init__(machine.target, checks=False, max_steps=_MOST_STEPS, multiprocessors=sms * resident)
        self._described, self._share, self._sms = machine, share, sms
        self._sampled, self._computes = sample, computes
        self.timed: MachineSchedule | None = None

    def _program(self, kernel: Kernel, *, explored: bool) -> Program:
        return Program.of(kernel, self._hardware(kernel), divided=True, longest=_LONGEST)

    def _timeline(self, kernel: Kernel) -> Timeline:
        sm = MULTIPROCESSORS[self._described.name]
        outside = Shared()
        engines = [Engines(self._described, sm, self._share, number, outside=outside) for number in range(self._sms)]
        self.timed = MachineSchedule(partial(costs_of, kernel, sm), engines, computes=self._computes)
        self.observers = (self.timed,)
        return self.timed

    def _sample(self, clusters: int) -> Sequence[int] | None:
        return self._sampled


def predict(
    kernel: Kernel,
    grid: Extent,
    block: Extent,
    args: Sequence[object],
    *,
    machine: str | Machine,
    cluster: Extent | None = None,
    shared_bytes: int = 0,
    l2: L2 = "warm",
    clock: float | None = None,
    flop: float = 0.0,
    traffic: Traffic | None = None,
    preserve: bool = True,
    arrays: Sequence[object] = (),
    tiles: int = 0,
) -> Prediction:
    """The cycles of one launch, as Nsight Compute counts them, and where they go.

    - `args`: as for `Emulator.launch`, arrays of one Emulator, whose memory stays as it is.
    - `machine`: "h100", "h200", "b200", or a description.
    - `l2`: "warm", the operands are in the L2 as far as they fit, or "cold".
    - `clock`: MHz (the machine's for such a launch).
    - `flop`: operations of the launch, for TFLOPS.
    - `preserve`: False where what the launch stores in memory may stay there.
    - `arrays`: those that are no arguments, as tensormaps alone refer to them.
    - `traffic`: the hit rates, where they are known; else from the bytes of the arrays and of the loads.
    - `tiles`: equal tiles over which the clusters walk, each from that of its own number on in steps of %nctaid.x over
      the cluster's x; 0 where there are none. Only some of one cluster's are simulated if they repeat.

    Raises TimingError, in one sentence, for what cannot be predicted; LaunchError and KernelArgumentError as `launch`.
    """
    described = _machine(machine)
    shape, refused = with_directives(kernel, LaunchShape.of(grid, block, cluster, shared_bytes))
    if refused:
        raise TimingError(refused[0].message)
    _require_target(kernel, described)
    held = [*args, *arrays]
    memory = next((each._memory for each in held if isinstance(each, EmulatedArray)), None)
    resident = _resident(kernel, shape, described)
    size = prod(shape.cluster or (1,))
    count = prod(shape.grid) // size
    slots = described.cluster_slots(size)
    if not resident or not slots:
        raise TimingError(f"{kernel.name}: no multiprocessor of an {described.title} holds a CTA of this shape")
    cancels = any("clusterlaunchcontrol.try_cancel" in each.opcode for each in _instructions(kernel))
    work = _Work(shape, count, slots, resident, tiles, cancels)
    active = min(count, slots) * size
    megahertz = (
        clock or described.clock_of(flop / max(_array_bytes(held), 1)) if flop else clock or described.boost.value
    )

    computes = False

    def sharing(traffic: Traffic) -> Share:
        l1 = MULTIPROCESSORS[described.name].l1_bytes.value - carveout(resident * _shared_bytes(kernel, shape))
        return replace(_share(described, active, size, megahertz, traffic), l1=l1)

    def run(share: Share, few: int) -> MachineSchedule:
        nonlocal computes
        launched, sample = work.part(few)
        emulator = TimedEmulator(
            described, share, sms=size, sample=sample, computes=computes, resident=min(resident, len(sample))
        )
        if memory is not None:
            emulator.memory = memory
        before = memory.copy() if memory is not None and preserve else None
        try:
            report = emulator.launch(kernel, launched, block, args, cluster=cluster, shared_bytes=shared_bytes)
        except DataNeededError:
            computes = True
            return run(share, few)
        finally:
            if memory is not None and before is not None:
                memory.data[: len(before.data)] = before.data
        if report.status not in ("ok", "findings"):
            why = report.findings[0].message.splitlines()[0] if report.findings else report.status
            raise TimingError(f"the emulated launch ends as {report.status}, so it has no time: {why}")
        assert emulator.timed is not None
        return emulator.timed

    if traffic is None:
        traffic = Traffic(0.0)
        atomic = any(each.opcode.startswith(_ATOMIC) for each in _instructions(kernel))
        if l2 == "cold" or atomic or _array_bytes(held) > _capacity(described):
            few = min(work.walked, 1)
            counted = run(sharing(traffic), few)
            traffic = _traffic(counted, described, held, work.times(few), cold=l2 == "cold")
    share = sharing(traffic)
    for few in work.lengths():
        timed = run(share, few)
        if (cycles := period(timed, few)) is not None:
            walk = Walk(few, work.walked, cycles)
            break
    else:
        few, walk = work.walked, None
        timed = run(share, few)
    sample = work.part(few)[1]
    return made(
        timed,
        kernel,
        described,
        ctas=prod(shape.grid),
        clusters=(len(sample), len(work.order), count),
        resident=min(resident, len(sample)),
        walk=walk,
        clock=megahertz,
        flop=flop,
        share=share,
        l2=l2,
        active=active,
    )


def _machine(machine: str | Machine) -> Machine:
    if isinstance(machine, Machine):
        return machine
    found = MACHINES.get(machine)
    if found is None or machine not in MULTIPROCESSORS:
        raise TimingError(f"unknown machine {machine!r}; machines with a description: {', '.join(sorted(MACHINES))}")
    return found


def _require_target(kernel: Kernel, machine: Machine) -> None:
    target = kernel.module.target or machine.target
    if not runs_on(parse_target(target), parse_target(machine.target)):
        raise TimingError(f"{kernel.name} is for {target}, which an {machine.title} ({machine.target}) does not run")


#: Instructions whose addresses say which SMs' take turns.
_ATOMIC = ("atom.global", "red.global", "atom.relaxed", "atom.acq", "atom.release", "red.relaxed", "red.release")
#: Shared memory of each CTA that the system keeps.
_RESERVED = 1024


def _shared_bytes(kernel: Kernel, shape: LaunchShape) -> int:
    """Shared memory that a CTA takes of its SM; none is taken of L1 for CTAs without any."""
    own = (sass_of(kernel.text, kernel.entry.name).shared_bytes or 0) + shape.shared_bytes
    return own + _RESERVED if own else 0


def _resident(kernel: Kernel, shape: LaunchShape, machine: Machine) -> int:
    """CTAs that an SM holds at a time."""
    function = sass_of(kernel.text, kernel.entry.name)
    columns = 512 if any("tcgen05.alloc" in each.opcode for each in _instructions(kernel)) else 0
    return limits.ctas_per_sm(
        machine.target,
        threads=prod(shape.block),
        registers=function.registers or 32,
        shared_bytes=(function.shared_bytes or 0) + shape.shared_bytes,
        tmem_columns=columns,
    )


def _instructions(kernel: Kernel) -> list[Instruction]:
    return [each for each in walk(kernel.module.items) if isinstance(each, Instruction)]


def _array_bytes(args: Sequence[object]) -> int:
    return sum(each.nbytes for each in args if isinstance(each, DeviceArray))


def _share(machine: Machine, active: int, size: int, megahertz: float, traffic: Traffic) -> Share:
    """What one of so many SMs at work has; `size`: CTAs of a cluster."""
    sm, sms = MULTIPROCESSORS[machine.name], machine.sms.value
    memory = machine.hbm_bandwidth.value / (megahertz * 1e6) / active
    alone = _ROW_BYTES / sm.tma_row.value
    return Share(
        l2=min(sm.l2_bytes.value * sms / active, alone),
        loads=min(sm.load_bytes.value * sms / active, 90.0),
        copies_in=min(sm.load_bytes.value * sms / active, 123.0),
        stores=min(sm.store_bytes.value * sms / active, 32.0),
        memory=min(memory, alone / 2),
        misses=traffic.misses,
        store_misses=traffic.store_misses,
        evicted=traffic.evicted,
        cold=traffic.cold,
        copies=min(sm.copy_bytes.value * sms / active, _ROW_BYTES / sm.store_row.value),
        atomics=max(active * traffic.atomics, 1.0),
        outside=sm.outside_rows.value * size / active,
        outside_row=(sm.outside_row if active > 2 * sm.idle_clusters.value else sm.tma_row).value,
    )


def _capacity(machine: Machine) -> float:
    """Bytes of a working set that the L2 keeps."""
    return machine.l2_bytes.value * machine.l2_reuse.value


def _traffic(timed: MachineSchedule, machine: Machine, args: Sequence[object], times: float, *, cold: bool) -> Traffic:
    """The part of the loads that misses the L2, and what the L2 writes to memory.

    Cold: every array that is loaded comes from memory once, and lines that other launches have written, of which the L2
    is full, make room. Else what exceeds half of what the L2 keeps misses: its two halves may both have a line.
    """
    sm = MULTIPROCESSORS[machine.name]
    arrays = {each.address - HEAP_BASE: each.nbytes for each in args if isinstance(each, DeviceArray)}
    loads, stores = ({*_arrays_at(arrays, places)} for places in _places(timed))
    if any(each.loaded for each in timed.engines) and not loads:  # by copies, whose places are not kept
        loads = set(arrays)
    capacity, every = _capacity(machine), sum(arrays[each] for each in loads | stores)
    read, written = (sum(arrays[each] for each in one) for one in (loads, stores))
    if cold:
        evicted = min(every, capacity) * sm.dirty.value + written * max(1 - capacity / max(every, 1), 0)
    else:
        part = min(max(every / capacity - 1, 0), 1)
        read, evicted = read * part, written * part
    loaded = sum(each.loaded for each in timed.engines) * times
    stored = sum(each.stored for each in timed.engines) * times
    evicted *= sm.write_back.value
    each = evicted / max(every if cold else read + written, 1)
    return Traffic(
        min(read / loaded, 1.0) if loaded else 0.0,
        max(evicted - each * read, 0.0) / stored if stored else 0.0,
        each,
        cold,
        _atomics(timed, arrays),
    )


def _atomics(timed: MachineSchedule, arrays: Mapping[int, int]) -> float:
    """The part of the places, of arrays with atomic operations, that those of one SM are at."""
    places = {each for engines in timed.engines for each in engines.atomics}
    at = set[int]().union(*(each.atomics_at for each in timed.engines))
    size = sum(-(-arrays[each] // PLACE) for each in {*_arrays_at(arrays, at)})
    return min(len(places) / size, 1.0) if size else 0.0


def _places(timed: MachineSchedule) -> tuple[set[int], set[int]]:
    """Places in global memory that the warps of all SMs have loaded, and stored."""
    loads, stores = set[int](), set[int]()
    return loads.union(*(each.loads_at for each in timed.engines)), stores.union(
        *(each.stores_at for each in timed.engines)
    )


def _arrays_at(arrays: Mapping[int, int], places: Iterable[int]) -> Iterator[int]:
    """Where the arrays begin that have these places; `arrays`: bytes by beginning."""
    begins = sorted(arrays)
    for place in places:
        number = bisect_right(begins, place) - 1
        if number >= 0 and place < begins[number] + arrays[begins[number]]:
            yield begins[number]
