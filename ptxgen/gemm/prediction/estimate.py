"""A plan for a problem on a machine: waves, bytes, and a model of the time.

cycles = launch + exposed + together(tensor, memory, L2)
tensor: waves x K blocks of a CTA x cycles of each (MMA interval of the tile, arrival of its rows, round trip of the
ring), and on Hopper, unless consumers take turns, the time in which a tile's C is stored before the next; promoted fp8
sums add the wait of a consumer for its wgmmas and its additions, as far as no other consumer multiplies meanwhile.
L2: bytes of A and B that the clusters read, each row of a tile once per cluster, and C, over the L2's bandwidth.
memory: bytes of A and B by wave with what the L2 still holds in the order of the tiles, and C, over HBM's; or, if that
takes longer, the same where neighboring CTAs that do not share a row take it into both halves of the L2.
exposed: the latency of the first stage and the last epilogue, of every wave where CTAs with one tile each have an SM
alone; what clusters, persistent CTAs, and orders of tiles other than along M take to start, and what stream-K or split
K takes to add up the parts of tiles.
together: the largest, or where the machine's parts were measured their p-norm.

On Blackwell launch and epilogues are not in it. So it ranks configurations of one kind. Numbers of the machine, and how
they are known: ptxgen.timing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptxgen.gemm.concepts.accumulator import RegisterAccumulator
from ptxgen.gemm.concepts.operand import MMA_ROW_BYTES, STAGE_ROW_BYTES
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.prediction.traffic import cluster_tiles, copies_in_l2, hbm_load_bytes, l2_load_bytes, least_load_bytes
from ptxgen.gemm.types import TYPES
from ptxgen.timing import Machine

#: Registers of a multiprocessor; shared memory that it keeps for itself in each CTA.
_REGISTERS, _SHARED_RESERVED = 65536, 1024


@dataclass(frozen=True)
class Estimate:
    """A plan for a problem on a machine, with what follows. Cycles at `clock` MHz; bytes of the whole problem."""

    plan: GemmPlan
    machine: Machine
    m: int
    n: int
    k: int
    clock: float

    @classmethod
    def of(cls, plan: GemmPlan, machine: Machine, m: int, n: int, k: int, clock: float | None = None) -> Estimate:
        """At the clock of a problem of so many FLOP per byte unless one is given."""
        made = cls(plan, machine, m, n, k, clock or machine.clock.value)
        if clock is None:
            made = cls(plan, machine, m, n, k, machine.clock_of(2 * m * n * k / (made._operand_bytes + made.c_bytes)))
        return made

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
        """Tiles of clusters that are multiplied at once, one CTA per SM."""
        scheduler = self.plan.scheduler
        return max(self.machine.cluster_slots(scheduler.cluster_size) // scheduler.k_clusters, 1)

    @property
    def resident(self) -> int:
        """CTAs that share an SM: by shared memory, and on Hopper by registers; more than tiles there are not."""
        plan = self.plan
        if plan.scheduler.persistent or not isinstance(plan.accumulator, RegisterAccumulator):
            return 1
        fits = (self.machine.shared_bytes.value + _SHARED_RESERVED) // (plan.shared.bytes + _SHARED_RESERVED)
        by_registers = _REGISTERS // (plan.roles.launch_registers(plan.accumulator.registers) * plan.roles.threads)
        return max(1, int(min(fits, by_registers, self.whole_waves)))

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
        """Cycles of one K block of a CTA, or of one of each of those that share an SM over how many they are."""
        return self._k_block_cycles(self.resident)

    def _k_block_cycles(self, resident: int) -> float:
        plan, groups = self.plan, self._mma_groups
        mma_m = plan.m_tile // groups
        steps = plan.a.stage_bytes // MMA_ROW_BYTES * groups
        mma = steps * self.machine.mma_cycles(mma_m, plan.n_tile, plan.config.cta_group)
        rows = (plan.a.bytes + plan.b.bytes + sum(each.bytes for each in plan.scales)) // STAGE_ROW_BYTES
        in_l2 = self._operand_bytes <= self._capacity
        copies = len(plan.a.copies) + len(plan.b.copies) + len(plan.scales)
        outside = max(plan.m_tile - self.m, 0) + max(plan.n_tile - self.n, 0)
        stages = plan.config.stages * resident
        cycles = self.machine.k_block_cycles(mma, rows, copies, stages, in_l2=in_l2, outside=outside)
        return self._promoted(cycles, mma, resident)

    def _promoted(self, cycles: float, mma: float, resident: int) -> float:
        """Cycles of a K block with the additions of promoted sums: other consumers that multiply meanwhile hide them.

        Those are consumers of the same tile, but not ping-pong ones, and those of other CTAs on the SM.
        """
        accumulator = self.plan.accumulator
        if not isinstance(accumulator, RegisterAccumulator) or not accumulator.promoted:
            return cycles
        consumers = 1 if self.config.consumers == "pingpong" else accumulator.warpgroups
        scales = self.plan.block_scales
        boundaries = len(scales.boundaries) if scales and scales.pair and not scales.swapped else 0
        blocks, sums = accumulator.blocks, accumulator.n // 2
        together = self.machine.promoted_cycles(cycles * resident, mma, consumers, blocks, sums, boundaries)
        return together / resident

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
        """Cycles in which a CTA of Hopper stores a tile; those of Blackwell are not in the model."""
        if self.plan.accumulator.columns:
            return 0.0
        return self.plan.m_tile * self.plan.n_tile * TYPES[self.plan.c_dtype].bytes / self.machine.epilogue.value

    @property
    def split_tiles(self) -> int:
        """Tiles of clusters that stream-K splits along K: of the last wave, if it is not full, and the one before."""
        whole = self.tiles // self.slots
        if self.config.scheduler != "stream" or self.tiles == whole * self.slots:
            return 0
        return self.tiles - max(whole - 1, 0) * self.slots

    @property
    def tensor_cycles(self) -> float:
        blocks = -(-self.k // (self.plan.k_tile * self.plan.scheduler.parts))
        if self.split_tiles:
            return -(-self.tiles * blocks // self.slots) * self.k_block_cycles + self._stores * self.epilogue_cycles
        main = self.whole_waves * blocks * self.k_block_cycles + self._stores * self.epilogue_cycles
        if self.resident == 1:
            return main
        # Each of those that share an SM still waits for its own first stage, ring and epilogue.
        rounds, alone = -(-self.whole_waves // self.resident), blocks * self._k_block_cycles(1)
        return max(main, rounds * alone + (rounds - 1) * (self._ring_cycles + self.epilogue_cycles))

    @property
    def _stores(self) -> int:
        """Epilogues between two tiles in which nobody multiplies: ping-pong consumers, and what shares an SM, do."""
        if not self.plan.scheduler.persistent or self.config.consumers == "pingpong":
            return 0
        return self.whole_waves - 1

    @property
    def _ring_cycles(self) -> float:
        in_l2 = self._operand_bytes <= self._capacity
        return (self.machine.ring_l2 if in_l2 else self.machine.ring_hbm).value

    @property
    def fill_cycles(self) -> float:
        """What nothing hides: the first stage and the last epilogue, of each wave unless other CTAs work meanwhile."""
        plan, machine = self.plan, self.machine
        alone = 1 if plan.scheduler.persistent or self.resident > 1 else self.whole_waves
        start = self._cluster_cycles + self._order_cycles
        start += machine.persistent_start.value if plan.scheduler.persistent else 0
        return alone * (self._ring_cycles + self.epilogue_cycles) + start + self._split_cycles

    @property
    def _cluster_cycles(self) -> float:
        """What a cluster starts and ends later; one that splits K has copies for its own CTA alone."""
        if self.plan.reduction:
            return self.machine.split_start.value
        return self.machine.cluster_start.value if self.plan.scheduler.cluster_size > 1 else 0.0

    @property
    def _order_cycles(self) -> float:
        scheduler = self.plan.scheduler
        return self.machine.order_start.value if scheduler.hilbert or scheduler.panel else 0.0

    @property
    def _split_cycles(self) -> float:
        """What stream-K takes to add up the parts of its tiles, or a cluster, or several."""
        scheduler, made = self.plan.scheduler, 0.0
        if reduction := self.plan.reduction:
            made = reduction.owned * reduction.received / self.machine.cluster_sum.value
        if not self.split_tiles and scheduler.k_clusters == 1:
            return made
        parts = scheduler.k_clusters / scheduler.split_k if scheduler.k_clusters > 1 else self.slots / self.split_tiles
        sums = max(parts, 1) * 4 * self.plan.m_tile * self.plan.n_tile
        return made + self.machine.split.value + sums / self.machine.split_sum.value

    @property
    def _capacity(self) -> float:
        return self.machine.l2_bytes.value * self.machine.l2_reuse.value

    @property
    def _row_bytes(self) -> tuple[int, int]:
        plan, scales = self.plan, self._row_scales
        return self.k * plan.a.type.bits // 8 + scales, self.k * plan.b.type.bits // 8 + scales

    @property
    def _row_scales(self) -> int:
        """Scales of a row of A or B, a byte each."""
        return self.k // self.plan.scales[0].type.block if self.plan.scales else 0

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
        plan, (a, b) = self.plan, self._row_bytes
        if plan.scales and plan.config.cta_group == 2 and not plan.config.sfb_multicast:
            b += self._row_scales  # both CTAs of a pair load the scales of B
        return l2_load_bytes(plan.scheduler, self.m, self.n, (a, b)) + self.c_bytes

    @cached_property
    def hbm_bytes(self) -> int:
        loads = hbm_load_bytes(self.plan.scheduler, self.m, self.n, self._row_bytes, self.slots, self._capacity)
        return max(loads, self._split_bytes) + self.c_bytes

    @property
    def _split_bytes(self) -> int:
        """Bytes of A and B where CTAs are at different K: each tile that stream-K splits reads its own rows.

        Unless the L2 holds the operand beside what streams through it.
        """
        scheduler, share = self.plan.scheduler, self.split_tiles / self.tiles
        rows = (scheduler.rows * scheduler.cluster[0], scheduler.columns * scheduler.cluster[1])
        own = sum(
            count * each
            for count, extent, each in zip(rows, (self.m, self.n), self._row_bytes, strict=True)
            if extent * each > 0.75 * self._capacity
        )
        return int(self._operand_bytes * (1 - share) + self.split_tiles * own)

    @cached_property
    def l2_fill_bytes(self) -> float:
        """Bytes that arrive in the two halves of the L2, and C."""
        once = self._operand_bytes
        copies = copies_in_l2(self.plan.scheduler, self.m, self.n, self._row_bytes)
        return (self.hbm_bytes - self.c_bytes) * copies / once + self.c_bytes

    def cycles_of(self, count: float, bandwidth: float) -> float:
        return count / bandwidth * self.clock * 1e6

    @property
    def l2_cycles(self) -> float:
        return self.cycles_of(self.l2_bytes, self.machine.l2_bandwidth.value)

    @property
    def _hbm_bandwidth(self) -> float:
        """That of memory, with what hints for the L2 gain."""
        hinted = self.config.a_hint or self.config.b_hint
        return self.machine.hbm_bandwidth.value * (self.machine.hints.value if hinted else 1)

    @property
    def _full_shared(self) -> float:
        """The part of the bandwidths of memory and into the L2 that is left where CTAs leave no L1 cache."""
        return self.machine.full_shared.value if self.shared_bytes > self.machine.most_shared.value else 1

    @property
    def shared_bytes(self) -> int:
        """Of an SM, by all its CTAs."""
        return self.resident * (self.plan.shared.bytes + _SHARED_RESERVED)

    @property
    def hbm_cycles(self) -> float:
        """Of memory, or of the way into the L2."""
        fill = self.cycles_of(self.l2_fill_bytes, self.machine.l2_fill.value)
        return max(self.cycles_of(self.hbm_bytes, self._hbm_bandwidth), fill) / self._full_shared

    def _cycles(self, tensor: float, memory: float) -> float:
        launch = self.machine.launch.value * self.clock
        return launch + self.fill_cycles + self.machine.together(tensor, memory, self.l2_cycles)

    @property
    def least_hbm_cycles(self) -> float:
        """Those of the best order of tiles and number of stages: a bound that needs no walk over the tiles."""
        scheduler, rows = self.plan.scheduler, self._row_bytes
        loads = least_load_bytes(scheduler, self.m, self.n, rows, self.slots, self._capacity)
        return self.cycles_of(loads + self.c_bytes, self._hbm_bandwidth)

    @property
    def splits(self) -> bool:
        """Whether a split of K could help: on Hopper, with fewer tiles than SMs."""
        return not self.plan.accumulator.columns and self.plan.roles.load is not None and self.tiles < self.slots

    @property
    def least_cycles(self) -> float:
        """A bound that needs no walk over the tiles, and holds for a split of K."""
        tensor = self.tensor_cycles * (self.waves if self.splits else 1)
        return self._cycles(tensor, self.least_hbm_cycles) - self._order_cycles

    @cached_property
    def cycles(self) -> float:
        return self._cycles(self.tensor_cycles, self.hbm_cycles)

    @property
    def even_cycles(self) -> float:
        """With tiles that divide evenly among the SMs, as a split of K would have it."""
        return self._cycles(self.tensor_cycles * self.wave_efficiency * self.tile_efficiency, self.hbm_cycles)

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
        ctas = self.plan.scheduler.cluster_size
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
