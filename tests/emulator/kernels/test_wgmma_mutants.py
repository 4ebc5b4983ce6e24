"""A right kernel with wgmma, by CuTe of nvidia-cutlass-dsl 4.8.1, and what is told when something of it is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes
from tests.support.paths import DATA

TEXT = (DATA / "cases" / "cute_90_gemm_f16.ptx").read_text()
SCHEDULES = ["eager", "late", "random"]
FENCE, COMMIT, WAIT = (
    "wgmma.fence.sync.aligned;",
    "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group.sync.aligned \t0;",
)
IN_FLIGHT = {"wgmma-register-in-flight", "shared-race"}


def gemm(schedule: Any, text: str) -> tuple[LaunchReport, bool]:
    """C = A B^T, 128 x 256 x 192 of .f16: a warp that loads, a warpgroup that multiplies; whether all of C is right."""
    rng = np.random.default_rng(21)
    a, b = (rng.standard_normal((rows, 192)).astype(np.float16) for rows in (128, 256))
    emulator = Emulator("sm_90a", schedule)
    maps = [
        TensorMap.tiled("f16", emulator.array(array), (192, len(array)), (384,), (64, rows), swizzle="128B")
        for array, rows in ((a, 64), (b, 128))
    ]
    c = emulator.array(np.full((128, 256), np.nan, np.float32))
    report = emulator.launch(Kernel.from_ptx(text), (2, 2), 160, [*maps, c], shared_bytes=74752)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    # Products are exact; each of 192 additions rounds a partial sum, at most the sum of magnitudes, to 24 bits.
    bound = 193 * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b).T)
    return report, bool((np.abs(c.numpy() - wide_a @ wide_b.T) <= bound).all())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_as_it_is(schedule: Any) -> None:
    report, right = gemm(schedule, TEXT)
    assert (report.status, right, report.findings) == ("ok", True, []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (FENCE, "", {"missing-wgmma-fence"}),
        (WAIT, "", IN_FLIGHT),
        (WAIT, WAIT.replace("0", "1"), IN_FLIGHT),
        (COMMIT, "", IN_FLIGHT),
        (COMMIT + "\n\t" + WAIT, WAIT + "\n\t" + COMMIT, IN_FLIGHT),
    ],
)
def test_mutants(old: str, new: str, told: set[str], schedule: Any) -> None:
    assert TEXT.count(old) == 1
    report, _ = gemm(schedule, TEXT.replace(old, new))
    assert set(codes(report)) & told, report.summary()
