"""Runs every kernel of a tuning table in the emulator, under every schedule: each must be right and clean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from ptxgen.device import Device, Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm.job import run_gemm
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.reference.plain import Reference
from ptxgen.gemm.selection.dispatch import GEMV, Choice, Tuned, tuning_table
from ptxgen.gemm.types import TYPES

_SCHEDULES: tuple[Literal["eager", "late", "random"], ...] = ("eager", "late", "random")


def distinct(machine: str) -> list[Tuned]:
    """One row of each kernel and options."""
    rows = tuning_table(machine).rows
    return list({(each.kernel, each.options, each.dependent): each for each in rows}.values())


def problem_of(row: Tuned) -> GemmProblem:
    """Several tiles with rows, columns and K left over; C on 16 bytes."""
    plan = row.plan({})
    if row.kernel == GEMV or plan.config.c_major == "m":
        return Choice(plan, plan.n_tile - 8 if plan.config.c_major == "m" else 2, 200, 328).problem()
    return Choice(plan, plan.m_tile + 40, plan.n_tile + 24, 328).problem()


def stored(device: Device, row: Tuned) -> bytes:
    """C as a row's kernel leaves it on a device."""
    problem = problem_of(row)
    plan, reference = problem.plan, Reference(problem, 5)
    a, b = (device.array(reference.lines(name)) for name in ("a", "b"))
    order = None if problem.tile_order is None else device.array(problem.tile_order)
    words = problem.workspace_words
    workspace = device.array(np.zeros(words, np.uint32)) if words else None
    lines = problem.extents("c")[0]
    c = device.array(np.zeros((lines, problem.leading("c")), TYPES[plan.c_dtype].numpy))
    arguments = problem.arguments(a, b, c, order=order, workspace=workspace)
    report = device.launch(
        Kernel.from_ptx(plan.text), problem.grid, problem.block, arguments, shared_bytes=plan.shared.bytes
    )
    return c.numpy().tobytes() if report.ok else report.summary().encode()


def emulate(row: Tuned) -> bytes:
    """C as the emulator leaves it."""
    return stored(Emulator("sm_90a", checks=False), row)


def failures(machine: str) -> Iterator[tuple[str, str]]:
    """Name and summary of what fails; an empty summary for each that does not."""
    for row in distinct(machine):
        problem = problem_of(row)
        name = " ".join([row.kernel, *row.options, *["dependent"] * row.dependent])
        found = []
        for schedule in _SCHEDULES:
            device = Emulator("sm_90a", schedule=schedule, multiprocessors=8)
            result = run_gemm(device, problem.plan, problem.m, problem.n, problem.k)
            if not result.ok or result.launch.findings:
                found.append(f"{schedule}: {result.summary()}")
        yield name, "\n".join(found)
