"""`ptxgen exec --trace`: the launches that are checked, as Perfetto reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.driver.programs import compile_c, execute

perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def names(path: Path) -> list[str]:
    """The names of all slices of a trace."""
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    return [packet.track_event.name for packet in trace.packet if packet.track_event.name]


def test_a_trace(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_c("registered.c", tmp_path / "registered", tmp_path)
    ran = execute(capfd, [program], trace=tmp_path / "run.pftrace")
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert "run.pftrace; open it in ui.perfetto.dev" in ran.said
    assert "ld.param.u64 (line 7)" in names(tmp_path / "run.pftrace")


def test_a_trace_has_the_launches_that_are_checked(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_c("registered.c", tmp_path / "registered", tmp_path)
    execute(capfd, [program], trace=tmp_path / "run.pftrace", kernels=re.compile("another"))
    assert names(tmp_path / "run.pftrace") == []


def test_a_file_that_cannot_be_written(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_c("registered.c", tmp_path / "registered", tmp_path)
    ran = execute(capfd, [program], trace=tmp_path / "none" / "run.pftrace")
    assert (ran.code, ran.output) == (0, "PASS\n")
    assert "no such file or directory" in ran.said
