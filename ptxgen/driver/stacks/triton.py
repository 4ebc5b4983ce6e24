"""Triton and Gluon: their ptxas is wrapped, and their cache holds cubins; their cuBLASLt computes on the CPU."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "triton",
    environment=lambda folder: {"TRITON_CACHE_DIR": str(folder / "triton")},
    hooks=(("triton._C.libtriton", "triton_cublas"),),
)
