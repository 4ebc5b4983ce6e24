"""The library of machine code is compiled by another process, of which nobody hears anything."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

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


def _read_only() -> NDArray[np.generic]:
    made = np.arange(6)
    made.flags.writeable = False
    return made


@pytest.mark.parametrize(
    "array",
    [np.arange(6), np.zeros((3, 4), np.bool_)[1:], np.arange(6)[::2], np.zeros((3, 4)).T, np.zeros(0), _read_only()],
    ids=["whole", "behind", "gaps", "transposed", "empty", "read-only"],
)
def test_pointers(array: NDArray[np.generic]) -> None:
    assert library.pointer_to(array) == array.__array_interface__["data"][0]
