"""The kernels that ptxgen ships: configs, plans and templates, by name.

`KERNELS` lists them. A kernel is a config (what a person chooses), a plan (what follows, computed and checked before
any text exists) and a template (the plan spelled in PTX).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ptxgen.kernels.gemm import GemmConfig, GemmPlan, GemmProblem
from ptxgen.kernels.plan import PlanError, SharedMap

__all__ = ["KERNELS", "GemmConfig", "GemmPlan", "GemmProblem", "KernelEntry", "PlanError", "SharedMap", "find"]


@dataclass(frozen=True)
class KernelEntry:
    """A kernel by name: one line about it, and the planner that takes a config's keywords."""

    name: str
    summary: str
    target: str
    plan: Callable[..., GemmPlan]


def _gemm(template: str, target: str) -> Callable[..., GemmPlan]:
    def plan(**choices: Any) -> GemmPlan:
        known = [each.name for each in fields(GemmConfig)]
        unknown = [name for name in choices if name not in known]
        if unknown:
            raise PlanError(f"a plan has no {', '.join(unknown)}; it takes {', '.join(known)}")
        return GemmPlan.of(GemmConfig(**choices), template=template, target=target)

    return plan


KERNELS: dict[str, KernelEntry] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "blackwell/swizzled",
            "C = A·Bᵀ: TMA loads with 128-byte swizzle, tcgen05.mma, direct stores; one stage, one tile per CTA",
            "sm_100a",
            _gemm("blackwell/swizzled.ptx.j2", "sm_100a"),
        ),
    )
}


def find(name: str) -> KernelEntry:
    """The kernel of this name. Raises PlanError that lists the names if there is none."""
    if name not in KERNELS:
        raise PlanError(f"there is no kernel {name!r}; there are: {', '.join(KERNELS)}")
    return KERNELS[name]
