"""Nodes of graphs that no dependency orders, and dependent launches in graphs (tests/data/exec/node_order.cu)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute

PLAIN = ["kernels", "between", "copy", "fill", "child", "inside", "removed", "capture"]
PROGRAMMATIC = ["dependent", "programmatic"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cuda(SOURCES / "node_order.cu", tmp_path_factory.mktemp("nvcc") / "node_order", "-arch=sm_90a", "-g")


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("what", PLAIN + PROGRAMMATIC)
def test_ordered_nodes(capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: str) -> None:
    ran = execute(capfd, [program, what], schedule=schedule)
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert ran.codes() == ran.others == []


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("what", PLAIN)
def test_unordered_nodes(capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: str) -> None:
    ran = execute(capfd, [program, what, "bug"], schedule=schedule)
    assert set(ran.codes() + ran.others) == {"host-race"}, ran.said
    assert "Both are nodes of one graph, and no dependency orders them" in ran.said
    assert ran.code == 1


@pytest.mark.parametrize("what", PROGRAMMATIC)
def test_dependent_launches_of_a_graph(capfd: pytest.CaptureFixture[str], program: Path, what: str) -> None:
    ran = execute(capfd, [program, what, "bug"])
    assert set(ran.codes("consume")) == {"grid-race"}, ran.said
    line = 1 + next(
        number
        for number, text in enumerate((SOURCES / "node_order.cu").read_text().splitlines())
        if "y[threadIdx.x] = 2 * x[threadIdx.x];" in text and "twice" not in text
    )
    assert all(source.startswith(f"node_order.cu:{line}:") for source in ran.sources())
