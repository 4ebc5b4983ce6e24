"""Conflicts of accesses to tensor memory: by tcgen05.ld and st of warps, by the tensor core.

Tensor memory is kept in columns by band of 16 lanes: two accumulators of 64 rows may share columns, one on the first
and one on the last 16 lanes of each warp's quarter (PTX ISA 9.7.16.10.5, layouts C and F), and Triton places them so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Role, Severity
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import Event, StaleWaits
from ptxgen.emulator.checks.order.listener import OrderListener
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation
from ptxgen.emulator.checks.registry import mbarriers, tcgen05, uninitialized
from ptxgen.emulator.checks.tensor.fences import TensorFences
from ptxgen.emulator.checks.tensor.missing_waits import MissingWaits
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.signals import Signal
from ptxgen.emulator.state.tensor_transfers import TensorLoad
from ptxgen.layouts.tmem import COLUMNS
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.observer import MachineView, ProgramView

_BANDS = 8
#: Bands of 16 lanes in a warp's quarter of tensor memory.
_HALVES = 2
#: Why an access of the peer CTA matters to a dealloc, and the fix.
_FOR_BOTH = (
    "tcgen05.dealloc.cta_group::2 frees the columns of both CTAs, and the two warps have not synchronized; the first "
    "of the two could block until its peer frees too (9.7.16.5), but need not"
)
_SYNCHRONIZE_PAIR = "barrier.cluster.arrive and .wait of the pair between the last load and the dealloc"


def _named(columns: range) -> str:
    """Columns in messages."""
    if len(columns) == 1:
        return f"TMEM column {columns.start}"
    return f"TMEM columns {columns.start}-{columns.stop - 1}"


def _caused(statement: Statement, earlier: AsyncOperation | None) -> frozenset[Hashable]:
    """What relates a race to others: the instruction that comes too early, and the operation that is not complete."""
    what = "tcgen05.ld" if earlier is None else earlier.what
    early = frozenset([causes.too_early(statement.line, what)])
    return early if earlier is None else earlier.cause_in_tensor_memory | early


def _unfenced(side: str, statement: Statement, other: Access) -> frozenset[Hashable]:
    """What relates missing fences: the instruction, or the accesses of one kind on which it relies."""
    return frozenset([("no fence", side, other.opcode, line) for line in (statement.line, other.line)])


#: Why a load and a later access are unordered, where registers of the load are used after the warps synchronized.
_USED_LATE = "Its warp uses registers of the load, which waits for it too, but only after it has synchronized"


class TensorAccesses(OrderListener, Observer):
    """The last accesses to each column of the resident CTAs' tensor memories.

    `slot` is the CTA whose memory it is, where that is not the operation's own.
    """

    def __init__(
        self, happens_before: HappensBefore, fences: TensorFences, waits: StaleWaits, slots: int, findings: Findings
    ) -> None:
        self._happens_before, self._fences, self._waits, self._findings = happens_before, fences, waits, findings
        self._missing = MissingWaits(happens_before, waits, findings)
        #: True once an instruction has accessed tensor memory.
        self._used = False
        self._slots = slots
        #: The last tcgen05.ld of each columns by a warp in one of its intervals, the latest at the end.
        self._loads: dict[tuple[int, int], dict[range, Statement]] = {}
        #: Columns of a slot that its peer CTA has freed for both, and the slot has not: who, and its instruction.
        self._freed_by_peer: dict[int, list[tuple[range, int, Statement]]] = {}
        #: Conflicts with a warp's loads in flight, by columns: reported if the warp uses their values.
        self._suspects: dict[int, list[tuple[range, Callable[[], None]]]] = {}

    # Tables of all slots, made for kernels that use tensor memory.

    @cached_property
    def writer(self) -> NDArray[np.int64]:
        """The last operation that wrote to each column, by slot and band; 0: none."""
        return np.zeros((self._slots, _BANDS, COLUMNS), np.int64)

    @cached_property
    def core_reader(self) -> NDArray[np.int64]:
        """The last MMA that read A, metadata or scale factors there."""
        return np.zeros((self._slots, _BANDS, COLUMNS), np.int64)

    @cached_property
    def reader_clock(self) -> NDArray[np.int64]:
        """Interval in which a warp last loaded a column of its first or second band: `PENDING` until
        tcgen05.wait::ld, or until the warp reads a register of the load.
        """
        return np.zeros((self._slots, self._happens_before.warps, _HALVES, COLUMNS), np.int64)

    @cached_property
    def _by_register(self) -> NDArray[np.bool_]:
        """True where a load has been waited for by a use of its registers alone, not by tcgen05.wait::ld."""
        return np.zeros(self.reader_clock.shape, np.bool_)

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._missing.launch_begins(program)  # type: ignore[arg-type]

    def tensor_committed(
        self, warp: int, signal: Signal, commits: Sequence[tuple[int, AsyncWork]], offset: int
    ) -> None:
        self._missing.committed(commits[0][1])

    def keep_alive(self, slots: range, numbers: set[int]) -> None:
        if self._used:
            numbers.difference_update(np.unique(self.writer[slots.start : slots.stop]).tolist())

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        if self._used:
            for table in (self.writer, self.core_reader, self.reader_clock, self._by_register):
                table[slots] = 0
        if self._suspects:
            for warp in self._happens_before.warps_of(slots).tolist():
                self._suspects.pop(warp, None)
        for slot in slots.tolist() if self._freed_by_peer else ():
            self._freed_by_peer.pop(slot, None)

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        operation = self._happens_before.operations[work.number]
        self.write(operation, work.warp, bands, columns, accumulates=accumulates, slot=slot)

    def write(
        self,
        operation: AsyncOperation,
        warp: int,
        bands: list[int],
        columns: range,
        *,
        accumulates: bool = False,
        slot: int | None = None,
    ) -> None:
        """A tcgen05.mma, cp or shift issued by `warp` writes, or adds to, columns in these bands of the lanes.

        The tensor core's operations do not conflict with each other: the pipelines of 9.7.16.6.2 order most pairs, and
        CUTLASS and DeepGEMM rely on the order of a cp after the mma whose scale factors it overwrites.
        """
        slot = operation.slot if slot is None else slot
        observed = self._happens_before.observed[warp]
        span = slice(columns.start, columns.stop)
        if self._freed_by_peer:
            self._require_not_freed("writer", operation.statement, warp, slot, columns)
        if accumulates:
            self._require_written(warp, slot, bands, columns, "adds to", operation.statement)
        for number in np.unique(self.writer[slot, bands, span]):
            earlier = self._happens_before.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in observed.operations:
                self._advise_fence(warp, earlier, operation.what, operation.statement)
                continue
            # Two stores of one warp may be to different lanes of its quarter.
            if operation.what != "tcgen05.st" or earlier.warp != warp:
                self._unfinished(operation, earlier, columns, warp, slot, "writer", "writing")
        loaded = self._loaded_in(slot, bands, columns)
        self._advise_fences_of_loads(operation, warp, slot, loaded, columns)
        reported = {warp}
        for reader, load, event in self._unordered_loads(warp, slot, loaded, columns):
            reported.add(reader)
            writer = self._access("writer", operation.statement, warp, slot, columns)
            found = self._access("reader", load, reader, slot, columns)
            report = partial(
                self._race,
                writer,
                found,
                operation.statement,
                warp,
                event,
                f"overwrites {_named(columns)} while {found} may still be reading them",
                *self._missing.of_load(warp, reader, event, load, operation.statement),
            )
            self._against_load(reader, columns, event, report)
        if any_set(self._by_register[slot][..., span]):
            self._against_used_loads(operation, warp, slot, bands, columns, reported)
            self._by_register[slot][..., span] = False
        self._used = True
        self.writer[slot, bands, span] = operation.number

    def _advise_fences_of_loads(
        self, operation: AsyncOperation, warp: int, slot: int, loaded: NDArray[np.int64], columns: range
    ) -> None:
        """Columns are overwritten that other warps have loaded and waited for: both sides of the synchronization need a
        fence, and one missing is reported at a time.
        """
        for warp_id in np.flatnonzero(loaded).tolist():
            reader, latest = slot * self._happens_before.warps + warp_id, int(loaded[warp_id])
            if reader == warp or latest == PENDING:
                continue
            at, member = self._load_of(reader, latest, columns), reader % self._happens_before.members
            if (reader, latest) in self._fences.unfenced:
                self._advise_fence_before(warp, reader, at, operation.what, operation.statement)
                continue
            observed = self._happens_before.observed[warp].for_tensor_memory[member] >= latest
            if observed and not self._fences.follows(warp, member, latest):
                other = self._findings.access("reader", at, reader, space="tensor")
                self._advise_fence_after(warp, other, operation.what, operation.statement)

    def _against_used_loads(
        self, operation: AsyncOperation, warp: int, slot: int, bands: Sequence[int], columns: range, reported: set[int]
    ) -> None:
        """Columns are overwritten that warps have loaded with no other wait than a use of the registers.

        The manual says of a register dependency that it orders no accesses to memory (9.7.16.6.4.5), so a release after
        it is too early (vllm-project/flash-attention#182). CuTe DSL relies on it for dealloc alone. Those of `reported`
        warps are left out: races of their own, and the warp itself, whose operations follow its loads.
        """
        span = slice(columns.start, columns.stop)
        used = self._by_register[slot][..., span] & self._quarters(bands)[..., None]
        for warp_id in np.flatnonzero(used.any(axis=(1, 2))).tolist():
            reader = slot * self._happens_before.warps + warp_id
            load = self._load_of(reader, int(self.reader_clock[slot, warp_id][..., span].max()), columns)
            if reader in reported or load is None:
                continue
            writer = self._access("writer", operation.statement, warp, slot, columns)
            found = self._access("reader", load, reader, slot, columns)
            self._findings.report(
                tcgen05.TENSOR_RACE,
                operation.statement,
                summary=f"{writer} overwrites {_named(columns)} while {found} may still be reading them",
                rule="Its warp has read registers of the load, which orders no accesses to tensor memory, and released "
                "the columns without tcgen05.wait::ld",
                fix=f"tcgen05.wait::ld after line {load.line}, before the release",
                accesses=(writer, found),
                cause=_caused(operation.statement, None) | {causes.UNAWAITED_LOADS},
            )

    def _against_load(self, reader: int, columns: range, event: Event, report: Callable[[], None]) -> None:
        """A conflict with a load in flight matters only if its values are used: masked attention drops some."""
        if event.clock == PENDING:
            self._suspects.setdefault(reader, []).append((columns, report))
        else:
            report()

    def _race(
        self,
        access: Access,
        other: Access,
        statement: Statement,
        warp: int,
        event: Event,
        what: str,
        missing: str,
        fix: str | None,
    ) -> None:
        """An event does not happen before an access of `warp`: its last wait may have been for an earlier phase.

        `what` continues the name of the access, `missing` says why the two are unordered, `fix` what orders them.
        """
        why, parity = self._waits.why(warp, event, reads=access.role == "reader")
        earlier = self._happens_before.operations.get(event.operation)
        reason = f". {why[2:3].upper()}{why[3:]}" if why else ""
        self._findings.report(
            mbarriers.MBARRIER_PARITY if parity else tcgen05.TENSOR_RACE,
            statement,
            summary=f"{access} {what}",
            rule=f"{missing}{reason}",
            fix=None if parity else fix,
            accesses=(access, other),
            cause=_caused(statement, earlier),
            after=self._waits.waited_on(warp),
        )

    def _access(self, role: Role, statement: Statement | None, warp: int | None, slot: int, columns: range) -> Access:
        return self._findings.access(role, statement, warp, slot=slot, space="tensor", address=columns.start)

    def _loaded_in(self, slot: int, bands: Sequence[int], columns: range) -> NDArray[np.int64]:
        """In which of its intervals each warp of a slot last loaded some of these cells, 0 for none."""
        clocks = self.reader_clock[slot][..., columns.start : columns.stop].max(axis=2, initial=0)
        return np.where(self._quarters(bands), clocks, 0).max(axis=1, initial=0)

    def _unordered_loads(
        self, warp: int, slot: int, latest: NDArray[np.int64], columns: range
    ) -> Iterator[tuple[int, Statement | None, Event]]:
        """(warp, its load, the event to wait for) of the `latest` loads of a slot's cells that do not happen before
        `warp`.
        """
        for warp_id in np.flatnonzero(
            latest > self._happens_before.of_cta(slot, self._happens_before.observed[warp].for_tensor_memory)
        ):
            reader, pending = slot * self._happens_before.warps + int(warp_id), latest[warp_id] == PENDING
            if pending or reader != warp:
                load = self._load_of(reader, int(latest[warp_id]), columns)
                yield reader, load, Event(member=reader % self._happens_before.members, clock=int(latest[warp_id]))

    def _quarters(self, bands: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the bands of its quarter each warp has among these, (warps, 2)."""
        reached = np.zeros(_BANDS, np.bool_)
        reached[list(bands)] = True
        return np.resize(reached.reshape(-1, _HALVES), (self._happens_before.warps, _HALVES))

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        operation, warp = self._happens_before.operations[work.number], work.warp
        span = slice(columns.start, columns.stop)
        writers = np.unique(self.writer[slot, bands, span])
        if writers[0] == 0:
            self._require_written(warp, slot, bands, columns, f"reads {what} in", operation.statement)
        for number in writers:
            earlier = self._happens_before.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in self._happens_before.observed[warp].operations:
                self._advise_fence(warp, earlier, operation.what, operation.statement)
                continue
            reader = self._access("reader", operation.statement, warp, slot, columns)
            writer = self._access("writer", earlier.statement, earlier.warp, slot, columns)
            missing, fix = self._missing.of_operation(warp, "issuing", earlier, operation.statement)
            self._findings.report(
                tcgen05.TENSOR_RACE,
                operation.statement,
                summary=f"{reader} reads {what} in {_named(columns)} while {writer} may still be writing there",
                rule=missing,
                fix=fix,
                accesses=(reader, writer),
                cause=_caused(operation.statement, earlier),
            )
        self._used = True
        self.core_reader[slot, bands, span] = operation.number

    def pair_frees(self, warp: int, peer: int, columns: range, statement: Statement) -> None:
        """The warps of both CTAs must synchronize their accesses before either frees (9.7.16.7.1): the loads of the
        peer must happen before. Its MMAs are those of the pair.

        Where they do not it is advice: the first warp to free "could block" until its peer does (table 46), and
        CUTLASS's CuTe tutorials 04 and 05 rely on that.
        """
        free = self._findings.access("accessor", statement, warp, space="tensor", address=columns.start)
        loaded = self._loaded_in(peer, range(_BANDS), columns)
        for reader, load, event in self._unordered_loads(warp, peer, loaded, columns):
            if self._happens_before.relaxed.order(warp, reader, event.clock):
                continue
            used = self._access("reader", load, reader, peer, columns)
            report = partial(self._freed_in_use, free, used, _FOR_BOTH, _SYNCHRONIZE_PAIR, statement, severity="advice")
            self._against_load(reader, columns, event, report)
        self._freed_by_peer.setdefault(peer, []).append((columns, warp, statement))

    def _require_not_freed(self, role: Role, statement: Statement, warp: int, slot: int, columns: range) -> None:
        """Report an access to columns that the peer CTA has freed already."""
        for freed, other, at in self._freed_by_peer.get(slot, ()):
            if freed.start < columns.stop and columns.start < freed.stop:
                free = self._findings.access("accessor", at, other, space="tensor", address=freed.start)
                used = self._access(role, statement, warp, slot, columns)
                self._freed_in_use(free, used, _FOR_BOTH, _SYNCHRONIZE_PAIR, at, severity="advice")

    def tensor_freed(self, warp: int, slot: int, columns: range, statement: Statement) -> None:
        """All reads and writes of the columns must happen before."""
        self._freed_by_peer.pop(slot, None)
        span, observed = slice(columns.start, columns.stop), self._happens_before.observed[warp]
        free = self._access("accessor", statement, warp, slot, columns)
        uses: dict[int, Role] = {int(number): "reader" for number in np.unique(self.core_reader[slot][:, span])}
        uses |= {int(number): "writer" for number in np.unique(self.writer[slot][:, span])}
        for number, role in uses.items():
            earlier = self._happens_before.operations.get(number)
            if earlier is not None and number not in observed.operations:
                used = self._access(role, earlier.statement, earlier.warp, slot, columns)
                cause = earlier.cause | earlier.cause_in_tensor_memory
                self._freed_in_use(free, used, "The freeing warp has not waited for it", None, statement, cause)
        loaded = self._loaded_in(slot, range(_BANDS), columns)
        for reader, load, event in self._unordered_loads(warp, slot, loaded, columns):
            used = self._access("reader", load, reader, slot, columns)
            why, fix = self._missing.of_load(warp, reader, event, load, statement)
            if load is not None and any_set(self._by_register[slot][reader % self._happens_before.warps][..., span]):
                why, fix = _USED_LATE, f"tcgen05.wait::ld after line {load.line}, before the two warps synchronize"
            cause = _caused(statement, None)
            self._against_load(
                reader, columns, event, partial(self._freed_in_use, free, used, why, fix, statement, cause)
            )
        self.writer[slot][:, span] = 0
        self.core_reader[slot][:, span] = 0
        self.reader_clock[slot][..., span] = 0
        self._by_register[slot][..., span] = False

    def _freed_in_use(
        self,
        free: Access,
        used: Access,
        rule: str,
        fix: str | None,
        statement: Statement,
        cause: frozenset[Hashable] = frozenset(),
        severity: Severity = "error",
    ) -> None:
        doing = "reading" if used.role == "reader" else "writing"
        self._findings.report(
            tcgen05.TMEM_FREED_IN_USE,
            statement,
            summary=f"{free} frees columns that {used} may still be {doing}",
            rule=rule,
            fix=fix,
            accesses=(free, used),
            severity=severity,
            cause=cause | {causes.freed(statement.line)},
        )

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        operation, warp = self._happens_before.operations[work.number], work.warp
        observed = self._happens_before.observed[warp].operations
        for number in np.unique(self.writer[operation.slot, bands, columns.start : columns.stop]):
            earlier = self._happens_before.operations.get(int(number))
            if earlier is None or earlier.what == "tcgen05.st" or earlier.number in observed:
                continue
            self._unfinished(operation, earlier, columns, warp, operation.slot, "writer", "writing")
        for number in np.unique(self.core_reader[operation.slot, bands, columns.start : columns.stop]):
            earlier = self._happens_before.operations.get(int(number))
            if earlier is not None and earlier.number not in observed:
                self._unfinished(operation, earlier, columns, warp, operation.slot, "reader", "reading")
        self.write(operation, warp, bands, columns)

    def tensor_stores_awaited(self, warp: int, works: Sequence[AsyncWork]) -> None:
        numbers = [work.number for work in works]
        self._happens_before.observed[warp].operations.update(numbers)
        self._fences.observed[warp].update(numbers)
        self._fences.accessed(warp, numbers)

    def _unfinished(
        self,
        operation: AsyncOperation,
        earlier: AsyncOperation,
        columns: range,
        warp: int,
        slot: int,
        role: Role,
        doing: str,
    ) -> None:
        """An operation overwrites columns that an earlier one (its `role`, what it is `doing`) may still use."""
        writer = self._access("writer", operation.statement, warp, slot, columns)
        other = self._access(role, earlier.statement, earlier.warp, slot, columns)
        what = f"overwrites {_named(columns)} while {other} may still be {doing} them"
        missing, fix = self._missing.of_operation(warp, "issuing", earlier, operation.statement)
        self._race(writer, other, operation.statement, warp, Event(earlier.number), what, missing, fix)

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        slot, warp_id = divmod(warp, self._happens_before.warps)
        span = slice(columns.start, columns.stop)
        if self._freed_by_peer:
            self._require_not_freed("reader", statement, warp, slot, columns)
        writers = np.unique(self.writer[slot, bands, span])
        if writers[0] == 0:
            self._require_written(warp, slot, bands, columns, "reads", statement)
        for number in writers:
            earlier = self._happens_before.operations.get(int(number))
            if earlier is None:
                continue
            if earlier.number not in self._happens_before.observed[warp].operations:
                reader = self._access("reader", statement, warp, slot, columns)
                writer = self._access("writer", earlier.statement, earlier.warp, slot, columns)
                stored = earlier.what == "tcgen05.st"
                if stored and earlier.warp == warp:
                    self._findings.report(
                        tcgen05.MISSING_TCGEN05_WAIT,
                        statement,
                        summary=f"{reader} reads {_named(columns)}, which {writer} writes",
                        rule="No tcgen05.wait::st separates the two. Hardware seems to keep the order of a warp's own "
                        "stores and loads (CUTLASS relies on it), but PTX does not promise it",
                        fix=f"tcgen05.wait::st after line {earlier.statement.line}",
                        accesses=(reader, writer),
                    )
                    continue
                missing, fix = self._missing.of_operation(warp, "loading", earlier, statement)
                self._race(
                    reader,
                    writer,
                    statement,
                    warp,
                    Event(earlier.number),
                    f"reads {_named(columns)} while {writer} may still be writing there",
                    missing,
                    fix,
                )
            else:
                self._advise_fence(warp, earlier, "load", statement)
        self._used = True
        halves = [band % _HALVES for band in bands]
        self.reader_clock[slot, warp_id, halves, span] = PENDING
        self._by_register[slot, warp_id, halves, span] = False
        self._remember_load(warp, PENDING, columns, statement)

    def _remember_load(self, warp: int, clock: int, columns: range, statement: Statement) -> None:
        loads = self._loads.setdefault((warp, clock), {})
        loads.pop(columns, None)
        loads[columns] = statement

    def _load_of(self, warp: int, clock: int, columns: range) -> Statement | None:
        """The last tcgen05.ld of a warp, in one of its intervals, of any of these columns."""
        loads = reversed(self._loads.get((warp, clock), {}).items())
        return next((at for each, at in loads if each.start < columns.stop and columns.start < each.stop), None)

    def _advise_fence(self, warp: int, earlier: AsyncOperation, what: str, statement: Statement) -> None:
        """Advice: the manual requires the fence (9.7.16.6.4), some kernels by CuTe and Triton leave it out."""
        if earlier.number not in self._fences.observed[warp]:
            other = self._findings.access("writer", earlier.statement, earlier.warp, space="tensor")
            self._advise_fence_after(warp, other, what, statement)
        if earlier.number in self._fences.unfenced and earlier.warp != warp:
            self._advise_fence_before(warp, earlier.warp, earlier.statement, what, statement)

    def _advise_fence_after(self, warp: int, other: Access, what: str, statement: Statement) -> None:
        """`warp` misses the fence, before its `statement`."""
        access = self._findings.access("accessor", statement, warp, space="tensor")
        self._findings.report(
            tcgen05.MISSING_TCGEN05_FENCE,
            statement,
            summary=f"no tcgen05.fence::after_thread_sync between the wait for {other} and {access}",
            rule=f"This {what} relies on that wait",
            fix="tcgen05.fence::after_thread_sync after the wait",
            accesses=(access, other),
            cause=_unfenced("after", statement, other),
        )

    def _advise_fence_before(
        self, warp: int, other: int | None, at: Statement | None, what: str, statement: Statement
    ) -> None:
        """`other` is the warp that misses the fence, after its instruction `at`."""
        access = self._findings.access("accessor", statement, warp, space="tensor")
        before = self._findings.access("accessor", at, other, space="tensor")
        self._findings.report(
            tcgen05.MISSING_TCGEN05_FENCE,
            statement,
            summary=f"no tcgen05.fence::before_thread_sync between {before} and the synchronization with {access}",
            rule=f"This {what} relies on that synchronization",
            fix=f"tcgen05.fence::before_thread_sync after line {at.line}" if at is not None else None,
            accesses=(access, before),
            cause=_unfenced("before", statement, before),
        )

    def tensor_loads_awaited(self, warp: int, loads: Sequence[TensorLoad]) -> None:
        slot, warp_id = divmod(warp, self._happens_before.warps)
        if self._used:
            self._by_register[slot, warp_id] = False
        self._loaded(warp, loads)

    def tensor_load_used(self, warp: int, load: TensorLoad) -> None:
        slot, warp_id = divmod(warp, self._happens_before.warps)
        self._loaded(warp, [load])
        halves = [band % _HALVES for band in load.bands]
        for columns in load.spans:
            self._by_register[slot, warp_id, halves, columns.start : columns.stop] = True

    def _loaded(self, warp: int, loads: Sequence[TensorLoad]) -> None:
        """A warp has the values of these loads."""
        slot, warp_id = divmod(warp, self._happens_before.warps)
        clock = self._happens_before.clock(warp)
        if warp in self._suspects:
            self._report_suspects(warp, {column for load in loads for columns in load.spans for column in columns})
        for load in loads:
            halves = [band % _HALVES for band in load.bands]
            for columns in load.spans:
                self.reader_clock[slot, warp_id, halves, columns.start : columns.stop] = clock
                self._remember_load(warp, clock, columns, load.statement)
        if loads:
            self._fences.accessed(warp, [(warp, clock)])

    def _report_suspects(self, warp: int, used: set[int]) -> None:
        """A warp uses what it has loaded from these columns."""
        suspects = self._suspects.pop(warp)
        for columns, report in suspects:
            if not used.isdisjoint(columns):
                report()
        self._suspects[warp] = [each for each in suspects if used.isdisjoint(each[0])]

    def _require_written(
        self, warp: int, slot: int, bands: Sequence[int], columns: range, verb: str, statement: Statement
    ) -> None:
        """Report columns that are uninitialized in all of these bands of a quarter of the lanes.

        A load of 32 lanes from an accumulator of 64 rows gets values in one band only; correct kernels use no others.
        """
        span = slice(columns.start, columns.stop)
        quarters: dict[int, list[int]] = {}
        for band in bands:
            quarters.setdefault(band // _HALVES, []).append(band)
        missing, partly = np.zeros(len(columns), np.bool_), np.zeros(len(columns), np.bool_)
        for each in quarters.values():
            unwritten = self.writer[slot, each, span] == 0
            missing |= unwritten.all(axis=0)
            partly |= unwritten.any(axis=0)
        if any_set(partly & ~missing):
            reader = self._access("reader", statement, warp, slot, columns)
            found = uninitialized.UNINITIALIZED_TENSOR.finding(
                statement,
                summary=f"{reader} {verb} TMEM columns in which half the lanes are uninitialized",
                rule="Nothing has written one of the two bands of 16 lanes in a quarter",
                accesses=(reader,),
            )
            self._findings.suspects.report("tensor", found, plain=False)
        if any_set(missing):
            at = np.flatnonzero(missing) + columns.start
            together = len(at) == at[-1] - at[0] + 1
            where = f"columns {at[0]}-{at[-1]}" if together else f"{len(at)} columns from {at[0]} on"
            reader = self._access("reader", statement, warp, slot, range(int(at[0]), int(at[-1]) + 1))
            self._findings.report(
                uninitialized.UNINITIALIZED_TENSOR,
                statement,
                summary=f"{reader} {verb} uninitialized TMEM, {where}",
                rule="Nothing has written these columns",
                accesses=(reader,),
                reads=True,
            )
