"""Block-scaled operands on the host: quantize, dequantize, and the bytes that a kernel reads.

A matrix [rows, K] has one scale for every `block` elements along K. A value is element x scale, and x `tensor_scale`
where the whole matrix has one (OCP Microscaling Formats 1.0; PTX ISA 9.7.16.10.7). Memory keeps the scales in blocks of
128 rows by 4 scales of K, as cuBLAS, torchao and tcgen05.cp have them: `pack` and `unpack`. Which types and block sizes
a kind of MMA has is in `ptxgen.descriptors.instruction.SCALED_KINDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.descriptors.mma_kinds import SCALED_KINDS
from ptxgen.dtypes import DTYPES, scalar_type
from ptxgen.gemm.errors import PlanError
from ptxgen.layouts.scale_factors import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    BLOCK_SCALES,
    blocked_bytes,
    from_blocked,
    to_blocked,
)

Rounding = Literal["floor", "ceil"]
_ROUNDINGS = get_args(Rounding)

#: Elements of K per scale, by scale vector (PTX ISA 9.7.16.10.7.1).
_BLOCK = {"1X": 32, "2X": 32, "4X": 16}
_UE8M0_BIAS, _UE8M0_NAN = 127, 0xFF
_UE4M3_NAN, _UE4M3_MASK = 0x7F, 0x7F
#: The least normal number of f32, the type of alpha.
_LEAST_TENSOR_SCALE = 2.0**-126
#: The last two dimensions of a 512-byte block: as a matrix that tcgen05.cp reads, and as a box of Triton's TMA loads.
_ATOMS = ((32, 16), (2, 256))


@dataclass(frozen=True)
class ScaledType:
    """An element type with its scales: a kind of tcgen05.mma, type of an element, type of a scale, elements per scale.

    Raises PlanError for a combination that the kind does not have.
    """

    kind: str
    dtype: str
    scale: str
    block: int

    def __post_init__(self) -> None:
        if self.kind not in SCALED_KINDS:
            raise PlanError(f"kind must be {', '.join(SCALED_KINDS)}, not {self.kind}")
        known = SCALED_KINDS[self.kind]
        if self.dtype not in known.inputs:
            raise PlanError(f"kind::{self.kind} multiplies {', '.join(known.inputs)}, not {self.dtype}")
        legal = sorted((name, _BLOCK[vector]) for vector, (types, _) in known.vectors.items() for name in types)
        if (self.scale, self.block) not in legal:
            words = ", ".join(f"{name} with blocks of {block}" for name, block in legal)
            raise PlanError(f"kind::{self.kind} has {words}, not {self.scale} with blocks of {self.block}")

    @cached_property
    def largest(self) -> float:
        """The largest finite element."""
        return float(ml_dtypes.finfo(scalar_type(self.dtype)).max)

    @property
    def largest_exponent(self) -> int:
        """Its exponent, the OCP specification's emax."""
        return int(np.frexp(self.largest)[1]) - 1

    def scales_of(self, k: int) -> int:
        """Scales of a row of `k` elements. Raises PlanError where the last block is not full."""
        if k % self.block:
            raise PlanError(f"K must be a multiple of {self.block}, the block of {self.name}, not {k}")
        return k // self.block

    @property
    def name(self) -> str:
        return f"{self.dtype} with {self.scale} scales"


MXFP8 = ScaledType("mxf8f6f4", "e4m3", "ue8m0", 32)
MXFP4 = ScaledType("mxf4", "e2m1", "ue8m0", 32)
NVFP4 = ScaledType("mxf4nvf4", "e2m1", "ue4m3", 16)


def scale_values(scales: ArrayLike, scale: str) -> NDArray[np.float64]:
    """The values of bytes of scales: 2**(byte - 127) for ue8m0, that of e4m3 for ue4m3; NaN for 0xFF and 0x7F.

    The top bit of ue4m3 does not count. Raises PlanError for another type.
    """
    data = _scale_bytes(scales)
    if scale == "ue8m0":
        return np.where(data == _UE8M0_NAN, np.nan, np.ldexp(1.0, data.astype(np.int64) - _UE8M0_BIAS))
    if scale == "ue4m3":
        return (data & _UE4M3_MASK).view(scalar_type("e4m3")).astype(np.float64)
    raise PlanError(f"scales are ue8m0 or ue4m3, not {scale}")


def tensor_scale(values: ArrayLike, type: ScaledType = NVFP4) -> float:
    """The scale of a whole matrix that brings its largest block to the largest ue4m3 scale; 1 for ue8m0 and for zeros.

    NaN and infinities do not count. The product of both operands' is the alpha of their GEMM.
    """
    sizes = np.abs(np.asarray(values, np.float64))
    largest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
    if type.scale != "ue4m3" or largest == 0:
        return 1.0
    return max(largest / (type.largest * float(ml_dtypes.finfo(scalar_type("e4m3")).max)), _LEAST_TENSOR_SCALE)


def quantize(
    values: ArrayLike, type: ScaledType = MXFP8, *, tensor_scale: float = 1.0, rounding: Rounding = "floor"
) -> tuple[NDArray[np.generic], NDArray[np.uint8]]:
    """Return (elements [rows, K] of the type, scales [rows, K / block] as bytes) of a matrix.

    ue8m0: 2**(floor(log2(largest of the block)) - emax), clamped to 2**-127 ... 2**127 (OCP 6.3), or with `rounding`
    ceil the smallest power of two with which no element saturates. ue4m3: the largest of the block over the largest
    element, rounded to nearest even, at most 448. Elements are rounded to nearest even and saturate. A block with NaN
    or infinity has a NaN scale and elements of zero; a block of zeros has the smallest ue8m0, and zero as ue4m3.
    Raises PlanError for what is no matrix, a K that is no multiple of the block, a tensor_scale that is not > 0, and
    another rounding.
    """
    if rounding not in _ROUNDINGS:
        raise PlanError(f"rounding must be {' or '.join(_ROUNDINGS)}, not {rounding}")
    matrix = np.asarray(values, np.float64)
    if matrix.ndim != 2:
        raise PlanError(f"quantize takes a matrix [rows, K], not {matrix.ndim} dimensions")
    if not (np.isfinite(tensor_scale) and tensor_scale > 0):
        raise PlanError(f"tensor_scale must be positive and finite, not {tensor_scale}")
    rows, k = matrix.shape
    blocks = matrix.reshape(rows, type.scales_of(k), type.block) / tensor_scale
    broken = np.logical_not(np.isfinite(blocks).all(axis=-1, keepdims=True))
    blocks = np.where(broken, 0.0, blocks)
    largest = np.abs(blocks).max(-1, initial=0.0)
    scales = _power_scales(largest, type, rounding) if type.scale == "ue8m0" else _float_scales(largest, type)
    by = scale_values(scales, type.scale)[..., None]
    scaled = np.divide(blocks, by, out=np.zeros_like(blocks), where=by > 0)
    elements = np.clip(scaled, -type.largest, type.largest).astype(scalar_type(type.dtype))
    scales[broken[..., 0]] = _UE8M0_NAN if type.scale == "ue8m0" else _UE4M3_NAN
    return elements.reshape(rows, k), scales


def dequantize(
    elements: NDArray[np.generic], scales: ArrayLike, type: ScaledType = MXFP8, *, tensor_scale: float = 1.0
) -> NDArray[np.float64]:
    """Return the values [rows, K], exact in float64 while tensor_scale is 1: element x scale, NaN where the scale is.

    `elements` of the type as `quantize` gives them, `scales` row-major [rows, K / block]. Raises PlanError.
    """
    if elements.ndim != 2 or elements.dtype != scalar_type(type.dtype):
        raise PlanError(f"elements must be a matrix of {type.dtype}, not {elements.ndim}-dimensional {elements.dtype}")
    rows, k = elements.shape
    data = _scale_bytes(scales)
    if data.shape != (rows, type.scales_of(k)):
        raise PlanError(
            f"scales must be row-major {rows}×{type.scales_of(k)}, one for {type.block} elements of K, not "
            f"{_shape(data)}{'; unpack the blocks first' if data.size == packed_bytes(rows, k, type) else ''}"
        )
    factors = np.repeat(scale_values(data, type.scale), type.block, axis=1)
    return elements.astype(np.float64) * factors * tensor_scale


def packed_bytes(rows: int, k: int, type: ScaledType = MXFP8) -> int:
    """Bytes of the blocks that hold the scales of a matrix [rows, K]."""
    return blocked_bytes(rows, type.scales_of(k))


def pack(scales: ArrayLike, fill: int = 0) -> NDArray[np.uint8]:
    """Return row-major scales [rows, scales along K] as blocks of 128 by 4, 512 bytes each.

    `fill` is the byte of rows and scales beyond the matrix; a NaN there makes C NaN. Raises PlanError for what is no
    matrix of bytes.
    """
    data = _scale_bytes(scales)
    if data.ndim != 2:
        raise PlanError(f"pack takes row-major scales [rows, scales along K], not {_shape(data)}")
    if not 0 <= fill <= 255:
        raise PlanError(f"fill must be a byte, 0 to 255, not {fill}")
    return to_blocked(data, fill)


def unpack(blocks: ArrayLike, rows: int, k: int, type: ScaledType = MXFP8) -> NDArray[np.uint8]:
    """Return the row-major scales [rows, K / block] of packed blocks. Raises PlanError as `require_packed`."""
    return from_blocked(require_packed("scales", blocks, rows, k, type), rows, type.scales_of(k))


def require_packed(name: str, blocks: ArrayLike, rows: int, k: int, type: ScaledType = MXFP8) -> NDArray[np.uint8]:
    """Return the bytes of packed scales, flat. Raises PlanError with the expected layout for a wrong size or layout.

    Accepts a flat array, and blocks as [..., blocks of rows, blocks of K, 32, 16] or [..., 2, 256].
    """
    data, scales = _scale_bytes(blocks), type.scales_of(k)
    down, along = -(-rows // BLOCK_ROWS), -(-scales // BLOCK_SCALES)
    shapes = [(down * along * BLOCK_BYTES,), *((down, along, *atom) for atom in _ATOMS)]
    given = data.shape
    while len(given) > 4 and given[0] == 1:
        given = given[1:]
    if given in shapes:
        return np.ascontiguousarray(data).ravel()
    why = ""
    if data.shape == (rows, scales):
        why = ", which is row-major: pack them first"
    elif data.shape == (scales, rows):
        why = ", which is column-major: transpose, then pack them"
    elif data.shape == (down * BLOCK_ROWS, along * BLOCK_SCALES):
        why = ", which is padded but row-major: pack them first"
    raise PlanError(
        f"{name} of {rows}×{k} {type.dtype} must be {down}×{along} blocks of {BLOCK_ROWS} rows by {BLOCK_SCALES} "
        f"scales of K, {BLOCK_BYTES} bytes each: {shapes[0][0]} bytes, flat or as "
        f"{' or '.join(map(_words, shapes[1:]))}; they are {_shape(data)}{why}"
    )


def pack_elements(elements: NDArray[np.generic], dtype: str, *, padded: bool = False) -> NDArray[np.uint8]:
    """Return the bytes of a matrix [rows, K] as global memory has them, the first element in the lowest bits.

    8-bit types one a byte, 6-bit types four in three bytes, e2m1 two in one; `padded` gives every element a byte of its
    own, as kind mxf8f6f4 has them in shared memory. Raises PlanError for another type or a row that ends inside a byte.
    """
    if elements.dtype != scalar_type(dtype):
        raise PlanError(f"elements must be of {dtype}, not {elements.dtype}")
    codes = np.ascontiguousarray(elements).view(np.uint8)
    bits = DTYPES[dtype].bits
    if bits == 8 or padded:
        return codes.copy()
    group = _group(dtype)
    if codes.shape[-1] % group:
        raise PlanError(f"a row of {dtype} must be a multiple of {group} elements, not {codes.shape[-1]}")
    stream = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(stream.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpack_elements(data: ArrayLike, dtype: str) -> NDArray[np.generic]:
    """Return the elements that `pack_elements` made bytes of. Raises PlanError for a row that ends inside a group."""
    octets = np.ascontiguousarray(data)
    bits = DTYPES[dtype].bits
    if octets.dtype != np.uint8:
        raise PlanError(f"packed elements are bytes (uint8), not {octets.dtype}")
    if bits == 8:
        return octets.copy().view(scalar_type(dtype))
    size = _group(dtype) * bits // 8
    if octets.shape[-1] % size:
        raise PlanError(f"a row of packed {dtype} must be a multiple of {size} bytes, not {octets.shape[-1]}")
    stream = np.unpackbits(octets, axis=-1, bitorder="little").reshape(*octets.shape[:-1], -1, bits)
    return np.packbits(stream, axis=-1, bitorder="little")[..., 0].view(scalar_type(dtype))


def _power_scales(largest: NDArray[np.float64], type: ScaledType, rounding: Rounding) -> NDArray[np.uint8]:
    fraction, exponent = np.frexp(largest)  # largest = fraction x 2**exponent, 1/2 <= fraction < 1
    power = exponent - 1 - type.largest_exponent
    if rounding == "ceil":
        power = power + (2 * fraction > np.ldexp(type.largest, -type.largest_exponent))
    power = np.where(largest > 0, power, -_UE8M0_BIAS)
    return (np.clip(power, -_UE8M0_BIAS, _UE8M0_BIAS) + _UE8M0_BIAS).astype(np.uint8)


def _float_scales(largest: NDArray[np.float64], type: ScaledType) -> NDArray[np.uint8]:
    e4m3 = scalar_type("e4m3")
    top = float(ml_dtypes.finfo(e4m3).max)
    return np.minimum(largest / type.largest, top).astype(e4m3).view(np.uint8)


def _group(dtype: str) -> int:
    """Elements that fill whole bytes."""
    return {4: 2, 6: 4}[DTYPES[dtype].bits]


def _scale_bytes(scales: ArrayLike) -> NDArray[np.uint8]:
    data = np.asarray(scales)
    if data.dtype.itemsize != 1:
        raise PlanError(f"scales are bytes of ue8m0 or ue4m3, not {data.dtype}")
    return np.ascontiguousarray(data).view(np.uint8)


def _shape(data: NDArray[np.uint8]) -> str:
    return f"{_words(data.shape)} bytes"


def _words(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
