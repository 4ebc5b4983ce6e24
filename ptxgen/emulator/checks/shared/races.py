"""Races in shared memory: unordered accesses to the same bytes, and how they are reported.

What orders them in time alone, though not by the manual's words, makes it advice: MMAs that a warpgroup issues
together, and a relaxed arrival at the cluster's barrier after a CTA's accesses to its own shared memory, which are over
by then. What a peer reads after it must have been released.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Role
from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.cas_loops import STRONG_LOAD
from ptxgen.emulator.checks.changes import EQUAL, ONE_STORE, UNCHANGED
from ptxgen.emulator.checks.mbarrier.stale_waits import Event
from ptxgen.emulator.checks.messages import fixes
from ptxgen.emulator.checks.order.mbarrier_scope import report_narrow
from ptxgen.emulator.checks.order.strong_accesses import report_unfenced
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation, VectorClock
from ptxgen.emulator.checks.order.warp_sync import LAGS
from ptxgen.emulator.checks.order.weak_flags import FlagRace, Party
from ptxgen.emulator.checks.raced_reads import decides_again
from ptxgen.emulator.checks.registry import mbarriers, races
from ptxgen.emulator.checks.shared.collaborators import Collaborators
from ptxgen.emulator.checks.shared.last_accesses import ThreadAccesses
from ptxgen.emulator.checks.shared.strong_stores import StrongStores
from ptxgen.emulator.memory.granules import GRANULE, Masks, distinct
from ptxgen.emulator.state.raced_loads import UNKNOWN

if TYPE_CHECKING:
    pass

#: MMAs: of the rows that they read, the kernel may drop some from the accumulator.
_MMAS = ("tcgen05.mma", "wgmma.mma_async")
#: Kinds of work that a CTA also issues for its peer.
_CORE = ("tcgen05.mma", "tcgen05.cp")
#: Kinds of work that write shared memory even if nobody reads it; prefetches into L2 drop their copies there.
_COPIES = ("tensor copy", "bulk copy")
#: Kinds of work that may refill shared memory while threads still read its last contents.
_REFILLS = (*_COPIES, "launch-control response")
_NO_FLAG = FlagRace()
_RELAXED = "barrier.cluster.arrive.relaxed"


class SharedRaces:
    """Accesses against the last ones to the same granules, as `SharedAccesses` keeps them."""

    def __init__(self, given: Collaborators) -> None:
        self._cas_loops, self._flags = given.cas_loops, given.flags
        #: Bytes that weak loads read while other warps may store them.
        self.raced = given.raced
        self._happens_before, self._waits, self._findings = given.happens_before, given.waits, given.findings
        self._stores = given.lanes.stores
        #: By number of an MMA: (CTA slot, granules) that it reads while they may be overwritten.
        self.read_too_early: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        #: By number of a copy: (CTA slot, granules) that another copy may be writing too.
        self.written_at_once: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        #: By actor, the intervals that cp.async.mbarrier.arrive ended: a wait for it acquires the copies alone.
        self.only_copies: dict[int, set[int]] = {}
        #: Lines of the cp.async and st.async instructions that have run.
        self.copy_lines: dict[int, str] = {}

    def copies_published(self, warp: int, clock: int) -> None:
        """cp.async.mbarrier.arrive by a warp, which ends its interval."""
        self.only_copies.setdefault(self._happens_before.actor(warp), set()).add(clock)

    def _against_unpublished(
        self,
        access: AsyncOperation,
        warp: int,
        accesses: ThreadAccesses,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        observed: VectorClock,
    ) -> None:
        """Stores of other warps that only an arrival of their cp.async precedes, which waits for the copies alone."""
        first, table = warp - warp % self._happens_before.members, accesses.table(slot)
        late: list[tuple[int, int, int, int]] = []
        for actor, ended in self.only_copies.items() if table is not None else ():
            other_warp = self._happens_before.resident_warp(actor)
            member = other_warp - first if other_warp is not None else -1
            at = member - table.first if table is not None else -1
            if table is None or not 0 <= member < len(observed.clocks) or not 0 <= at < len(table.latest):
                continue
            if int(observed.clocks[member]) in ended:
                clocks = observed.clocks.copy()
                clocks[member] -= 1
                plain = ~np.isin(table.line[at, granules], list(self.copy_lines))
                bytes = np.broadcast_to(masks, granules.shape)[plain]
                late += accesses.unordered(slot, warp - first, granules[plain], bytes, clocks)
        for member, line, clock, at in late:
            if clock != int(observed.clocks[member]) or line in self.copy_lines:
                continue
            found = self._found(access, warp, "reads", at)
            other = self._happens_before.party("writer", line, warp, member, at)
            self._findings.report(
                races.SHARED_RACE,
                access.statement,
                summary=f"{found} reads {found.place}, which {other} writes",
                rule="Only cp.async.mbarrier.arrive comes between them, which waits for the thread's cp.async and "
                "publishes nothing else",
                fix="mbarrier.arrive after the store, or cp.async with a source size of 0 for the zeros",
                accesses=(found, other),
            )

    def against_own_copies(
        self, access: AsyncOperation, warp: int, granules: NDArray[np.int64], masks: Masks, verb: str
    ) -> None:
        """The warp's own copies there, for which it has not waited."""
        member = warp % self._happens_before.members
        pending = self._stores.pending(access.slot, member, granules, masks)
        if pending is not None:
            line, at = pending
            found = self._found(access, warp, verb, at)
            other = self._happens_before.party("writer", line, warp, member, at)
            self._findings.report(
                races.SHARED_RACE,
                access.statement,
                summary=f"{found} {_does(found)} {found.place} while {other.opcode} of line {line} may still be "
                "writing it",
                rule="The thread has not waited for its completion",
                fix=self._of_copy(found, line, "warp"),
                accesses=(found, other),
                cause=frozenset(
                    [
                        causes.lanes(warp, 0),
                        causes.unfinished(line),
                        causes.in_flight(self._happens_before.actor(warp), self._happens_before.clock(warp)),
                    ]
                ),
            )

    def _raced_load(
        self, access: AsyncOperation, accesses: ThreadAccesses | StrongStores, line: int, *, loads: bool
    ) -> int | None:
        """The line of the weak load of a race with a store by a thread, if a rerun may judge it."""
        load = None
        if loads and access.what in ("store", "strong store", "atomic operation"):
            load = self._happens_before.statements.get(line)
        elif access.what == "load" and line not in self.copy_lines:
            load = access.statement
        return load.line if load is not None and self.raced.may_judge(load) else None

    def _note(
        self,
        access: AsyncOperation,
        warp: int,
        accesses: ThreadAccesses | StrongStores,
        line: int,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        observed: VectorClock,
        *,
        loads: bool,
    ) -> None:
        """Remember the bytes of weak loads that race with stores."""
        member, statements = warp % self._happens_before.members, self._happens_before.statements
        if not isinstance(accesses, ThreadAccesses):
            bytes = offsets_of(granules, masks)
            parties = np.full(len(bytes), UNKNOWN), np.full(len(bytes), member)
            self.raced.add(access.statement, "shared", 1, bytes, *parties, decides=decides_again(statements.get(line)))
            return
        for other, line, at, bits in accesses.conflicts(slot, member, granules, masks, observed.clocks):
            bytes = offsets_of(at, bits)
            load = statements.get(line) if loads else access.statement
            if load is not None:
                storer, loader = (member, other) if loads else (other, member)
                parties = np.full(len(bytes), storer), np.full(len(bytes), loader)
                self.raced.add(load, "shared", 1, bytes, *parties, decides=decides_again(access.statement))

    def _found(self, access: AsyncOperation, warp: int, verb: str, at: int) -> Access:
        """The access that is reported, at an offset of shared memory."""
        role: Role = "reader" if verb == "reads" else "writer"
        return self._findings.access(role, access.statement, warp, space="shared", address=at)

    def against_operations(
        self,
        access: AsyncOperation,
        warp: int,
        slot: int,
        granules: NDArray[np.int64],
        numbers: NDArray[np.int64],
        verb: str,
        observed: VectorClock,
    ) -> None:
        """Asynchronous operations on these granules (numbers; 0: none) whose completion is not in `observed`."""
        for number in distinct(numbers).tolist() if count_nonzero(numbers) else ():
            if number and number not in observed.operations:
                earlier = self._happens_before.operations.get(number)
                if earlier is not None:
                    why, parity = self._waits.why(warp, Event(number), reads=verb == "reads", by=access.number)
                    places = (slot, np.array(granules)[numbers == number])
                    mma = next((each for each in (access, earlier) if each.what in _MMAS), None)
                    copies = verb == "overwrites" and access.what in _COPIES and earlier.what in _COPIES
                    if mma is not None:
                        self.read_too_early.setdefault(mma.number, []).append(places)
                    if copies:
                        for each in (access, earlier):
                            self.written_at_once.setdefault(each.number, []).append(places)
                    reads = mma is not None or copies
                    cause = earlier.cause | {causes.too_early(access.statement.line, earlier.what)}
                    if parity:
                        cause |= self._waits.missed(warp)
                    if verb == "reads" and earlier.mbarrier is not None:
                        cause |= self._waits.unwaited(warp, earlier.mbarrier)
                    if access.what in _COPIES and not copies:
                        cause |= self._refilled(access, warp, "the tensor core" if mma is not None else "copies")
                    at = int(places[1][0]) * GRANULE
                    self._async_race(access, warp, slot, at, verb, earlier, why, parity, reads=reads, cause=cause)

    def against_warps(
        self,
        access: AsyncOperation,
        warp: int,
        accesses: ThreadAccesses | StrongStores,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        verb: str,
        observed: VectorClock,
        *,
        loads: bool = False,
    ) -> None:
        """The last `accesses` of other warps to these bytes that are unordered with `observed`."""
        if self.raced.is_rerun:
            return
        what = "load" if loads else "store"
        happens_before = self._happens_before
        late = accesses.unordered(slot, warp % happens_before.members, granules, masks, observed.clocks)
        for member, line, clock, at in late:
            copied = clock == PENDING and line in self.copy_lines
            found = self._found(access, warp, verb, at)
            other = happens_before.party("reader" if loads else "writer", line, warp, member, at)
            actor = happens_before.actor(warp - warp % happens_before.members + member)
            excuse = self._excuse(access, accesses, line, loads=loads)
            # Of lanes that lag behind their warp (`HappensBefore.lagging`).
            behind = clock != PENDING and happens_before.has_observed_actor(warp, actor, clock)
            side = "" if excuse or behind else happens_before.unfenced_side(warp, actor, clock)
            if side:
                flags = happens_before.flags(warp, actor, clock)
                decides = decides_again(access.statement) or decides_again(happens_before.statements.get(line))
                raced = self._raced_load(access, accesses, line, loads=loads) if decides else None
                if raced is not None:
                    self._note(access, warp, accesses, line, slot, granules, masks, observed, loads=loads)
                report_unfenced(self._findings, found, other, side, access.statement, flags, self._flags.text, raced)
                continue
            other_warp = warp - warp % happens_before.members + member
            relaxed = happens_before.relaxed.order(warp, other_warp, clock)
            own = other_warp // happens_before.warps == slot
            if relaxed and own and (verb.startswith("overwrites") or warp // happens_before.warps == slot):
                self._findings.report(
                    races.MISSING_FENCE,
                    access.statement,
                    summary=f"{found} {_does(found)} {found.place}; only {_RELAXED} orders it after {other}",
                    rule="A relaxed arrival releases nothing",
                    fix=f"leave out .relaxed, or put fence.acq_rel.cluster before {_RELAXED}",
                    accesses=(found, other),
                    severity="advice",
                    cause=frozenset([causes.unordered(found.line, other.line)]),
                )
                continue
            by_mma = excuse or self._ordered_by_mma(access, warp, what, member, clock, observed)
            event = Event(member=member, clock=clock)
            kind = "strong store" if isinstance(accesses, StrongStores) else what
            apart = other_warp // happens_before.warps != warp // happens_before.warps
            why, parity = "", False
            if not by_mma:
                why, parity = self._waits.why(warp, event, reads=verb == "reads", by=access.number)
            flag = _NO_FLAG
            if not (by_mma or why or relaxed or behind or copied):
                earlier = Party(actor, clock, happens_before.statements.get(line), kind)
                mine = Party(happens_before.actor(warp), happens_before.clock(warp), access.statement, access.what)
                flag = self._flags.race(warp, mine, earlier, (slot, at), "cluster" if apart else "cta")
            rule, fix = by_mma or flag.rule or _sentence(why), flag.fix or None
            # One missing barrier leaves an access unordered with whatever lines store there.
            cause = flag.causes | {causes.unordered(found.line, other.line), causes.unordered(found.line, None)}
            if copied:
                cause |= {causes.in_flight(actor, happens_before.clock(other_warp)), causes.unfinished(line)}
            elif clock != PENDING:
                cause |= {causes.between(actor, clock, warp, happens_before.clock(warp))}
            if not rule and relaxed:
                rule = f"Only {_RELAXED} comes between them, which releases nothing"
                fix = f"leave out .relaxed, or put fence.acq_rel.cluster before {_RELAXED}"
                cause |= set(map(causes.relaxed, happens_before.relaxed.lines(warp, actor, clock)))
            lag = happens_before.lag(warp) if behind else "alone"
            if not rule and behind:
                rule = LAGS[lag]
            if not rule:
                rule = "That warp has not waited for the copy" if copied else "The two warps have not synchronized"
            may_drop = not (by_mma or flag.weak or copied or parity)
            raced = self._raced_load(access, accesses, line, loads=loads) if may_drop else None
            if raced is not None:
                self._note(access, warp, accesses, line, slot, granules, masks, observed, loads=loads)
            early = None
            if loads and access.what in _COPIES and access.mbarrier is not None:
                early = self._waits.released_early(other_warp, warp, clock, access.mbarrier)
            if early is not None and not (parity or by_mma):
                rule = f"That warp arrives on {early[0]} in line {early[1]}, before it has read"
                fix = f"mbarrier.arrive on {early[0]} after line {other.line}"
            elif not (fix or by_mma or why or behind):
                fix = self._fix(access, found, other, kind, line if copied else None, apart=apart)
            past = "may still be writing" if copied else "reads" if loads else "writes"
            self._findings.report(
                mbarriers.MBARRIER_PARITY if parity else races.SHARED_RACE,
                access.statement,
                summary=f"{found} {_does(found)} {found.place}, which {other} {past}",
                rule=rule,
                fix=STRONG_LOAD if excuse else "bar.warp.sync before this access" if behind else fix,
                accesses=(found, other),
                severity="advice" if by_mma or lag != "alone" else "error",
                raced=raced,
                cause=cause | (self._refilled(access, warp, "threads") if access.what in _REFILLS else frozenset()),
                after=self._waits.waited_on(warp)
                | {causes.CLUSTER_BARRIER, causes.sites(warp // happens_before.warps)}
                | ({causes.early(other_warp)} if access.what in _COPIES else frozenset()),
            )
        if self.only_copies and verb == "reads" and isinstance(accesses, ThreadAccesses) and not loads:
            self._against_unpublished(access, warp, accesses, slot, granules, masks, observed)
        if access.what in ("load", "store"):
            self._against_scopes(access, warp, accesses, what, slot, granules, masks, verb)
        elif access.what in _CORE and slot != warp // happens_before.warps:
            self._against_scopes(access, warp, accesses, what, slot, granules, masks, verb, pair=True)

    def _fix(
        self, access: AsyncOperation, found: Access, other: Access, kind: str, copy: int | None, *, apart: bool
    ) -> str | None:
        """What orders an access after one of another warp, or after its cp.async of line `copy`."""
        distance: fixes.Distance = "cluster" if apart else "cta"
        if copy is not None:
            return self._of_copy(found, copy, distance)
        if access.number and (not apart or found.role == "writer"):
            return fixes.of_operation(found, access.what, other, apart=apart)
        return fixes.of_threads(found, access.what, other, kind, distance, self._flags.text)

    def _of_copy(self, found: Access, line: int, distance: fixes.Distance) -> str | None:
        """The fix where an access comes before a wait for a cp.async of a line; None: that of the check."""
        if self.copy_lines.get(line) != "cp.async":
            return None
        if self.only_copies and distance != "warp":
            return f"cp.async.mbarrier.arrive after line {line}, or cp.async.wait_all and an arrival there"
        return fixes.of_cp_async(found, distance)

    def against_equal_stores(
        self,
        access: AsyncOperation,
        warp: int,
        stores: ThreadAccesses | StrongStores,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks,
    ) -> bool:
        """Unordered stores of other warps to bytes that hold what this store writes: whether there are any."""
        reported = False
        for member, line, at in self._without_any_order(access, warp, stores, slot, granules, masks):
            found = self._found(access, warp, "overwrites", at)
            other = self._happens_before.party("writer", line, warp, member, at)
            self._findings.report(
                races.SHARED_RACE,
                access.statement,
                summary=f"{found} overwrites {found.place}, which {other} writes",
                rule=f"The two warps have not synchronized. {EQUAL}",
                fix=ONE_STORE,
                accesses=(found, other),
                severity="advice",
                cause=causes.EQUAL_STORES,
            )
            reported = True
        return reported

    def against_equal_loads(
        self,
        access: AsyncOperation,
        warp: int,
        loads: ThreadAccesses,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks,
    ) -> bool:
        """Unordered loads by other warps of bytes that a store leaves as they are: whether there are any."""
        reported = False
        for member, line, at in self._without_any_order(access, warp, loads, slot, granules, masks):
            found = self._found(access, warp, "overwrites", at)
            other = self._happens_before.party("reader", line, warp, member, at)
            other_warp = warp - warp % self._happens_before.members + member
            apart = other_warp // self._happens_before.warps != warp // self._happens_before.warps
            self._findings.report(
                races.SHARED_RACE,
                access.statement,
                summary=f"{found} overwrites {found.place}, which {other} reads",
                rule=f"The two warps have not synchronized. {UNCHANGED}",
                fix=self._fix(access, found, other, "load", None, apart=apart),
                accesses=(found, other),
                severity="advice",
                cause=causes.UNCHANGED,
                after=frozenset([causes.CLUSTER_BARRIER, causes.sites(warp // self._happens_before.warps)]),
            )
            reported = True
        return reported

    def _without_any_order(
        self,
        access: AsyncOperation,
        warp: int,
        accesses: ThreadAccesses | StrongStores,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks,
    ) -> Iterator[tuple[int, int, int]]:
        """Unordered accesses of other warps, (member, line, offset), but for those that a fence would order: what the
        order lacks shows where other bytes are accessed.
        """
        happens_before, member = self._happens_before, warp % self._happens_before.members
        observed = happens_before.observed_by(warp, access.lane)
        for other, line, clock, at in accesses.unordered(slot, member, granules, masks, observed.clocks):
            actor = warp - member + other
            if not (
                clock == PENDING
                or happens_before.has_observed_actor(warp, actor, clock)
                or happens_before.unfenced_side(warp, actor, clock)
                or happens_before.relaxed.order(warp, actor, clock)
            ):
                yield other, line, at

    def _excuse(
        self, access: AsyncOperation, accesses: ThreadAccesses | StrongStores, line: int, *, loads: bool
    ) -> str:
        """Why a weak load and a strong access that stores are but advice; empty if they are not."""
        if loads and access.what in ("atomic operation", "strong store"):
            return self._cas_loops.excuse(line, access.statement.line)
        if access.what == "load" and isinstance(accesses, StrongStores):
            return self._cas_loops.excuse(access.statement.line, line)
        return ""

    def _ordered_by_mma(
        self, access: AsyncOperation, warp: int, what: str, member: int, clock: int, observed: VectorClock
    ) -> str:
        """The rule where a wgmma.mma_async that a warpgroup issues together orders another warp's access, or empty."""
        if what == "load" and self._happens_before.before_mma(warp, observed, member, clock):
            return (
                "The reader has not synchronized with this warp; only another warp of its warpgroup has, after a "
                "wgmma.mma_async"
            )
        if what == "store" and access.what.startswith("wgmma") and self._happens_before.same_warpgroup(warp, member):
            return (
                "The warps of the warpgroup have not synchronized; only the wgmma.mma_async, which all of them issue, "
                "comes after the store"
            )
        return ""

    def _against_scopes(
        self,
        access: AsyncOperation,
        warp: int,
        accesses: ThreadAccesses | StrongStores,
        what: str,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        verb: str,
        *,
        pair: bool = False,
    ) -> None:
        """Advice: hardware has been seen to order what the default scope of mbarriers does not (docs/checks.md). An
        error where a `pair`'s operation reads what threads of the peer have written: that has been seen to fail.
        """
        happens_before = self._happens_before
        wide, observed = happens_before.scopes.wide(warp, happens_before.warps), happens_before.clocks[warp]
        if wide is None:
            return
        late = accesses.unordered(slot, warp % happens_before.members, granules, masks, wide[0])
        for member, line, clock, at in late:
            if clock <= observed[member] and (pair or line not in self.copy_lines):
                narrow = "wait" if wide[1, member] >= clock else "arrival"
                found = self._found(access, warp, verb, at)
                other = self._happens_before.party("reader" if what == "load" else "writer", line, warp, member, at)
                severity, now = "error" if pair else "advice", (warp, self._happens_before.clock(warp))
                report_narrow(self._findings, found, other, narrow, access.statement, severity, now)

    def _async_race(
        self,
        access: AsyncOperation,
        warp: int,
        slot: int,
        at: int,
        verb: str,
        earlier: AsyncOperation,
        why: str,
        parity: bool,
        *,
        reads: bool,
        cause: frozenset[Hashable],
    ) -> None:
        """An access at an offset of a CTA's memory while an asynchronous operation may be there, since no wait orders
        them; `why` is what a wait of the warp has to do with it, and `parity` whether a wrong one explains it.
        """
        role, other_role = ("reader" if verb == "reads" else "writer"), ("reader" if verb.endswith("by") else "writer")
        found = self._findings.access(role, access.statement, warp, slot=slot, space="shared", address=at)
        other = self._findings.access(
            other_role, earlier.statement, earlier.warp, slot=slot, space="shared", address=at
        )
        does = "reads" if role == "reader" else "overwrites"
        doing = "reading" if other_role == "reader" else "writing"
        name = self._findings.name("shared", earlier.mbarrier) if earlier.mbarrier is not None else ""
        rule, fix = _sentence(why) or f"The thread has not waited for its completion{name and f' on {name}'}", None
        place = ""
        early = (
            self._waits.released_early(warp, earlier.warp, full=earlier.mbarrier)
            if earlier.what in _COPIES and not parity
            else None
        )
        if early is not None:
            rule = f"Its warp arrives on {early[0]} in line {early[1]}, before this access: the copy may begin then"
            fix = f"mbarrier.arrive on {early[0]} after line {access.statement.line}"
        elif not why and name and self._is_of_a_peer(warp, slot, earlier):
            place, rule = (
                " of a peer CTA",
                f"It completes on {name} of that CTA, whose own threads alone can wait for it",
            )
            fix = (
                f"let a thread of the peer wait for {name}, then arrive on an mbarrier of this CTA "
                "(mbarrier.arrive.release.cluster.shared::cluster), and wait for that before line "
                f"{access.statement.line}"
            )
        elif not why and name:
            fix = f"wait for {name} before line {access.statement.line} (mbarrier.try_wait, branch on the result)"
        elif not why and (issuer := self._other_warpgroup(warp, earlier)):
            rule = f"{issuer} issued it; nothing orders this access after that warpgroup's wgmma.wait_group"
            fix = (
                f"bar.sync, or an mbarrier on which that warpgroup arrives, between its wgmma.wait_group 0 and line "
                f"{access.statement.line}"
            )
        elif not why:
            line, text = earlier.statement.line, self._flags.text
            fix = fixes.of_unfinished(earlier.what, line, found, text)
            if (wait := fixes.wait_of_open_group(earlier.what, line, text)) is not None:
                rule = fixes.OPEN_GROUP.format(wait=wait, line=line)
        self._findings.report(
            mbarriers.MBARRIER_PARITY if parity else races.SHARED_RACE,
            access.statement,
            summary=f"{found} {does} {found.place}{place} while {other.opcode} of line {other.line} may still be "
            f"{doing} it",
            rule=rule,
            fix=fix,
            accesses=(found, other),
            reads=reads and not parity,
            cause=cause,
            # What another mbarrier counts does not explain that nobody waits on this one.
            after=(frozenset() if causes.early(warp) in cause else self._waits.waited_on(warp))
            | ({causes.early(earlier.warp)} if earlier.warp is not None and earlier.warp != warp else frozenset())
            | (self._in_use(access) if earlier.what in _COPIES else frozenset()),
        )

    def _other_warpgroup(self, warp: int, earlier: AsyncOperation) -> str:
        """The warpgroup whose wgmma.mma_async this is, by its warps, if `warp` is of another; else empty."""
        happens_before = self._happens_before
        if not earlier.what.startswith("wgmma") or earlier.warp is None:
            return ""
        if happens_before.same_warpgroup(warp, earlier.warp % happens_before.members):
            return ""
        first = earlier.warp % happens_before.warps // 4 * 4
        return f"Another warpgroup (warps {first} to {first + 3})"

    def _is_of_a_peer(self, warp: int, slot: int, earlier: AsyncOperation) -> bool:
        """Whether a copy to the memory of a peer CTA completes there, where only threads of that CTA can wait."""
        apart = slot != warp // self._happens_before.warps
        return apart and earlier.what in _COPIES and "cta_group::2" not in earlier.statement.text

    def _in_use(self, copy: AsyncOperation) -> frozenset[Hashable]:
        """The causes of a copy's race with another one where something still reads what that has written."""
        return frozenset(causes.in_use(copy.statement.line, reader) for reader in causes.READERS)

    def _refilled(self, copy: AsyncOperation, warp: int, reader: str) -> frozenset[Hashable]:
        """The cause of the races of a copy that overwrites what is read there, also with what has been copied there."""
        line = causes.in_use(copy.statement.line, reader)
        if copy.mbarrier is None:
            return frozenset([line])
        return frozenset([line, causes.refilled(copy.mbarrier)])


def offsets_of(granules: NDArray[np.int64], masks: Masks | np.uint16) -> NDArray[np.int64]:
    """The offsets of the bytes of granules that masks name."""
    bits = np.broadcast_to(masks, granules.shape)[:, None] >> np.arange(GRANULE, dtype=np.uint16) & 1
    return (granules[:, None] * GRANULE + np.arange(GRANULE))[bits != 0]


def _does(found: Access) -> str:
    return "reads" if found.role == "reader" else "overwrites"


def _sentence(why: str) -> str:
    """What a wait has to do with a race, as a sentence."""
    why = why.removeprefix("; ")
    return why[:1].upper() + why[1:]
