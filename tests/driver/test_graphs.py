"""Graphs, callbacks, memory of other processes and virtual memory in programs of nvcc (tests/data/exec/graphs.cu)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-std=c++17", "-gencode=arch=compute_90a,code=compute_90a")
    return compile_cuda(SOURCES / "graphs.cu", tmp_path_factory.mktemp("nvcc") / "graphs", *options)


@pytest.mark.parametrize("what", ["capture", "memory", "conditions", "processes", "callback", "virtual"])
def test_programs_that_pass(capfd: pytest.CaptureFixture[str], program: Path, what: str) -> None:
    ran = execute(capfd, [program, what])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert ran.codes() == ran.others == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", ["capture", "memory", "conditions", "processes"])
@pytest.mark.parametrize("schedule", ["late", "random"])
def test_they_pass_under_other_schedules(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: str
) -> None:
    ran = execute(capfd, [program, what], schedule=schedule)
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


def test_a_race_in_the_body_of_a_condition(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "conditions-race"])
    line = 1 + next(
        number
        for number, text in enumerate((SOURCES / "graphs.cu").read_text().splitlines())
        if "no barrier in a body" in text
    )
    assert set(ran.codes("exchange")) == {"shared-race"}, ran.said
    assert all(source.startswith(f"graphs.cu:{line}:") for source in ran.sources())
