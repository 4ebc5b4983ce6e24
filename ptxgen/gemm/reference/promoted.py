"""Random fp8 inputs with fp32 scales, and the C that promoted sums with scales must give, bit for bit.

A K block of 128 is summed by the tensor core from zero (`ptxgen.emulator.arithmetic.tensor_sums` says how); its sum
times the product of its scales is added in fp32 by one fma, one K block after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ptxgen.emulator.arithmetic import single
from ptxgen.emulator.arithmetic.tensor_sums import HOPPER_F8, fused
from ptxgen.gemm.block_scales import BLOCK, shape_a, shape_b
from ptxgen.gemm.reference.plain import Reference
from ptxgen.gemm.types import TYPES

#: Exponents of random scales: sums of K blocks differ in size by far more than fp32 has bits.
_EXPONENTS = 20


@dataclass(frozen=True)
class PromotedReference(Reference):
    """The inputs of a problem whose fp8 operands have fp32 scales, and C to the bit."""

    @cached_property
    def row_scales(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Scales of A [M, K blocks] and B [blocks of 128 rows, K blocks]: of every size from 2**-20 to 2**20.

        Swapped, those of A are for blocks of 128 rows, and those of B for every row. With batches, of each.
        """
        problem, random = self.problem, np.random.default_rng([self.seed, 3])
        along = shape_b(problem.n, problem.k)[1]
        rows = [(problem.m, along), shape_b(problem.n, problem.k)]
        if problem.grouped:
            rows[1] = problem.groups * rows[1][0], along
        if self._swapped:
            rows = [shape_b(problem.m, problem.k), (problem.n, along)]
        batches = (problem.batches,) if problem.plan.config.batched else ()
        found = [np.exp2(random.uniform(-_EXPONENTS, _EXPONENTS, (*batches, *shape))) for shape in rows]
        return found[0].astype(np.float32), found[1].astype(np.float32)

    @property
    def scales(self) -> tuple[np.ndarray, ...]:
        """The scales as memory has them; NaN where those of rows end before 16 bytes do."""
        sfa, sfb = self.row_scales
        return (sfa, _lines(sfb)) if self._swapped else (_lines(sfa), sfb)

    @property
    def _swapped(self) -> bool:
        scales = self.problem.plan.block_scales
        return scales is not None and scales.swapped

    def expect(
        self, rows: slice, columns: slice, batch: int = 0
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What rows and columns of C must hold; elements may be off only where parts of K are added in any order."""
        sums, size = self.sums(rows, columns, batch)
        parts = -(-self.problem.k // BLOCK) if self._in_parts else 0
        expected, allowed = sums.astype(np.float64), 2.0**-23 * parts * size
        if self._combination.present:
            return self._combined(expected, allowed, rows, columns, batch)
        if parts:
            return self.rounded(expected, allowed)
        with np.errstate(over="ignore"):
            return sums.astype(TYPES[self.problem.plan.c_dtype].numpy).astype(np.float64), np.zeros_like(expected)

    @property
    def _in_parts(self) -> bool:
        """Whether K is split, and parts are added in another order."""
        scheduler = self.problem.plan.scheduler
        return scheduler.splits or scheduler.split_k > 1

    def sums(
        self, rows: slice, columns: slice, batch: int = 0
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        """The accumulators of rows and columns of C, and the sum of the sizes of what was added."""
        (a, b), (sfa, sfb) = self.inputs, self.row_scales
        if self.problem.plan.config.batched:
            a, b, sfa, sfb = (each[batch] for each in (a, b, sfa, sfb))
        if self._swapped:
            sfa = np.repeat(sfa, BLOCK, axis=0)[: self.problem.m]
        else:
            sfb = np.repeat(sfb, BLOCK, axis=0)
        if self.groups is None or not self.problem.grouped:
            return self._sums(a[rows], b[columns], sfa[rows], sfb[: self.problem.n][columns])
        groups = self.groups[rows]
        b = b[:, columns]
        sfb = sfb.reshape(len(b), self.problem.padded(self.problem.n), -1)[:, : self.problem.n][:, columns]
        total, size = np.zeros((len(groups), b.shape[1]), np.float32), np.zeros((len(groups), b.shape[1]))
        for group in np.unique(groups[groups >= 0]):
            here = groups == group
            total[here], size[here] = self._sums(a[rows][here], b[group], sfa[rows][here], sfb[group])
        return total, size

    def _sums(
        self, a: np.ndarray, b: np.ndarray, sfa: npt.NDArray[np.float32], sfb: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        """The same for some rows of A and B with a scale for each and every K block."""
        plan, k = self.problem.plan, self.problem.k
        a, b = a.astype(np.float32), b.astype(np.float32)
        types, step = (plan.a.dtype, plan.b.dtype, "f32"), plan.a.mma_k
        total = np.zeros((a.shape[0], b.shape[0]), np.float32)
        size = np.zeros(total.shape)
        for index, first in enumerate(range(0, k, BLOCK)):
            partial: npt.NDArray[np.float32] | None = None
            for at in range(first, min(first + BLOCK, k), step):
                left, right = (_padded(each[:, at : at + step], step) for each in (a, b))
                partial = fused(left, right, partial, types, HOPPER_F8)
            assert partial is not None
            factor = sfa[:, index, None] * sfb[None, :, index]
            total = single.fused(partial, factor, total, "rn")
            size += np.abs(partial.astype(np.float64) * factor)
        return total, size

    @property
    def tolerance_reason(self) -> str:
        """Why the comparison allows what it allows."""
        reason = "none: the reference adds as the tensor cores and fma.rn.f32 do, bit for bit"
        if self._in_parts:
            reason = "2⁻²³ of the sizes of the sums of K blocks, times their number: parts of K are added in any order"
        if self._combination.present:
            reason += "; plus 3·2⁻²⁴ of the terms' sizes for their sums, and half an ulp of C"
        return reason


def _lines(scales: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scales of rows [..., rows, K blocks] as memory has them."""
    *batches, rows, blocks = scales.shape
    made = np.full((*batches, *shape_a(rows, blocks * BLOCK)), np.nan, np.float32)
    made[..., :rows] = np.swapaxes(scales, -1, -2)
    return made


def _padded(values: npt.NDArray[np.float32], step: int) -> npt.NDArray[np.float32]:
    """Columns of a matrix, with zeros after its last."""
    missing = step - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing))) if missing else values
