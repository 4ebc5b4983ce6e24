"""Reruns with perturbed memory: whether the result depends on undefined values that a launch has read.

Correct kernels read uninitialized memory and registers, or memory that a copy is overwriting, and discard the
values: an MMA takes more warps than a small tile has, a warp transposes the scale factors of a whole tile whose edge
is missing (DeepGEMM), copies that only warm the L2 cache all write to a buffer that is never read (CUTLASS).
No rule about the accesses distinguishes such a kernel from one that uses the values. So the launch is repeated with
other bytes there. If it ends alike with the same global memory, the values are not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Status
from ptxgen.emulator.arrays import all_set, count_nonzero
from ptxgen.emulator.checks.cas_loops import STRONG_LOAD
from ptxgen.emulator.checks.findings import DECIDED
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.stale_loads import StaleLoads
from ptxgen.emulator.checks.raced_reads import decides_again
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.uninitialized.suspects import Source, Verdict
from ptxgen.emulator.memory.global_memory import POISON_BYTE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.perturbation import Perturbation
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.memory.global_memory import GlobalMemory
    from ptxgen.emulator.schedule.scheduler import Scheduler

#: The replacements of the bytes, one after the other: NaN in every format of floating point that has them and -1,
#: then, in most, a small positive number, a large one and a large negative one. Each is lost somewhere: NaN and what is
#: small in a maximum, what is large in a minimum.
_BYTES = (0xFF, 0x31, 0x7B, 0xFB)
#: Replacements of `POISON_BYTE`, which is large and negative, in the two reruns for suspect reads without errors: large
#: and positive, since a maximum drops the others; then zero in registers of even lanes and two in odd ones, since sums
#: and products of large values are infinite or NaN each time.
_LARGE, _ZERO, _TWO = 0x7B, 0x00, 0x02
#: Distinguishes values that are only copied from results computed from them: a small number is lost in a sum with the
#: first, but not with the other.
_COPIES = (_LARGE, _ZERO)
#: So many sources are tried one by one, the others together.
_ALONE = 8
#: Launches on more global memory than this many bytes are not repeated: the copy would cost too much each time.
_MOST = 1 << 26


#: A rerun that takes this many times as many steps, and so many more, depends on the values: a loop may not end.
_LONGER, _LEAST = 4, 1000


class Begin(Protocol):
    """Begins a launch anew on some memory, with a perturbation."""

    def __call__(
        self,
        memory: GlobalMemory,
        perturbation: Perturbation,
        checks: bool = True,
        /,
        *,
        watching_too: Sequence[Observer] = (),
    ) -> Scheduler: ...


class _Stores(Observer):
    """How many threads store by each instruction, but for atomic operations that decide again."""

    def __init__(self) -> None:
        self.counts: Counter[Statement] = Counter()

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        if access.space != "local":
            self.counts[access.statement] += int(count_nonzero(access.active))

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        if not decides_again(access.statement):
            self.counts[access.statement] += int(count_nonzero(access.active))


def snapshot(memory: GlobalMemory, before: GlobalMemory | None) -> GlobalMemory | None:
    """Global memory as it is before a launch, in the place of a snapshot that is not needed any more; None if it is too
    large to be kept.
    """
    return memory.copy(before) if memory.used <= _MOST else None


class Rerun:
    """A launch that is `done` without a fault, and its repetitions, from the memory `before` it."""

    def __init__(self, done: Scheduler, before: GlobalMemory, begin: Begin) -> None:
        self._done, self._before, self._begin = done, before, begin
        self._after = done.machine.memory.written()
        self.findings = done.machine.findings

    @property
    def left_something(self) -> bool:
        """Whether global memory has changed: else nothing shows that the values are not used."""
        return not np.array_equal(self._after[: self._before.used], self._before.written())

    def harmless(self) -> bool:
        """Whether the launch ends alike with other bytes where it reads undefined memory."""
        shared = self._done.machine.events.find(SharedAccesses)
        assert shared is not None
        reads, writes, sources = shared.read_too_early, shared.written_at_once, frozenset[Source](["tensor"])
        return all(
            self._verdict(Perturbation(byte, True, sources, reads=reads, writes=writes)) == "dropped" for byte in _BYTES
        )

    def dropped_reads(self, lines: frozenset[int]) -> frozenset[int]:
        """The lines of racing weak loads on whose values nothing depends, judged together or each alone."""
        if not lines or self._drops(lines):
            return lines
        return frozenset(line for line in sorted(lines)[:_ALONE] if len(lines) > 1 and self._drops(frozenset([line])))

    def decided_again(self, lines: frozenset[int]) -> frozenset[int]:
        """The lines of weak loads that race only with atomic operations that decide again, and whose lanes vote, if the
        launch leaves the same words whatever these loads see.

        That is older values where the memory model permits them, and all or none of what other warps do where the warps
        run one after the other. What order a hash table has depends on who came first, so the order of the words of an
        array does not count; but as many threads must execute each store.
        """
        shared = self._done.machine.events.find(SharedAccesses)
        assert shared is not None
        loads = shared.raced.decided_again(lines)
        tried = (
            Perturbation(0, stale=loads),
            Perturbation(0, one_by_one="ascending"),
            Perturbation(0, one_by_one="descending"),
            Perturbation(0, one_by_one="ascending", stale=loads),
        )
        stores = self._stores(Perturbation(0)) if loads else None
        same = stores is not None and all(self._stores(each) == stores for each in tried)
        return loads if same else frozenset()

    def _stores(self, perturbation: Perturbation) -> Mapping[Statement, int] | None:
        """How many threads execute each store in a rerun; None if it leaves other words, or does not end."""
        stores = _Stores()
        again = self._begin(self._before.copy(), perturbation, True, watching_too=(stores,))
        # Warps that run one after the other take a step for each block that they run together otherwise.
        again.limit(_LONGER * (self._done.instructions if perturbation.one_by_one else self._done.warps.steps) + _LEAST)
        if isinstance(again.machine.strong_loads, StaleLoads):
            again.machine.strong_loads.always = bool(perturbation.stale)
        if again.run() not in ("ok", "findings") or sorted(again.machine.printed) != sorted(self._done.machine.printed):
            return None
        now = again.machine.memory.written()
        same = len(now) == len(self._after) and all(
            np.array_equal(now[part], self._after[part]) or np.array_equal(_words(now[part]), _words(self._after[part]))
            for part in self._before.parts()
        )
        return stores.counts if same else None

    def _drops(self, lines: frozenset[int]) -> bool:
        shared = self._done.machine.events.find(SharedAccesses)
        assert shared is not None
        for byte in (*_BYTES, _ZERO):
            loads = shared.raced.loads(lines)
            if loads is None or self._verdict(Perturbation(byte, raced=loads)) != "dropped" or loads.replaced != lines:
                return False
        return True

    def verdicts(self, sources: frozenset[Source]) -> Mapping[Source, Verdict]:
        """What becomes of the uninitialized values read from each of these sources, where that shows."""
        checks = isinstance(self._done.machine.strong_loads, StaleLoads)  # they choose what strong loads return
        tried = [Perturbation(_LARGE, sources=sources), Perturbation(_ZERO, sources=sources, odd=_TWO)]
        tried += self._compared(sources)
        if all(self._verdict(each, checks=checks) == "dropped" for each in tried):
            return dict.fromkeys(sources, "dropped") if self.left_something else {}
        ordered = sorted(sources, key=str)
        groups = [frozenset([source]) for source in ordered[:_ALONE]]
        if len(ordered) > _ALONE:
            groups.append(frozenset(ordered[_ALONE:]))
        found: dict[Source, Verdict] = {}
        for group in groups:
            found.update(dict.fromkeys(group, self._closely(group)))
        if set(found.values()) == {"dropped"}:  # only all together change anything
            found = dict.fromkeys(sources, self._closely(sources))
        return found

    def _closely(self, sources: frozenset[Source]) -> Verdict:
        """The verdicts of some sources, from bytes that distinguish copies."""
        found = [self._verdict(Perturbation(byte, sources=sources)) for byte in _COPIES]
        if set(found) != {"dropped"}:
            return "used" if "used" in found else "copied"
        others = [Perturbation(_ZERO, sources=sources, odd=_TWO), *self._compared(sources)]
        return "dropped" if all(self._verdict(each) == "dropped" for each in others) else "used"

    def _compared(self, sources: frozenset[Source]) -> list[Perturbation]:
        """Registers that are compared for equality get just that value."""
        known = self.findings.suspects.compared
        compared: dict[Source, int] = {each: value for each, value in known.items() if each in sources}
        return [Perturbation(_LARGE, sources=sources, values=compared)] if compared else []

    def _verdict(self, perturbation: Perturbation, *, checks: bool = True) -> Verdict:
        again, done = self._begin(self._before.copy(), perturbation, checks), self._done
        again.limit(_LONGER * done.warps.steps + _LEAST)
        order, shared = again.machine.events.find(HappensBefore), again.machine.events.find(SharedAccesses)
        if shared is not None:
            shared.raced.is_rerun = True
        if perturbation.raced is not None and order is not None:
            perturbation.raced.global_warps, perturbation.raced.members = order.actors, order.members
        if again.run() not in ("ok", "findings"):
            return "used"
        if again.instructions != done.instructions or again.machine.printed != done.machine.printed:
            return "used"
        if perturbation.raced is not None and not again.machine.findings.raced_stores <= self.findings.raced_stores:
            return "used"  # stores differ that race with each other: which one stays in memory is chance
        now = again.machine.memory.written()
        if len(now) != len(self._after):
            return "used"
        changed = np.flatnonzero(now != self._after)
        if not len(changed):
            return "dropped"
        copied = (self._after[changed] == POISON_BYTE) & (now[changed] == perturbation.byte)
        return "copied" if all_set(copied) else "used"


def _words(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The words of an array in ascending order, as bytes; the bytes where their number is no multiple of four."""
    return np.sort(data.view(np.uint32)).view(np.uint8) if len(data) % 4 == 0 else np.sort(data)


def judge(rerun: Rerun) -> Status:
    """Decide which suspect reads of a launch are harmless, and add the others to its findings. Returns its status."""
    findings = rerun.findings
    suspects = findings.suspects
    verdicts: dict[Source, Verdict] = {}
    if findings.may_be_harmless and rerun.left_something and rerun.harmless():
        findings.make_harmless()
    if findings.raced_lines and rerun.left_something:
        findings.make_reads_harmless(rerun.decided_again(findings.raced_lines), DECIDED, STRONG_LOAD)
        findings.make_reads_harmless(rerun.dropped_reads(findings.raced_lines))
    sources = suspects.sources
    if findings.has_error("uninitialized-tensor"):
        sources -= {"tensor"}  # what depends on tensor memory may depend on that
    if not suspects.registers_may_matter:
        registers = frozenset(each for each in sources if isinstance(each, int))
        verdicts.update(dict.fromkeys(registers, "dropped"))
        sources -= registers
    if sources:
        verdicts.update(rerun.verdicts(sources))
    findings.settle(verdicts, failed=False)
    return "findings" if findings.errors else "ok"
