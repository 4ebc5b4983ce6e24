"""Whether a wait for a phase that was complete long before, since its parity is wrong, explains a race.

A wait names a phase by its parity (PTX ISA 9.7.13.15.16): the parity of the phase before the present one passes, and
before the first phase one of parity 1 counts as complete.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch
from ptxgen.emulator.checks.order.vector_clock import PENDING, VectorClock

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
    from ptxgen.emulator.state.mbarriers import MBarrier, Wait


@dataclass(frozen=True, slots=True)
class Event:
    """What a warp should have waited for: an asynchronous operation by number, or an epoch of a warp of its cluster."""

    operation: int = 0
    member: int = 0
    clock: int = PENDING

    def is_before(self, given: VectorClock | None, epoch: ClusterEpoch) -> bool:
        """Whether the event happens before a warp that acquires this clock."""
        if given is None:
            return False
        if self.operation:
            return self.operation in given.operations
        return given.has_observed(epoch, self.member, self.clock)


class StaleWaits:
    """The last waits of warps, against the phases in which what they need completes."""

    def __init__(
        self, happens_before: HappensBefore, order: MbarrierOrder, mbarriers: Sequence[dict[int, MBarrier]]
    ) -> None:
        self._happens_before, self._order, self._mbarriers = happens_before, order, mbarriers
        #: The object of each warp's last wait that succeeded.
        self._last: dict[int, MBarrier] = {}
        #: The offsets of the objects on which each warp has waited.
        self._offsets: dict[int, set[int]] = {}

    def waited(self, warp: int, barrier: MBarrier) -> None:
        """A warp's wait has passed."""
        self._last[warp] = barrier
        self._offsets.setdefault(warp, set()).add(barrier.address)

    def forget(self, warp: int) -> None:
        """The warp is one of another CTA from now on."""
        self._last.pop(warp, None)
        self._offsets.pop(warp, None)

    def waited_on(self, warp: int) -> frozenset[Hashable]:
        """What may have let a warp pass too early: the mbarriers on which it has waited."""
        return frozenset(map(causes.miscounted, self._offsets.get(warp, ())))

    def unwaited(self, warp: int, mbarrier: int | None = None) -> frozenset[Hashable]:
        """The cause of what a warp reads that has not waited on an mbarrier at this offset, or on any."""
        offsets = self._offsets.get(warp)
        waited = bool(offsets) if mbarrier is None else offsets is not None and mbarrier in offsets
        return frozenset() if waited else frozenset([causes.early(warp)])

    def why(self, warp: int, event: Event, *, reads: bool, by: int = 0) -> tuple[str, bool]:
        """How the waits of `warp` explain its race with an event, as the end of a message, and whether a wrong
        parity does. The warp `reads` what the event wrote, or overwrites it; `by` is the operation that it issues.
        """
        early = self._read_early(warp, event, by) if by else ""
        if early:
            return early, True
        for barrier in self._signaled_by(warp, event):
            last = barrier.waits.get(warp)
            if last is None:
                continue
            phase = self._completes(barrier, warp, event)
            if phase is not None and last.phase < phase:
                return self._explain(warp, barrier, last, phase, reads)
        barrier = self._last.get(warp)
        last = barrier.waits.get(warp) if barrier is not None else None
        if barrier is None or last is None or reads or not self._again(barrier, warp):
            return "", False
        return f"; {_passed(barrier, last)}, as the wait before: the parity was not flipped", True

    def released_early(
        self, warp: int, by: int | None, clock: int = PENDING, full: int | None = None
    ) -> tuple[str, int] | None:
        """The mbarrier (name, line) on which a warp arrives between its wait and an access in interval `clock`, if `by`
        last waited on it: the warp gives back what it still uses. None if that is not so.

        `full` is the offset of the mbarrier of its wait, if that is known.
        """
        barrier = self._last.get(by) if by is not None else None
        if barrier is None or warp == by:
            return None
        use = self._order.of(barrier).users.get(warp)
        near = (each for each in self._near(warp) if full is None or each.address == full)
        waits = (self._order.of(each).waits.get(warp) for each in near)
        waited = max((each.clock for each in waits if each is not None and each.clock <= clock), default=None)
        if use is None or waited is None or not use.arrived or not waited < use.clock <= clock:
            return None
        return barrier.name.partition(" (")[0], use.statement.line

    def missed(self, warp: int) -> frozenset[Hashable]:
        """The cause of what a warp reads too early because its last wait passed before the first phase.

        A deadlock may follow from that, too.
        """
        barrier = self._last.get(warp)
        last = barrier.waits.get(warp) if barrier is not None else None
        if barrier is None or last is None or last.phase >= 0:
            return frozenset()
        return frozenset([causes.DEADLOCK, causes.mbarrier(barrier.address), causes.wait(last.statement.line)])

    def hint(self, warp: int) -> str:
        """Of an uninitialized read: that the warp's last wait passed at once, before the first phase."""
        barrier = self._last.get(warp)
        last = barrier.waits.get(warp) if barrier is not None else None
        if barrier is None or last is None or last.phase >= 0:
            return ""
        return (
            f"The wait of line {last.statement.line} on {barrier.name} passed at once: parity 1 selects the "
            "phase before the first"
        )

    def repeated(self, warp: int) -> str:
        """The end of a sentence: that the warp's last wait was for the phase of the one before, if so."""
        barrier = self._last.get(warp)
        last = barrier.waits.get(warp) if barrier is not None else None
        if barrier is None or last is None or not self._again(barrier, warp):
            return ""
        return f": {_passed(barrier, last)}, as the wait before, so its parity may not have been flipped"

    def _again(self, barrier: MBarrier, warp: int) -> bool:
        """Whether the last wait of a warp on an mbarrier was for the same phase as the one before."""
        return self._order.of(barrier).waits[warp].again

    def _near(self, warp: int) -> Iterator[MBarrier]:
        """The objects of a warp's cluster."""
        first = warp // self._happens_before.members * self._happens_before.size
        for slot in range(first, first + self._happens_before.size):
            yield from self._mbarriers[slot].values()

    def _signaled_by(self, warp: int, event: Event) -> list[MBarrier]:
        """The objects on which an asynchronous operation completes, or on which the warp of the event arrives; if there
        are none of these, all that may hand the event on.
        """
        order, near = self._happens_before, list(self._near(warp))
        if event.operation:
            operation = order.operations.get(event.operation)
            if operation is not None and operation.mbarrier is not None:
                return [each for each in near if each.address == operation.mbarrier or self._completes_on(event, each)]
            return [each for each in near if self._completes_on(event, each)] or near
        by = warp - warp % order.members + event.member
        direct = [each for each in near if (use := self._order.of(each).users.get(by)) is not None and use.arrived]
        return direct or near

    def _completes_on(self, event: Event, barrier: MBarrier) -> bool:
        """Whether an asynchronous operation arrives on an mbarrier itself."""
        given = (self._happens_before.given.get(signal) for signal in barrier.under_way)
        return any(each is not None and event.operation in each.operations for each in given)

    def _completes(self, barrier: MBarrier, warp: int, event: Event) -> int | None:
        """The first phase whose completion orders an event; None if none does."""
        epoch = self._happens_before.observed[warp].epoch
        clocks, given = self._order.of(barrier), self._happens_before.given
        if any(event.is_before(given.get(signal), epoch) for signal in barrier.under_way):
            return barrier.phase
        if event.is_before(clocks.arriving, epoch):
            return barrier.phase
        if event.is_before(clocks.completed, epoch) and barrier.waits[warp].phase < barrier.phase - 1:
            return barrier.waits[warp].phase + 1
        return None

    def _explain(self, warp: int, barrier: MBarrier, last: Wait, phase: int, reads: bool) -> tuple[str, bool]:
        need = f"but the operation completes phase {phase} (parity {phase & 1})"
        if self._again(barrier, warp):
            return (
                f"; {_passed(barrier, last)}, as the wait before, {need}: the parity was not flipped",
                True,
            )
        # A producer's wait may pass at first, since the stage is empty.
        if last.phase < 0 and reads and self._last.get(warp) is barrier:
            return f"; {_passed(barrier, last)}, {need}: the parity is inverted", True
        return f"; {_passed(barrier, last)}, {need}", False

    def _read_early(self, warp: int, event: Event, by: int) -> str:
        """A copy overwrites what a warp has read, whose wait for that copy's mbarrier passed before its first phase."""
        if event.operation or event.clock == PENDING:
            return ""
        reader = warp - warp % self._happens_before.members + event.member
        for barrier in self._near(warp):
            last = barrier.waits.get(reader)
            if last is None or barrier.phase or last.phase >= 0:
                continue
            if any(signal.operation == by and signal.size for signal in barrier.under_way):
                return (
                    f"; that warp's wait on {barrier.name} (line {last.statement.line}), on which this copy completes, "
                    "passed at once for the phase before the first (parity 1): the parity is inverted"
                )
        return ""


def _passed(barrier: MBarrier, last: Wait) -> str:
    if last.phase < 0:
        what = "passed at once for the phase before the first (parity 1)"
    else:
        what = f"was for phase {last.phase} (parity {last.phase & 1})"
    return f"the last wait of its warp on {barrier.name} (line {last.statement.line}) {what}"
