"""The library of machine code is compiled by another process, of which nobody hears anything."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ptxgen.emulator.native import library


def test_the_compiling_process_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Popen that is dropped while its process runs is a ResourceWarning, an error in many test suites."""
    monkeypatch.setattr(library, "_place", lambda: tmp_path / "native/library.so")
    monkeypatch.setattr(library, "compiler", lambda: "cc")
    slow = SimpleNamespace(executable=str(tmp_path / "slow"))
    Path(slow.executable).write_text("#!/bin/sh\nsleep 1\n")
    Path(slow.executable).chmod(0o755)
    monkeypatch.setattr(library, "sys", slow)
    caught: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: caught.append(args.exc_value))
    library._compile_aside.__wrapped__(False)
    gc.collect()
    assert caught == []
