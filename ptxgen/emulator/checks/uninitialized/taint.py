"""Taint of uninitialized registers: whether a value derived from one leaves the registers of its thread.

Taint is followed lane by lane through instructions that do arithmetic and through shuffles, and by quarters of
registers through those that put together and take apart vectors (prmt, mov, arithmetic in .f32x2). What is stored,
decides a branch or goes to any other instruction may matter, which a rerun decides; else it is harmless. So Triton's
reductions, whose other lanes are uninitialized, and vectors that LLVM builds of undef and a value need no rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.load.register_use import Quarters, Use

if TYPE_CHECKING:
    from ptxgen.emulator.state.group import Group
    from ptxgen.emulator.state.machine import Machine


#: The four quarters of a register, untainted, as one word.
_WHOLE = np.array(0x01010101, np.uint32)


class Taint:
    """Which quarters of some registers, (warps, 32, 4) or as words (warps, 32), are untainted.

    Nothing is followed before `begin`. `written` has the registers that may be read before they are written.
    """

    def __init__(
        self, machine: Machine, registers: frozenset[int], written: Mapping[int, NDArray[np.bool_]], *, recursive: bool
    ) -> None:
        self._machine, self._registers, self._written = machine, registers, written
        self._recursive, self._suspects = recursive, machine.findings.suspects
        self._defined: dict[int, NDArray[np.bool_]] | None = None
        #: The same arrays as words.
        self._words: dict[int, NDArray[np.uint32]] = {}

    def begin(self) -> None:
        """A lane reads an uninitialized register. Until now all else is untainted."""
        if self._defined is not None:
            return
        everywhere = np.ones((self._machine.warps, 32), np.bool_)
        self._defined = {
            each: np.repeat(self._written.get(each, everywhere)[..., None], 4, axis=2) for each in self._registers
        }
        self._words = {each: array.view(np.uint32)[..., 0] for each, array in self._defined.items()}
        # Registers are emptied for each CTA, and so are these.
        self._machine.registers.extend(self._defined.values())
        if self._recursive:
            self._suspects.registers_may_matter = (
                True  # the registers of a function that calls itself are kept elsewhere
            )

    def watched(self, run: Callable[..., Any], use: Use) -> Callable[..., Any]:
        """An instruction's `run` that propagates taint from its sources to its destinations."""
        sources, added = sorted(use.reads & self._registers), sorted(use.adds & self._registers)
        written = use.writes & self._registers
        exact, targets = sorted(written & use.quarters.keys()), sorted(written - use.quarters.keys())
        if not (sources or added or written):
            return run

        def watched(g: Group, *rest: Any) -> Any:
            if self._defined is None or self._suspects.registers_may_matter:
                return run(g, *rest)
            made = [(each, self._exactly(self._defined, use.quarters[each], g)) for each in exact]
            value = self._made(use, sources, g)
            if value is None:
                self._require_whole(sources, g.active, g)
                if added and use.if_true is not None:
                    self._require_whole(added, g.active & use.if_true(g), g)
                value = _WHOLE
            result = run(g, *rest)
            for each, exactly in made:
                g.store(self._words[each], exactly)
            for each in targets:
                g.store(self._words[each], value)
            return result

        return watched

    def watched_guard(self, guard: Callable[..., Any], reads: frozenset[int]) -> Callable[..., Any]:
        """A guard that reports if its predicate is tainted."""
        sources = sorted(reads & self._registers)
        if not sources:
            return guard

        def watched(g: Group) -> Any:
            if self._defined is not None and not self._suspects.registers_may_matter:
                self._require_whole(sources, g.active, g)
            return guard(g)

        return watched

    def _made(self, use: Use, sources: Sequence[int], g: Group) -> NDArray[np.uint32] | None:
        """The lanes of its results that are tainted, as words (warps, 32) or one; None if it propagates no taint."""
        if not (use.lanewise or (use.lanes is not None and g.mask is None)):
            return None
        made: NDArray[np.bool_] | None = None
        for each in sources:
            whole = self._words[each][g.warps] == _WHOLE
            if count_nonzero(whole) != whole.size:
                made = whole if made is None else made & whole
        if made is None:
            return _WHOLE
        return (made if use.lanes is None else made[:, use.lanes]) * _WHOLE

    def _is_whole(self, register: int, g: Group) -> bool:
        """Whether a register is untainted in all warps of a group, or not followed."""
        words = self._words.get(register)
        return words is None or count_nonzero(words[g.warps] == _WHOLE) == 32 * g.size

    def _exactly(self, defined: Mapping[int, NDArray[np.bool_]], quarters: Quarters, g: Group) -> NDArray[np.uint32]:
        """The quarters of a result that are, as words (warps, 32) or one."""
        if all(self._is_whole(each, g) for each in {register for sources in quarters for register, _ in sources}):
            return _WHOLE
        made = np.ones((g.size, 32, 4), np.bool_)
        for quarter, sources in enumerate(quarters):
            for register, number in sources:
                if register in defined:
                    made[..., quarter] &= defined[register][g.warps][..., number]
        return made.view(np.uint32)[..., 0]

    def _require_whole(self, registers: Sequence[int], lanes: NDArray[np.bool_], g: Group) -> None:
        """If some of these lanes are tainted, the taint has reached a use."""
        for each in registers:
            whole = self._words[each][g.warps] == _WHOLE
            if count_nonzero(whole) != whole.size and any_set(lanes & ~whole):
                self._suspects.registers_may_matter = True
