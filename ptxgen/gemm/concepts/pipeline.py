"""A ring of stages between a producer and a consumer: two mbarriers a stage, and their counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptxgen.gemm.concepts.shared_map import SharedMap, Wanted

BARRIER_BYTES = 8


@dataclass(frozen=True)
class Pipeline:
    """Stages that a producer fills and a consumer empties.

    A phase of a full barrier ends with `full_arrivals` and `tx_bytes`, one of an empty barrier with `empty_arrivals`;
    0 arrivals: there is no such barrier. `full` and `empty` are the offsets of the barriers of stage 0 in shared
    memory, `barrier + 8 * stage` each. `cluster`: threads of peer CTAs arrive, so waits acquire at cluster scope.
    `indexed`: a thread keeps a phase bit of each stage in local memory; else one bit that flips with every round.
    """

    name: str
    stages: int
    full_arrivals: int
    tx_bytes: int
    empty_arrivals: int
    holds: str
    cluster: bool = False
    indexed: bool = False
    full: int = 0
    empty: int = 0

    @property
    def wanted(self) -> list[Wanted]:
        """The barriers as regions of shared memory."""
        size = self.stages * BARRIER_BYTES
        regions: list[Wanted] = []
        if self.full_arrivals:
            regions.append(Wanted(f"{self.name}_full", size, 8, f"mbarriers: {self.holds} is ready", self.stages))
        if self.empty_arrivals:
            regions.append(
                Wanted(f"{self.name}_empty", size, 8, f"mbarriers: {self.holds} may be overwritten", self.stages)
            )
        return regions

    def placed(self, shared: SharedMap) -> Pipeline:
        """The same with the offsets that a map gives its barriers."""
        full = shared.offset(f"{self.name}_full") if self.full_arrivals else 0
        return replace(self, full=full, empty=shared.offset(f"{self.name}_empty") if self.empty_arrivals else 0)

    @property
    def barriers(self) -> list[tuple[int, int]]:
        """Offset and arrivals of every barrier, to be initialized."""
        kinds = ((self.full, self.full_arrivals), (self.empty, self.empty_arrivals))
        return [
            (first + BARRIER_BYTES * stage, arrivals)
            for first, arrivals in kinds
            if arrivals
            for stage in range(self.stages)
        ]

    @property
    def scope(self) -> str:
        """The qualifiers of a wait."""
        return ".acquire.cluster" if self.cluster else ""

    def explain(self) -> str:
        """Stages and counts in words."""
        words = f"{self.stages} stage{'s' * (self.stages > 1)}"
        words += f"; full: {_arrivals(self.full_arrivals)}" if self.full_arrivals else ""
        words += f" and {self.tx_bytes} bytes" if self.tx_bytes else ""
        return words + (f"; empty: {_arrivals(self.empty_arrivals)}" if self.empty_arrivals else "")


def _arrivals(count: int) -> str:
    return f"{count} arrival{'s' * (count > 1)}"
