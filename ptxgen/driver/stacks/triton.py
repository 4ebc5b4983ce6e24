"""Triton and Gluon: their ptxas is wrapped, and their cache holds cubins; their cuBLASLt computes on the CPU.

Autotuners and benchmarks are cut, but for `--benchmarks`.
"""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "triton",
    environment=lambda folder: {"TRITON_CACHE_DIR": str(folder / "triton")},
    hooks=(
        ("triton._C.libtriton", "triton_cublas"),
        ("triton.runtime.autotuner", "triton_autotuner"),
        ("triton.testing", "triton_testing"),
    ),
)
