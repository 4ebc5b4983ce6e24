"""What kernel authors look at: the figures of a summary, and how a difference in each becomes cycles.

Names of metrics are those of ncu 2022.3 to 2025.3 as reports of an RTX 3070 and an H200 have them; no report of a
Blackwell GPU was at hand. The first of `names` that a report has is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ptxgen.ncu.counters import stall_counts
from ptxgen.ncu.schema import Launch
from ptxgen.ncu.units import Quantity

Section = Literal[
    "time",
    "throughput",
    "tensor pipe",
    "TMA",
    "L2",
    "HBM",
    "shared memory",
    "local memory",
    "instructions",
    "occupancy",
    "launch",
]
#: Cycles of the launch that a figure stands for, at the peak rate of its unit; None if the report lacks the data.
Cost = Callable[[Launch], float | None]

CYCLES = ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max", "smsp__cycles_elapsed.max")
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg")
_ISSUED = ("smsp__inst_issued.avg",)
_WARPS = ("smsp__warps_active.avg.per_cycle_active",)
_STALL_PREFIX, _STALL_SUFFIX = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
_SECTOR_BYTES = 32
_SCHEDULERS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a launch. `scale` makes its unit (sectors to bytes).

    An `exact` figure differs with any change. A `counted` one hardly varies between runs of a kernel: it differs beyond
    the threshold however little time it stands for.
    """

    key: str
    label: str
    section: Section
    names: tuple[str, ...]
    unit: str = ""
    scale: float = 1.0
    cost: Cost | None = None
    exact: bool = False
    counted: bool = False

    def of(self, launch: Launch) -> Quantity | None:
        """The figure of a launch, None where the report has none of its metrics."""
        found = launch.quantity(*self.names)
        if found is None:
            return None
        return Quantity(found.value * self.scale, self.unit or found.unit, found.resolution * self.scale)

    def metric(self, launch: Launch) -> str | None:
        """The metric that `of` takes."""
        return next((name for name in self.names if launch.quantity(name) is not None), None)


# Costs.


def _busy(*names: str) -> Cost:
    """A share of peak (percent of elapsed cycles) is that share of the cycles."""

    def cost(launch: Launch) -> float | None:
        share, cycles = launch.value(*names), launch.value(*CYCLES)
        return None if share is None or cycles is None else share / 100 * cycles

    return cost


def _per_multiprocessor(*names: str, rate: float = 1.0, without: tuple[str, ...] = ()) -> Cost:
    """Cycles of a count over all multiprocessors at `rate` a cycle each; less the count `without`."""

    def cost(launch: Launch) -> float | None:
        count, processors = launch.value(*names), launch.device.multiprocessors
        if count is None or not processors:
            return None
        return (count - (launch.value(*without) or 0.0 if without else 0.0)) / processors / rate

    return cost


def _part(
    names: tuple[str, ...], whole: tuple[tuple[str, ...], ...], busy: tuple[str, ...], scale: float = 1.0
) -> Cost:
    """A part of what keeps a unit busy: bytes read of all bytes of HBM, times the cycles at its peak."""
    cycles_of = _busy(*busy)

    def cost(launch: Launch) -> float | None:
        part, cycles = launch.value(*names), cycles_of(launch)
        counts = [launch.value(*each) for each in whole]
        total = sum(each for each in counts if each is not None)
        return part * scale / total * cycles if part is not None and cycles is not None and total else None

    return cost


_CONFLICTS = ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",)
_WAVEFRONTS = ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",)
_L2_SECTORS = (("lts__t_sectors.sum",),)
_L2_BUSY = ("lts__t_sectors.avg.pct_of_peak_sustained_elapsed",)
_L2_READ = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_read.sum")
_L2_WRITE = ("lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_sectors_op_write.sum")
_HBM_READ, _HBM_WRITE = ("dram__bytes_read.sum",), ("dram__bytes_write.sum",)
_HBM_BUSY = ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",)
_LOCAL_LOADS = (
    "smsp__sass_inst_executed_op_local_ld.sum",
    "sass__inst_executed_local_loads",
    "smsp__inst_executed_op_local_ld.sum",
)
_LOCAL_STORES = (
    "smsp__sass_inst_executed_op_local_st.sum",
    "sass__inst_executed_local_stores",
    "smsp__inst_executed_op_local_st.sum",
)
_TENSOR = ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",)
_TMA_LOAD = ("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",)
_TMA_STORE = ("l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",)
_INSTRUCTIONS = ("smsp__inst_executed.sum", "inst_executed")
_HBM = (_HBM_READ, _HBM_WRITE)
_SPILLS = ("derived__local_spilling_requests",)

FIGURES: tuple[Figure, ...] = (
    Figure("duration", "duration", "time", DURATION),
    Figure("cycles", "elapsed cycles", "time", CYCLES),
    Figure("compute", "compute (SM) throughput", "throughput", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Figure(
        "memory",
        "memory throughput",
        "throughput",
        ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    ),
    Figure("tensor", "tensor pipe busy", "tensor pipe", _TENSOR, cost=_busy(*_TENSOR)),
    Figure("tma_loads", "TMA load instructions", "TMA", ("smsp__sass_inst_executed_op_tma_ld.sum",)),
    Figure("tma_stores", "TMA store instructions", "TMA", ("smsp__sass_inst_executed_op_tma_st.sum",)),
    Figure(
        "tma_load_bytes",
        "TMA load bytes",
        "TMA",
        _TMA_LOAD,
        cost=_part(_TMA_LOAD, _L2_SECTORS, _L2_BUSY, 1 / _SECTOR_BYTES),
        counted=True,
    ),
    Figure(
        "tma_store_bytes",
        "TMA store bytes",
        "TMA",
        _TMA_STORE,
        cost=_part(_TMA_STORE, _L2_SECTORS, _L2_BUSY, 1 / _SECTOR_BYTES),
        counted=True,
    ),
    Figure("l2", "L2 throughput", "L2", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)),
    Figure("l2_hits", "L2 hit rate", "L2", ("lts__t_sector_hit_rate.pct",)),
    Figure(
        "l2_read_bytes",
        "L2 read bytes",
        "L2",
        _L2_READ,
        "byte",
        _SECTOR_BYTES,
        _part(_L2_READ, _L2_SECTORS, _L2_BUSY),
    ),
    Figure(
        "l2_write_bytes",
        "L2 write bytes",
        "L2",
        _L2_WRITE,
        "byte",
        _SECTOR_BYTES,
        _part(_L2_WRITE, _L2_SECTORS, _L2_BUSY),
    ),
    Figure("hbm", "HBM throughput", "HBM", _HBM_BUSY),
    Figure("hbm_read_bytes", "HBM read bytes", "HBM", _HBM_READ, cost=_part(_HBM_READ, _HBM, _HBM_BUSY)),
    Figure("hbm_write_bytes", "HBM write bytes", "HBM", _HBM_WRITE, cost=_part(_HBM_WRITE, _HBM, _HBM_BUSY)),
    Figure(
        "shared_conflicts",
        "shared-memory bank conflicts",
        "shared memory",
        _CONFLICTS,
        "wavefront",
        cost=_per_multiprocessor(*_CONFLICTS),
    ),
    Figure(
        "shared_wavefronts",
        "shared-memory wavefronts",
        "shared memory",
        _WAVEFRONTS,
        "wavefront",
        cost=_per_multiprocessor(*_WAVEFRONTS, without=_CONFLICTS),
    ),
    Figure("local_loads", "local-memory loads", "local memory", _LOCAL_LOADS, cost=_per_multiprocessor(*_LOCAL_LOADS)),
    Figure(
        "local_stores", "local-memory stores", "local memory", _LOCAL_STORES, cost=_per_multiprocessor(*_LOCAL_STORES)
    ),
    Figure("spills", "spill requests", "local memory", _SPILLS, "request", cost=_per_multiprocessor(*_SPILLS)),
    Figure(
        "instructions",
        "instructions executed",
        "instructions",
        _INSTRUCTIONS,
        "inst",
        cost=_per_multiprocessor(*_INSTRUCTIONS, rate=_SCHEDULERS),
        counted=True,
    ),
    Figure("occupancy", "achieved occupancy", "occupancy", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    Figure(
        "occupancy_limit", "theoretical occupancy", "occupancy", ("sm__maximum_warps_per_active_cycle_pct",), exact=True
    ),
    Figure("waves", "waves per SM", "occupancy", ("launch__waves_per_multiprocessor",)),
    Figure("registers", "registers per thread", "launch", ("launch__registers_per_thread",), exact=True),
    Figure(
        "dynamic_shared",
        "dynamic shared memory",
        "launch",
        ("launch__shared_mem_per_block_dynamic",),
        "byte",
        exact=True,
    ),
    Figure(
        "static_shared", "static shared memory", "launch", ("launch__shared_mem_per_block_static",), "byte", exact=True
    ),
    Figure("grid_size", "CTAs", "launch", ("launch__grid_size",), exact=True),
    Figure("block_size", "threads per CTA", "launch", ("launch__block_size",), exact=True),
    Figure("cluster_size", "CTAs per cluster", "launch", ("launch__cluster_size",), exact=True),
)
BY_KEY: Mapping[str, Figure] = {each.key: each for each in FIGURES}
#: Limits of the CTAs per multiprocessor.
LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "CTAs": "launch__occupancy_limit_blocks",
    "barriers": "launch__occupancy_limit_barriers",
}


@dataclass(frozen=True, slots=True)
class Stall:
    """A stall reason. `cycles`: how long an average warp spends in it; None if the report lacks the data."""

    reason: str
    share: float
    cycles: float | None
    #: The metric behind it.
    metric: str

    @property
    def label(self) -> str:
        return self.reason.replace("_", " ")


def stalls(launch: Launch) -> dict[str, Stall]:
    """Stall reasons with their share of all warp cycles (0 to 1), from counters, else from samples. `selected` is none.

    From counters: warp cycles by reason per issued instruction, times what each scheduler issued, over its average of
    active warps. From samples: the share of samples, times the elapsed cycles.
    """
    ratios = {
        name.removeprefix(_STALL_PREFIX).removesuffix(_STALL_SUFFIX): metric.number or 0.0
        for name, metric in launch.metrics.items()
        if name.startswith(_STALL_PREFIX) and name.endswith(_STALL_SUFFIX) and metric.number is not None
    }
    if ratios and (total := sum(ratios.values())):
        issued, warps = launch.value(*_ISSUED), launch.value(*_WARPS)
        factor = issued / warps if issued is not None and warps else None
        return {
            reason: Stall(
                reason,
                ratio / total,
                ratio * factor if factor is not None else None,
                f"{_STALL_PREFIX}{reason}{_STALL_SUFFIX}",
            )
            for reason, ratio in ratios.items()
            if reason != "selected"
        }
    counts = stall_counts(launch.metrics)
    total, cycles = sum(counts.values()), launch.value(*CYCLES)
    return {
        reason: Stall(
            reason,
            count / total,
            count / total * cycles if cycles is not None else None,
            f"smsp__pcsamp_warps_issue_stalled_{reason}",
        )
        for reason, count in counts.items()
        if total and reason != "selected"
    }
