"""Numba-CUDA: LTO-IR becomes PTX in nvJitLink (native/hooks.c); kernels get line information."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "numba",
    environment=lambda folder: {"NUMBA_CACHE_DIR": str(folder / "numba")},
    hooks=(("numba.cuda", "numba_lines"), ("cuda.bindings._internal.runtime", "cuda_bindings")),
)
