"""Asserts on launches."""

from __future__ import annotations

from ptxgen.device import LaunchReport
from ptxgen.job import JobResult
from ptxgen.project import find_project


def assert_ok(result: LaunchReport | JobResult, *, advice: bool | None = None) -> None:
    """The launch went well, and a job's outputs are right; with `advice`, there is no advice either.

        >>> from ptxgen import Emulator, Kernel
        >>> from ptxgen.testing import assert_ok
        >>> text = ".version 8.6\\n.target sm_90a\\n.visible .entry k() { ret; }\\n"
        >>> assert_ok(Emulator("sm_90a").launch(Kernel.from_ptx(text), grid=1, block=32, args=[]))

    None: as `fail-on` of the project's [tool.ptxgen] says, else without. The AssertionError shows the summary: status,
    findings with lines, and what is wrong with outputs. Raises ProjectError for an unusable table.
    """
    __tracebackhide__ = True
    on = {None: None, True: "advice", False: "error"}[advice]
    if on is None:
        project = find_project()
        on = (project.fail_on if project is not None else None) or "error"
    report = result.launch if isinstance(result, JobResult) else result
    wrong = isinstance(result, JobResult) and not result.is_right
    if wrong or report.fails(on) or (on == "advice" and report.findings):
        raise AssertionError(result.summary())
