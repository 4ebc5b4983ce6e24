"""What plans are made of: a map of shared memory, barriers with their counts, and the error they raise."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.limits import shared_per_cta


class PlanError(ValueError):
    """A config or problem that cannot be planned: the rule and the numbers."""


@dataclass(frozen=True, slots=True)
class Region:
    """A part of shared memory; `offset`, `bytes` and `alignment` in bytes from the start of the dynamic memory."""

    name: str
    offset: int
    bytes: int
    alignment: int
    holds: str


@dataclass(frozen=True)
class SharedMap:
    """Shared memory of a CTA, region by region, in the order in which they were placed."""

    regions: tuple[Region, ...]
    limit: int

    @classmethod
    def place(cls, wanted: list[tuple[str, int, int, str]], *, target: str) -> SharedMap:
        """Place (name, bytes, alignment, what it holds) one after the other.

        Raises PlanError with every region's size when they exceed what a CTA of the target can have.
        """
        regions, end = [], 0
        for name, size, alignment, holds in wanted:
            offset = -(-end // alignment) * alignment
            regions.append(Region(name, offset, size, alignment, holds))
            end = offset + size
        made = cls(tuple(regions), shared_per_cta(target))
        if made.bytes > made.limit:
            parts = ", ".join(f"{region.name} {region.bytes}" for region in regions)
            raise PlanError(
                f"the tiles need {made.bytes} bytes of shared memory ({parts}); a CTA on {target} has {made.limit}"
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

    def offset(self, name: str) -> int:
        """Where a region starts, in bytes."""
        for region in self.regions:
            if region.name == name:
                return region.offset
        raise KeyError(f"no region {name!r}; there are {', '.join(region.name for region in self.regions)}")


@dataclass(frozen=True, slots=True)
class Barrier:
    """An mbarrier: arrivals and bytes (tx-count) that end each of its phases."""

    name: str
    arrivals: int
    tx_bytes: int
