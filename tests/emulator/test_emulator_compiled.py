"""A GEMM that another compiler wrote (CuTe, nvidia-cutlass-dsl 4.8.1), launched as its host code launches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.emulator import Emulator

PTX = Path(__file__).parents[1] / "data" / "ptx" / "cute_100_gemm_f16.ptx"


def launched(schedule: Any, text: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """C = A B^T of 256 x 256 x 256 .f16 with .f32 results, and the exact products."""
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    emulator = Emulator("sm_100a", schedule)
    maps = [
        TensorMap.tiled(
            "f16", emulator.array(array), (256, 256), (512,), (64, 128), swizzle="128B", l2_promotion="128B"
        )
        for array in (a, b)
    ]
    c = emulator.array(np.full((256, 256), np.nan, np.float32))
    kernel = Kernel.from_ptx(text, "cute_100_gemm_f16")
    report = emulator.launch(kernel, (2, 2), 128, [*maps, c], shared_bytes=99328)
    return report, c.numpy(), a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_cute_gemm(schedule: Any) -> None:
    report, found, exact = launched(schedule, PTX.read_text())
    assert report.ok, report.summary()
    # The kernel leaves tcgen05.fence::after_thread_sync out before its epilogue; nothing worse is found.
    assert {finding.severity for finding in report.findings} <= {"advice"}
    # Products are exact; 256 additions round partial sums, here below 2**7, to 24 bits.
    assert (np.abs(found - exact) <= 256 * 2.0**-24 * 2**7).all()


def test_an_error_in_it_is_found() -> None:
    text = PTX.read_text()
    broken = text.replace("tcgen05.wait::ld.sync.aligned;", "", 1)
    assert broken != text
    report, _, _ = launched("late", broken)
    assert "missing-tcgen05-wait" in {finding.code for finding in report.findings}
