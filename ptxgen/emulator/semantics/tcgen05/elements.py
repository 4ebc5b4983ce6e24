"""From the bytes of matrices to values: every type of tcgen05.mma, packed, padded or in bytes of its own."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic import matrix_multiply
from ptxgen.emulator.arithmetic.formats import FORMATS, values

Values = NDArray[np.float32]
#: Storage of elements of 4 and 6 bits: two to a byte; 16 of them padded to 16 bytes (as TMA writes them); or one to a
#: byte (PTX ISA 9.7.16.10.4).
Packing = Literal["packed", "padded", "bytes"]

_NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def narrow_bits(type: str) -> int:
    """Significant bits of a type of at most 8 bits."""
    return FORMATS[type].bits


@cache
def _pair_table(type: str) -> Values:
    """The two values of every byte of packed 4-bit elements, the low nibble first."""
    code = np.arange(256)
    return np.stack([values(type)[code & 15], values(type)[code >> 4]], axis=-1)


def decode(raw: NDArray[np.uint8], type: str, packing: Packing = "bytes") -> Values:
    """The values of lines of bytes: an array (lines, elements)."""
    if packing == "packed":
        return _pair_table(type)[raw].reshape(len(raw), -1)
    if packing == "padded" and narrow_bits(type) == 4:
        return _pair_table(type)[raw.reshape(len(raw), -1, 16)[..., :8]].reshape(len(raw), -1)
    if packing == "padded" and narrow_bits(type) == 6:
        return values(type)[six_bits(raw.reshape(len(raw), -1, 16)[..., :12])].reshape(len(raw), -1)
    return matrix_multiply.decode(raw.view(f"u{matrix_multiply.BITS[type] // 8}"), type)


def six_bits(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 6-bit codes of bytes, 4 in 3 bytes, the first in the lowest bits: (..., 3n) to (..., 4n)."""
    a, b, c = (raw[..., i::3] for i in range(3))
    codes: NDArray[Any] = np.stack([a & 63, a >> 6 | (b & 15) << 2, b >> 4 | (c & 3) << 4, c >> 2], axis=-1)
    return codes.reshape(*raw.shape[:-1], -1)


def expanded(raw: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Units of 16 bytes with 16 elements of 4 or 6 bits and padding, as 16 bytes of their own (9.7.16.9.1)."""
    units = raw.reshape(*raw.shape[:-1], -1, 16)
    if bits == 4:
        pairs = units[..., :8]
        found: NDArray[Any] = np.stack([(pairs & 15) << 2, pairs >> 4 << 2], axis=-1)
        return found.reshape(raw.shape)
    return six_bits(units[..., :12]).reshape(raw.shape)


@cache
def scale_table(type: str) -> NDArray[np.float64]:
    """The value of every byte of a scale factor."""
    return matrix_multiply.scale_factors(np.arange(256, dtype=np.uint8), type)
