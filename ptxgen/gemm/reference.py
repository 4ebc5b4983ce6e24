"""Random inputs of a GEMM, the product that C must hold, and how far C may be from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ptxgen.gemm.comparison import half_ulp
from ptxgen.gemm.problem import GemmProblem, Matrix
from ptxgen.gemm.types import TYPES

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: What fills the gaps between lines: NaN in every floating-point type, so that a kernel that reads it shows.
_GAP = 0xFF


@dataclass(frozen=True)
class Reference:
    """The inputs of a problem and a seed, and the product of them in float64, in which all products are exact."""

    problem: GemmProblem
    seed: int

    @cached_property
    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """A (M×K) and B (N×K): standard normal, rounded to their types; integers over their whole range."""
        problem, random = self.problem, np.random.default_rng(self.seed)
        return _random(random, (problem.m, problem.k), problem.dtype("a")), _random(
            random, (problem.n, problem.k), problem.dtype("b")
        )

    def lines(self, which: Matrix) -> np.ndarray:
        """A or B as it lies in memory: lines with their gaps, shape [lines, leading dimension]."""
        problem = self.problem
        values = self.inputs[0 if which == "a" else 1]
        if getattr(problem.plan, which).major == "mn":
            values = values.T
        made = np.full((values.shape[0], problem.leading(which) * values.itemsize), _GAP, np.uint8).view(values.dtype)
        made[:, : values.shape[1]] = values
        return made

    def expect(self, rows: slice, columns: slice) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The product for rows and columns of C, and what each element may be off by."""
        a, b = self.inputs[0][rows].astype(np.float64), self.inputs[1][columns].astype(np.float64)
        expected = a @ b.T
        return expected, self.tolerances(expected, np.abs(a) @ np.abs(b).T)

    @property
    def tolerance_reason(self) -> str:
        """Why the comparison allows what it allows."""
        c_type = TYPES[self.problem.plan.c_dtype]
        if c_type.is_integer:
            return "none: sums of integers are exact"
        reason = (
            "K·2⁻²³·Σ|a·b|: the products are exact in fp32, and K of them added in any order are off by at most "
            "K·2⁻²⁴·Σ|a·b|, doubled because tensor cores may truncate where others round"
        )
        if c_type.bytes < 4:
            power = str(c_type.digits).translate(_SUPERSCRIPTS)
            reason += f"; plus half an ulp for the rounding to {c_type.name} (at most 2⁻{power}·|c|)"
        return reason

    def tolerances(self, expected: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What each element may be off by; `sums` holds Σ|a·b|."""
        c_type = TYPES[self.problem.plan.c_dtype]
        if c_type.is_integer:
            return np.zeros_like(sums)
        accumulation = self.problem.k * 2.0**-23 * sums
        if c_type.bytes == 4:
            return accumulation
        return accumulation + half_ulp(np.abs(expected) + accumulation, c_type.name)


def _random(random: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    made = TYPES[dtype]
    if made.is_integer:
        limits = np.iinfo(made.numpy)
        return random.integers(limits.min, limits.max, shape, made.numpy, endpoint=True)
    values = random.standard_normal(shape, dtype=np.float32)
    if dtype == "tf32":
        return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(made.numpy)
