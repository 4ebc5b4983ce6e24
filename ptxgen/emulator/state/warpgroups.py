"""The MMAs of warpgroups in flight (wgmma), and which registers may be accessed. PTX ISA 9.7.15.

An MMA reads its registers and shared memory, and writes its accumulator, at any time until wgmma.wait_group has
waited for its group. Before that, and between other accesses and the next MMA without wgmma.fence, its registers must
not be accessed. Only registers that some wgmma.mma_async of the program names are tracked, and those to which
`mov` copies accumulators: compilers move them before the wait, and use the copies after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Role
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import wgmma
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory import MemoryFault
from ptxgen.instr.model.traits import Traits
from ptxgen.syntax import Instruction, Statement, Vector

#: Called with warps.
Watch = Callable[[NDArray[np.int64]], None]
#: Warps of a warpgroup.
WARPS = 4


class PendingMma:
    """A wgmma.mma_async of one warpgroup: its registers by number, its work, and whether it is done.

    `finish` completes it now, `copies` holds the numbers of the registers with copies of its accumulator.
    """

    __slots__ = ("accumulator", "copies", "done", "finish", "input", "statement", "work")

    def __init__(self, accumulator: frozenset[int], input: frozenset[int], work: AsyncWork) -> None:
        self.accumulator, self.input, self.work, self.statement = accumulator, input, work, work.statement
        self.done = False
        self.copies: set[int] = set()
        self.finish: Callable[[], None] = _nothing


def _nothing() -> None:
    """The completion of an MMA that has not begun."""


class Kept:
    """Accumulators of some warpgroups [n, 4] between MMAs, as a matrix: `write(words)` puts it into the registers.

    No instruction may read the registers before the MMAs are complete, so a chain of them need not go through them.
    """

    __slots__ = ("numbers", "warps", "words", "write")

    def __init__(
        self, numbers: frozenset[int], warps: NDArray[np.int64], write: Callable[[NDArray[Any]], None]
    ) -> None:
        self.numbers, self.warps, self.write = numbers, warps, write
        self.words: NDArray[Any] | None = None


def _keeps_waiting(statement: Statement) -> bool:
    """Whether ptxas (13.5) lets a move of an accumulator in flight pass without a wait: it moves or splits a register.

    Before one that packs registers, or stores one into local memory, it inserts a wait (its message C7517).
    """
    if not isinstance(statement, Instruction) or not statement.opcode.startswith("mov."):
        return False
    return not isinstance(statement.operands[-1], Vector)


def is_move(traits: Traits | None) -> bool:
    """Whether an instruction copies registers without looking at what is in them; nvcc puts some into local memory."""
    return traits is not None and (traits.move or traits.spaces_written == {"local"})


class Arrival(NamedTuple):
    """What a warp waits for at an instruction at which its warpgroup converges, named by its first warp."""

    warpgroup: int
    opcode: str

    def __str__(self) -> str:
        return f"the other warps of its warpgroup at {self.opcode}"


class Warpgroups:
    """The state of all resident warps: `warps` of them, `per_cta` in a CTA."""

    def __init__(
        self, warps: int, per_cta: int, findings: Findings, numbers: Mapping[int, int], copies: frozenset[int]
    ) -> None:
        self.per_cta, self.findings = per_cta, findings
        #: MMAs of a warp by group, the open group last.
        self.groups: dict[int, list[list[PendingMma]]] = {}
        #: Accumulators that have not been written to their registers.
        self.kept: list[Kept] = []
        #: By warp: number of wgmma.fence reached; True while the warp waits there.
        self.arrivals = np.zeros(warps, np.int64)
        self.waiting = np.zeros(warps, np.bool_)
        #: The MMA at which a warp waits for the others of its warpgroup, and whether they have issued one with it.
        self.issuing: dict[int, Statement] = {}
        self.issued = np.zeros(warps, np.bool_)
        #: Numbers of the tracked registers, by their index in the program.
        self._numbers = numbers
        #: Registers that `mov` may copy accumulators to, by index.
        self._copies = copies
        #: The line in which a thread last touched a register since its fence; 0: none. (registers, warps)
        self._touched = np.zeros((len(numbers), warps), np.int32)
        #: The columns of the accumulator that a register has been a part of since the fence; 0: none.
        self._columns = np.zeros((len(numbers), warps), np.int16)
        #: By warp: a register was touched since the fence; the accumulator of the last MMA since then (0: none).
        self._dirty = np.zeros(warps, np.bool_)
        self._latest = np.zeros(warps, np.int64)
        self._accumulators: dict[tuple[tuple[int, ...], int], int] = {}

    def clear(self, warps: NDArray[np.int64]) -> None:
        """Make warps ready for the next CTAs."""
        if not self._numbers:
            return
        self._write_back([kept for kept in self.kept if any_set(np.isin(kept.warps, warps))])
        for warp in warps.tolist():
            self.groups.pop(warp, None)
            self.issuing.pop(warp, None)
        for state in (self.arrivals, self.waiting, self.issued, self._dirty, self._latest):
            state[warps] = 0
        for state in (self._touched, self._columns):
            state[:, warps] = 0

    def members(self, indices: NDArray[np.int64], what: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The warpgroups that some warps belong to: all their warps [n, 4], and which of them are among these."""
        warp = indices % self.per_cta
        first = np.unique(indices - warp % WARPS)
        if any_set(first % self.per_cta + WARPS > self.per_cta):
            raise MemoryFault(
                wgmma.INCOMPLETE_WARPGROUP,
                f"{what} in a CTA of {self.per_cta} warps",
                rule="It requires four warps, the first at a multiple of 4",
            )
        warps = first[:, None] + np.arange(WARPS)
        if warps.size == len(indices):
            return warps, np.ones(warps.shape, np.bool_)
        here = np.zeros(len(self.arrivals), np.bool_)
        here[indices] = True
        return warps, here[warps]

    def converge(self, indices: NDArray[np.int64], statement: Statement) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Warps arrive at an MMA, or retry: which of them may continue, and the warpgroups [n, 4] that now issue it."""
        for warp in indices[~self.issued[indices]].tolist():
            self.issuing.setdefault(warp, statement)
        complete = []
        for first in np.unique(indices - indices % self.per_cta % WARPS).tolist():
            warps = range(first, first + WARPS)
            at = {id(self.issuing[warp]): self.issuing[warp] for warp in warps if warp in self.issuing}
            if len(at) > 1:
                lines = ", ".join(str(each.line) for each in at.values())
                raise MemoryFault(
                    wgmma.DIVERGENT_WARPGROUP,
                    f"the warps of a warpgroup execute different wgmma.mma_async together (lines {lines})",
                    rule="All four warps must execute the same instruction",
                    fix="",
                )
            if all(warp in self.issuing for warp in warps):
                complete.append(warps)
                for warp in warps:
                    del self.issuing[warp]
                    self.issued[warp] = True
        passing = self.issued[indices]
        self.issued[indices] = False
        return passing, np.array(complete, np.int64).reshape(-1, WARPS)

    # Registers.

    def watched(
        self, reads: frozenset[int], writes: frozenset[int], statement: Statement, traits: Traits | None
    ) -> Watch | None:
        """What to call with the warps that execute an instruction, before they do; None if it uses no register (by
        index) that is tracked.
        """
        read = frozenset(self._numbers[each] for each in reads & self._numbers.keys())
        written = frozenset(self._numbers[each] for each in writes & self._numbers.keys())
        from_copies, to_copies = reads & self._copies, writes & self._copies
        if not read and not written and not from_copies and not to_copies:
            return None
        index = np.array(sorted(read | written), np.int64)[:, None]
        plain = is_move(traits)

        def watch(warps: NDArray[np.int64]) -> None:
            for warp in warps.tolist() if self.groups else ():
                if self.groups.get(warp):
                    if plain:  # also into the accumulator of the next MMA
                        self._move(warp, read, from_copies, to_copies, statement)
                        self._check_access(warp, frozenset(), written, frozenset(), statement)
                    else:
                        self._check_access(warp, read, written, from_copies, statement)
                        self._forget(warp, to_copies)
            if index.size:
                self._write_back([kept for kept in self.kept if not kept.numbers.isdisjoint(read | written)])
                self._touch(index, warps, statement.line, plain)

        return watch

    def _touch(self, index: NDArray[np.int64], warps: NDArray[np.int64], line: int, move: bool) -> None:
        """Registers are touched. nvcc puts a mov, as that of zeros, between the fence and the first MMA of an
        accumulator, and movs of A before each MMA, where inline assembly takes floats as "r": that is harmless,
        since ptxas (13.0) makes nothing of it that the fence would have to order.
        """
        if not move:
            self._touched[index, warps], self._dirty[warps] = line, True
            return
        used = self._columns[index, warps] != 0
        if any_set(used):
            self._touched[index, warps] = np.where(used, line, self._touched[index, warps])
            self._dirty[warps] = True

    def _move(
        self, warp: int, read: frozenset[int], from_copies: frozenset[int], to: frozenset[int], statement: Statement
    ) -> None:
        """A move of accumulators in flight: ptxas puts a wait before it, or before the first use of the copy."""
        self._forget(warp, to)
        pending = list(self._pending(warp))
        for position, mma in enumerate(pending):
            if mma.accumulator.isdisjoint(read) and mma.copies.isdisjoint(from_copies):
                continue
            for earlier in pending[: position + 1]:
                earlier.finish()
            mma.copies |= to
            if not _keeps_waiting(statement):
                self._in_flight(warp, "reader", "copies the accumulator", mma, statement, advice=True)

    def _forget(self, warp: int, copies: frozenset[int]) -> None:
        """Registers get something else than copies of accumulators."""
        for mma in self._pending(warp) if copies else ():
            mma.copies -= copies

    def _check_access(
        self, warp: int, read: frozenset[int], written: frozenset[int], copies: frozenset[int], statement: Statement
    ) -> None:
        for mma in self._pending(warp):
            if not mma.accumulator.isdisjoint(read | written):
                verb, what = "reads" if not mma.accumulator.isdisjoint(read) else "writes", "the accumulator"
            elif not mma.copies.isdisjoint(copies):
                verb, what = "reads", "a copy of the accumulator"
            elif not mma.input.isdisjoint(written):
                verb, what = "writes", "A"
            else:
                continue
            self._in_flight(warp, "reader" if verb == "reads" else "writer", f"{verb} {what}", mma, statement)

    def _in_flight(
        self, warp: int, role: Role, what: str, mma: PendingMma, statement: Statement, *, advice: bool = False
    ) -> None:
        """An instruction accesses a register of an MMA in flight; `what` continues its name."""
        access = self.findings.access(role, statement, warp, space="reg")
        issuer = self.findings.access("issuer", mma.statement, warp, space="reg")
        self.findings.report(
            wgmma.WGMMA_REGISTER_IN_FLIGHT,
            statement,
            summary=f"{access} {what} of the wgmma.mma_async of line {mma.statement.line}",
            rule=f"No wgmma.wait_group has waited for that MMA{', so ptxas inserts a wait' if advice else ''}",
            fix=f"wgmma.wait_group between line {mma.statement.line} and line {statement.line}",
            accesses=(access, issuer),
            severity="advice" if advice else None,
            cause=frozenset([causes.unfinished(mma.statement.line), causes.too_early(statement.line, "wgmma")]),
        )

    def _pending(self, warp: int) -> Iterator[PendingMma]:
        for group in self.groups.get(warp, ()):
            yield from group

    def issue(
        self,
        warps: NDArray[np.int64],
        accumulator: Sequence[int],
        input: Sequence[int],
        columns: int,
        statement: Statement,
    ) -> None:
        """Check an MMA of these warps before it begins: the fence before it, and which of its registers are in use."""
        problem = None
        if not all_set(self.arrivals[warps]):
            problem = "The first wgmma.mma_async of a warp needs one"
        problem = (
            problem or self._touched_since(warps, accumulator, input) or self._reshaped(warps, accumulator, columns)
        )
        if problem is not None:
            issuer = self.findings.access("issuer", statement, int(warps[0]), space="reg")
            self.findings.report(
                wgmma.MISSING_WGMMA_FENCE,
                statement,
                summary=f"no wgmma.fence before {issuer}",
                rule=problem,
                fix=f"wgmma.fence.sync.aligned before line {statement.line}",
                accesses=(issuer,),
            )
        taken, given = frozenset(input), frozenset(accumulator)
        for warp in warps:
            for earlier in self._pending(int(warp)):
                reads = not taken.isdisjoint(earlier.accumulator)
                if reads or not earlier.input.isdisjoint(given):
                    what = "takes as A the accumulator" if reads else "overwrites A"
                    self._in_flight(int(warp), "reader" if reads else "writer", what, earlier, statement)

    def _touched_since(self, warps: NDArray[np.int64], accumulator: Sequence[int], input: Sequence[int]) -> str | None:
        if not any_set(self._dirty[warps]):
            return None
        for numbers, what in ((accumulator, "the accumulator"), (input, "A")):
            lines = self._touched[np.array(numbers, np.int64)[:, None], warps]
            if any_set(lines):
                return f"Line {int(lines.max())} accesses a register of {what}, and no wgmma.fence follows it"
        return None

    def _reshaped(self, warps: NDArray[np.int64], accumulator: Sequence[int], columns: int) -> str | None:
        """An accumulator whose registers were part of one of another shape since the fence."""
        key = tuple(accumulator), columns
        number = self._accumulators.setdefault(key, len(self._accumulators) + 1)
        if all_set(self._latest[warps] == number):
            return None
        index = np.array(accumulator)[:, None]
        before = self._columns[index, warps]
        other = before[(before != 0) & (before != columns)]
        self._columns[index, warps], self._latest[warps] = columns, number
        if not other.size:
            return None
        return (
            f"Its accumulator of {columns} columns shares registers with one of {int(other[0])} columns, and no "
            "wgmma.fence separates the two"
        )

    def begin(self, warps: NDArray[np.int64], mma: PendingMma) -> None:
        """An MMA of these warps is in flight, in their open group."""
        for warp in warps:
            self.groups.setdefault(int(warp), [[]])[-1].append(mma)

    # Accumulators between MMAs.

    def keep(self, kept: Kept) -> Kept:
        """What is kept of these accumulators of these warps, or `kept`, new. Others with the registers are written."""
        found, stale = None, []
        for other in self.kept:
            if other.numbers == kept.numbers and np.array_equal(other.warps, kept.warps):
                found = other
            elif not other.numbers.isdisjoint(kept.numbers) and any_set(np.isin(other.warps, kept.warps)):
                stale.append(other)
        self._write_back(stale)
        if found is None:
            self.kept.append(kept)
        return found or kept

    def settle(self, warps: NDArray[np.int64], numbers: frozenset[int] | None = None) -> None:
        """Write what is kept of warps, if one of them has waited for all MMAs that accumulate into it.

        With `numbers`, what is kept of these registers, whatever is in flight: an MMA reads them as A.
        """
        ready: list[Kept] = []
        for kept in self.kept:
            mine = warps[np.isin(warps, kept.warps)]
            if numbers is None:
                wanted = any(self._free(int(warp), kept.numbers) for warp in mine)
            else:
                wanted = mine.size > 0 and not kept.numbers.isdisjoint(numbers)
            if wanted:
                ready.append(kept)
        self._write_back(ready)

    def _free(self, warp: int, numbers: frozenset[int]) -> bool:
        """Whether no MMA that the warp has not waited for accumulates into these registers."""
        return all(mma.accumulator.isdisjoint(numbers) for mma in self._pending(warp))

    def _write_back(self, ready: list[Kept]) -> None:
        for kept in ready:
            if kept.words is not None:
                kept.write(kept.words)
            self.kept.remove(kept)

    # Fences and groups.

    def arrive(self, warps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Warps arrive at wgmma.fence, or look again; gives those whose whole warpgroup has arrived: they may pass."""
        self.arrivals[warps] += ~self.waiting[warps]
        together, _ = self.members(warps, "wgmma.fence")
        position = np.searchsorted(together[:, 0], warps - warps % self.per_cta % WARPS)
        passing = self.arrivals[warps] <= self.arrivals[together].min(axis=1)[position]
        self.waiting[warps] = ~passing
        gone = warps[passing]
        for state in (self._touched, self._columns):
            state[:, gone] = 0
        self._dirty[gone] = False
        self._latest[gone] = 0
        return passing

    def commit(self, warp: int) -> None:
        """wgmma.commit_group: the open group is closed, empty or not."""
        self.groups.setdefault(warp, [[]]).append([])

    def awaited(self, warp: int, pending: int) -> list[PendingMma]:
        """The MMAs that wgmma.wait_group waits for: those of all groups but the latest `pending`."""
        groups = self.groups.get(warp, [[]])
        return [mma for group in groups[: max(len(groups) - 1 - pending, 0)] for mma in group]

    def retire(self, warp: int, pending: int) -> None:
        """The groups before the latest `pending` have been waited for."""
        groups = self.groups.get(warp)
        if groups is not None:
            del groups[: max(len(groups) - 1 - pending, 0)]
            if len(groups) == 1 and not groups[0]:
                del self.groups[warp]
