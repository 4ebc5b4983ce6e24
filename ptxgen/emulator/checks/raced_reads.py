"""Weak loads of what another warp may be storing: their bytes, for reruns that show whether anything depends on them.

Compilers let all warps load and one store where they hold the same, and threads past the end of an array load its
last element: such kernels work in place, race, and drop what the race leaves open. Nothing in the accesses tells them
from kernels that use the value (`uninitialized.rerun`).

A load whose registers nothing reads is not judged: compilers leave none, so its kernel is a sketch of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.state.raced_loads import RacedBytes, RacedLoads, pairs_of
from ptxgen.syntax import Instruction, Statement

#: Atomic operations that decide again what a weak load of the word may have decided wrongly.
_DECIDES = frozenset(["cas", "min", "max", "or", "and"])
#: Bytes that are kept for a line; loads of more are not judged.
_MOST = 1 << 22


def decides_again(statement: Statement | None) -> bool:
    """Whether an instruction is an atomic operation that changes nothing where another thread has done so before."""
    parts = statement.opcode.split(".") if isinstance(statement, Instruction) else [""]
    return parts[0] in ("atom", "red") and not _DECIDES.isdisjoint(parts)


class _Kept(NamedTuple):
    """Raced accesses of `size` bytes: where, and by which warps; all are (accesses,)."""

    space: str
    size: int
    offsets: NDArray[np.int64]
    storers: NDArray[np.int64]
    loaders: NDArray[np.int64]

    def in_units(self, unit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The units of so many bytes that they touch, with their warps."""
        count = max(self.size // unit, 1)
        units = (self.offsets[:, None] // unit + np.arange(count)).ravel()
        return units, np.repeat(self.storers, count), np.repeat(self.loaders, count)


class RacedReads:
    """The bytes that weak loads share with unordered stores by threads of other warps, by line of the load."""

    def __init__(self, flags: WeakFlags) -> None:
        #: True in a rerun: the launch has been searched for races already.
        self.is_rerun = False
        self._flags = flags
        self._bytes: dict[int, list[_Kept]] = {}
        self._counts: dict[int, int] = {}
        #: Lines of loads whose lanes vote.
        self._voted: set[int] = set()
        #: Lines of loads that race with something else than atomic operations that decide again.
        self._stored: set[int] = set()

    def may_judge(self, load: Statement) -> bool:
        """Whether a rerun can show that nothing depends on a load: not on one that polls a flag, or has no use."""
        return not self._flags.polls(load) and self._flags.is_used(load)

    def add(
        self,
        load: Statement,
        space: str,
        size: int,
        offsets: NDArray[np.int64],
        storers: NDArray[np.int64],
        loaders: NDArray[np.int64],
        *,
        decides: bool,
    ) -> None:
        """Accesses of `size` bytes at these offsets are raced, stored and loaded by these warps (see `RacedLoads`).

        `decides`: the store is an atomic operation that does (`decides_again`).
        """
        line = load.line
        if not decides:
            self._stored.add(line)
        elif line not in self._voted and self._flags.votes_around(load):
            self._voted.add(line)
        self._counts[line] = self._counts.get(line, 0) + len(offsets)
        if self._counts[line] <= _MOST:
            self._bytes.setdefault(line, []).append(_Kept(space, size, offsets, storers, loaders))

    def decided_again(self, lines: Iterable[int]) -> frozenset[int]:
        """Those of the lines whose loads race with atomic operations alone that decide again, and whose lanes vote.

        Of other loads the text shows whether an atomic operation decides again (`rechecked_loads`, `write_once`).
        """
        return frozenset(line for line in lines if line in self._voted and line not in self._stored)

    def loads(self, lines: Iterable[int]) -> RacedLoads | None:
        """What a rerun replaces to judge loads of these lines; None if that is not known of all."""
        found: dict[int, RacedBytes] = {}
        for line in lines:
            kept = self._bytes.get(line, [])
            if not kept or self._counts[line] > _MOST or len({each.space for each in kept}) > 1:
                return None
            unit = min(each.size for each in kept)
            units, storers, loaders = (
                np.concatenate(each) for each in zip(*(each.in_units(unit) for each in kept), strict=True)
            )
            found[line] = RacedBytes(
                kept[0].space,
                unit,
                np.unique(units),
                np.unique(pairs_of(units, storers)),
                np.unique(pairs_of(units, loaders)),
            )
        return RacedLoads(found)
