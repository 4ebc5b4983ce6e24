"""A plan for a problem on a machine: waves, bytes, and a lower bound of the time.

cycles = fill + max(tensor, L2, memory).
tensor: waves x K blocks x cycles of a K block (MMA interval of the tile, arrival of its rows, round trip of the ring),
and on Hopper, unless consumers take turns, the time in which a tile's C is stored.
L2: bytes of A and B that the clusters read, each row of a tile once per cluster, and C, over the L2's bandwidth.
memory: bytes of A and B by wave with what the L2 still holds in the order of the tiles, and C, over HBM's.
fill: the latency of the first stage, once per CTA that is persistent, once per wave otherwise; and what clusters take.

Launch, the last epilogue and the adds of promoted fp8 sums are not in it. Epilogues of Blackwell cost nothing.
So it ranks configurations of one kind; it does not predict a measured time. Numbers of the machine: ptxgen.timing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.operand import MMA_ROW_BYTES, STAGE_ROW_BYTES
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.traffic import cluster_tiles, hbm_load_bytes, l2_load_bytes
from ptxgen.gemm.types import TYPES
from ptxgen.timing import Machine


@dataclass(frozen=True)
class Estimate:
    """A plan for a problem on a machine, with what follows. Cycles at `clock` MHz; bytes of the whole problem."""

    plan: GemmPlan
    machine: Machine
    m: int
    n: int
    k: int
    clock: float

    @property
    def config(self) -> GemmConfig:
        return self.plan.config

    @cached_property
    def tiles(self) -> int:
        """Tiles of clusters: of a CTA, of a pair, or of more."""
        x, y = cluster_tiles(self.plan.scheduler, self.m, self.n)
        return x * y

    @property
    def slots(self) -> int:
        """Clusters that run at once, one CTA per SM."""
        return int(self.machine.sms.value) // self.plan.scheduler.cluster_ctas

    @property
    def waves(self) -> float:
        return self.tiles / self.slots

    @property
    def whole_waves(self) -> int:
        return -(-self.tiles // self.slots)

    @property
    def last_wave(self) -> float:
        """The part of the slots that the last wave uses."""
        return (self.tiles - (self.whole_waves - 1) * self.slots) / self.slots

    @property
    def wave_efficiency(self) -> float:
        """Tiles over the tiles of whole waves."""
        return self.waves / self.whole_waves

    @property
    def tile_efficiency(self) -> float:
        """The part of the tiles that lies inside C."""
        scheduler = self.plan.scheduler
        return self.m * self.n / (self.tiles * scheduler.cluster_ctas * scheduler.rows * scheduler.columns)

    @cached_property
    def k_block_cycles(self) -> float:
        """Cycles of one K block of a CTA."""
        plan, groups = self.plan, self._mma_groups
        mma_m = plan.m_tile // groups
        steps = plan.a.stage_bytes // MMA_ROW_BYTES * groups
        mma = steps * self.machine.mma_cycles(mma_m, plan.n_tile, plan.config.cta_group)
        rows = (plan.a.bytes + plan.b.bytes + sum(each.bytes for each in plan.scales)) // STAGE_ROW_BYTES
        in_l2 = self._operand_bytes <= self._capacity
        copies = len(plan.a.copies) + len(plan.b.copies) + len(plan.scales)
        outside = max(plan.m_tile - self.m, 0) + max(plan.n_tile - self.n, 0)
        return self.machine.k_block_cycles(mma, rows, copies, plan.config.stages, in_l2=in_l2, outside=outside)

    @property
    def _mma_groups(self) -> int:
        """MMAs side by side in M: one per warpgroup of 64 rows on Hopper."""
        return 1 if self.plan.accumulator.columns else self.plan.m_tile // 64

    @property
    def mma_efficiency(self) -> float:
        """The part of the tensor throughput that the tile reaches in its main loop."""
        plan = self.plan
        work = 2 * plan.m_tile * plan.n_tile * plan.k_tile / plan.config.cta_group
        return work / (self.k_block_cycles * self.machine.tensor[plan.kind].value)

    @property
    def epilogue_cycles(self) -> float:
        """Cycles per tile in which a CTA of Hopper stores and does not multiply; ping-pong consumers do both."""
        plan = self.plan
        if plan.accumulator.columns or plan.config.consumers == "pingpong":
            return 0.0
        return plan.m_tile * plan.n_tile * TYPES[plan.c_dtype].bytes / self.machine.epilogue.value

    @property
    def tensor_cycles(self) -> float:
        blocks = -(-self.k // self.plan.k_tile)
        if self.config.scheduler == "stream":  # even shares of all K blocks, and a sum of parts
            even = -(-self.tiles * blocks // self.slots) * self.k_block_cycles
            return even + 2 * self.epilogue_cycles + self.machine.split.value
        return self.whole_waves * (blocks * self.k_block_cycles + self.epilogue_cycles)

    @property
    def fill_cycles(self) -> float:
        figure = self.machine.ring_l2 if self._operand_bytes <= self._capacity else self.machine.ring_hbm
        clusters = self.machine.cluster_start.value if self.plan.scheduler.cluster_ctas > 1 else 0
        return figure.value * (1 if self.plan.scheduler.persistent else self.whole_waves) + clusters

    @property
    def _capacity(self) -> float:
        return self.machine.l2_bytes.value * self.machine.l2_reuse.value

    @property
    def _row_bytes(self) -> tuple[int, int]:
        plan = self.plan
        scales = self.k // plan.scales[0].type.block if plan.scales else 0
        return self.k * plan.a.type.bits // 8 + scales, self.k * plan.b.type.bits // 8 + scales

    @property
    def _operand_bytes(self) -> int:
        a, b = self._row_bytes
        return self.m * a + self.n * b

    @property
    def c_bytes(self) -> int:
        """Bytes of C, written once, and of its source, read once."""
        source = self.config.source
        return self.m * self.n * (TYPES[self.plan.c_dtype].bytes + (TYPES[source].bytes if source else 0))

    @cached_property
    def l2_bytes(self) -> int:
        return l2_load_bytes(self.plan.scheduler, self.m, self.n, self._row_bytes) + self.c_bytes

    @cached_property
    def hbm_bytes(self) -> int:
        loads = hbm_load_bytes(self.plan.scheduler, self.m, self.n, self._row_bytes, self.slots, self._capacity)
        return loads + self.c_bytes

    def cycles_of(self, count: float, bandwidth: float) -> float:
        return count / bandwidth * self.clock * 1e6

    @property
    def l2_cycles(self) -> float:
        return self.cycles_of(self.l2_bytes, self.machine.l2_bandwidth.value)

    @property
    def hbm_cycles(self) -> float:
        return self.cycles_of(self.hbm_bytes, self.machine.hbm_bandwidth.value)

    @property
    def least_cycles(self) -> float:
        """A bound that needs no walk over the tiles: every byte from memory once."""
        least = self.cycles_of(self._operand_bytes + self.c_bytes, self.machine.hbm_bandwidth.value)
        return self.fill_cycles + max(self.tensor_cycles, self.l2_cycles, least)

    @property
    def cycles(self) -> float:
        return self.fill_cycles + max(self.tensor_cycles, self.l2_cycles, self.hbm_cycles)

    @property
    def even_cycles(self) -> float:
        """With tiles that divide evenly among the SMs, as a split of K would have it."""
        even = self.tensor_cycles * self.wave_efficiency * self.tile_efficiency
        return self.fill_cycles + max(even, self.l2_cycles, self.hbm_cycles)

    @property
    def microseconds(self) -> float:
        return self.cycles / self.clock

    @property
    def bound_by(self) -> str:
        parts = {"tensor": self.tensor_cycles, "L2": self.l2_cycles, "HBM": self.hbm_cycles}
        return max(parts, key=lambda name: parts[name])

    @property
    def group(self) -> str:
        """What computes a tile, in the plural."""
        ctas = self.plan.scheduler.cluster_ctas
        return "SMs" if ctas == 1 else "CTA pairs" if ctas == 2 else f"clusters of {ctas}"

    @property
    def tile(self) -> str:
        return f"{self.plan.m_tile}×{self.plan.n_tile}"

    @property
    def order(self) -> str:
        """The order of the tiles in a word."""
        scheduler = self.plan.scheduler
        return "hilbert" if scheduler.hilbert else f"panel {scheduler.panel}" if scheduler.panel else "along M"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "options": self.config.chosen(),
            "tile": [self.plan.m_tile, self.plan.n_tile, self.plan.k_tile],
            "cta_group": self.config.cta_group,
            "cluster": list(self.plan.scheduler.cluster),
            "scheduler": self.config.scheduler,
            "order": self.config.order,
            "panel": self.config.panel,
            "stages": self.config.stages,
            "shared_bytes": self.plan.shared.bytes,
            "tmem_columns": self.plan.accumulator.columns,
            "tiles": self.tiles,
            "slots": self.slots,
            "waves": round(self.waves, 4),
            "last_wave": round(self.last_wave, 4),
            "wave_efficiency": round(self.wave_efficiency, 4),
            "tile_efficiency": round(self.tile_efficiency, 4),
            "mma_efficiency": round(self.mma_efficiency, 4),
            "l2_bytes": self.l2_bytes,
            "hbm_bytes": self.hbm_bytes,
            "tensor_cycles": round(self.tensor_cycles),
            "l2_cycles": round(self.l2_cycles),
            "hbm_cycles": round(self.hbm_cycles),
            "fill_cycles": round(self.fill_cycles),
            "cycles": round(self.cycles),
            "microseconds": round(self.microseconds, 2),
            "bound_by": self.bound_by,
        }
