"""mbarrier instructions. PTX ISA 9.7.13.15."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.mbarriers import MBarrier
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.registers import Binder, Reader, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import mbarrier

if TYPE_CHECKING:
    from ptxgen.emulator.scheduler import Scheduler

_Run = Callable[[Group], None]


def each(g: Group, *values: Any) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(row, lane, values) of every active lane, in order."""
    full = [g.full(value) for value in values]
    for position, lane in np.argwhere(g.active):
        yield int(g.indices[position]), int(lane), tuple(int(value[position, lane]) for value in full)


@meaning(mbarrier.init)
def init(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    if op.layout == "v1":
        raise Unmodelled("layout::v1")
    address, count = binder.address(op.addr), binder.source(op.count, "u32")

    def run(g: Group) -> None:
        machine = g.machine
        for row, _, (place, expected) in each(g, address(g), count(g)):
            slot, offset = machine.clusters.locate(row, place, op.space)
            machine.shared.require(offset, 8, 8, "mbarrier.init")
            if not 1 <= expected < 2**20:
                raise MemoryFault("mbarrier-count", f"an mbarrier expects 1 to {2**20 - 1} arrivals, not {expected}")
            if offset in machine.mbarriers[slot]:
                earlier = machine.mbarriers[slot][offset]
                machine.findings.add(
                    "mbarrier-reinitialized",
                    f"the mbarrier at {offset:#x} is alive since line {earlier.statement.line}; "
                    "mbarrier.inval must come first",
                    statement,
                )
            made = MBarrier(offset, expected, expected, row, statement)
            if machine.ordering is not None:
                made.made_at, made.number = machine.ordering.clock(row), machine.ordering.number()
            machine.mbarriers[slot][offset] = made
            machine.unfenced.setdefault(row, []).append(made)
            machine.effects += 1

    return run


@meaning(mbarrier.inval)
def invalidate(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    address = binder.address(op.addr)

    def run(g: Group) -> None:
        machine = g.machine
        for row, _, (place,) in each(g, address(g)):
            slot, offset = machine.clusters.locate(row, place, op.space)
            machine.mbarrier(slot, offset, row, statement)
            del machine.mbarriers[slot][offset]
            machine.effects += 1

    return run


def _state_of(barrier: MBarrier) -> int:
    """The state that an arrival returns: only its phase is ever read back, in bit 63 and below."""
    return ((barrier.phase & 1) << 63) | ((2**20 - barrier.pending) & 0xFFFFF) << 43


def _use(op: Any, binder: Binder, statement: syntax.Instruction, size: Reader | None, count: Reader | None) -> _Run:
    """An operation on the current phase: expect bytes, complete bytes, arrive, or expect and arrive."""
    address = binder.address(op.addr)
    state = binder.destination(op.state, "b64") if hasattr(op, "state") else None
    completes = isinstance(op, mbarrier.complete_tx)
    arrives = state is not None

    def run(g: Group) -> None:
        machine = g.machine
        states = np.zeros((g.size, 32), np.uint64)
        position = {int(row): index for index, row in enumerate(g.indices)}
        sizes = size(g) if size is not None else 0
        counts = count(g) if count is not None else 1
        for row, lane, (place, amount, arrivals) in each(g, address(g), sizes, counts):
            slot, offset = machine.clusters.locate(row, place, op.space)
            barrier = machine.mbarrier(slot, offset, row, statement)
            states[position[row], lane] = _state_of(barrier)
            if completes:
                barrier.complete(amount)
            elif size is not None:
                barrier.expect(amount)
            if arrives:
                barrier.arrive(arrivals)
                if machine.ordering is not None:
                    relaxed = op.sem == "relaxed"
                    barrier.release(machine.ordering.released.get(row) if relaxed else machine.ordering.release(row))
            barrier.last_arrival = statement
            machine.settle(slot, barrier)
        if state is not None:
            state(g, states)

    return run


@meaning(mbarrier.expect_tx, mbarrier.complete_tx, mbarrier.arrive_expect_tx, mbarrier.arrive_expect_tx_remote)
def transaction(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    return _use(op, binder, statement, binder.source(op.tx_count, "u32"), None)


@meaning(mbarrier.arrive, mbarrier.arrive_remote)
def arrive(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    count = binder.source(op.count, "u32") if op.count is not None else None
    return _use(op, binder, statement, None, count)


def _tested(
    op: Any, binder: Binder, statement: syntax.Instruction
) -> Callable[[Group], tuple[NDArray[np.bool_], dict[int, int]]]:
    """Which lanes find their phase ended, and the barrier that each row asks about."""
    if op.report is not None or op.value is not None:
        raise Unmodelled("reports of an mbarrier")
    address = binder.address(op.addr)
    by_parity = hasattr(op, "parity")
    result = id(binder.register(op.p))
    wanted = binder.source(op.parity, "u32") if by_parity else binder.source(op.state, "b64")

    def test(g: Group) -> tuple[NDArray[np.bool_], dict[int, int]]:
        machine = g.machine
        done = np.zeros((g.size, 32), np.bool_)
        asked: dict[int, int] = {}
        places, phases = g.full(address(g)), g.full(wanted(g))
        active = g.active
        for position, row in enumerate(g.indices):
            row, lanes = int(row), active[position]
            # Lanes of a warp nearly always ask the same.
            for place, phase in set(
                zip(places[position][lanes].tolist(), phases[position][lanes].tolist(), strict=True)
            ):
                slot, offset = machine.clusters.locate(row, place, op.space)
                asked[row] = offset
                barrier = machine.mbarrier(slot, offset, row, statement)
                parity = phase & 1 if by_parity else phase >> 63
                if barrier.parity_done(parity):
                    done[position] |= lanes & (places[position] == place) & (phases[position] == phase)
                    if barrier.completed is not None and op.sem == "relaxed":
                        machine.learn_at_fence(row, barrier.completed)
                    elif barrier.completed is not None:
                        machine.learn_when_read(row, result, barrier.completed)
        return done, asked

    return test


@meaning(mbarrier.test_wait, mbarrier.test_wait_parity)
def test(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    tested, p = _tested(op, binder, statement), binder.destination(op.p, "pred")

    def run(g: Group) -> None:
        p(g, tested(g)[0])

    return run


@meaning(mbarrier.try_wait, mbarrier.try_wait_parity, kind="gate")
def try_wait(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    """Lanes whose phase has not ended are held until it does, or until nobody else can go on: then p is false."""
    tested, p = _tested(op, binder, statement), binder.destination(op.p, "pred")

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        done, asked = tested(g)
        p(g, done)
        passing = done | scheduler.timed_out[g.rows][:, None]
        scheduler.timed_out[g.rows] = False
        key = lambda row: ("mbarrier", int(g.machine.row_slot[row]), asked[row])  # noqa: E731
        return key, None if (passing | ~g.active).all() else passing

    return run
