"""The report of a deadlock: who waits where, for what, and what is wrong with what they wait for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.mbarrier.transactions import lines, told
from ptxgen.emulator.load.program import EXITED, Operation
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler


def report_deadlock(scheduler: Scheduler) -> None:
    """One finding per place and state of what is waited for, however many CTAs stand there; then their causes."""
    findings = scheduler.machine.findings
    places: dict[tuple[Operation | None, str, int | None], list[int]] = {}
    for operation, what, rows, mbarrier in _waits(scheduler):
        places.setdefault((operation, what, mbarrier), []).extend(rows)
    for (operation, what, mbarrier), rows in places.items():
        statement = operation.statement if operation is not None else None
        message, cause = f"waits for {what}: {_who(scheduler, rows)}", _cause(mbarrier, statement)
        findings.add("deadlock", message, statement, ends=True, cause=cause)
    _blame_registers(scheduler)
    for slot, barrier, row, statement in _awaited_mbarriers(scheduler):
        _blame_bytes(scheduler, slot, barrier)
        _blame_parity(scheduler, barrier, row, statement)


def _cause(mbarrier: int | None, statement: Statement | None) -> frozenset[Hashable]:
    """What keeps a warp waiting, at the offset of an mbarrier (None: at something else)."""
    keys: set[Hashable] = {causes.DEADLOCK}
    if mbarrier is not None:
        keys.add(causes.mbarrier(mbarrier))
        if statement is not None:
            keys.add(causes.wait(statement.line))
    return frozenset(keys)


def _waits(scheduler: Scheduler) -> Iterator[tuple[Operation | None, str, list[int], int | None]]:
    """(instruction, what it waits for, warps, the offset of the mbarrier if it is one)."""
    for key, waiting in scheduler.warps.waits.items():
        for row, _, operation in waiting:
            mbarrier = key[2] if isinstance(key, tuple) and key[0] == "mbarrier" else None
            yield operation, _what(scheduler, key, row), [row], mbarrier
    for (slot, name), barrier in scheduler.barriers.open.items():
        expected = scheduler.barriers.expected(slot, barrier)
        what = f"barrier {name}, where {scheduler.barriers.count(barrier)} of {expected} threads have arrived"
        rows = [arrival.row for arrival in barrier.arrived if arrival.waits] or [barrier.arrived[0].row]
        yield barrier.operation, what + _ended(scheduler, slot), rows, None
    if scheduler.spinning:
        for row in _going_round(scheduler):
            operation = scheduler.program.blocks[int(scheduler.warps.current[row])].operations[0]
            what = "a change that does not come: it goes round without end"
            polled = scheduler.machine.polled.get(row)
            if polled is not None:
                what += f", and last tested {_state(polled.barrier, row)}"
            yield operation, what, [row], polled.barrier.address if polled is not None else None


def _going_round(scheduler: Scheduler) -> list[int]:
    """The warps that are not held."""
    return np.flatnonzero((scheduler.warps.current != EXITED) & ~scheduler.warps.held.all(axis=1)).tolist()


def _warps(numbers: Iterable[int]) -> str:
    chosen = sorted(set(numbers))
    return f"warp{'s' if len(chosen) > 1 else ''} {', '.join(map(str, chosen))}"


def _ended(scheduler: Scheduler, slot: int) -> str:
    """Which warps of a CTA have left the kernel, so that nobody waits for them in vain without being told."""
    warps = scheduler.machine.warps_per_cta
    gone = np.flatnonzero(scheduler.warps.current[slot * warps : (slot + 1) * warps] == EXITED).tolist()
    return f" ({_warps(gone)} {'have' if len(gone) > 1 else 'has'} left the kernel)" if gone else ""


def _who(scheduler: Scheduler, rows: list[int]) -> str:
    warps = scheduler.machine.warps_per_cta
    slot = rows[0] // warps
    others = len({row // warps for row in rows}) - 1
    more = f", and warps of {others} other CTA{'s' if others > 1 else ''}" if others else ""
    return f"{_warps(row % warps for row in rows if row // warps == slot)} of {scheduler.machine.cta_name(slot)}{more}"


def _what(scheduler: Scheduler, key: object, row: int) -> str:
    machine = scheduler.machine
    if not isinstance(key, tuple):
        return str(key)
    match key[0]:
        case "cluster":
            arrived, expected = scheduler.cluster_barriers.count(key[1])
            return f"the cluster's barrier, where {arrived} of {expected} threads have arrived"
        case "registers" if machine.registers_of_warps is not None:
            return machine.registers_of_warps.describe(row)
        case "mbarrier":
            barrier = machine.mbarriers[key[1]].get(key[2])
            return _state(barrier, row) if barrier is not None else str(key)
        case "tmem":
            return machine.tensor.describe(key[1])
        case _:
            return str(key)


def _blame_registers(scheduler: Scheduler) -> None:
    """What setmaxnreg asks for is more than there ever is, whoever gives back what."""
    budget = scheduler.machine.registers_of_warps
    for key, waiting in scheduler.warps.waits.items():
        if budget is not None and isinstance(key, tuple) and key[0] == "registers":
            row, _, operation = waiting[0]
            if excess := budget.excess(row, scheduler.warps.current == EXITED):
                findings = scheduler.machine.findings
                findings.add("setmaxnreg-budget", excess, operation.statement, ends=True, cause=causes.DEADLOCK)


# mbarriers.


def _state(barrier: MBarrier, row: int) -> str:
    """The phase that a warp waits for, and what it lacks."""
    account = barrier.account
    arrived = f", {lines(each for each, _ in account.arrivals.values())} arrived" if account.arrivals else ""
    parts = [
        f"phase {barrier.phase} (parity {barrier.phase & 1}) of {barrier.name}: "
        f"{barrier.pending} of {barrier.expected} arrivals pending{arrived}"
    ]
    if barrier.tx > 0:
        come = f"{told(account.came)} have come" if account.came else "none have come"
        parts.append(f"{told(account.expected)} are expected, {come}, {barrier.tx} bytes outstanding")
    elif barrier.tx < 0:
        expected = told(account.expected) if account.expected else "none"
        parts.append(f"{told(account.came)} have come, {expected} expected: {-barrier.tx} bytes more than expected")
    if barrier.phase == 0 and not account.arrivals and not account.expected and row not in barrier.waits:
        parts.append("nothing has arrived yet; a wait that is to pass at first, for a slot that is empty, has parity 1")
    return ", ".join(parts)


def _awaited_mbarriers(scheduler: Scheduler) -> Iterator[tuple[int, MBarrier, int, Statement]]:
    """(CTA slot, object, warp that waits for it, its instruction)."""
    for row in _going_round(scheduler) if scheduler.spinning else ():
        if (polled := scheduler.machine.polled.get(row)) is not None:
            yield polled.slot, polled.barrier, row, polled.statement
    for key, waiting in scheduler.warps.waits.items():
        if isinstance(key, tuple) and key[0] == "mbarrier":
            barrier = scheduler.machine.mbarriers[key[1]].get(key[2])
            if barrier is not None:
                for row, _, operation in waiting:
                    yield key[1], barrier, row, operation.statement


def _blame_bytes(scheduler: Scheduler, slot: int, barrier: MBarrier) -> None:
    """All arrivals have come, and the bytes alone hold the phase: expect_tx and the copies do not agree."""
    account, machine = barrier.account, scheduler.machine
    if barrier.pending or not barrier.tx or account.by_hand or barrier.miscounted:
        return
    if barrier.tx > 0 and not account.came and not _has_gone_on(scheduler, slot, barrier):
        return
    barrier.miscounted = True
    book = account.expected or account.came
    phase = f"phase {barrier.phase} of {barrier.name}"
    if barrier.tx > 0:
        come = f"{told(account.came)} have come" if account.came else "none have come"
        message = (
            f"{phase} expects {told(account.expected)}, but {come} and nothing sends the other {barrier.tx}: "
            f"expect_tx must name {account.bytes_come} bytes in all, or a copy is missing"
        )
    else:
        message = f"{told(account.came)} have come in {phase}, which expects {told(account.expected)}: " + (
            f"expect_tx must name {account.bytes_come} bytes in all, before the last arrival"
            if account.expected
            else "an expect_tx of the bytes of a phase's copies must come before the phase's last arrival"
        )
    cause = frozenset([causes.DEADLOCK, causes.mbarrier(barrier.address)])
    machine.findings.add("expect-tx", message, next(iter(book.values()))[0], ends=True, cause=cause)


def _has_gone_on(scheduler: Scheduler, slot: int, barrier: MBarrier) -> bool:
    """Whether nobody is left who might yet send: every warp of the CTA has ended, or waits for this object."""
    warps = scheduler.machine.warps_per_cta
    waiting = {row for row, _, _ in scheduler.warps.waits.get(("mbarrier", slot, barrier.address), ())}
    rows = range(slot * warps, (slot + 1) * warps)
    return all(row in waiting or scheduler.warps.current[row] == EXITED for row in rows)


def _blame_parity(scheduler: Scheduler, barrier: MBarrier, row: int, statement: Statement) -> None:
    """A warp waits for a later phase than the next one after that for which it has waited: so its parity says."""
    last, account = barrier.waits.get(row), barrier.account
    meant = last.phase + 1 if last is not None else 0
    if barrier.phase <= meant:
        return
    if last is not None:
        before = f"this warp's last wait on {barrier.name} was for phase {last.phase} (line {last.statement.line})"
    elif barrier.phase == 1 and not account.arrivals and not account.expected:
        before = f"this is the warp's first wait on {barrier.name}"
    else:
        return
    scheduler.machine.findings.add(
        "mbarrier-parity",
        f"{before}; phase {meant} (parity {meant & 1}) is over, but it waits with parity {barrier.phase & 1}, so for "
        f"phase {barrier.phase}, which does not end: the parity is inverted, or waits for other phases are missing",
        statement,
        ends=True,
        cause=_cause(barrier.address, statement),
    )
