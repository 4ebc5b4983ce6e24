"""Asserts on launches."""

from __future__ import annotations

from ptxgen.device import LaunchReport
from ptxgen.job import JobResult


def assert_ok(result: LaunchReport | JobResult, *, advice: bool = False) -> None:
    """The launch went well, and a job's outputs are right; with `advice`, there is no advice either.

    The AssertionError shows the summary: status, findings with lines, and what is wrong with outputs.
    """
    __tracebackhide__ = True
    report = result.launch if isinstance(result, JobResult) else result
    if not result.ok or (advice and report.findings):
        raise AssertionError(result.summary())
