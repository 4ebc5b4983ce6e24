"""Clusters that walk over tiles: the cycles from one to the next, so that a few are simulated and not all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.timing.schedule import MachineSchedule

#: Tiles that are simulated, first the fewest, and by which part two stretches of their steady state may differ: their
#: mean is then off by less than half of it, or, where only 3 tiles make them, by up to as much.
_FEW = {4: 0.005, 8: 0.01}
#: Of fewer tiles than these all are simulated at once.
_LEAST = {4: 6, 8: 16}
#: Tiles of fewer cycles are all simulated: a store that waits, or not, is then a part of them that counts.
_SHORTEST = 6000


@dataclass(frozen=True)
class Walk:
    """One cluster's tiles: how many were simulated, how many it has, and cycles from one to the next."""

    simulated: int
    tiles: int
    period: float

    @property
    def left(self) -> int:
        """Tiles that count as equal."""
        return self.tiles - self.simulated


def lengths(tiles: int) -> Iterator[int]:
    """How many of so many tiles to simulate, one number after the other until the tiles repeat."""
    return (few for few, least in _LEAST.items() if tiles >= least)


def period(timed: MachineSchedule, tiles: int) -> float | None:
    """Cycles from tile to tile, by the ends of their MMAs; None where tiles are not equal or have no steady state.

    The first tile, which fills the ring, does not count. Stretches are of two tiles, since consumers may take turns.
    """
    ends = sorted(each.end for engines in timed.engines for each in engines.spans if each.unit == "tensor")
    mmas, rest = divmod(len(ends), tiles)
    if not mmas or rest:
        return None
    marks = ends[mmas - 1 :: mmas]
    first, second = (0, 1) if tiles < 6 else (tiles - 6, tiles - 4)
    before, after = (marks[at + 2] - marks[at] for at in (first, second))
    steady = before >= 2 * _SHORTEST and abs(after - before) <= _FEW[tiles] * before
    return (before + after) / 4 if steady else None
