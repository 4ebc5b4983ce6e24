"""fp32 scales of fp8 operands: one for a row of A and 128 of K (1x128), one for 128 rows of B and 128 of K (128x128).

A value is element x scale. These are the recipe 1D2D of DeepGEMM (fp8_gemm_nt) and BlockWise1x128 with BlockWise128x128
of torch._scaled_mm. Memory keeps the scales of A with M contiguous and lines of 16 bytes (`m_major`), as TMA loads
them, and those of B row-major. Where a kernel computes Cᵀ = B·Aᵀ, A and B change places with their scales (2d1d).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.descriptors import TensorMap
from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.device import DeviceArray
from ptxgen.dtypes import scalar_type
from ptxgen.gemm.errors import PlanError

#: Elements of K of a scale, and rows of B.
BLOCK = 128
_BYTES = 4
#: Scales in 16 bytes, which the lines of a tensormap are a multiple of.
_ALIGNED = 4
#: Alignment of TMA destinations in shared memory, in bytes.
_TMA_BYTES = 128


@dataclass(frozen=True)
class BlockScales:
    """The scales of a tile of `rows` of A and `columns` of B. Raises PlanError where a tile needs three scales of B.

    Those of A lie in the stage of their K block; each thread reads those of its rows. B has one where `columns` divides
    128, else two, between which a multiple of `step` columns is the boundary.

    `swapped`: A has those of 128x128, one for the rows of a warpgroup, and those of B, 1x128, lie in the stage; each
    thread reads those of its columns. `batched`: the scales of a batch follow those of the one before.
    """

    rows: int
    columns: int
    #: Blocks of 64 rows of a warpgroup, multiplied one after the other.
    blocks: int = 1
    swapped: bool = False
    batched: bool = False

    def __post_init__(self) -> None:
        if not self.swapped and self.columns - self.step > BLOCK:
            raise PlanError(
                f"tiles of {self.columns} columns reach into three blocks of {BLOCK} rows of B; with scales n_tile "
                f"must be at most {BLOCK}, or 136, 144, 160 or 192"
            )

    @property
    def by_tma(self) -> Literal["sfa", "sfb"]:
        """Which scales are 1x128, and in the stages."""
        return "sfb" if self.swapped else "sfa"

    @property
    def outer(self) -> list[str]:
        """The registers of the coordinates of those scales beyond row and K block."""
        return ["%r_batch"] * self.batched

    @property
    def rank(self) -> int:
        """Dimensions of their tensormap."""
        return 2 + len(self.outer)

    @property
    def lines(self) -> int:
        """Rows of the tile's operand that those scales belong to."""
        return self.columns if self.swapped else self.rows

    @property
    def bytes(self) -> int:
        """Bytes of those scales of a K block."""
        return self.lines * _BYTES

    @property
    def stage_bytes(self) -> int:
        """Bytes from a stage to the next: TMA writes to multiples of 128."""
        return -(-self.bytes // _TMA_BYTES) * _TMA_BYTES

    @property
    def wanted(self) -> str:
        """What they are in a map of shared memory."""
        return f"scales of {self.by_tma[-1].upper()}, {self.lines} rows"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The entry's parameters, in order: declaration and name."""
        tensormap, address = (".param .align 64 .b8", f"tensormap_{self.by_tma}[128]"), ".param .u64"
        return [(address, "sfa"), tensormap] if self.swapped else [tensormap, (address, "sfb")]

    @property
    def registers(self) -> int:
        """Registers of a consumer for scales, their addresses and their products."""
        if self.swapped:
            return self.columns // 4 + 10
        return (12 if self.pair else 8) + 2 * (self.blocks - 1)

    @property
    def step(self) -> int:
        return gcd(self.columns, BLOCK)

    @property
    def pair(self) -> bool:
        """Whether a tile may need two scales of B."""
        return self.step < self.columns

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The columns of a tile at which its second block of B may begin."""
        return tuple(range(self.step, min(self.columns, BLOCK + 1), self.step))

    def scale_b(self, column: int) -> int | None:
        """Which scale of B a column takes: 0, 1, or None where it depends on the tile."""
        return 0 if column < self.step else 1 if column >= BLOCK else None

    def tensormap(self, address: Any, m: int, n: int, k: int, batches: int = 1) -> TiledMap:
        """The tensormap of the scales in stages: a box has those of the tile for one K block, zeros outside."""
        rows = n if self.swapped else m
        lines, line = shape_a(rows, k)
        dims, strides = (rows, lines), (line * _BYTES,)
        if self.batched:
            dims, strides = (*dims, batches), (*strides, lines * line * _BYTES)
        return TensorMap.tiled("f32", address, dims=dims, strides=strides, box=(self.lines, *[1] * (self.rank - 1)))

    def arguments(self, scales: tuple[Any, Any], m: int, n: int, k: int, batches: int = 1) -> list[Any]:
        """Launch arguments, as `parameters`. Raises PlanError, with the layout, for arrays of another size or type."""
        for name, array, rows in zip(("sfa", "sfb"), scales, (m, n), strict=True):
            _require(name, array, rows, k, by_row=name == self.by_tma, batches=batches if self.batched else 0)
        made = self.tensormap(scales[1 if self.swapped else 0], m, n, k, batches)
        return [scales[0], made] if self.swapped else [made, scales[1]]


def shape_a(m: int, k: int) -> tuple[int, int]:
    """The shape of A's scales in memory: K blocks, and M rounded up to a multiple of 4."""
    return -(-k // BLOCK), -(-m // _ALIGNED) * _ALIGNED


def shape_b(n: int, k: int) -> tuple[int, int]:
    """The shape of B's scales in memory: blocks of 128 rows, and K blocks."""
    return -(-n // BLOCK), -(-k // BLOCK)


def _require(name: str, array: Any, rows: int, k: int, *, by_row: bool, batches: int) -> None:
    """That a device array has the size and type of scales of 1x128 (`by_row`) or 128x128; `batches` 0: it has one."""
    if not isinstance(array, DeviceArray):
        return
    lines = shape_a(rows, k) if by_row else shape_b(rows, k)
    expected = (batches, *lines) if batches else lines
    axis = "M" if name == "sfa" else "N"
    words = (
        f"[K blocks, {axis} rounded up to {_ALIGNED}], {axis} contiguous (m_major makes them)"
        if by_row
        else f"[blocks of {BLOCK} rows of {name[-1].upper()}, K blocks], row-major"
    )
    what = f"{name} must be {'×'.join(map(str, expected))} f32, {'of each batch ' if batches else ''}{words}"
    if array.dtype not in (np.dtype(np.float32), np.dtype(np.uint8)):
        raise PlanError(f"{what}; the array has the type {array.dtype}")
    size = prod(expected) * _BYTES
    flat = len(array.shape) == 1 or array.dtype.itemsize == 1
    if array.nbytes != size or not (flat or array.shape == expected):
        transposed = by_row and array.shape == (*expected[:-2], rows, lines[0])
        why = ", which is row-major: m_major transposes and pads them" if transposed else ""
        raise PlanError(f"{what}; the array has the shape {array.shape}{why}")


def quantize_rows(values: ArrayLike, dtype: str = "e4m3") -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Return (elements [rows, K], scales [rows, K blocks]): 1x128, one scale for each row and 128 of K.

    As `quantize_blocks` with blocks of one row.
    """
    return _quantize(values, dtype, 1)


def quantize_blocks(values: ArrayLike, dtype: str = "e4m3") -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Return (elements [rows, K], scales [blocks of 128 rows, K blocks]): 128x128.

    A scale is the largest size in the block over the largest element of the type, in fp32; 1 for a block of zeros. The
    last blocks may be smaller. Elements are values over their scale, rounded to nearest even, and saturate. Raises
    PlanError for what is no matrix, for values that are not finite, and for types that are not 8-bit floating point.
    """
    return _quantize(values, dtype, BLOCK)


def dequantize(elements: NDArray[np.generic], scales: ArrayLike) -> NDArray[np.float64]:
    """Return the values [rows, K] of elements and row-major scales, 1x128 or 128x128. Raises PlanError."""
    factors = np.asarray(scales, np.float64)
    rows, k = elements.shape
    along = -(-k // BLOCK)
    for height in (1, BLOCK):
        if factors.shape == (-(-rows // height), along):
            return elements.astype(np.float64) * _spread(factors, height, rows, k)
    raise PlanError(
        f"scales of {rows}×{k} elements must be {rows}×{along} (1x128) or {-(-rows // BLOCK)}×{along} (128x128), not "
        f"{'×'.join(map(str, factors.shape))}"
    )


def m_major(scales: ArrayLike) -> NDArray[np.float32]:
    """Return the scales of A [M, K blocks] as memory has them: [K blocks, M rounded up to 4], with zeros past M."""
    given = np.asarray(scales, np.float32)
    if given.ndim != 2:
        raise PlanError(f"m_major takes row-major scales [M, K blocks], not {given.ndim} dimensions")
    m, blocks = given.shape
    made = np.zeros(shape_a(m, blocks * BLOCK), np.float32)
    made[:, :m] = given.T
    return made


def _quantize(values: ArrayLike, dtype: str, height: int) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    matrix = np.asarray(values, np.float64)
    if matrix.ndim != 2:
        raise PlanError(f"quantize takes a matrix [rows, K], not {matrix.ndim} dimensions")
    if dtype not in ("e4m3", "e5m2"):
        raise PlanError(f"fp32 block scales are for e4m3 and e5m2, not {dtype}")
    if not np.isfinite(matrix).all():
        raise PlanError("quantize takes finite values only")
    rows, k = matrix.shape
    down, along = -(-rows // height), -(-k // BLOCK)
    padded = np.zeros((down * height, along * BLOCK))
    padded[:rows, :k] = np.abs(matrix)
    sizes = padded.reshape(down, height, along, BLOCK).max(axis=(1, 3), initial=0.0)
    largest = float(ml_dtypes.finfo(scalar_type(dtype)).max)
    scales = np.where(sizes > 0, sizes / largest, 1.0).astype(np.float32)
    smallest = np.float32(np.finfo(np.float32).smallest_subnormal)
    scales = np.maximum(scales, smallest)
    scaled = matrix / _spread(scales.astype(np.float64), height, rows, k)
    return np.clip(scaled, -largest, largest).astype(scalar_type(dtype)), scales


def _spread(scales: NDArray[np.float64], height: int, rows: int, k: int) -> NDArray[np.float64]:
    """The scale of every element."""
    return np.repeat(np.repeat(scales, height, axis=0), BLOCK, axis=1)[:rows, :k]
