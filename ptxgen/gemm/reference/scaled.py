"""Random block-scaled inputs, and the C that they must give, bit for bit.

Dequantized elements are exact, and so are their products; an MMA adds them as the tensor core does
(`ptxgen.emulator.arithmetic.tensor_sums` says how, and how we know), one instruction's K after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ptxgen.emulator.arithmetic.tensor_sums import fused, fused_groups
from ptxgen.gemm.concepts.scale_operand import ScaleOperand
from ptxgen.gemm.problem import GemmProblem, Matrix
from ptxgen.gemm.reference.plain import Reference
from ptxgen.gemm.reference.promoted import PromotedReference
from ptxgen.gemm.scales import pack, pack_elements, quantize, scale_values
from ptxgen.gemm.types import TYPES

_T = TypeVar("_T", bound=np.generic)
#: Bytes of scales unless they are to be over their whole range: around 1.
_USUAL = {"ue8m0": (121, 134), "ue4m3": (0x28, 0x48)}
#: Fill of the bytes between lines: a large number with any scale, so that a kernel that reads it shows.
_GAP = 0x77
#: Lines of zeros over the whole range, and lines that may have NaN and infinities: few, so that most of C is finite.
_ZEROS, _BROKEN = slice(3, None, 16), slice(5, None, 96)


@dataclass(frozen=True)
class ScaledReference(Reference):
    """The inputs of a block-scaled problem and a seed, and C to the bit.

    With `whole_range` elements and scales are any bytes: NaN scales everywhere, NaN and infinite elements in a few
    lines of A and B, and zeros in others.
    """

    whole_range: bool = False

    @cached_property
    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """A (M×K) and B (N×K), of all batches or groups where there are: standard normal, rounded to their types."""
        problem, random = self.problem, np.random.default_rng(self.seed)
        batched = problem.plan.config.batched

        def made(name: Matrix, rows: int, dtype: str) -> np.ndarray:
            if not (batched or (name == "b" and problem.grouped)):
                return self._elements(random, rows, dtype)
            return np.stack([self._elements(random, rows, dtype) for _ in range(problem.matrices_of(name))])

        return made("a", problem.m, problem.plan.a.dtype), made("b", problem.n, problem.plan.b.dtype)

    def _elements(self, random: np.random.Generator, rows: int, dtype: str) -> np.ndarray:
        type, shape = TYPES[dtype].numpy, (rows, self.problem.k)
        if not self.whole_range:
            return random.standard_normal(shape, dtype=np.float32).astype(type)
        values = random.integers(0, 1 << TYPES[dtype].bits, shape, np.uint8).view(type)
        values[_ZEROS] = 0
        broken = np.logical_not(np.isfinite(values.astype(np.float32)))
        broken[_BROKEN] = False
        return np.where(broken, type.type(1), values)

    @cached_property
    def row_scales(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """Scales of A and B as bytes, row-major."""
        random = np.random.default_rng([self.seed, 3])
        sfa, sfb = self.problem.plan.scales
        return self._bytes(random, sfa), self._bytes(random, sfb)

    def _bytes(self, random: np.random.Generator, operand: ScaleOperand) -> npt.NDArray[np.uint8]:
        shape = self.problem.scale_rows(operand), operand.type.scales_of(self.problem.k)
        if self.whole_range:
            return _any_scales(random, *shape)
        return random.integers(*_USUAL[operand.type.scale], shape, np.uint8)

    @property
    def scales(self) -> tuple[np.ndarray, ...]:
        """The scales of A and B in blocks, as bytes."""
        return tuple(pack(each) for each in self.row_scales)

    def shape(self, which: Matrix) -> tuple[int, int]:
        """The shape of `lines`."""
        lines, leading = super().shape(which)
        operand = self.problem.plan.a if which == "a" else self.problem.plan.b
        return lines, leading * operand.type.bits // 8

    def lines(self, which: Matrix) -> np.ndarray:
        """A or B as it lies in memory: bytes of lines with their gaps."""
        operand = self.problem.plan.a if which == "a" else self.problem.plan.b
        values = self.inputs[0 if which == "a" else 1]
        values = values if operand.major == "k" else np.ascontiguousarray(np.swapaxes(values, -1, -2))
        data = pack_elements(values.reshape(-1, values.shape[-1]), operand.dtype)
        made = np.full(self.shape(which), _GAP, np.uint8)
        made[:, : data.shape[1]] = data
        return made

    def expect(
        self, rows: slice, columns: slice, batch: int = 0
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What rows and columns of C must hold; no element may be off."""
        epilogue, values = self.problem.plan.epilogue, self.values(rows, columns, batch)
        if epilogue.quantizes:
            found = quantize(values, epilogue.scaled_type)[0].astype(np.float64)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                found = values.astype(TYPES[epilogue.c_type].numpy).astype(np.float64)
        return found, np.zeros_like(found)

    def c_scales(self) -> npt.NDArray[np.uint8]:
        """The scales of a quantized C, row-major."""
        values = self.values(slice(None), slice(None))
        return quantize(values, self.problem.plan.epilogue.scaled_type)[1]

    def values(self, rows: slice, columns: slice, batch: int = 0) -> npt.NDArray[np.float32]:
        """Rows and columns of C before they are rounded to its type."""
        sums = self.sums(rows, columns, batch)
        with np.errstate(over="ignore", invalid="ignore"):
            return sums * np.float32(self.problem.alpha) if self._combination.alpha else sums

    def sums(self, rows: slice, columns: slice, batch: int = 0) -> npt.NDArray[np.float32]:
        """The accumulators of rows and columns of C."""
        (a, b), (sfa, sfb) = self.inputs, self.row_scales
        if self.problem.plan.config.batched:
            a, b = a[batch], b[batch]
            sfa, sfb = (each.reshape(self.problem.batches, -1, each.shape[-1])[batch] for each in (sfa, sfb))
        if self.groups is None or not self.problem.grouped:
            return self._sums(a[rows], b[columns], sfa[: len(a)][rows], sfb[: len(b)][columns])
        groups = self.groups[rows]
        b = b[:, columns]
        sfb = sfb.reshape(len(b), self.problem.padded(self.problem.n), -1)[:, : self.problem.n][:, columns]
        made = np.empty((len(groups), b.shape[1]), np.float32)
        for group in np.unique(groups):
            # The tensormaps of B and its scales give zeros for a group that does not exist.
            there = (b[group], sfb[group]) if group >= 0 else (np.zeros_like(b[0]), np.zeros_like(sfb[0]))
            here = groups == group
            made[here] = self._sums(a[rows][here], there[0], sfa[rows][here], there[1])
        return made

    def _sums(
        self, a: np.ndarray, b: np.ndarray, sfa: npt.NDArray[np.uint8], sfb: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.float32]:
        """The accumulators of some rows of A and B with their scales."""
        plan = self.problem.plan
        type = plan.scales[0].type
        a, b = a.astype(np.float32), b.astype(np.float32)
        scales = [scale_values(data, type.scale) for data in (sfa, sfb)]
        total: npt.NDArray[np.float32] | None = None
        step, taken = plan.a.mma_k, plan.a.mma_k // type.block
        for index in range(-(-self.problem.k // step)):
            left, right = (_part(each, index * step, step) for each in (a, b))
            factors = [_part(each, index * taken, taken) for each in scales]
            if plan.a.packed:
                total = fused_groups(left, right, total, (factors[0], factors[1]), scale_type=type.scale)
            else:
                types = plan.a.dtype, plan.b.dtype, "f32"
                total = fused(left, right, total, types, scales=(factors[0], factors[1]))
        assert total is not None
        return total

    @property
    def tolerance_reason(self) -> str:
        """Why the comparison allows nothing."""
        return "none: the reference adds as the tensor cores do, bit for bit"


def _any_scales(random: np.random.Generator, lines: int, scales: int) -> npt.NDArray[np.uint8]:
    """Bytes over their whole range: each of them in one of four groups of 32 lines, where most sums overflow.

    In the others those of a group are near each other, and not NaN, so that most sums are finite, some of them tiny.
    """
    group = np.arange(lines) // 32
    near = random.integers(0, 256, (lines // 32 + 1, 1))[group] + random.integers(-6, 7, (lines, scales))
    made = near.clip(0, 254).astype(np.uint8)
    wide = group % 4 == 3
    made[wide] = random.permuted(np.resize(np.arange(256), made[wide].shape))
    return made


def _part(values: npt.NDArray[_T], first: int, count: int) -> npt.NDArray[_T]:
    """Columns of a matrix, with zeros after its last."""
    part = values[:, first : first + count]
    return part if part.shape[1] == count else np.pad(part, ((0, 0), (0, count - part.shape[1])))


def reference_of(problem: GemmProblem, seed: int, *, whole_range: bool = False) -> Reference:
    """The reference of a problem: to the bit where operands have scales."""
    if problem.plan.block_scales is not None:
        return PromotedReference(problem, seed)
    if problem.plan.scales:
        return ScaledReference(problem, seed, whole_range)
    return Reference(problem, seed)
