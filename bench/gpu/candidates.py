"""Which of our kernels a row is tried with."""

from __future__ import annotations

from dataclasses import dataclass

from bench.gpu.arms import Spec
from bench.gpu.suite import Row
from ptxgen.gemm import find
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.planner import plan_gemm
from ptxgen.timing import MACHINES


@dataclass(frozen=True)
class Candidate:
    """A kernel and what the planner predicts, in microseconds."""

    spec: Spec
    predicted: float


def candidates(row: Row, count: int) -> list[Candidate]:
    """The planner's first `count` configurations."""
    fixed = {"dtype": row.dtype, "c_dtype": "bf16"} if row.dtype in ("e4m3", "e5m2") else {"dtype": row.dtype}
    try:
        planned = plan_gemm(row.m, row.n, row.k, MACHINES["h200"], count=count, fixed=fixed)
    except PlanError:
        return []
    made = [
        Candidate(Spec(each.plan.name, tuple(find(each.plan.name).settings(each.config))), round(each.microseconds, 3))
        for each in planned.ranked
    ]
    return list({each.spec: each for each in made}.values())


def chosen(row: Row, _: int) -> list[Candidate]:
    """What `ptxgen.gemm.best` says."""
    return candidates(row, 1)
