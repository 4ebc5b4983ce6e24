"""mbarrier instructions. PTX ISA 9.7.13.15."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.mbarriers import MBarrier, Polled
from ptxgen.instr import mbarrier

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler

_Multicast = (
    mbarrier.expect_tx_multicast
    | mbarrier.complete_tx_multicast
    | mbarrier.arrive_multicast
    | mbarrier.arrive_expect_tx_multicast
    | mbarrier.arrive_drop_multicast
    | mbarrier.arrive_drop_expect_tx_multicast
)
#: Operations on the tx-count alone, those with an arrival, and arrivals with a count.
_Tx = mbarrier.expect_tx | mbarrier.expect_tx_multicast | mbarrier.complete_tx | mbarrier.complete_tx_multicast
_ArriveTx = (
    mbarrier.arrive_expect_tx
    | mbarrier.arrive_expect_tx_remote
    | mbarrier.arrive_expect_tx_multicast
    | mbarrier.arrive_drop_expect_tx
    | mbarrier.arrive_drop_expect_tx_remote
    | mbarrier.arrive_drop_expect_tx_multicast
)
_Arrive = (
    mbarrier.arrive
    | mbarrier.arrive_remote
    | mbarrier.arrive_multicast
    | mbarrier.arrive_no_complete
    | mbarrier.arrive_drop
    | mbarrier.arrive_drop_remote
    | mbarrier.arrive_drop_multicast
    | mbarrier.arrive_drop_no_complete
)
_Parity = mbarrier.test_wait_parity | mbarrier.try_wait_parity
_Wait = mbarrier.test_wait | mbarrier.try_wait | _Parity

#: Arrivals that an object may expect, by its layout.
_MOST_ARRIVALS = {"v0": 2**20 - 1, "v1": 511}


def each(g: Group, *values: Any) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(warp, lane, values) of every active lane, in order."""
    positions, lanes = g.active.nonzero()
    rows = [g.full(value)[positions, lanes].tolist() for value in values]
    yield from zip(g.indices[positions].tolist(), lanes.tolist(), zip(*rows, strict=True), strict=True)


@semantics(mbarrier.init)
def init(op: mbarrier.init, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Layout v1 (PTX 9.3) has smaller counts, and keeps reports of failed copies; here those end the kernel."""
    layout = op.layout or "v0"
    most = _MOST_ARRIVALS[layout]
    address, count = binder.address(op.addr), binder.source(op.count, "u32")

    def run(g: Group) -> None:
        machine = g.machine
        new: set[int] = set()
        for warp, _, (place, expected) in each(g, address(g), count(g)):
            slot, offset = machine.clusters.locate(warp, place, op.space)
            machine.shared.require(offset, 8, 8, "mbarrier.init")
            if not 1 <= expected <= most:
                raise MemoryFault(
                    mbarriers.MBARRIER_COUNT,
                    f"mbarrier.init with count {expected}",
                    rule=f"The count must be 1 to {most}",
                )
            if offset in machine.mbarriers[slot]:
                earlier = machine.mbarriers[slot][offset]
                if id(earlier) in new and (earlier.made_by, earlier.expected) == (warp, expected):
                    access = machine.findings.access(
                        "initializer", statement, warp, slot=slot, space="shared", address=offset
                    )
                    machine.findings.report(
                        mbarriers.MBARRIER_REINITIALIZED,
                        statement,
                        summary=f"several lanes of {access} initialize {access.place}",
                        rule="Each lane overwrites the mbarrier of the one before",
                        fix="let one lane initialize it (elect.sync)",
                        accesses=(access,),
                        severity="advice",
                    )
                    continue
                access = machine.findings.access(
                    "initializer", statement, warp, slot=slot, space="shared", address=offset
                )
                first = machine.findings.access(
                    "initializer", earlier.statement, earlier.made_by, slot=slot, space="shared", address=offset
                )
                machine.findings.report(
                    mbarriers.MBARRIER_REINITIALIZED,
                    statement,
                    summary=f"{access} initializes {access.place}, which {first} has initialized",
                    rule="No mbarrier.inval separates the two",
                    fix=f"let one thread initialize it, or mbarrier.inval before line {statement.line}",
                    accesses=(access, first),
                    cause=frozenset([causes.WRONG_INIT]),
                )
            called, _ = machine.names.name("shared", offset)
            made = MBarrier(offset, expected, expected, warp, statement, layout, called=called)
            machine.events.mbarrier_initialized(warp, slot, made)
            new.add(id(made))
            machine.mbarriers[slot][offset] = made
            machine.ended_mbarriers[slot].pop(offset, None)
            machine.unfenced.setdefault(warp, []).append(made)
            machine.effects += 1

    return run


@semantics(mbarrier.inval)
def invalidate(op: mbarrier.inval, binder: Binder, statement: syntax.Instruction) -> Plain:
    address = binder.address(op.addr)

    def run(g: Group) -> None:
        machine = g.machine
        for warp, _, (place,) in each(g, address(g)):
            slot, offset = machine.clusters.locate(warp, place, op.space)
            barrier = machine.mbarrier(slot, offset, warp, statement)
            machine.ended_mbarriers[slot][offset] = machine.mbarriers[slot].pop(offset)
            barrier.ended_by = statement
            machine.events.mbarrier_invalidated(warp, slot, barrier, statement)
            machine.effects += 1

    return run


def _awaited(
    machine: Machine, slot: int, offset: int, warp: int, parity: int, statement: syntax.Instruction
) -> MBarrier:
    """The object that a warp waits on; an invalidated one if the phase was complete before."""
    ended = machine.ended_mbarriers[slot].get(offset)
    if ended is None or not ended.parity_done(parity):
        return machine.mbarrier(slot, offset, warp, statement)
    machine.events.ended_mbarrier_waited(warp, ended, statement)
    return ended


#: Where a state keeps its parts: bit 63 the phase's parity, 43 to 62 the pending arrivals, 1 to 20 the expected ones,
#: 21 to 41 the bytes outstanding, all negated (SASS of init, pending_count and test_wait; states returned on an H200).
_PENDING_SHIFT, _BYTES_SHIFT, _EXPECTED_SHIFT = 43, 21, 1
_COUNT_MASK = 2**20 - 1


def state_of(barrier: MBarrier) -> int:
    """The 64-bit state of an object, as an arrival returns it."""
    return (
        (barrier.phase & 1) << 63
        | ((-barrier.pending & _COUNT_MASK) << _PENDING_SHIFT)
        | ((-barrier.tx & (2**21 - 1)) << _BYTES_SHIFT)
        | (-barrier.expected & _COUNT_MASK) << _EXPECTED_SHIFT
    )


@dataclass(frozen=True)
class _Use:
    """What an operation does to the objects at an address, of one CTA or of those in a multicast mask."""

    statement: syntax.Instruction
    space: str | None
    expects: bool = False
    completes: bool = False
    arrives: bool = False
    drops: bool = False
    no_complete: bool = False
    relaxed: bool = False
    scope: str | None = None

    @property
    def only_arrives(self) -> bool:
        """Whether arrivals of several lanes are one of as many."""
        return self.arrives and not (self.expects or self.completes or self.drops or self.no_complete)

    def apply(self, machine: Machine, warp: int, slot: int, offset: int, amount: int, count: int) -> int:
        """Do it; the object's state before."""
        barrier = machine.mbarrier(slot, offset, warp, self.statement)
        before = state_of(barrier)
        machine.events.mbarrier_updated(
            warp,
            slot,
            barrier,
            self.statement,
            expects=self.expects and not self.completes,
            arrives=self.arrives,
            scope=self.scope,
        )
        if self.completes:
            barrier.account.by_hand = True
            barrier.complete(amount, self.statement)
        elif self.expects:
            barrier.expect(amount, self.statement)
        if self.drops:
            barrier.drop(count)
        if self.arrives:
            barrier.arrive(count, self.statement)
            barrier.last_arrival = self.statement
        if self.no_complete and not barrier.pending and not barrier.tx:
            arrival = machine.findings.access(
                "arriver", self.statement, warp, slot=slot, space="shared", address=offset, phase=barrier.phase
            )
            machine.findings.report(
                mbarriers.MBARRIER_NO_COMPLETE,
                self.statement,
                summary=f"{arrival} completes phase {barrier.phase} of {arrival.place}",
                accesses=(arrival,),
            )
        return before


def _alike(machine: Machine, use: _Use, warp: int, slot: int, offset: int, rows: Sequence[Sequence[int]]) -> list[int]:
    """Let lanes that arrive alike on an object arrive at once: the states that they return.

    Empty, with nothing done, where the lanes differ, or have more arrivals than the phase expects.
    """
    places, _, counts, _ = rows
    number, count = len(places), counts[0]
    if number == 1 or count < 1 or places.count(places[0]) < number or counts.count(count) < number:
        return []
    if number * count > machine.mbarrier(slot, offset, warp, use.statement).pending:
        return []
    first = use.apply(machine, warp, slot, offset, 0, number * count)
    machine.settle(slot, machine.mbarriers[slot][offset])
    pending = -(first >> _PENDING_SHIFT) & _COUNT_MASK
    rest = first & ~(_COUNT_MASK << _PENDING_SHIFT)
    return [rest | (-(pending - index * count) & _COUNT_MASK) << _PENDING_SHIFT for index in range(number)]


def _bind(op: _Tx | _ArriveTx | _Arrive, binder: Binder, use: _Use) -> Plain:
    address = binder.address(op.addr)
    size = None if isinstance(op, _Arrive) else binder.source(op.tx_count, "u32")
    count = binder.source(op.count, "u32") if isinstance(op, _Arrive) and op.count is not None else None
    mask = binder.source(op.mask, "u32") if isinstance(op, _Multicast) else None
    state = None if isinstance(op, _Tx) else binder.destination(op.state, "b64")

    def run(g: Group) -> None:
        machine, clusters = g.machine, g.machine.clusters
        states = np.zeros((g.size, 32), np.uint64)
        active = g.active
        lanes = bits_of(active)
        sizes, counts = size(g) if size is not None else 0, count(g) if count is not None else 1
        masks = mask(g) if mask is not None else 0
        operands = [g.full(value) for value in (address(g), sizes, counts, masks)]
        for position, warp in enumerate(g.indices.tolist()):
            rows = [value[position, active[position]].tolist() for value in operands]
            for index, (place, amount, arrivals, named) in enumerate(zip(*rows, strict=True)):
                slot, offset = clusters.locate(warp, place, use.space)
                if not index:  # the lanes of a warp arrive together
                    machine.events.mbarriers_updated(
                        warp, int(lanes[position]), slot, use.statement, arrives=use.arrives, relaxed=use.relaxed
                    )
                    if use.only_arrives and mask is None and (made := _alike(machine, use, warp, slot, offset, rows)):
                        states[position, active[position]] = made
                        break
                lane = int(active[position].nonzero()[0][index])
                for each_slot in clusters.multicast(slot, named) if mask is not None else (slot,):
                    states[position, lane] = use.apply(machine, warp, each_slot, offset, amount, arrivals)
                    machine.settle(each_slot, machine.mbarriers[each_slot][offset])
        if state is not None:
            state(g, states)

    return run


@semantics(*get_args(_Tx | _ArriveTx | _Arrive))
def use(op: _Tx | _ArriveTx | _Arrive, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Expect or complete bytes, arrive, drop: on the current phase of the object, which may complete it."""
    words = op.opcode_text.split(".")
    drops = "arrive_drop" in words
    return _bind(
        op,
        binder,
        _Use(
            statement,
            op.space,
            expects="expect_tx" in words,
            completes="complete_tx" in words,
            arrives="arrive" in words or drops,
            drops=drops,
            no_complete="noComplete" in words,
            relaxed=op.sem == "relaxed",
            scope=op.scope,
        ),
    )


@semantics(mbarrier.pending_count)
def pending_count(op: mbarrier.pending_count, binder: Binder, statement: syntax.Instruction) -> Plain:
    state, count = binder.source(op.state, "b64"), binder.destination(op.count, "u32")

    def run(g: Group) -> None:
        kept = (g.full(state(g)).astype(np.uint64) >> np.uint64(_PENDING_SHIFT)).astype(np.int64)
        count(g, (-kept & _COUNT_MASK).astype(np.uint32))

    return run


@semantics(mbarrier.check_layout)
def check_layout(op: mbarrier.check_layout, binder: Binder, statement: syntax.Instruction) -> Plain:
    address, p = binder.address(op.addr), binder.destination(op.p, "pred")

    def run(g: Group) -> None:
        found = np.zeros((g.size, 32), np.bool_)
        position = {int(warp): index for index, warp in enumerate(g.indices)}
        for warp, lane, (place,) in each(g, address(g)):
            barrier = g.machine.mbarrier(*g.machine.clusters.locate(warp, place, op.space), warp, statement)
            found[position[warp], lane] = barrier.layout == op.layout
        p(g, found)

    return run


def _tested(
    op: _Wait, binder: Binder, statement: syntax.Instruction
) -> Callable[[Group], tuple[NDArray[np.bool_], NDArray[np.bool_], dict[int, int]]]:
    """Which lanes find their phase complete, which may wait for it, and the offset of the object that each warp awaits.

    A copy that fails ends the kernel, so there is never a report, and conditional phases complete as primary ones do.
    """
    reads_report = op.report is not None or op.value is not None
    report = binder.destination(op.report, "pred") if op.report is not None else None
    value = binder.destination(op.value, "b8") if op.value is not None else None
    address = binder.address(op.addr)
    by_parity = isinstance(op, _Parity)
    result = binder.register(op.p).index if str(op.p) != "_" else -1
    wanted = binder.source(op.parity, "u32") if by_parity else binder.source(op.state, "b64")

    def test(g: Group) -> tuple[NDArray[np.bool_], NDArray[np.bool_], dict[int, int]]:
        machine = g.machine
        done = np.zeros((g.size, 32), np.bool_)
        wait = np.zeros((g.size, 32), np.bool_)
        offset_of: dict[int, int] = {}
        places, named = g.full(address(g)), g.full(wanted(g))
        parities = named & 1 if by_parity else named >> 63  # the states that lanes got differ in the arrivals before
        active = g.active
        for position, warp in enumerate(g.indices):
            warp, lanes = int(warp), active[position]
            # Lanes of a warp nearly always test the same.
            for place, parity in set(
                zip(places[position][lanes].tolist(), parities[position][lanes].tolist(), strict=True)
            ):
                slot, offset = machine.clusters.locate(warp, place, op.space)
                barrier = _awaited(machine, slot, offset, warp, parity, statement)
                if reads_report and barrier.layout == "v0":
                    raise Unmodelled("the report of an mbarrier of layout v0, which keeps none,")
                asking = lanes & (places[position] == place) & (parities[position] == parity)
                if not barrier.parity_done(parity):
                    machine.polled[warp] = Polled(slot, barrier, statement)
                    machine.events.mbarrier_polled(warp, barrier, statement)
                    # Of lanes that wait for different objects some give up at once, as they may.
                    if offset_of.setdefault(warp, offset) == offset:
                        wait[position] |= asking
                else:
                    machine.polled.pop(warp, None)
                    done[position] |= asking
                    barrier.waited(warp, statement)
                    machine.events.mbarrier_waited(
                        warp,
                        asking,
                        barrier,
                        statement,
                        relaxed=op.sem == "relaxed",
                        cluster=op.scope == "cluster",
                        result=result,
                    )
        if report is not None:
            report(g, np.zeros((g.size, 32), np.bool_))
        if value is not None:
            value(g, np.zeros((g.size, 32), np.uint8))
        return done, wait, offset_of

    return test


@semantics(mbarrier.test_wait, mbarrier.test_wait_parity)
def test(op: mbarrier.test_wait | mbarrier.test_wait_parity, binder: Binder, statement: syntax.Instruction) -> Plain:
    tested, p = _tested(op, binder, statement), binder.destination(op.p, "pred")

    def run(g: Group) -> None:
        p(g, tested(g)[0])

    return run


@semantics(mbarrier.try_wait, mbarrier.try_wait_parity, kind="blocking")
def try_wait(
    op: mbarrier.try_wait | mbarrier.try_wait_parity, binder: Binder, statement: syntax.Instruction
) -> Blocking:
    """Lanes whose phase has not completed wait for it, or until their time limit: then p is false.

    The time limit is reached when no other lane can run, and at times that the timeline decides.
    """
    tested, p = _tested(op, binder, statement), binder.destination(op.p, "pred")

    def run(g: Group, scheduler: Scheduler) -> Passing:
        done, waiting, offset_of = tested(g)
        p(g, done)
        limit = scheduler.warps.timed_out[g.warps].copy()
        scheduler.warps.timed_out[g.warps] = False
        asking = np.flatnonzero(waiting.any(axis=1))
        limit[asking] |= np.array([g.machine.timeline.gives_up() for _ in asking], np.bool_)
        passing = ~waiting | limit[:, None]
        key = lambda warp: ("mbarrier", int(g.machine.cta_slot[warp]), offset_of[warp])  # noqa: E731
        return key, None if all_set(passing | ~g.active) else passing

    return run
