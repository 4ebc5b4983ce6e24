"""Which of our kernels a row is tried with."""

from __future__ import annotations

from dataclasses import dataclass

from bench.gpu.arms import Spec
from bench.gpu.suite import Row
from ptxgen.gemm import GemmPlan, PlanError, best, find
from ptxgen.gemm.dispatch import GEMV
from ptxgen.gemm.planner import plan_gemm
from ptxgen.timing import MACHINES

_FP8 = ("e4m3", "e5m2")


@dataclass(frozen=True)
class Candidate:
    """A kernel and what the planner predicts (or the tuning table has), in microseconds; 0: nothing."""

    spec: Spec
    predicted: float


def candidates(row: Row, count: int) -> list[Candidate]:
    """The planner's first `count` configurations; before them the GEMV's, where M is small."""
    fixed = {"dtype": row.dtype, "c_dtype": "bf16"} if row.dtype in _FP8 else {"dtype": row.dtype}
    made = _vectors(row) if row.m <= 2 and row.dtype not in _FP8 else []
    try:
        planned = plan_gemm(row.m, row.n, row.k, MACHINES["h200"], count=count, fixed=fixed).ranked
    except PlanError:
        planned = []
    made += [Candidate(_spec(each.plan), round(each.microseconds, 3)) for each in planned]
    return list({each.spec: each for each in made}.values())


def _vectors(row: Row) -> list[Candidate]:
    """Every configuration of the GEMV. The planner has no model of it but the bytes of B."""
    entry, predicted = find(GEMV), round(row.bytes / MACHINES["h200"].hbm_bandwidth.value * 1e6, 3)
    plans = [
        entry.plan(dtype=row.dtype, vectors=row.m, warp_rows=rows, k_warps=split)
        for rows in (1, 2, 4)
        for split in (1, 2, 4, 8)
    ]
    return [Candidate(_spec(each), predicted) for each in plans]


def chosen(row: Row, _: int) -> list[Candidate]:
    """What `ptxgen.gemm.best` says."""
    found = best(row.m, row.n, row.k, row.dtype, "h200", **({"c_dtype": "bf16"} if row.dtype in _FP8 else {}))
    return [Candidate(_spec(found.plan), found.tuned.us if found.tuned else 0.0)]


def _spec(plan: GemmPlan) -> Spec:
    return Spec(plan.name, tuple(find(plan.name).settings(plan.config)))
