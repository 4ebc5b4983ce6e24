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


class Taint:
    """Which quarters of some registers, (warps, 32, 4), are untainted.

    Nothing is followed before `begin`. `written` has the registers that may be read before they are written.
    """

    def __init__(
        self, machine: Machine, registers: frozenset[int], written: Mapping[int, NDArray[np.bool_]], *, recursive: bool
    ) -> None:
        self._machine, self._registers, self._written = machine, registers, written
        self._recursive, self._suspects = recursive, machine.findings.suspects
        self._defined: dict[int, NDArray[np.bool_]] | None = None

    def begin(self) -> None:
        """A lane reads an uninitialized register. Until now all else is untainted."""
        if self._defined is not None:
            return
        everywhere = np.ones((self._machine.warps, 32), np.bool_)
        self._defined = {
            each: np.repeat(self._written.get(each, everywhere)[..., None], 4, axis=2) for each in self._registers
        }
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
            value = self._made(self._defined, use, sources, g)
            if value is None:
                self._require_whole(sources, g.active, g)
                if added and use.if_true is not None:
                    self._require_whole(added, g.active & use.if_true(g), g)
                value = np.asarray(True)
            result = run(g, *rest)
            for each, exactly in made:
                g.store(self._defined[each], exactly)
            for each in targets:
                g.store(self._defined[each], value)
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

    @staticmethod
    def _made(
        defined: Mapping[int, NDArray[np.bool_]], use: Use, sources: Sequence[int], g: Group
    ) -> NDArray[np.bool_] | None:
        """The lanes of its results that are tainted, (warps, 32, 1); None if it propagates no taint."""
        if not (use.lanewise or (use.lanes is not None and g.mask is None)):
            return None
        made = np.ones((g.size, 32, 1), np.bool_)
        for each in sources:
            here = defined[each][g.warps]
            if count_nonzero(here) != here.size:
                made &= here.all(axis=2, keepdims=True)
        return made if use.lanes is None else made[:, use.lanes]

    @staticmethod
    def _exactly(defined: Mapping[int, NDArray[np.bool_]], quarters: Quarters, g: Group) -> NDArray[np.bool_]:
        """The quarters of a result that are, (warps, 32, 4)."""
        made = np.ones((g.size, 32, 4), np.bool_)
        for quarter, sources in enumerate(quarters):
            for register, number in sources:
                if register in defined:
                    made[..., quarter] &= defined[register][g.warps][..., number]
        return made

    def _require_whole(self, registers: Sequence[int], lanes: NDArray[np.bool_], g: Group) -> None:
        """If some of these lanes are tainted, the taint has reached a use."""
        assert self._defined is not None
        for each in registers:
            here = self._defined[each][g.warps]
            if count_nonzero(here) != here.size and any_set(lanes & ~here.all(axis=2)):
                self._suspects.registers_may_matter = True
