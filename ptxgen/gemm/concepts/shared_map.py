"""Shared memory of a CTA: regions, one after the other, and the error that shows the sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxgen.device import SharedRegion
from ptxgen.gemm.errors import PlanError
from ptxgen.limits import shared_per_cta


@dataclass(frozen=True, slots=True)
class Wanted:
    """A region before it has a place; `stages` copies of `bytes // stages` each.

    `over`: regions that it takes the place of, one after the other, when they are no longer used.
    """

    name: str
    bytes: int
    alignment: int
    holds: str
    stages: int = 1
    over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """A part of shared memory; `offset`, `bytes` and `alignment` in bytes from the start of the dynamic memory."""

    name: str
    offset: int
    bytes: int
    alignment: int
    holds: str
    stages: int = 1

    @property
    def sum(self) -> str:
        """The size as it is computed: "a 5 x 16384"."""
        return f"{self.name} {f'{self.stages} x ' if self.stages > 1 else ''}{self.bytes // self.stages}"


@dataclass(frozen=True)
class SharedMap:
    """Shared memory of a CTA, region by region, in the order in which they were placed."""

    regions: tuple[Region, ...]
    limit: int

    @classmethod
    def place(cls, wanted: Sequence[Wanted], *, target: str) -> SharedMap:
        """Place regions one after the other. Raises PlanError with every region's size when they exceed the limit."""
        regions: list[Region] = []
        end = 0
        for each in wanted:
            if each.over:
                regions.append(_over(each, regions))
                continue
            offset = -(-end // each.alignment) * each.alignment
            regions.append(Region(each.name, offset, each.bytes, each.alignment, each.holds, each.stages))
            end = offset + each.bytes
        made = cls(tuple(regions), shared_per_cta(target))
        if made.bytes > made.limit:
            placed = {each.name for each in wanted if each.over}
            parts = " + ".join(region.sum for region in regions if region.name not in placed)
            raise PlanError(
                f"the kernel needs {made.bytes} bytes of shared memory ({parts}); a CTA on {target} has {made.limit}"
            )
        return made

    @property
    def bytes(self) -> int:
        """Bytes from the start of the first region to the end of the last."""
        return max((region.offset + region.bytes for region in self.regions), default=0)

    @property
    def alignment(self) -> int:
        """What the start must be a multiple of, in bytes."""
        return max((region.alignment for region in self.regions), default=1)

    @property
    def named(self) -> list[SharedRegion]:
        """The regions as the messages of the emulator name them."""
        return [SharedRegion(each.name, each.offset, each.bytes, each.stages) for each in self.regions]

    def offset(self, name: str) -> int:
        """Where a region starts, in bytes."""
        for region in self.regions:
            if region.name == name:
                return region.offset
        raise KeyError(f"no region {name!r}; there are {', '.join(region.name for region in self.regions)}")


def _over(wanted: Wanted, regions: Sequence[Region]) -> Region:
    """A region in the place of others. Raises PlanError where they are too small."""
    places = [each for each in regions if each.name in wanted.over]
    first, room = places[0].offset, places[-1].offset + places[-1].bytes - places[0].offset
    made = Region(wanted.name, first, wanted.bytes, wanted.alignment, wanted.holds, wanted.stages)
    if made.bytes > room:
        names = " and ".join(wanted.over)
        raise PlanError(f"{made.sum} bytes do not fit into the {room} of {names}")
    return made
