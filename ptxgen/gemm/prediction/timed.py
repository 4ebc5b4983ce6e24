"""The predicted time of a GEMM: its launch without data, with the traffic that the order of its tiles has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxgen.device import DeviceArray, Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm.block_scales import shape_a, shape_b
from ptxgen.gemm.concepts.workspace import SplitWorkspace
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.prediction.traffic import hbm_load_bytes, l2_load_bytes
from ptxgen.gemm.problem import GemmProblem, Matrix
from ptxgen.gemm.scales import packed_bytes
from ptxgen.gemm.types import TYPES
from ptxgen.timing.machines import MACHINES, Machine
from ptxgen.timing.prediction import Prediction, TimingError, grouped
from ptxgen.timing.simulate import L2, Traffic, predict

#: Bytes of global memory that the arrays of a launch may take here.
_MEMORY = 6 << 30


def predict_gemm(
    plan: GemmPlan,
    m: int,
    n: int,
    k: int,
    machine: str | Machine,
    *,
    l2: L2 = "warm",
    clock: float | None = None,
    more: Mapping[str, Any] | None = None,
) -> Prediction:
    """`ptxgen.timing.predict` of a plan on a problem. Raises PlanError, TimingError."""
    described = MACHINES.get(machine) if isinstance(machine, str) else machine
    if described is None:
        raise TimingError(f"unknown machine {machine!r}; machines with a description: {', '.join(sorted(MACHINES))}")
    problem = plan.problem(m, n, k, **(more or {}))
    _require_whole_tiles(problem)
    emulator = Emulator(described.target, checks=False, memory_bytes=_MEMORY)
    kernel = Kernel.from_ptx(plan.text, regions=plan.shared.named)
    found = predict(
        kernel,
        problem.grid,
        problem.block,
        _arguments(problem, emulator),
        machine=described,
        shared_bytes=plan.shared.bytes,
        l2=l2,
        clock=clock,
        flop=2.0 * m * n * k * problem.batches,
        traffic=_traffic(problem, described, l2),
        preserve=False,
        tiles=problem.plan.scheduler.equal_tiles(m, n, problem.batches),
    )
    return replace(found, roles=grouped(found.roles, plan.roles.names))


def _require_whole_tiles(problem: GemmProblem) -> None:
    """Raises TimingError where stream-K splits tiles: one cluster is simulated, and waits for the sums of others."""
    scheduler = problem.plan.scheduler
    if not scheduler.splits:
        return
    tiles = scheduler.tiles(problem.m, problem.n) * problem.batches
    if tiles % (clusters := prod(problem.grid) // scheduler.cluster_ctas):
        raise TimingError(
            f"scheduler=stream splits tiles here ({tiles} of them, {clusters} clusters), whose clusters wait for each "
            "other's sums; of one cluster alone, which is simulated, there is no time"
        )


def _arguments(problem: GemmProblem, emulator: Emulator) -> list[Any]:
    """Arguments of a launch, arrays without data."""
    plan = problem.plan

    def array(name: Matrix) -> DeviceArray:
        lines, _ = problem.extents(name)
        count, type = problem.matrices_of(name) * lines * problem.leading(name), TYPES[problem.dtype(name)]
        if type.bits < 8:
            return emulator.empty((count * type.bits // 8,), np.uint8)  # packed
        return emulator.empty((count,), type.numpy)

    a, b, c = array("a"), array("b"), array("c")
    combination = plan.epilogue.combination
    source = array("source") if combination.source else None
    bias = emulator.empty((problem.n,), TYPES[combination.bias].numpy) if combination.bias else None
    order = None if problem.tile_order is None else emulator.array(problem.tile_order)
    words = problem.workspace_words
    workspace = emulator.array(_workspace(problem, words)) if words else None
    scales: tuple[DeviceArray, ...] = ()
    if plan.block_scales is not None:
        shapes = shape_a(problem.m, problem.k), shape_b(problem.scaled_columns, problem.k)
        scales = tuple(emulator.array(np.ones((problem.batches, *shape), np.float32)) for shape in shapes)
    elif plan.scales:
        scales = tuple(
            emulator.array(np.zeros(packed_bytes(problem.scale_rows(each), problem.k, each.type), np.uint8))
            for each in plan.scales
        )
    c_scales = None
    if plan.epilogue.quantizes:
        size = packed_bytes(problem.m, problem.n, plan.epilogue.scaled_type)
        c_scales = emulator.array(np.zeros(size, np.uint8))
    groups = _groups(problem)
    table = None if groups is None else emulator.array(groups)
    return problem.arguments(a, b, c, source, bias, order, scales, c_scales, workspace, table)


def _workspace(problem: GemmProblem, words: int) -> npt.NDArray[np.uint32]:
    """A workspace in which a cluster of a split tile finds the others done, as the last one of a launch does."""
    made, workspace = np.zeros(words, np.uint32), problem.plan.workspace
    if isinstance(workspace, SplitWorkspace):
        made[: workspace.counter_bytes // 4] = workspace.clusters - 1
    return made


def _groups(problem: GemmProblem) -> npt.NDArray[np.int32] | None:
    """A table of groups, if the kernel takes one: as many rows for each group, or all rows of each batch."""
    if not problem.grouped:
        return np.full(problem.batches, problem.m, np.int32) if problem.group_table else None
    blocks = -(-np.arange(1, problem.m + 1) // problem.plan.scheduler.group_rows) - 1
    return (blocks * problem.groups // (blocks[-1] + 1)).astype(np.int32)


def _traffic(problem: GemmProblem, machine: Machine, l2: L2) -> Traffic | None:
    """The part of the loads that comes from memory, from the order of the tiles (`ptxgen.gemm.prediction.traffic`).

    None where warps load to registers: several of a CTA load the same bytes, so that what they load must be counted.
    """
    plan = problem.plan
    if plan.a.load == "vectors":
        return None
    scheduler = plan.scheduler
    rows = problem.k * plan.a.type.bits // 8, problem.k * plan.b.type.bits // 8
    capacity = machine.l2_bytes.value * machine.l2_reuse.value
    operands = problem.m * rows[0] + problem.n * rows[1]
    c = problem.m * problem.n * TYPES[plan.c_dtype].bytes
    if l2 == "warm" and operands + c <= capacity:
        return Traffic(0.0)
    loads = l2_load_bytes(scheduler, problem.m, problem.n, rows)
    slots = machine.cluster_slots(scheduler.cluster_size)
    missed = hbm_load_bytes(scheduler, problem.m, problem.n, rows, slots, capacity)
    return Traffic(min(missed / loads, 1.0), 1.0 if operands + c > capacity else 0.0)
