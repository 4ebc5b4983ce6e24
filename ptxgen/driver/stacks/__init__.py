"""What is peculiar to each compiler and library that `ptxgen exec` runs: one module each, with a `STACK`.

A stack says which variables its programs get, so that caches of real runs stay untouched and line information is on;
where its compiler keeps PTX; and which module of `ptxgen/driver/python/ptxgen_exec` the program's Python loads when it
imports a package (its `patch(module)` is called then). A new stack is a module here, and listed in `STACKS`.
"""

from ptxgen.driver.stacks import cupy, cute, jax, numba, nvcc, taichi, tilelang, torch, triton, warp
from ptxgen.driver.stacks.stack import Stack

STACKS: tuple[Stack, ...] = tuple(
    each.STACK for each in (nvcc, triton, torch, numba, cupy, cute, warp, tilelang, taichi, jax)
)
