"""Canonical layouts of the shared-memory matrix operands of wgmma and tcgen05.mma.

PTX ISA 9.7.15.5.1.2 (wgmma) and 9.7.16.3 (tcgen05); the byte formulas of 16-bit operands were measured on an
H200 with wgmma, those of 8-bit and 32-bit MN-major operands follow from the documents alone. Elements of 8,
16 and 32 bits; packed 4- and 6-bit elements are read as bytes. `operand_addresses` has the absolute LBO mode too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import Swizzle, frozen, swizzle

Major = Literal["k", "mn"]


class MatrixDescriptor(Protocol):
    """What an operand's address needs of its descriptor: bytes, and the name of a swizzle."""

    @property
    def start_address(self) -> int: ...
    @property
    def leading_byte_offset(self) -> int: ...
    @property
    def stride_byte_offset(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def swizzle(self) -> str: ...


@lru_cache(maxsize=256)
def operand_offsets(
    *,
    major: Major,
    swizzle: str,
    leading_byte_offset: int,
    stride_byte_offset: int,
    rows: int,
    k: int,
    element_bits: int,
) -> NDArray[np.int64]:
    """Return the byte offset of element (row, k) from the start, before the XOR: shape [rows, k], read-only.

        >>> from ptxgen.layouts.operands import operand_offsets
        >>> offsets = operand_offsets(
        ...     major="k", swizzle="128B", leading_byte_offset=0, stride_byte_offset=1024,
        ...     rows=16, k=64, element_bits=16,
        ... )
        >>> offsets.shape, int(offsets[9, 20])
        ((16, 64), 1192)

    `rows` counts M (operand A) or N (operand B). The stride roles, in bytes:

    - K-major, no swizzle: LBO between 16-byte chunks of K, SBO between groups of 8 rows.
    - K-major, swizzled: SBO between groups of 8 rows; LBO is ignored (measured on an H200), but the 64 bytes of K of
      a sparse MMA in rows of 32 bytes are halves, LBO apart (fact k-major-halves).
    - MN-major, no swizzle: SBO between 16-byte chunks of MN, LBO between groups of 8 K.
    - MN-major, swizzled: LBO between row-wide blocks of MN, SBO between groups of 8 K (4: 32-byte atom).

    Raises ValueError for an element size, a mode or a K extent that the layouts do not define.
    """
    mode = _mode(major, swizzle, element_bits)
    size = element_bits // 8
    row = np.arange(rows, dtype=np.int64)[:, None]
    depth = np.arange(k, dtype=np.int64)[None, :]
    lbo, sbo = leading_byte_offset, stride_byte_offset
    if major == "k":
        inner = depth * size
        if not mode.width:
            return frozen((row % 8) * 16 + (row // 8) * sbo + (inner // 16) * lbo + inner % 16)
        width = mode.row_bytes
        if k * size > max(width, 64):
            raise ValueError(f"a swizzled K-major row holds {width} bytes of K, not {k * size}")
        return frozen((row % 8) * width + (row // 8) * sbo + (inner // width) * lbo + inner % width)
    inner = row * size
    if not mode.width:
        return frozen((depth % 8) * 16 + (depth // 8) * lbo + (inner // 16) * sbo + inner % 16)
    group = 4 if mode.name == "128B_atom_32B" else 8
    width = mode.row_bytes
    block = inner % width + (inner // width) * lbo
    return frozen(block + (depth % group) * width + (depth // group) * sbo)


def operand_addresses(
    descriptor: MatrixDescriptor, major: Major, rows: int, k: int, element_bits: int
) -> NDArray[np.int64]:
    """Return the absolute shared-memory byte address of element (row, k): shape [rows, k], read-only.

    The offset is added to the start address, then the XOR acts on the sum, shifted by the base offset. Cached
    by value: tcgen05 and wgmma descriptors alike. In the absolute LBO mode (K = 96, sm_103a) what passes the end of a
    row of 128 bytes goes on at the start of the same row of the tile at LBO (fact lbo-absolute). Raises ValueError as
    `operand_offsets` does.
    """
    if getattr(descriptor, "lbo_mode", "relative") == "absolute":
        if major != "k" or descriptor.swizzle != "128B":
            raise ValueError("the absolute LBO mode is for K-major operands with 128B swizzle (PTX ISA 9.7.16.3.1.2)")
        return _wrapped(
            descriptor.start_address,
            descriptor.leading_byte_offset,
            descriptor.stride_byte_offset,
            rows,
            k,
            element_bits,
        )
    return _addresses(
        descriptor.start_address,
        descriptor.leading_byte_offset,
        descriptor.stride_byte_offset,
        descriptor.base_offset,
        descriptor.swizzle,
        major,
        rows,
        k,
        element_bits,
    )


@lru_cache(maxsize=64)
def _wrapped(start: int, following: int, sbo: int, rows: int, k: int, element_bits: int) -> NDArray[np.int64]:
    """The absolute LBO mode: rows of 128 bytes that begin at `start`, and go on in the tile at `following`."""
    mode = _mode("k", "128B", element_bits)
    row = np.arange(rows, dtype=np.int64)[:, None]
    place = start % mode.row_bytes + np.arange(k, dtype=np.int64)[None, :] * (element_bits // 8)
    if place[0, -1] >= 2 * mode.row_bytes:
        raise ValueError(
            f"{k} elements of {element_bits} bits pass the end of the second row of {mode.row_bytes} bytes"
        )
    tile = np.where(place < mode.row_bytes, start - start % mode.row_bytes, following)
    return frozen(mode.apply(tile + (row % 8) * mode.row_bytes + (row // 8) * sbo + place % mode.row_bytes))


@lru_cache(maxsize=1024)
def _addresses(
    start: int,
    lbo: int,
    sbo: int,
    base_offset: int,
    name: str,
    major: Major,
    rows: int,
    k: int,
    element_bits: int,
) -> NDArray[np.int64]:
    offsets = operand_offsets(
        major=major,
        swizzle=name,
        leading_byte_offset=lbo,
        stride_byte_offset=sbo,
        rows=rows,
        k=k,
        element_bits=element_bits,
    )
    return frozen(swizzle(name).apply(offsets + start, base_offset))


def _mode(major: str, name: str, element_bits: int) -> Swizzle:
    mode = swizzle(name)
    if major not in ("k", "mn"):
        raise ValueError(f'major must be "k" or "mn", not {major!r}')
    if element_bits not in (8, 16, 32):
        raise ValueError(f"element_bits must be 8, 16 or 32, not {element_bits!r}")
    if mode.name == "128B_atom_64B":
        raise ValueError("128B_atom_64B is a TMA mode: no matrix descriptor names it")
    atom_32 = mode.name == "128B_atom_32B"
    if major == "mn" and element_bits == 32 and not atom_32:
        raise ValueError(f"32-bit MN-major operands must use 128B_atom_32B, not {name!r} (PTX ISA table 54)")
    if major == "mn" and element_bits != 32 and atom_32:
        raise ValueError("MN-major 128B_atom_32B takes 32-bit elements only (PTX ISA table 54)")
    return mode
