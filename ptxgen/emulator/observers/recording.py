"""What the first CTA of a launch does over time: phases of its mbarriers, asynchronous work, tensor memory.

Time is the emulator's, in blocks of instructions: it shows order, not duration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import MachineView, Observer, ProgramView
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement

#: Events of one kind that are kept: a page of them can still be read.
_MOST = 4000


@dataclass(slots=True)
class Span:
    """From one step to another (None: to the end of the launch), with words and the line of the PTX."""

    begin: int
    end: int | None
    label: str
    line: int


@dataclass(slots=True)
class TensorAccess:
    """An access to columns of tensor memory at a step; `kind` is read, write or accumulate."""

    step: int
    kind: str
    first: int
    last: int
    line: int
    what: str


@dataclass(slots=True)
class _Ring:
    """One mbarrier: its name, and its phases in order."""

    name: str
    phases: list[Span] = field(default_factory=list)


class Recording(Observer):
    """Records the CTA with %ctaid 0 of the launch that is observed last."""

    def __init__(self) -> None:
        self._machine: MachineView | None = None
        self._slot = 0
        self._ended = False
        self.steps = 0
        #: By the name of the mbarrier.
        self.mbarriers: dict[str, _Ring] = {}
        #: By what the work is.
        self.works: dict[str, list[Span]] = {}
        self.tensor: list[TensorAccess] = []
        #: Events that were left out, as there are too many.
        self.dropped = 0
        self._known: dict[int, _Ring] = {}
        self._running: dict[int, Span] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self.__init__()
        self._machine = machine
        found = [slot for slot, number in enumerate(machine.cta_number.tolist()) if number == 0]
        self._slot = found[0] if found else 0

    def launch_ends(self, status: str) -> None:
        self.steps = max(self._now(), self.steps)

    def ctas_end(self, slots: object) -> None:
        if self._slot in list(slots) and not self._ended:  # type: ignore[call-overload]  # a sequence of numbers
            self._ended, self.steps = True, self._now()

    def _now(self) -> int:
        assert self._machine is not None
        return self._machine.timeline.now

    def mbarrier_initialized(self, warp: int, slot: int, mbarrier: MBarrier) -> None:
        if slot != self._slot or self._ended:
            return
        name = mbarrier.name.partition(" (")[0]  # without the address and the line of its init
        ring = self.mbarriers.setdefault(name, _Ring(name))
        ring.phases.append(Span(self._now(), None, "phase 0", mbarrier.statement.line))
        self._known[id(mbarrier)] = ring

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        ring = self._known.get(id(mbarrier))
        if ring is None or self._ended:
            return
        if len(ring.phases) >= _MOST:
            self.dropped += 1
            return
        now = self._now()
        ring.phases[-1].end = now
        statement = mbarrier.last_arrival
        line = statement.line if statement is not None else ring.phases[-1].line
        ring.phases.append(Span(now, None, f"phase {mbarrier.phase + 1}", line))

    def work_issued(self, work: AsyncWork) -> None:
        if work.slot != self._slot or self._ended:
            return
        spans = self.works.setdefault(work.what, [])
        if len(spans) >= _MOST:
            self.dropped += 1
            return
        span = Span(self._now(), None, work.what, work.statement.line)
        spans.append(span)
        self._running[work.number] = span

    def work_completed(self, work: AsyncWork) -> None:
        span = self._running.pop(work.number, None)
        if span is not None:
            span.end = self._now()

    # Tensor memory.

    def _tensor(self, slot: int, kind: str, columns: range, statement: Statement, what: str) -> None:
        if slot != self._slot or self._ended or not len(columns):
            return
        step, last = self._now(), self.tensor[-1] if self.tensor else None
        if last is not None and (last.step, last.kind, last.line) == (step, kind, statement.line):
            last.first, last.last = min(last.first, columns.start), max(last.last, columns.stop - 1)
        elif len(self.tensor) >= _MOST:
            self.dropped += 1
        else:
            self.tensor.append(TensorAccess(step, kind, columns.start, columns.stop - 1, statement.line, what))

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        assert self._machine is not None
        self._tensor(int(self._machine.cta_slot[warp]), "read", columns, statement, "tcgen05.ld")

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        self._tensor(work.slot, "write", columns, work.statement, "tcgen05.st")

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        self._tensor(slot, "read", columns, work.statement, f"{what} of {work.what}")

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        self._tensor(slot, "accumulate" if accumulates else "write", columns, work.statement, work.what)
