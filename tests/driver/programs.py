"""Programs under `ptxgen exec` for the tests: compiled once, run with their results and output."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ptxgen.driver import Options, run
from tests.support.paths import ROOT

SOURCES = ROOT / "tests/data/exec"


@dataclass(frozen=True)
class Ran:
    """One run: exit code, launches as JSON has them, and what was printed."""

    code: int
    launches: list[dict[str, Any]]
    output: str
    said: str
    #: The codes of findings that no launch has.
    others: list[str]

    def codes(self, kernel: str = "") -> list[str]:
        """The codes of all findings of kernels whose name contains a word."""
        return [finding["code"] for each in self.launches if kernel in each["kernel"] for finding in each["findings"]]

    def sources(self) -> list[str]:
        """Where the findings are in the program."""
        return [finding["source"] for each in self.launches for finding in each["findings"]]


def execute(capfd: pytest.CaptureFixture[str], command: Sequence[str | Path], **options: Any) -> Ran:
    """Run a program on the emulator, in this process."""
    options.setdefault("target", "sm_90a")
    capfd.readouterr()
    results = run(list(map(str, command)), Options(**options))
    output, said = capfd.readouterr()
    made = results.to_json()
    assert results.exit_code is not None
    others = [each["code"] for each in made["findings"]]
    return Ran(results.exit_code, made["launches"], output, said, others)


@cache
def nvcc() -> Path | None:
    """NVIDIA's compiler, from its wheel or PATH."""
    from ptxgen.toolchain import find_ptxas
    from ptxgen.toolchain.find import ToolNotFoundError

    try:
        beside = find_ptxas().with_name("nvcc")
    except ToolNotFoundError:
        beside = Path()
    found = str(beside) if beside.is_file() else shutil.which("nvcc")
    return Path(found) if found else None


def require_compiler() -> str:
    """The C compiler; the test is skipped where there is none."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler (cc)")
    return found


def compile_c(source: str, made: Path, folder: Path) -> Path:
    """A program of C that links to the runtime's functions, which the stand-in has."""
    from ptxgen.driver.build import library_folder

    library = library_folder()
    command = [require_compiler(), "-o", str(made), str(SOURCES / source), f"-L{library}", "-l:libcuda.so.1"]
    subprocess.run(command, check=True, cwd=folder)
    return made


def compile_cuda(source: Path, made: Path, *options: str) -> Path:
    """A program of nvcc; the test is skipped where there is none."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("there is no nvcc: pip install 'ptxgen[tools]'")
    require_compiler()
    command = [str(compiler), "-lineinfo", "-o", str(made), str(source), *(options or ("-arch=sm_90a",))]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NVCC_APPEND_FLAGS": ""})
    assert done.returncode == 0, done.stderr
    return made
