"""Grids of many small CTAs: linear time, and a limit for what cannot end."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from tests.support.harness import module

COUNT = Kernel.from_ptx(
    module(
        """
        .reg .b64 %out, %offset;
        .reg .b32 %x;
        ld.param.u64 %out, [out];
        mov.u32 %x, %ctaid.x;
        mul.wide.u32 %offset, %x, 4;
        add.u64 %out, %out, %offset;
        st.global.u32 [%out], %x;
        ret;
        """,
        parameters=".param .u64 out",
        target="sm_90a",
    )
)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_every_cta_runs_once(schedule: str) -> None:
    """Waves of CTAs begin and end together, also those that `random` begins late."""
    device = Emulator("sm_90a", schedule, multiprocessors=7)  # type: ignore[arg-type]
    out = device.empty(100, np.uint32)
    report = device.launch(COUNT, 100, 1, [out])
    assert report.ok, report.summary()
    assert out.numpy().tolist() == list(range(100))


def seconds(ctas: int) -> float:
    device = Emulator("sm_90a")
    out = device.empty(ctas, np.uint32)
    began = time.process_time()
    assert device.launch(COUNT, ctas, 1, [out]).ok
    return time.process_time() - began


def test_time_grows_with_the_grid() -> None:
    """Linear: four times the CTAs take about four times as long; eight would show a quadratic part."""
    seconds(1000)
    few = min(seconds(4000) for _ in range(3))
    many = min(seconds(16000) for _ in range(3))
    assert many < 8 * few, (few, many)


def test_a_grid_that_cannot_end() -> None:
    device = Emulator("sm_90a")
    report = device.launch(COUNT, 2**31 - 1, 32, [device.empty(1, np.uint32)])
    assert report.status == "incomplete"
    assert "step limit: a grid of 2147483647 CTAs, 132 of them resident" in report.findings[0].message
