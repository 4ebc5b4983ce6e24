"""Counters of single instructions: their names in .ncu-rep files and on the source page, and samples made of them."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.ncu.schema import Metric, Sample

SAMPLES = "smsp__pcsamp_sample_count"
EXECUTED = "inst_executed"
#: Names of stall reasons: that of the source page (stall_..., two in some versions of ncu) -> that of smsp__pcsamp_....
STALLS = {
    "barrier": "barrier",
    "branch_resolve": "branch_resolving",
    "branch_resolving": "branch_resolving",
    "dispatch": "dispatch_stall",
    "drain": "drain",
    "gmma": "gmma",
    "imc": "imc_miss",
    "lg": "lg_throttle",
    "long_sb": "long_scoreboard",
    "math": "math_pipe_throttle",
    "membar": "membar",
    "mio": "mio_throttle",
    "misc": "misc",
    "no_inst": "no_instructions",
    "no_insts": "no_instructions",
    "not_selected": "not_selected",
    "selected": "selected",
    "short_sb": "short_scoreboard",
    "sleep": "sleeping",
    "sleeping": "sleeping",
    "tex": "tex_throttle",
    "wait": "wait",
    "warpgroup_arrive": "warpgroup_arrive",
}
_PREFIX, _NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"
#: Columns of the source page whose metric is known.
_COLUMNS = {
    "# Samples": SAMPLES,
    "Warp Stall Sampling (All Samples)": SAMPLES,
    "Warp Stall Sampling (All Cycles)": SAMPLES,
    "Instructions Executed": EXECUTED,
    "Thread Instructions Executed": "thread_inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L2 Theoretical Sectors Local": "memory_l2_theoretical_sectors_local",
}


def column_metric(column: str) -> str:
    """The metric of a column of the source page, else the column's own name."""
    known = _COLUMNS.get(column)
    if known is not None:
        return known
    name, suffix = column, ""
    if name.endswith(" (Not Issued)"):
        name, suffix = name.removesuffix(" (Not Issued)"), _NOT_ISSUED
    if name.startswith("stall_") and (reason := STALLS.get(name.removeprefix("stall_"))) is not None:
        return f"{_PREFIX}{reason}{suffix}"
    return column


def is_counter(metric: str) -> bool:
    """Whether the launch's value is the sum over its instructions."""
    return metric in _COLUMNS.values() or metric.startswith(_PREFIX)


def samples_of(metrics: Mapping[str, Metric]) -> tuple[Sample, ...]:
    """What was sampled and executed at each address, in order of the addresses; empty without such counters."""
    totals = _by_address(metrics.get(SAMPLES))
    executed = _by_address(metrics.get(EXECUTED))
    stalls: dict[str, dict[int, int]] = {}
    not_issued: dict[int, int] = {}
    for name, metric in metrics.items():
        if not name.startswith(_PREFIX):
            continue
        reason = name.removeprefix(_PREFIX)
        if reason.endswith(_NOT_ISSUED):
            for address, count in _by_address(metric).items():
                not_issued[address] = not_issued.get(address, 0) + count
        else:
            stalls[reason] = _by_address(metric)
    addresses = sorted({*totals, *executed, *(address for counts in stalls.values() for address in counts)})
    return tuple(
        Sample(
            address=address,
            offset=None,
            sass="",
            samples=totals.get(address, 0),
            not_issued=not_issued.get(address, 0),
            executed=executed.get(address),
            stalls={reason: counts[address] for reason, counts in sorted(stalls.items()) if counts.get(address)},
        )
        for address in addresses
    )


def stall_counts(metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Samples by stall reason, of the whole launch."""
    found = {
        name.removeprefix(_PREFIX): metric.number
        for name, metric in metrics.items()
        if name.startswith(_PREFIX) and not name.endswith(_NOT_ISSUED)
    }
    return {reason: count for reason, count in found.items() if count is not None}


def _by_address(metric: Metric | None) -> dict[int, int]:
    if metric is None:
        return {}
    return {
        each.key: int(each.value)
        for each in metric.instances
        if isinstance(each.key, int) and isinstance(each.value, (int, float))
    }
