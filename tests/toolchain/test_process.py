"""External tools: what they are given, and what they print."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from ptxgen.toolchain._process import run_tool


def test_a_tool_gets_a_temporary_folder_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR may be missing or read-only; nvcc says then that it cannot open its own files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setattr(tempfile, "tempdir", None)  # found anew
    found = run_tool([sys.executable, "-c", "import os; print(os.environ['TMPDIR'])"], None, 60.0)
    assert found.output.strip() == tempfile.gettempdir()
    assert Path(found.output.strip()).is_dir()
