"""The predicted time of attention: its launch without data."""

from __future__ import annotations

from dataclasses import replace

from ptxgen.attention.problem import AttentionProblem
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm.types import TYPES
from ptxgen.timing.machines import Machine
from ptxgen.timing.prediction import Prediction, grouped
from ptxgen.timing.simulate import L2, predict

#: Bytes of global memory that the arrays of a launch may take here.
_MEMORY = 6 << 30


def predict_attention(
    problem: AttentionProblem, machine: Machine, *, l2: L2 = "warm", clock: float | None = None
) -> Prediction:
    """`ptxgen.timing.predict` of a problem. Raises PlanError, TimingError."""
    plan = problem.plan
    emulator = Emulator(machine.target, checks=False, memory_bytes=_MEMORY)
    dtype = TYPES[plan.config.dtype].numpy
    arrays = {name: emulator.empty(problem.shape(name), dtype) for name in "qkv"}
    arrays |= {name: emulator.empty(shape, each) for name, (shape, each) in problem.outputs.items()}
    found = predict(
        Kernel.from_ptx(plan.text, regions=plan.shared.named),
        problem.grid,
        problem.block,
        problem.arguments(arrays),
        machine=machine,
        shared_bytes=plan.shared.bytes,
        l2=l2,
        clock=clock,
        flop=float(problem.flop),
        preserve=False,
        arrays=list(arrays.values()),
        tiles=0 if plan.config.causal else plan.scheduler.equal_tiles(problem.queries, problem.heads, problem.batches),
    )
    return replace(found, roles=grouped(found.roles, plan.roles.names))
