"""Attention as a job: random inputs, one launch on any device, and every element compared with NumPy."""

from __future__ import annotations

from functools import partial

from ptxgen.attention.problem import AttentionProblem
from ptxgen.attention.reference import REASON, expected, random_inputs
from ptxgen.job import Job


def job(problem: AttentionProblem, seed: int = 0, text: str | None = None) -> Job:
    """The job of a problem; the same seed gives the same inputs. `text` replaces the plan's PTX: an edited kernel."""
    plan = problem.plan
    return Job(
        ptx=plan.text if text is None else text,
        inputs=random_inputs(problem, seed),
        outputs=problem.outputs,
        arguments=problem.arguments,
        grid=problem.grid,
        block=problem.block,
        shared_bytes=plan.shared.bytes,
        reference=partial(expected, problem),
        reason=REASON,
        target=plan.target,
        regions=plan.shared.named,
    )
