"""Advice on how warps access memory: bank conflicts of shared memory, sectors of global memory.

Both are figures of the address patterns alone: the wavefronts of `ptxgen.layouts.banks`, and how many sectors of 32
bytes a warp's load or store touches (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"). What caches
make of the sectors is not modelled. Bulk copies, tensor copies and atomic operations are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Status
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import efficiency as checks
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.layouts.banks import LINE_BYTES, wavefronts
from ptxgen.syntax import Statement

#: Bytes of global memory that are moved at once.
SECTOR_BYTES = 32
#: Least share of its kind's transactions, and least number, that an instruction must waste to be reported.
_SHARE, _LEAST = 0.05, 16


@dataclass(slots=True)
class _Pattern:
    """Where the warps of a group went in one execution, counted from a whole period, and what that took and needed."""

    places: NDArray[np.int64]
    active: NDArray[np.bool_]
    took: NDArray[np.int64]
    needed: NDArray[np.int64]


@dataclass(slots=True)
class _Tally:
    """An instruction's executions by warps: how many, what they took and needed, and the worst of them."""

    statement: Statement
    accesses: int = 0
    took: int = 0
    needed: int = 0
    worst: tuple[int, int] = (0, 1)
    last: _Pattern | None = None


class Efficiency(Observer):
    """What the loads and stores of a launch took of memory's time, by instruction: of the memories of the warps' own
    CTAs, and of global memory. `cta_slot` has the CTA slot of each warp. What takes `times` what it needs is advised
    about at the end of a launch without findings.
    """

    def __init__(self, cta_slot: NDArray[np.int64], findings: Findings, times: float) -> None:
        self._cta_slot, self._findings, self._times = cta_slot, findings, times
        self._shared: dict[int, _Tally] = {}
        self._global: dict[int, _Tally] = {}

    def memory_requested(self, access: MemoryAccess) -> None:
        active, places, size, statement = access.active, access.places, access.size, access.statement
        if access.space == "global":
            self.heap(places.offsets, active, size, statement)
        elif places.inside is not None and places.slots is not None:
            own = active & (places.slots == self._cta_slot[access.warps][:, None])
            if any_set(own):
                self.shared(places.inside, own, size, statement)

    def launch_ends(self, status: Status) -> None:
        if status == "ok":
            self.report()

    def shared(self, inside: NDArray[np.int64], active: NDArray[np.bool_], size: int, statement: Statement) -> None:
        """Warps access `size` bytes a lane at these offsets (warps, 32) of their CTA's shared memory."""
        self._count(self._shared, inside, active, size, statement, LINE_BYTES)

    def heap(self, offsets: NDArray[np.int64], active: NDArray[np.bool_], size: int, statement: Statement) -> None:
        """Warps access `size` bytes a lane at these offsets (warps, 32) of global memory."""
        self._count(self._global, offsets, active, size, statement, SECTOR_BYTES)

    def _count(
        self,
        tallies: dict[int, _Tally],
        places: NDArray[np.int64],
        active: NDArray[np.bool_],
        size: int,
        statement: Statement,
        period: int,
    ) -> None:
        """Add an execution; a pattern that is the last one, moved by a multiple of `period` bytes, costs the same."""
        tally = tallies.setdefault(id(statement), _Tally(statement))
        lowest = int(np.where(active, places, np.iinfo(np.int64).max).min())
        places, last = np.where(active, places - (lowest - lowest % period), 0), tally.last
        if last is None or not (np.array_equal(last.places, places) and np.array_equal(last.active, active)):
            took, needed = (wavefronts if period == LINE_BYTES else _sectors)(places, active, size)
            last = tally.last = _Pattern(places, active.copy(), took, needed)
            worst = int((took / np.maximum(needed, 1)).argmax())
            if took[worst] * tally.worst[1] > needed[worst] * tally.worst[0]:
                tally.worst = int(took[worst]), int(needed[worst])
        tally.accesses += int(active.any(axis=1).sum())
        tally.took += int(last.took.sum())
        tally.needed += int(last.needed.sum())

    def report(self) -> None:
        """Advice for each instruction that takes so many times what it needs or more, the most wasteful first."""
        for check, tallies, space, unit in (
            (checks.BANK_CONFLICTS, self._shared, "shared", "wavefronts"),
            (checks.UNCOALESCED_ACCESS, self._global, "global", "sectors"),
        ):
            total = sum(tally.took for tally in tallies.values())
            for tally in sorted(tallies.values(), key=lambda tally: tally.needed - tally.took):
                if tally.took < self._times * tally.needed or tally.took - tally.needed < max(_SHARE * total, _LEAST):
                    continue
                took, needed = tally.worst
                access = self._findings.access("accessor", tally.statement, space=space)
                self._findings.report(
                    check,
                    tally.statement,
                    summary=f"{access} takes {tally.took} {unit} of {space} memory where {tally.needed} would do "
                    f"({tally.took / tally.needed:.3g} times)",
                    rule=f"The worst of {tally.accesses} warp-instructions takes {took} where {needed} would do; the "
                    f"instruction takes {tally.took / total:.0%} of the {unit} of all loads and stores",
                    accesses=(access,),
                    severity="advice",
                )


def _sectors(
    places: NDArray[np.int64], active: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sectors that each warp touches, and how many its different bytes would fill."""
    needed = -(-_different(places, active) * size // SECTOR_BYTES)
    return _different(places // SECTOR_BYTES, active), needed


def _different(values: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many different values the active lanes of each warp have."""
    ordered = np.sort(np.where(active, values, -1), axis=1)
    return (ordered[:, :1] >= 0).sum(axis=1) + ((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)).sum(axis=1)
