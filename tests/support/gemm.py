"""The kernel `blackwell/swizzled` on random matrices, with its text edited: what the tests of whole kernels share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.dtypes import DTYPES, scalar_type
from ptxgen.emulator import Emulator
from ptxgen.gemm import find

#: Bits of the significand of the output types.
DIGITS = {"bf16": 8, "f16": 11, "f32": 24}


class Run(NamedTuple):
    """A launch, and whether every element of C is right and nothing around it was touched."""

    report: LaunchReport
    right: bool
    text: str


#: What names the lines of the template: edits that go over several lines need not know of it.
_LOCATION = re.compile(r"^ *\.(loc|file) .*\n", re.MULTILINE)


def bare(text: str) -> str:
    """PTX without the lines that name its source."""
    return _LOCATION.sub("", text)


@cache
def plan(dtype: str = "bf16", **config: Any) -> Any:
    return find("blackwell/swizzled").plan(dtype=dtype, **config)


def run(
    m: int,
    n: int,
    k: int,
    dtype: str = "bf16",
    *,
    edit: Callable[[str], str] | None = None,
    schedule: Any = "eager",
    seed: int = 0,
    emulator: Emulator | None = None,
    **config: Any,
) -> Run:
    """C = A B^T. C lies in the middle of a poisoned array, so that writes beside it show."""
    chosen = plan(dtype, **config)
    text = bare(chosen.text)
    if edit is not None:
        text = edit(text)
        assert text != bare(chosen.text), "the edit changed nothing"
    kernel = Kernel.from_ptx(text)
    rng = np.random.default_rng([seed, m, n, k])
    a = rng.standard_normal((m, k)).astype(scalar_type(dtype))
    b = rng.standard_normal((n, k)).astype(scalar_type(dtype))
    emulator = emulator or Emulator(schedule=schedule, seed=seed)
    # C begins on a multiple of 256 bytes, with an array's worth of poison before it.
    start = -(-m * n // 128) * 128
    poison = np.full((start + m * n + 128, DTYPES[chosen.c_dtype].bytes), 0xCD, np.uint8)
    c = emulator.array(poison)
    problem = chosen.problem(m, n, k)
    arguments = problem.arguments(emulator.array(a), emulator.array(b), c.address + start * poison.shape[1])
    report = emulator.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=chosen.shared.bytes)
    found = c.numpy()
    inside = found[start : start + m * n]
    around = bool((found[:start] == 0xCD).all() and (found[start + m * n :] == 0xCD).all())
    values = np.ascontiguousarray(inside).view(scalar_type(chosen.c_dtype)).reshape(m, n).astype(np.float64)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact, magnitude = wide_a @ wide_b.T, np.abs(wide_a) @ np.abs(wide_b).T
    # Each of K additions of exact products rounds a partial sum to 24 bits, then the result to its own digits.
    bound = (k + 1) * 2.0**-24 * magnitude
    bound += 2.0 ** -DIGITS[chosen.c_dtype] * (np.abs(exact) + bound) + 2.0**-25
    right = around and bool((np.abs(values - exact) <= bound).all())
    return Run(report, right, text)
