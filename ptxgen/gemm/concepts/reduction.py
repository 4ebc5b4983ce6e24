"""The reduction of a tile that is split along K over the CTAs of a cluster, through distributed shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.gemm.concepts.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.pipeline import Pipeline
from ptxgen.gemm.concepts.roles import Roles
from ptxgen.gemm.concepts.shared_map import Wanted
from ptxgen.gemm.config import GemmConfig

#: Additions of a warp that are written out.
_WRITTEN_OUT = 128


@dataclass(frozen=True)
class ClusterReduction:
    """CTAs of a cluster, `parts` of them, have one tile, and a share of its K blocks each; ranks are of these.

    Their consumer warps divide the tile alike. What warp w of each has summed is reduced by warp w of the CTA of rank
    w mod `parts`, the warp's owner, which stores it: it receives the sums of the other CTAs, 512 bytes per 4 of their
    `registers`, and adds them to its own, beginning with those of the rank after its own. `over_ring`: they take the
    place of the stages of A and B, and are sent when all CTAs have multiplied.
    """

    parts: int
    warps: int
    registers: int
    d_type: str
    over_ring: bool = False

    @property
    def even(self) -> bool:
        """Whether the CTAs are a power of two."""
        return self.parts & (self.parts - 1) == 0

    @classmethod
    def of(
        cls, config: GemmConfig, accumulator: Accumulator | RegisterAccumulator, roles: Roles
    ) -> ClusterReduction | None:
        """The reduction of an accumulator in registers; None where tiles are not split so."""
        if config.split_k == 1 or not isinstance(accumulator, RegisterAccumulator):
            return None
        registers = accumulator.blocks * accumulator.n // 2
        return cls(config.split_k, roles.storing, registers, accumulator.d_type, config.sums == "ring")

    @property
    def owned(self) -> int:
        """Warps that a CTA reduces and stores at most."""
        return -(-self.warps // self.parts)

    @property
    def last_owners(self) -> int:
        """CTAs of the lowest ranks that own so many, the others one less; 0 if all own the same number."""
        return self.warps % self.parts

    @property
    def others(self) -> int:
        """CTAs whose sums a warp receives."""
        return self.parts - 1

    @property
    def warp_bytes(self) -> int:
        """Bytes of the sums of one warp."""
        return self.registers * 32 * 4

    @property
    def received(self) -> int:
        """Bytes that a warp receives."""
        return self.others * self.warp_bytes

    @property
    def loops(self) -> bool:
        """Whether a loop adds the sums of the other CTAs: written out they would take too many lines."""
        return self.others > 1 and self.others * self.registers > _WRITTEN_OUT

    @property
    def wanted(self) -> Wanted:
        words = f"sums of {self.others} other CTA{'s' * (self.others > 1)} for each of {self.owned} warps"
        over = ("a", "b") if self.over_ring else ()
        return Wanted("sums", self.owned * self.received, 128, words, self.owned * self.others, over)

    @property
    def pipelines(self) -> list[Pipeline]:
        """An mbarrier for each warp that receives sums, and where they go over the ring, one for the end of its use."""
        sums = Pipeline("sums", self.owned, 1, self.received, 0, "the sums of the other CTAs")
        ends = Pipeline("ends", 1, self.parts * self.warps, 0, 0, "the end of all main loops of the cluster")
        return [sums, *[ends] * self.over_ring]
