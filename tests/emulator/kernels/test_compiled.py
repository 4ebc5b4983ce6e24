"""Kernels that other compilers wrote, launched as their host code launches them, against NumPy.

cute_* by CuTe of nvidia-cutlass-dsl 4.8.1, t36_* by Triton 3.6.0, nvcc_* by nvcc.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import DeviceArray, LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes
from tests.support.paths import DATA


def compiled(name: str) -> str:
    return next(DATA.glob(f"*/{name}.ptx")).read_text()


def tile(array: DeviceArray, rows: int, columns: int) -> TensorMap:
    """Boxes of 128 rows of 128 bytes, as both compilers use."""
    return TensorMap.tiled(
        "f16", array, (columns, rows), (2 * columns,), (64, 128), swizzle="128B", l2_promotion="128B"
    )


def bound(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products are exact; each addition of a partial sum, at most the sum of magnitudes, rounds to 24 bits."""
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
    return (a.shape[1] + 1) * 2.0**-24 * magnitude


def cute_gemm(schedule: Any, text: str) -> tuple[LaunchReport, bool]:
    """C = A B^T of 256 x 256 x 256 .f16 with .f32 results; the report, and whether all elements are right."""
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    emulator = Emulator("sm_100a", schedule)
    maps = [tile(emulator.array(array), 256, 256) for array in (a, b)]
    c = emulator.array(np.full((256, 256), np.nan, np.float32))
    kernel = Kernel.from_ptx(text, "cute_100_gemm_f16")
    report = emulator.launch(kernel, (2, 2), 128, [*maps, c], shared_bytes=99328)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    return report, bool((np.abs(c.numpy() - exact) <= bound(a, b)).all())


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_cute_gemm(schedule: Any) -> None:
    report, right = cute_gemm(schedule, compiled("cute_100_gemm_f16"))
    assert (report.status, right) == ("ok", True), report.summary()
    # It leaves tcgen05.fence::after_thread_sync out before its epilogue.
    assert codes(report) == ["missing-tcgen05-fence"]


def test_an_error_in_it_is_found() -> None:
    text = compiled("cute_100_gemm_f16")
    broken = text.replace("tcgen05.wait::ld.sync.aligned;", "", 1)
    assert broken != text
    report, _ = cute_gemm("late", broken)
    assert "missing-tcgen05-wait" in codes(report)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_triton_gemm_with_edges(schedule: Any) -> None:
    """Tensor loads and a tensor store with edges in M, N and K; an accumulator that is cleared by tcgen05.st."""
    m, n, k = 200, 168, 136
    rng = np.random.default_rng(13)
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((n, k)).astype(np.float16)
    emulator = Emulator("sm_100a", schedule)
    c = emulator.array(np.full((m, n), np.nan, np.float16))
    args: list[Any] = []
    for array, rows, columns in ((emulator.array(a), m, k), (emulator.array(b), n, k), (c, m, n)):
        args += [tile(array, rows, columns), rows, columns, columns, 1]
    kernel = Kernel.from_ptx(compiled("t36_100_gemm_f16_hostdesc_edges"), "mm_host")
    report = emulator.launch(kernel, (2, 2), 128, [*args, k, 0, 0], shared_bytes=98352)
    assert report.status == "ok", report.summary()
    # It has no fence after the inits and after the last wait, and commits to a shared address as if it were generic.
    assert set(codes(report)) == {"missing-tcgen05-fence", "mbarrier-init-proxy", "generic-shared-address"}
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    allowed = bound(a, b)
    allowed += 2.0**-11 * (np.abs(exact) + allowed) + 2.0**-25  # the result is rounded to .f16
    assert (np.abs(c.numpy().astype(np.float64) - exact) <= allowed).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_triton_scan_and_sort(schedule: Any) -> None:
    """Shuffles between the lanes, and exchanges through shared memory."""
    x = np.random.default_rng(14).integers(-1000000, 1000000, (12, 64)).astype(np.int32)
    emulator = Emulator("sm_100a", schedule)
    y, z, at = (emulator.array(np.full(shape, 0x5A5A5A5A, np.int32)) for shape in ((12, 64), (12, 64), (12,)))
    kernel = Kernel.from_ptx(compiled("t36_100_scan_sort_argmax"), "scan_sort")
    report = emulator.launch(kernel, 3, 128, [emulator.array(x), y, z, at, 0, 0], shared_bytes=16)
    assert report.status == "ok", report.summary()
    assert not report.findings
    assert (y.numpy() == np.cumsum(x, axis=1, dtype=np.int32)).all()
    assert (z.numpy() == np.sort(x, axis=1)).all()
    assert (at.numpy() == np.argmax(x, axis=1)).all()
