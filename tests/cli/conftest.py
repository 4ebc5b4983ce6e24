"""Tests of the command: `cli` runs one command line in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen import progress
from ptxgen.cli.main import execute
from ptxgen.gemm import find
from tests.support.command_line import Cli, Outcome


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of progress, which a slow machine would add to standard error."""
    monkeypatch.setattr(progress, "EVERY", float("inf"))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: object) -> Outcome:
        code = execute([str(each) for each in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def ptx_file(tmp_path: Path) -> Path:
    """A file with the PTX of the default kernel."""
    path = tmp_path / "kernel.ptx"
    path.write_text(find("blackwell/swizzled").plan().text)
    return path
