"""Programs whose threads have default streams of their own (tests/data/exec/thread_streams.cu)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute

#: How a program links to the runtime; NVIDIA's wheel has no libcudart.so, which -cudart shared takes.
RUNTIMES = {"static": (), "shared": ("-cudart=none", "-Xlinker", "-l:libcudart.so.13")}


@pytest.fixture(scope="module", params=RUNTIMES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-arch=sm_90a", "-std=c++17", "--default-stream=per-thread", *RUNTIMES[request.param])
    return compile_cuda(SOURCES / "thread_streams.cu", tmp_path_factory.mktemp("nvcc") / "thread_streams", *options)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("what", ["event", "synchronize", "legacy", "capture"])
def test_ordered_streams(capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: str) -> None:
    ran = execute(capfd, [program, what], schedule=schedule)
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert ran.codes() == ran.others == []


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("what", ["unordered", "nonblocking"])
def test_unordered_streams(capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: str) -> None:
    ran = execute(capfd, [program, what], schedule=schedule)
    assert set(ran.codes() + ran.others) == {"host-race"}, ran.said
    assert ran.code == 1
