"""CUDA arrays, texture and surface objects of programs of nvcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute

CU = SOURCES / "textures.cu"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cuda(CU, tmp_path_factory.mktemp("nvcc") / "textures")


@pytest.mark.parametrize("what", ["linear", "pitched", "filtered", "volumes", "surfaces"])
def test_programs_that_pass(capfd: pytest.CaptureFixture[str], program: Path, what: str) -> None:
    ran = execute(capfd, [program, what], schedule="late")
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert ran.codes() == []


@pytest.mark.parametrize(
    ("what", "error", "code", "where"),
    [
        ("beyond", "cudaErrorIllegalAddress", "out-of-bounds", "surf2Dread(&value"),
        ("destroyed", "cudaErrorLaunchFailure", "not-an-object", "tex1Dfetch<float>(texture"),
    ],
)
def test_what_goes_wrong(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, error: str, code: str, where: str
) -> None:
    ran = execute(capfd, [program, what])
    assert ran.code == 1
    assert error in ran.output
    assert ran.codes() == [code]
    line = next(number for number, text in enumerate(CU.read_text().splitlines(), 1) if where in text)
    assert f"textures.cu:{line}:" in ran.said, ran.said
