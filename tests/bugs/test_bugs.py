"""Each bug is reported under every schedule at its line; its right twin is clean."""

from __future__ import annotations

import pytest

from ptxgen.device.report import Finding
from ptxgen.emulator.engines.timeline import Schedule
from tests.bugs import BUGS
from tests.bugs.bug import Bug, problem

SCHEDULES: list[Schedule] = ["eager", "late", "random"]
by_name = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
by_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def lines(finding: Finding) -> set[int | None]:
    """Where a finding is, and where its parties are: a race may be seen from either side."""
    return {finding.line, *finding.also_lines, *(each.line for each in finding.accesses)}


def test_names_are_unique() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@by_name
def test_entry(bug: Bug) -> None:
    assert problem(bug) == ""


@by_schedule
@by_name
def test_bug_is_reported(bug: Bug, schedule: Schedule) -> None:
    report = bug.run(schedule, right=False)
    found = [each for each in report.findings if (each.code, each.severity) == (bug.code, bug.severity)]
    assert any(bug.lines & lines(each) for each in found), report.summary()
    errors = {each.code for each in report.findings if each.severity == "error"}
    assert errors <= {bug.code, *bug.also}, report.summary()


@by_schedule
@by_name
def test_right_twin_is_clean(bug: Bug, schedule: Schedule) -> None:
    report = bug.run(schedule, right=True)
    assert report.status == "ok", report.summary()
    assert not report.findings, report.summary()
