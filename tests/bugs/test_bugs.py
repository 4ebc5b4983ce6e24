"""Each bug is reported under its schedules at its line; its right twin is clean under all."""

from __future__ import annotations

import pytest

from ptxgen.device.report import Finding
from ptxgen.emulator.engines.timeline import Schedule
from tests.bugs import BUGS
from tests.bugs.bug import SCHEDULES, WRONG, Bug, problem

by_name = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
reported = [(bug, schedule) for bug in BUGS for schedule in bug.schedules]


def lines(finding: Finding) -> set[int | None]:
    """Where a finding is, and where its parties are: a race may be seen from either side."""
    return {finding.line, *finding.also_lines, *(each.line for each in finding.accesses)}


def is_reported(bug: Bug, schedule: Schedule, seed: int) -> bool:
    """Whether a launch reports a bug; it must not report other errors."""
    report, data = bug.outcome(schedule, right=False, seed=seed)
    errors = {each.code for each in report.findings if each.severity == "error"}
    assert errors <= {bug.code, *bug.also}, report.summary()
    if bug.code == WRONG:
        return bool((data != bug.outcome("eager", right=True, seed=0)[1]).any())
    found = [each for each in report.findings if (each.code, each.severity) == (bug.code, bug.severity)]
    return any(bug.lines & lines(each) for each in found)


def test_names_are_unique() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@by_name
def test_entry(bug: Bug) -> None:
    assert problem(bug) == ""


@pytest.mark.parametrize(("bug", "schedule"), reported, ids=[f"{bug.name}-{schedule}" for bug, schedule in reported])
def test_bug_is_reported(bug: Bug, schedule: Schedule) -> None:
    seeds = bug.seeds if schedule == "random" else (0,)
    found = [seed for seed in seeds if is_reported(bug, schedule, seed)]
    assert found, bug.run(schedule, right=False, seed=seeds[-1]).summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@by_name
def test_right_twin_is_clean(bug: Bug, schedule: Schedule) -> None:
    for seed in bug.seeds if schedule == "random" else (0,):
        report, data = bug.outcome(schedule, right=True, seed=seed)
        assert report.status == "ok", report.summary()
        assert not report.findings, report.summary()
        if bug.code == WRONG:
            assert (data == bug.outcome("eager", right=True, seed=0)[1]).all()
