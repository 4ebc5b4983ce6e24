"""Runs every kernel of a tuning table in the emulator, under every schedule: each must be right and clean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ptxgen.emulator import Emulator
from ptxgen.gemm.dispatch import GEMV, Choice, Tuned, tuning_table
from ptxgen.gemm.job import run_gemm

_SCHEDULES: tuple[Literal["eager", "late", "random"], ...] = ("eager", "late", "random")


def distinct(machine: str) -> list[Tuned]:
    """One row of each kernel and options."""
    rows = tuning_table(machine).rows
    return list({(each.kernel, each.options, each.dependent): each for each in rows}.values())


def failures(machine: str) -> Iterator[tuple[str, str]]:
    """Name and summary of what fails; an empty summary for each that does not."""
    for row in distinct(machine):
        plan = row.plan({})
        name = " ".join([row.kernel, *row.options, *["dependent"] * row.dependent])
        few = row.kernel == GEMV or plan.config.c_major == "m"
        # Several tiles with rows, columns and K left over; C on 16 bytes.
        m, n = (
            (plan.n_tile - 8 if plan.config.c_major == "m" else 2, 200) if few else (plan.m_tile + 40, plan.n_tile + 24)
        )
        problem = Choice(plan, m, n, 328).problem()
        found = []
        for schedule in _SCHEDULES:
            device = Emulator("sm_90a", schedule=schedule, multiprocessors=8)
            result = run_gemm(device, plan, problem.m, problem.n, problem.k)
            if not result.ok or result.launch.findings:
                found.append(f"{schedule}: {result.summary()}")
        yield name, "\n".join(found)
