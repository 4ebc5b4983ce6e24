"""Kernels that wait for the program or for another stream, and programs that wait by memory alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute

_SCHEDULES = ("eager", "late", "random")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("waiting") / "waiting"
    return compile_cuda(SOURCES / "waiting.cu", made, "-arch=sm_90a", "-std=c++17")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", _SCHEDULES)
@pytest.mark.parametrize(
    "what",
    [
        "latch", "managed", "sleep", "count", "thread", "query", "event", "copy", "kernel", "callback", "graph",
        "server", "poll", "value", "value-stream",
    ],
)  # fmt: skip
def test_what_they_wait_for_comes(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: Literal["eager", "late", "random"]
) -> None:
    ran = execute(capfd, [program, what], schedule=schedule, timeout=120)
    assert (ran.code, ran.output, ran.codes(), ran.others) == (0, "PASS\n", [], []), ran.said


@pytest.mark.parametrize("what", ["never", "never-exit", "never-query"])
def test_a_deadlock_with_the_program_ends(capfd: pytest.CaptureFixture[str], program: Path, what: str) -> None:
    ran = execute(capfd, [program, what], timeout=120)
    line = next(n for n, text in enumerate((SOURCES / "waiting.cu").read_text().splitlines(), 1) if "// spins" in text)
    assert (ran.code, ran.codes()) == (1, ["deadlock"]), ran.said
    assert ran.sources()[0].startswith(f"waiting.cu:{line}:")
    assert ran.output == ("" if what == "never-exit" else "cudaErrorLaunchTimeout\n")
    assert "Traceback" not in ran.said


def test_a_stream_that_waits_for_a_value_in_vain(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "never-value"], timeout=120)
    assert (ran.code, ran.output) == (1, "cudaErrorLaunchTimeout\n")
    assert "stream 1 waits for a value at 0x" in ran.said


def test_a_flag_without_a_release_orders_nothing(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "unfenced"], timeout=120)
    assert (ran.code, ran.codes() + ran.others) == (1, ["host-race"]), ran.said
    assert "reads memory that fill_and_set of launch 1" in ran.said
    ran = execute(capfd, [program, "progress"], timeout=120)
    assert (ran.code, ran.output, ran.codes() + ran.others) == (0, "PASS\n", []), ran.said


def test_managed_memory_that_a_kernel_accesses_in_part(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "bodies"], timeout=120)
    assert (ran.code, ran.output, ran.codes() + ran.others) == (0, "PASS\n", []), ran.said
    ran = execute(capfd, [program, "bodies-early"], timeout=120)
    assert (ran.code, ran.codes() + ran.others) == (1, ["host-race"]), ran.said
    assert "the program (at main) writes memory that double_weights of launch 1" in ran.said
