"""Random inputs of a GEMM, the reference result, and its tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxgen.gemm.concepts.accumulator import RegisterAccumulator
from ptxgen.gemm.concepts.combination import LinearCombination
from ptxgen.gemm.problem import GemmProblem, Matrix
from ptxgen.gemm.reference.comparison import half_ulp
from ptxgen.gemm.types import TYPES

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Fill of the gaps between lines: NaN in every floating-point type, so that a kernel that reads it shows.
_GAP = 0xFF
#: Elements of K that a wgmma on 8-bit types takes.
_FP8_K = 32
#: Roundings of alpha, beta and bias: a product and two sums.
_ROUNDINGS = 3
#: The largest slope of an activation: by how much it may enlarge an error.
_STEEPEST = {"gelu": 1.13, "silu": 1.1}


@dataclass(frozen=True)
class Reference:
    """The inputs for a problem and a seed, and A·Bᵀ in float64, in which all products are exact."""

    problem: GemmProblem
    seed: int

    @cached_property
    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """A (M×K) and B (N×K), of all batches or groups where there are: standard normal, rounded to their types.

        Integers are over their whole range.
        """
        problem, random = self.problem, np.random.default_rng(self.seed)
        batches = (problem.batches,) if problem.plan.config.batched else ()
        groups = (problem.groups,) if problem.grouped else batches
        return _random(random, (*batches, problem.m, problem.k), problem.dtype("a")), _random(
            random, (*groups, problem.n, problem.k), problem.dtype("b")
        )

    @cached_property
    def groups(self) -> npt.NDArray[np.int32] | None:
        """The matrix of B for each row of A, -1 for none, or how many rows of each batch count; None without groups.

        Groups in random order, as many rows each as the kernel requires or multiples, some of them none; of batches one
        has no rows and one all of them.
        """
        problem, random = self.problem, np.random.default_rng([self.seed, 3])
        rows = problem.plan.scheduler.group_rows
        if problem.plan.scheduler.masked:
            counts = random.integers(1, problem.m, problem.batches, np.int32, endpoint=True)
            counts[:2] = [0, problem.m][: problem.batches]
            return random.permutation(counts)
        if not problem.grouped:
            return None
        blocks = random.integers(0, problem.groups, -(-problem.m // rows), np.int32)
        if len(blocks) > 2:
            blocks[random.integers(len(blocks))] = -1
        return np.repeat(blocks, rows)[: problem.m]

    @cached_property
    def source(self) -> np.ndarray | None:
        """The source, batches×M×N, as the inputs are; None where the kernel takes none."""
        problem, dtype = self.problem, self._combination.source
        random = np.random.default_rng([self.seed, 1])
        return _random(random, (problem.batches, problem.m, problem.n), dtype) if dtype else None

    @cached_property
    def bias(self) -> np.ndarray | None:
        """The bias, N elements; None where the kernel takes none."""
        dtype, random = self._combination.bias, np.random.default_rng([self.seed, 2])
        return _random(random, (self.problem.n,), dtype) if dtype else None

    def stored_rows(self, batch: int) -> int:
        """Rows of C that the kernel stores, of those of a batch: tiles past those that count are skipped."""
        scheduler, m = self.problem.plan.scheduler, self.problem.m
        if self.groups is None or not scheduler.masked:
            return m
        return min(-(-int(self.groups[batch]) // scheduler.group_rows) * scheduler.group_rows, m)

    @property
    def scales(self) -> tuple[np.ndarray, ...]:
        """The scales of A and B as memory has them; empty where the kernel takes none."""
        return ()

    @property
    def _combination(self) -> LinearCombination:
        return self.problem.plan.epilogue.combination

    def shape(self, which: Matrix) -> tuple[int, int]:
        """The shape of `lines`."""
        return self.problem.matrices_of(which) * self.problem.extents(which)[0], self.problem.leading(which)

    def lines(self, which: Matrix) -> np.ndarray:
        """A matrix as it lies in memory: lines with their gaps, shape [batches · lines, leading dimension]."""
        problem = self.problem
        values = self.source if which == "source" else self.inputs[0 if which == "a" else 1]
        assert values is not None
        if which != "source" and getattr(problem.plan, which).major == "mn":
            values = np.swapaxes(values, -1, -2)
        values = values.reshape(-1, values.shape[-1])
        made = np.full((values.shape[0], problem.leading(which) * values.itemsize), _GAP, np.uint8).view(values.dtype)
        made[:, : values.shape[1]] = values
        return made

    def expect(
        self, rows: slice, columns: slice, batch: int = 0
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What rows and columns of C must hold, and what each element may be off by."""
        a, b = self.inputs
        if self.groups is None or not self.problem.grouped:
            a, b = (each[batch] if each.ndim == 3 else each for each in (a, b))
            expected, accumulation = self._product(a[rows], b[columns])
        else:
            groups = self.groups[rows]
            expected, accumulation = (np.zeros((len(groups), len(b[0, columns]))) for _ in range(2))
            for group in np.unique(groups[groups >= 0]):
                here = groups == group
                expected[here], accumulation[here] = self._product(a[rows][here], b[group, columns])
        if not self._combination.present:
            return self.rounded(expected, accumulation)
        return self._combined(expected, accumulation, rows, columns, batch)

    def _product(self, a: np.ndarray, b: np.ndarray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """A·Bᵀ of some rows of each, and what its sums may be off by."""
        a, b = a.astype(np.float64), b.astype(np.float64)
        expected = a @ b.T
        if self._combination.converts:
            accumulation = 2.0**-24 * np.abs(expected)
        else:
            accumulation = self.problem.k * 2.0**-23 * (np.abs(a) @ np.abs(b).T)
        if self._cut_block:
            accumulation = accumulation + _cut_sums(a, b, self._cut_block)
        return expected, accumulation

    @property
    def _cut_block(self) -> int:
        """Elements of K whose sum wgmma cuts before it is added elsewhere; 0 where it cuts none."""
        accumulator = self.problem.plan.accumulator
        if not isinstance(accumulator, RegisterAccumulator) or not accumulator.cut:
            return 0
        plan = self.problem.plan
        if accumulator.promoted:
            return plan.k_tile
        return plan.share(self.problem.k)

    def _combined(
        self,
        product: npt.NDArray[np.float64],
        accumulation: npt.NDArray[np.float64],
        rows: slice,
        columns: slice,
        batch: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The same after the epilogue."""
        combination, problem = self._combination, self.problem
        alpha = float(np.float32(problem.alpha)) if combination.alpha else 1.0
        beta = float(np.float32(problem.beta))
        value = alpha * product
        size = np.abs(value)
        if self.source is not None:
            part = beta * self.source[batch, rows, columns].astype(np.float64)
            value, size = value + part, size + np.abs(part)
        if self.bias is not None:
            part = self.bias[columns].astype(np.float64)
            value, size = value + part, size + np.abs(part)
        if combination.compute == "s32":  # sums wrap, as the instructions' do
            value = (value + 2.0**31) % 2.0**32 - 2.0**31
            return np.maximum(value, 0) if combination.activation == "relu" else value, np.zeros_like(value)
        allowed = abs(alpha) * accumulation + _ROUNDINGS * 2.0**-24 * size
        return self.rounded(*_activated(combination.activation, value, allowed))

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
        if self._combination.converts:
            reason = "2⁻²⁴·|Σa·b|: sums of integers are exact, and rounded once to fp32"
        if self._cut_block:
            reason += (
                "; plus 34·2⁻¹³ of the largest addend or sum of each wgmma, which cuts its 33 addends and the result "
                "off at 13 bits of fraction (docs/hardware.md)"
            )
        if self._combination.present:
            scaled = "|alpha|·" if self._combination.alpha else ""
            reason = f"{scaled}{reason}; plus {_ROUNDINGS}·2⁻²⁴ of the terms' sizes for their sums"
        if self._combination.activation in _STEEPEST:
            name = self._combination.activation
            reason += (
                f"; times {_STEEPEST[name]}, the steepest slope of {name}, plus |x|·(2⁻¹² + 2⁻²¹): tanh.approx.f32 is "
                "off by at most 2⁻¹¹ of its value (PTX ISA 9.7.3.22), and counts for |x|/2"
            )
        if c_type.bytes < 4:
            power = str(c_type.digits).translate(_SUPERSCRIPTS)
            reason += f"; plus half an ulp for the rounding to {c_type.name} (at most 2⁻{power}·|c|)"
        return reason

    def tolerances(
        self, expected: npt.NDArray[np.float64], accumulation: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """What each element may be off by; `accumulation` is what its sum may be."""
        return self.rounded(expected, accumulation)[1]

    def rounded(
        self, expected: npt.NDArray[np.float64], allowed: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Values in the type of C, infinite where they overflow it, and what they may be off by; `allowed`: before."""
        c_type = TYPES[self.problem.plan.c_dtype]
        if c_type.is_integer:
            return expected, np.zeros_like(allowed)
        if c_type.bytes == 4:
            return expected, allowed
        size, largest = np.abs(expected), float(ml_dtypes.finfo(c_type.numpy).max)
        # The first value that rounds to infinity is half an ulp above the largest.
        overflow = largest + 2.0 ** (math.frexp(largest)[1] - c_type.digits - 1)
        rounded = np.where(size - allowed >= overflow, np.copysign(np.inf, expected), expected)
        within = allowed + half_ulp(size + allowed, c_type.name)
        # Where the sum may be on either side of it, so may the element.
        return rounded, np.where(np.isinf(rounded), 0.0, np.where(size + allowed >= overflow, np.inf, within))


def _cut_sums(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], block: int) -> npt.NDArray[np.float64]:
    """What the sums of wgmma on 8-bit floating point may be off by, where each K block of so many starts from zero."""
    allowed = np.zeros((a.shape[0], b.shape[0]))
    for start in range(0, a.shape[1], block):
        sums = np.zeros_like(allowed)
        for k in range(start, min(start + block, a.shape[1]), _FP8_K):
            left, right = a[:, k : k + _FP8_K], b[:, k : k + _FP8_K]
            largest = np.abs(left).max(axis=1)[:, None] * np.abs(right).max(axis=1)[None, :]
            before, sums = np.abs(sums), sums + left @ right.T
            size = np.maximum(np.maximum(largest, before), np.abs(sums)) + allowed
            allowed = allowed + (_FP8_K + 2) * 2.0**-13 * size
    return allowed


def _activated(
    name: str, x: npt.NDArray[np.float64], allowed: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """An activation of values that may be off by `allowed`, and what its results may be off by."""
    if name == "none":
        return x, allowed
    if name == "relu":
        return np.maximum(x, 0), allowed
    inner = x / 2 if name == "silu" else np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return x / 2 * (1 + np.tanh(inner)), _STEEPEST[name] * allowed + np.abs(x) * (2.0**-12 + 2.0**-21)


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    made = TYPES[dtype]
    if made.is_integer:
        limits = np.iinfo(made.numpy)
        return random.integers(limits.min, limits.max, shape, made.numpy, endpoint=True)
    values = random.standard_normal(shape, dtype=np.float32)
    if dtype == "tf32":
        return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(made.numpy)
