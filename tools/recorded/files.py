"""Where the recorded kernels are."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[2] / "tests" / "data"
#: Folders of `tests/data` that hold cases, all in one format: tests/data/cases/README.md.
FOLDERS = ("cases", "handwritten", "witnesses")

#: PTX as compilers write it, of many kinds: what tests and benchmarks of reading PTX take.
COMPILED = (
    "cases/cute_100_gemm_f16",
    "cases/g39_90_gemm_f16_cluster2_multicastB",
    "ptx/nvcc_100_calls",
    "cases/t36_100_gemm_f16_hostdesc_edges",
    "cases/t36_100_lock_reduce",
    "cases/t36_100_nvfp4_plainscales",
    "cases/t36_100_scan_sort_argmax",
    "cases/t36_100_tma_gather4_scatter4",
    "cases/t36_90_softmax",
)


def compiled() -> list[Path]:
    """The files of `COMPILED`."""
    return [DATA / f"{name}.ptx" for name in COMPILED]
