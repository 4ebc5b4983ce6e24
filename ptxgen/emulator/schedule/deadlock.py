"""The report of a deadlock: which warps wait, at which instruction, for what, and the cause."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Role
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import barriers, mbarriers
from ptxgen.emulator.load.flow import shortest_cycle
from ptxgen.emulator.load.program import EXITED, Operation, Program
from ptxgen.emulator.schedule.wait_graph import causes_of
from ptxgen.emulator.state.convergence import Wait
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.emulator.state.signals import byte_list, lines
from ptxgen.syntax import Immediate, Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler
    from ptxgen.emulator.state.machine import Machine

#: Opcodes of what a loop may poll.
_POLLS = re.compile(r"^ld\..*(volatile|relaxed|acquire|mmio)|^atom|^mbarrier\..*wait")
#: Opcodes of what signals an mbarrier.
_SIGNALS = re.compile(r"^mbarrier\..*(arrive|complete_tx)|mbarrier::complete_tx|^tcgen05\.commit|^cp\.async\.mbarrier")
#: Opcodes of arrivals at the barrier of a cluster, and at those of a CTA.
_CLUSTER, _BARRIER = re.compile(r"^barrier\.cluster\.arrive"), re.compile(r"^bar(rier)?\.(?!cluster|warp)")
#: Opcodes of commits to several CTAs of a cluster.
_MULTICAST_COMMIT = re.compile(r"^tcgen05\.commit.*\.multicast")
#: Opcodes of work in the order of the data.
_ISSUES = (re.compile(r"mbarrier::complete_tx|^cp\.async"), re.compile(r"^(tcgen05|wgmma)\.mma"))
#: Warps of a finding that are kept as data.
_SHOWN = 8


def report_deadlock(scheduler: Scheduler) -> None:
    """One finding per instruction and state of the object it waits for, for any number of CTAs, those that wait for
    other waiting warps under theirs; then their causes.
    """
    findings = scheduler.machine.findings
    findings.deadlocked()
    scheduler.machine.events.launch_deadlocks(lambda warp, statement: _may_execute(scheduler, warp, statement))
    waits: dict[tuple[Operation | None, _Need], _Waiting] = {}
    for operation, need, source, warps in _waits(scheduler):
        waiting = waits.setdefault((operation, need), _Waiting(operation, need, []))
        waiting.sources.append((source, warps))
    ordered = sorted(waits.values(), key=lambda each: _rank(scheduler, each))
    absent = _absent(scheduler) if any(not each.need.waits for each in ordered) else ""
    follows = _causes(scheduler, ordered)
    early: dict[int, set[Hashable]] = {}
    for number, root in enumerate(follows):
        early.setdefault(root, set()).update(map(causes.early, ordered[number].warps))
    for number in sorted(range(len(ordered)), key=lambda each: follows[each] != each):
        root = follows[number]
        _report(scheduler, ordered[number], absent, ("deadlock", root), frozenset(early[root]))
    _blame_registers(scheduler)
    for slot, barrier, warp, statement in _awaited_mbarriers(scheduler):
        _blame_bytes(scheduler, slot, barrier)
        _blame_parity(scheduler, barrier, warp, statement)
    if not findings.has_other_error(mbarriers.DEADLOCK.code):
        _blame_repeated_wait(scheduler, {warp for waiting in ordered for warp in waiting.warps})


def _report(scheduler: Scheduler, waiting: _Waiting, absent: str, cause: Hashable, early: frozenset[Hashable]) -> None:
    operation, need, warps = waiting.operation, waiting.need, waiting.warps
    statement = operation.statement if operation is not None else None
    elsewhere = _gone_elsewhere(scheduler, waiting)
    scheduler.machine.findings.report(
        mbarriers.DEADLOCK,
        statement,
        summary=need.missing,
        rule=f"{_who(scheduler, warps)} wait{'' if len(set(warps)) > 1 else 's'} for it here{absent}",
        fix=need.fix or (_RESIDENCY if absent else ""),
        accesses=tuple(
            _waiter(scheduler, each, warp, need.mbarrier) for each in (statement, *need.at) for warp in warps[:_SHOWN]
        ),
        ends=True,
        cause=frozenset([cause, *elsewhere]),
        after=_cause(None if elsewhere else need.mbarrier, statement, need.barrier) | early,
    )


def _gone_elsewhere(scheduler: Scheduler, waiting: _Waiting) -> list[Hashable]:
    """The cause of too many phases of the same mbarrier in other CTAs, if there are any and none here."""
    here = {slot for (kind, slot, _), _ in waiting.sources if kind == "mbarrier"}
    offset, size = waiting.need.mbarrier, scheduler.machine.clusters.size
    if offset is None:
        return []
    clusters = {slot // size for slot in here}
    behind = {
        slot
        for cluster in clusters
        for slot in range(cluster * size, (cluster + 1) * size)
        if (barrier := scheduler.machine.mbarriers[slot].get(offset)) is not None and barrier.behind
    }
    return [causes.stuck(offset)] if behind and behind.isdisjoint(here) else []


def _rank(scheduler: Scheduler, waiting: _Waiting) -> tuple[bool, int]:
    """The nearer to the cause, the lower: phases that have begun, then the others in the order of the data, since who
    issues copies should not wait for those who use them.
    """
    if waiting.need.mbarrier is None:
        return not waiting.need.partial, len(_ISSUES)
    pc = int(scheduler.warps.current[waiting.warps[0]])
    issues = next((n for n, each in enumerate(_ISSUES) if _leads_to(scheduler, pc, each)), len(_ISSUES))
    return not waiting.need.partial, issues


def _causes(scheduler: Scheduler, waits: list[_Waiting]) -> list[int]:
    """By wait, the one that it follows from, itself if from none; the same wait in another cluster counts as one."""
    where: dict[int, set[int]] = {}
    for number, waiting in enumerate(waits):
        for warp in waiting.warps:
            where.setdefault(warp, set()).add(number)
    waits_for = [
        {
            other
            for source, warps in waiting.sources
            for warp, others in where.items()
            if others != {number} and _may_complete(scheduler, source, warps, warp)
            for other in others - {number}
        }
        for number, waiting in enumerate(waits)
    ]
    first: dict[tuple[Operation | None, int | None], int] = {}
    return [first.setdefault((waits[each].operation, waits[each].need.mbarrier), each) for each in causes_of(waits_for)]


def _may_complete(scheduler: Scheduler, source: _Source, waiting: list[int], warp: int) -> bool:
    """Whether a warp would do something for what others wait for if it could proceed."""
    machine = scheduler.machine
    kind, place, number = source
    slot, pc = int(machine.cta_slot[warp]), int(scheduler.warps.current[warp])
    match kind:
        case "mbarrier":
            if machine.clusters.of(slot) != machine.clusters.of(place):
                return False
            barrier = machine.mbarriers[place].get(number)
            accounts = [barrier.account, barrier.previous] if barrier is not None else []
            known = {id(each): each for account in accounts if account is not None for each in account.statements}
            if known and any(scheduler.program.leads_to(pc, each) for each in known.values()):
                return True
            return not known and _leads_to(scheduler, pc, _SIGNALS)
        case "cluster":
            return machine.clusters.of(slot) == place and warp not in waiting and _leads_to(scheduler, pc, _CLUSTER)
        case "barrier":
            at = [name for (other, name), each in scheduler.barriers.open.items() if other == slot and each.has(warp)]
            # One that waits at another barrier may have come to the wrong one.
            return slot == place and number not in at and (bool(at) or _comes_to(scheduler, pc, number))
        case "registers":
            return slot == place and warp not in waiting
        case "lanes":
            return warp in waiting
        case _:
            return warp not in waiting


def _leads_to(scheduler: Scheduler, pc: int, opcodes: re.Pattern[str]) -> bool:
    """Whether a path from a block comes to an instruction like that."""
    return any(
        opcodes.search(operation.statement.opcode)
        for block in scheduler.program.reached(pc)
        for operation in scheduler.program.blocks[block].operations
    )


def _comes_to(scheduler: Scheduler, pc: int, number: int) -> bool:
    """Whether a path from a block comes to the barrier of a CTA with a number, or with one in a register."""
    return any(
        _BARRIER.search(operation.statement.opcode) and _number_of(operation) in (number, None)
        for block in scheduler.program.reached(pc)
        for operation in scheduler.program.blocks[block].operations
    )


def _number_of(operation: Operation) -> int | None:
    """The number of the barrier that an instruction names; None if a register has it."""
    name = getattr(operation.instruction, "name", None)
    value = name.value if isinstance(name, Immediate) else None
    return value if isinstance(value, int) else None


_RESIDENCY = "launch no more CTAs than are resident together; cooperative=True refuses a grid that is larger"


def _absent(scheduler: Scheduler) -> str:
    """How many CTAs have not started because others never end; empty if all have."""
    begun, ctas = scheduler.begun, scheduler.ctas
    if begun == ctas:
        return ""
    return (
        f". {ctas - begun} of {ctas} CTAs never started: {scheduler.machine.slots} are resident at a time, and these "
        "never exit"
    )


class _Need(NamedTuple):
    """What a warp waits for: what is missing, what to do about it, the offset of the mbarrier or the number of the
    barrier of a CTA if it is one, and the instructions `at` which its other lanes are.

    `partial`: some arrivals of its phase have come, but not all, which is nearer to the cause than a phase that nobody
    has begun. `waits`: it does not poll memory.
    """

    missing: str
    fix: str = ""
    mbarrier: int | None = None
    barrier: int | None = None
    at: tuple[Instruction, ...] = ()
    partial: bool = False
    waits: bool = True


#: What completes a wait: kind, place (CTA slot or cluster), and number or offset.
_Source = tuple[str, int, int]


@dataclass(slots=True)
class _Waiting:
    """Warps that wait for the same at an instruction, by what completes it."""

    operation: Operation | None
    need: _Need
    sources: list[tuple[_Source, list[int]]]

    @property
    def warps(self) -> list[int]:
        return [warp for _, warps in self.sources for warp in warps]


def _waiter(scheduler: Scheduler, statement: Statement | None, warp: int, mbarrier: int | None) -> Access:
    space = "shared" if mbarrier is not None else ""
    return scheduler.machine.findings.access("waiter", statement, warp, space=space, address=mbarrier)


def _cause(mbarrier: int | None, statement: Statement | None, barrier: int | None = None) -> frozenset[Hashable]:
    """What keeps a warp waiting, at the offset of an mbarrier or at a barrier of its CTA (None: at something else)."""
    keys: set[Hashable] = {causes.DEADLOCK}
    if barrier is not None:
        keys.add(causes.barrier(barrier))
    if mbarrier is not None:
        keys.add(causes.mbarrier(mbarrier))
    if statement is not None:
        keys.add(causes.wait(statement.line))
    return frozenset(keys)


def _waits(scheduler: Scheduler) -> Iterator[tuple[Operation | None, _Need, _Source, list[int]]]:
    """(instruction, what it waits for, what completes that, warps); causes come before what waits for the warps and
    lanes that they stop.
    """
    apart = _apart(scheduler)
    for key, waiting in scheduler.warps.waits.items():
        for warp, _, operation in waiting if not isinstance(key, Wait) else ():
            yield operation, _need(scheduler, key, warp), _source(scheduler, key, warp), [warp]
    if scheduler.spinning:
        for warp in _spinning(scheduler):
            operation = _polled(scheduler.program, int(scheduler.warps.current[warp]))
            missing = "spins forever: nothing that is still running can change what this loop polls"
            polled, offset = scheduler.machine.polled.get(warp), None
            source = "memory", 0, 0
            if polled is not None:
                missing += f". It last tested {_state(polled.barrier)}"
                offset = polled.barrier.address
                source = "mbarrier", polled.slot, offset
            elif (last := scheduler.machine.strong_loads.last_store(operation.statement, warp)) is not None:
                missing += f". The last store to it, of line {last.line}, has left {last.value}"
            yield operation, _Need(missing, mbarrier=offset, waits=polled is not None), source, [warp]
    for warp, (operation, lanes) in apart.items():
        yield operation, _missing_lanes(scheduler, warp, operation, lanes), ("lanes", warp, 0), [warp]
    for (slot, name), barrier in scheduler.barriers.open.items():
        if all(arrival.warp in apart for arrival in barrier.arrived):
            continue  # they are the lanes for which others of their warps wait
        expected = scheduler.barriers.expected(slot, barrier)
        missing = (
            f"barrier {name} never completes: {scheduler.barriers.count(barrier)} of {expected} threads have arrived"
        )
        warps = [arrival.warp for arrival in barrier.arrived if arrival.waits] or [barrier.arrived[0].warp]
        missing += _exited(scheduler, slot) + _at_other_barriers(scheduler, slot, name)
        yield (
            barrier.operation,
            _Need(missing, _fewer(scheduler, slot, name), barrier=name),
            ("barrier", slot, name),
            warps,
        )


def _fewer(scheduler: Scheduler, slot: int, number: int) -> str:
    """What to do about a barrier to which no other warp of its CTA comes any more; empty if one may."""
    barrier = scheduler.barriers.open[slot, number]
    here = (scheduler.machine.cta_slot == slot) & (scheduler.warps.current != EXITED)
    others = [warp for warp in np.flatnonzero(here).tolist() if not barrier.has(warp)]
    if any(_comes_to(scheduler, int(scheduler.warps.current[warp]), number) for warp in others):
        return ""
    return "make its thread count the number of threads that execute it, or let the others come to it"


def _apart(scheduler: Scheduler) -> dict[int, tuple[Operation, NDArray[np.bool_]]]:
    """By warp whose lanes wait for others of it: the first instruction at which some do, and which lanes."""
    found: dict[int, tuple[Operation, NDArray[np.bool_]]] = {}
    for key, waiting in scheduler.warps.waits.items():
        for warp, lanes, operation in waiting if isinstance(key, Wait) else ():
            if warp not in found or operation.statement.line < found[warp][0].statement.line:
                found[warp] = operation, lanes
    return found


def _missing_lanes(scheduler: Scheduler, warp: int, operation: Operation, lanes: NDArray[np.bool_]) -> _Need:
    """Which lanes others of their warp wait for, and where those are."""
    machine = scheduler.machine
    where: dict[Instruction, list[int]] = {}
    for lane in np.flatnonzero(machine.convergence.missing(warp, lanes, machine.present[warp])).tolist():
        if (statement := _position(scheduler, warp, lane)) is not None:
            where.setdefault(statement, []).append(lane)
    places = " and ".join(
        f"{_lanes(each)} {'is' if len(each) == 1 else 'are'} at {statement.opcode} (line {statement.line})"
        for statement, each in where.items()
    )
    return _Need(
        f"lanes that the mask of {operation.statement.opcode} names never arrive" + (f": {places}" if places else ""),
        "name only the lanes that execute it together, or let all lanes of the mask do so",
        at=tuple(where),
    )


def _position(scheduler: Scheduler, warp: int, lane: int) -> Instruction | None:
    """The instruction at which a lane is."""
    slot = int(scheduler.machine.cta_slot[warp])
    for (other, _), barrier in scheduler.barriers.open.items():
        if other == slot and any(each.warp == warp and each.lanes[lane] for each in barrier.arrived if each.waits):
            return barrier.operation.statement
    operations = scheduler.program.blocks[int(scheduler.warps.pc[warp, lane])].operations
    return operations[0].statement if operations else None


def _lanes(numbers: list[int]) -> str:
    """Lanes, with those in succession as a range: `lanes 0-3, 8`."""
    begins = [lane for lane in numbers if lane - 1 not in numbers]
    ends = [lane for lane in numbers if lane + 1 not in numbers]
    spans = ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(begins, ends, strict=True)
    )
    return f"lane{'s' if len(numbers) > 1 else ''} {spans}"


def _polled(program: Program, pc: int) -> Operation:
    """What the innermost loop around a pc polls: its first strong load or wait, or what is at the pc if it has none."""
    for each in sorted(shortest_cycle(program.successors, pc)):
        for operation in program.blocks[each].operations:
            if _POLLS.search(operation.statement.opcode):
                return operation
    return program.blocks[pc].operations[0]


def _spinning(scheduler: Scheduler) -> list[int]:
    """The warps that run and are not held."""
    return np.flatnonzero((scheduler.warps.current != EXITED) & ~scheduler.warps.held.all(axis=1)).tolist()


def _warps(numbers: Iterable[int]) -> str:
    chosen = sorted(set(numbers))
    return f"warp{'s' if len(chosen) > 1 else ''} {', '.join(map(str, chosen))}"


def _exited(scheduler: Scheduler, slot: int) -> str:
    """Which warps of a CTA have exited and will not arrive."""
    warps = scheduler.machine.warps_per_cta
    gone = np.flatnonzero(scheduler.warps.current[slot * warps : (slot + 1) * warps] == EXITED).tolist()
    return f" ({_warps(gone)} {'have' if len(gone) > 1 else 'has'} exited)" if gone else ""


def _at_other_barriers(scheduler: Scheduler, slot: int, name: int) -> str:
    """How many threads of a CTA have arrived at its other barriers."""
    places = [
        f"{scheduler.barriers.count(barrier)} at barrier {other} (line {barrier.operation.statement.line})"
        for (place, other), barrier in sorted(scheduler.barriers.open.items(), key=lambda each: each[0])
        if place == slot and other != name
    ]
    return f", {' and '.join(places)}" if places else ""


def _who(scheduler: Scheduler, warps: list[int]) -> str:
    per_cta = scheduler.machine.warps_per_cta
    slot = warps[0] // per_cta
    others = len({warp // per_cta for warp in warps}) - 1
    more = f", and warps of {others} other CTA{'s' if others > 1 else ''}" if others else ""
    here = _warps(warp % per_cta for warp in warps if warp // per_cta == slot).capitalize()
    return f"{here} of {scheduler.machine.cta_name(slot)}{more}"


def _need(scheduler: Scheduler, key: object, warp: int) -> _Need:
    machine = scheduler.machine
    if not isinstance(key, tuple):
        return _Need(f"missing: {key}")
    match key[0]:
        case "cluster":
            arrived, expected = scheduler.cluster_barriers.count(key[1])
            return _Need(f"barrier.cluster never completes: {arrived} of {expected} threads have arrived")
        case "registers" if machine.register_pool is not None:
            return _Need(f"no warp gives back enough registers: {machine.register_pool.describe(warp)}")
        case "mbarrier":
            barrier = machine.mbarriers[key[1]].get(key[2])
            if barrier is None:
                return _Need(f"the mbarrier at {key[2]:#x} is gone", mbarrier=key[2])
            partial = barrier.pending < barrier.expected or barrier.tx != 0
            left_out = _left_out(machine, key[1], barrier)
            if left_out is not None:
                line = left_out.line
                commit = f"{left_out.opcode.partition('.cta_group')[0]} (line {line}) arrives on it in another CTA"
                return _Need(
                    f"{_state(barrier)}; {commit}, whose multicast mask leaves this one out",
                    f"set the bit of this CTA's rank in the multicast mask of line {line}",
                    mbarrier=key[2],
                    partial=partial,
                )
            return _Need(_state(barrier), _fix(barrier, warp), mbarrier=key[2], partial=partial)
        case "tmem":
            return _Need(f"no warp frees {machine.tensor.describe(key[1])}")
        case _:
            return _Need(f"missing: {key}")


def _source(scheduler: Scheduler, key: object, warp: int) -> _Source:
    match key:
        case ("mbarrier", int(slot), int(offset)):
            return "mbarrier", slot, offset
        case ("cluster", int(cluster)):
            return "cluster", cluster, 0
        case ("registers", *_):
            return "registers", int(scheduler.machine.cta_slot[warp]), 0
        case _:
            return "memory", 0, 0


def _left_out(machine: Machine, slot: int, barrier: MBarrier) -> Instruction | None:
    """The multicast tcgen05.commit that has arrived on the object at this offset in another CTA of the cluster only."""
    if not barrier.pending:
        return None
    size = machine.clusters.size
    for other in range(slot // size * size, slot // size * size + size):
        peer = machine.mbarriers[other].get(barrier.address) if other != slot else None
        last = peer.last_arrival if peer is not None else None
        if peer is None or not isinstance(last, Instruction) or not _MULTICAST_COMMIT.match(last.opcode):
            continue
        if (peer.phase, -peer.pending) > (barrier.phase, -barrier.pending):
            return last
    return None


def _fix(barrier: MBarrier, warp: int) -> str:
    """Why a phase never completes, by what it still lacks."""
    account = barrier.account
    if account.came and not account.expected:
        multicast = next((each.line for each, _ in account.came.values() if ".multicast" in each.text), None)
        where = f"a thread of each CTA that line {multicast} multicasts to" if multicast else "the thread of the copies"
        return f"announce the bytes by mbarrier.arrive.expect_tx in {where}"
    if barrier.phase == 0 and not account.arrivals and not account.expected and warp not in barrier.waits:
        return "wait with parity 1 if the stage is empty at first, else add the missing arrival"
    if barrier.pending:
        return "make the count of mbarrier.init the number of arrivals of a phase, or add the missing arrival"
    if barrier.tx:
        return "make expect_tx announce the bytes of the copies of the phase, or add the missing copy"
    return "wait with the parity of the phase that completes"


def _blame_registers(scheduler: Scheduler) -> None:
    """What the setmaxnreg of a CTA request exceeds the pool, whatever warps give back."""
    pool = scheduler.machine.register_pool
    for key, waiting in scheduler.warps.waits.items():
        if pool is not None and isinstance(key, tuple) and key[0] == "registers":
            warp, _, operation = waiting[0]
            if excess := pool.excess(warp, scheduler.warps.current == EXITED):
                scheduler.machine.findings.report(
                    barriers.SETMAXNREG_BUDGET,
                    operation.statement,
                    summary=f"setmaxnreg (line {operation.statement.line}) waits for registers that never become free",
                    rule=excess,
                    fix="raise the counts of setmaxnreg.dec or lower those of setmaxnreg.inc",
                    accesses=(_waiter(scheduler, operation.statement, warp, None),),
                    ends=True,
                    cause=causes.DEADLOCK,
                )


# mbarriers.


def _state(barrier: MBarrier) -> str:
    """The phase that a warp waits for, and what it still lacks."""
    account = barrier.account
    arrived = f" ({lines(each for each, _ in account.arrivals.values())} arrived)" if account.arrivals else ""
    parts = [
        f"phase {barrier.phase} (parity {barrier.phase & 1}) of {barrier.name} has "
        f"{barrier.pending} of {barrier.expected} arrivals pending{arrived}"
    ]
    if barrier.tx > 0:
        came = f"{byte_list(account.came)} have arrived" if account.came else "none have arrived"
        parts.append(f"expect_tx announces {byte_list(account.expected)}, {came}, {barrier.tx} bytes outstanding")
    elif barrier.tx < 0:
        expected = byte_list(account.expected) if account.expected else "none"
        parts.append(
            f"{byte_list(account.came)} have come, {expected} expected: {-barrier.tx} bytes more than expected"
        )
    return ", ".join(parts)


def _awaited_mbarriers(scheduler: Scheduler) -> Iterator[tuple[int, MBarrier, int, Statement]]:
    """(CTA slot, object, warp that waits for it, its instruction)."""
    for warp in _spinning(scheduler) if scheduler.spinning else ():
        if (polled := scheduler.machine.polled.get(warp)) is not None:
            yield polled.slot, polled.barrier, warp, polled.statement
    for key, waiting in scheduler.warps.waits.items():
        if isinstance(key, tuple) and key[0] == "mbarrier":
            barrier = scheduler.machine.mbarriers[key[1]].get(key[2])
            if barrier is not None:
                for warp, _, operation in waiting:
                    yield key[1], barrier, warp, operation.statement


def _blame_bytes(scheduler: Scheduler, slot: int, barrier: MBarrier) -> None:
    """No arrival is pending and only the bytes hold the phase: expect_tx and the copies do not agree."""
    account, machine = barrier.account, scheduler.machine
    if barrier.pending or not barrier.tx or account.by_hand or barrier.miscounted:
        return
    if barrier.tx > 0 and not account.came and not _no_sender_left(scheduler, slot, barrier):
        return
    if barrier.tx > 0 and _sender_waits(scheduler, slot, barrier):
        return
    barrier.miscounted = True
    book = account.expected or account.came
    phase = f"phase {barrier.phase} of {barrier.name}"
    if barrier.tx > 0:
        came = f"{byte_list(account.came)} have arrived" if account.came else "none have arrived"
        summary = f"{phase} never completes: {barrier.tx} bytes are missing, and no copy transfers them"
        rule = f"expect_tx announces {byte_list(account.expected)}, but {came}"
        fix = f"announce {account.bytes_come} bytes by expect_tx, or add the missing copy"
    else:
        summary = f"{phase} never completes: {-barrier.tx} bytes more than expected arrived"
        rule = f"Copies transferred {byte_list(account.came)}, but expect_tx announces {byte_list(account.expected)}"
        fix = f"announce {account.bytes_come} bytes by expect_tx before the last arrival of the phase"
    statement = next(iter(book.values()))[0]
    role: Role = "arriver" if account.expected else "issuer"
    machine.findings.report(
        mbarriers.EXPECT_TX,
        statement,
        summary=summary,
        rule=rule,
        fix=fix,
        accesses=(
            machine.findings.access(
                role, statement, slot=slot, space="shared", address=barrier.address, phase=barrier.phase
            ),
        ),
        ends=True,
        cause=causes.of_miscounted(barrier.address),
    )


def _no_sender_left(scheduler: Scheduler, slot: int, barrier: MBarrier) -> bool:
    """Whether every warp of the CTA has exited or waits for this object, so that none issues the missing copy."""
    per_cta = scheduler.machine.warps_per_cta
    waiting = {warp for warp, _, _ in scheduler.warps.waits.get(("mbarrier", slot, barrier.address), ())}
    warps = range(slot * per_cta, (slot + 1) * per_cta)
    return all(warp in waiting or scheduler.warps.current[warp] == EXITED for warp in warps)


def _sender_waits(scheduler: Scheduler, slot: int, barrier: MBarrier) -> bool:
    """Whether the phase before had more copies than this one, and a warp that could issue them waits elsewhere."""
    before, account = barrier.previous, barrier.account
    if before is None or len(account.operations) >= len(before.operations):
        return False
    size, per_cta = scheduler.machine.clusters.size, scheduler.machine.warps_per_cta
    waiting = {warp for warp, _, _ in scheduler.warps.waits.get(("mbarrier", slot, barrier.address), ())}
    first = slot // size * size * per_cta
    return any(
        _may_execute(scheduler, warp, copy)
        for warp in range(first, first + size * per_cta)
        if warp not in waiting
        for copy, _ in before.came.values()
    )


def _may_execute(scheduler: Scheduler, warp: int, statement: Statement) -> bool:
    """Whether a warp would come to a statement if it could proceed."""
    return scheduler.program.leads_to(int(scheduler.warps.current[warp]), statement)


def _blame_parity(scheduler: Scheduler, barrier: MBarrier, warp: int, statement: Statement) -> None:
    """The parity of a wait selects a later phase than the one after the warp's last wait."""
    last, account = barrier.waits.get(warp), barrier.account
    meant = last.phase + 1 if last is not None else 0
    if barrier.phase <= meant:
        return
    why = (
        "the parity is inverted, waits for other phases are missing, or phases complete too early since the init count "
        f"({barrier.expected}) is too small"
    )
    if last is not None:
        before = f"the last wait of the warp was for phase {last.phase} (line {last.statement.line})"
        if (barrier.phase - last.phase) % 2 == 0:
            before += f", with parity {last.phase & 1} too"
            why = f"the parity was not flipped, or a wait for phase {meant} is missing"
    elif barrier.phase == 1 and not account.arrivals and not account.expected:
        before = "this is the first wait of the warp"
    else:
        return
    findings = scheduler.machine.findings
    waiter = findings.access("waiter", statement, warp, space="shared", address=barrier.address, phase=barrier.phase)
    findings.report(
        mbarriers.MBARRIER_PARITY,
        statement,
        summary=f"{waiter} waits on {barrier.name} with parity {barrier.phase & 1}, so for phase "
        f"{barrier.phase}, which never completes",
        rule=f"Phase {meant} (parity {meant & 1}) is complete, and {before}: {why}",
        accesses=(waiter,),
        ends=True,
        cause=_cause(barrier.address, statement),
    )


def _blame_repeated_wait(scheduler: Scheduler, waiting: set[int]) -> None:
    """A warp, which does not wait, has passed a wait for the same phase again: it has released too early what other
    warps wait for now.
    """
    findings, per_cta = scheduler.machine.findings, scheduler.machine.warps_per_cta
    for slot, barriers_here in enumerate(scheduler.machine.mbarriers):
        for barrier in barriers_here.values():
            for warp, (phase, statement) in barrier.repeats.items():
                if warp in waiting or warp // per_cta != slot:
                    continue
                waiter = findings.access(
                    "waiter", statement, warp, space="shared", address=barrier.address, phase=phase
                )
                findings.report(
                    mbarriers.MBARRIER_PARITY,
                    statement,
                    summary=f"{waiter} passes for phase {phase} (parity {phase & 1}) of {barrier.name} again, as the "
                    "wait before, though the warp has released something in between",
                    rule="The parity was not flipped: the warp runs ahead, and gives back what it has not got",
                    accesses=(waiter,),
                    ends=True,
                    cause=_cause(barrier.address, statement),
                )
