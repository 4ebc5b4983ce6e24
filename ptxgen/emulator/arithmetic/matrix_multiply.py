"""Elements of matrices in registers and memory, sparse matrices, and products of integers, for all tensor cores.

Elements become .f32, in which every product of two is exact, and sums of integers too: they stay below 2**24. Sums of
floats are those of `ptxgen.emulator.arithmetic.tensor_sums`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.dtypes import DTYPES
from ptxgen.emulator.arithmetic.formats import values
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.layouts.fragments import chunk_columns
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine

Values = NDArray[np.float32]

#: Bits of an element of a matrix, by its type.
BITS = {**{each.name: each.container_bits for each in DTYPES.values()}, "s1z4m11": 16}


# Elements.


@cache
def _table(type: str, packed: bool) -> Values:
    """The value of every byte (of every half byte, where `packed`) that holds an element of a narrow type.

    In a byte, e2m1 sits in the four bits in the middle, types of 6 bits at the bottom (9.7.14.5.14).
    """
    codes = np.arange(16 if packed else 256)
    if not packed:
        codes = codes >> 2 & 15 if type == "e2m1" else codes & {"e2m3": 63, "e3m2": 63}.get(type, 255)
    return values(type)[codes]


def split(words: NDArray[Any], bits: int) -> NDArray[Any]:
    """The elements of registers or memory words, the lowest bits first: [..., n] to [..., n, elements], unsigned."""
    words = np.ascontiguousarray(words)
    if bits >= 8:
        per = max(words.itemsize * 8 // bits, 1)
        return words.view(f"u{max(bits, 8) // 8}").reshape(*words.shape, per)
    octets = words.view(np.uint8).reshape(*words.shape, -1)
    if bits == 1:
        return np.unpackbits(octets, axis=-1, bitorder="little")
    return np.stack([octets & 15, octets >> 4], axis=-1).reshape(*words.shape, -1)


def join(elements: NDArray[Any], bits: int) -> NDArray[Any]:
    """The reverse of `split` for elements of 16 to 64 bits: [..., n, elements] to [..., n] registers."""
    words = np.ascontiguousarray(elements).view(f"u{bits // 8}")
    return words.view(np.uint64 if bits == 64 else np.uint32)[..., 0]


def decode(elements: NDArray[Any], type: str, *, packed: bool = False) -> Values:
    """The values of elements as `split` gives them; `packed`: e2m1 of 4 bits, not in bytes."""
    if type == "f16":
        return elements.view(np.float16).astype(np.float32)
    if type == "bf16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if type == "tf32":  # the low 13 bits do not count (9.7.15.5.2)
        return (elements & np.uint32(0xFFFFE000)).view(np.float32)
    if type == "s1z4m11":  # a sign, four zeros, eleven bits of magnitude (fact ti16-encoding)
        magnitude = (elements & np.uint16(0x7FF)).astype(np.float32)
        return np.where(elements >> np.uint16(15), -magnitude, magnitude)
    if type == "s8":
        return elements.view(np.int8).astype(np.float32)
    if type == "s4":
        return ((elements ^ np.uint8(8)).astype(np.int8) - np.int8(8)).astype(np.float32)
    if type in ("u8", "u4", "b1"):
        return elements.astype(np.float32)
    return _table(type, packed)[elements]


def scale_factors(octets: NDArray[np.uint8], type: str) -> NDArray[np.float64]:
    """Values of scale factors; the top bit of ue4m3 does not count (inferred)."""
    return values(type)[octets if type == "ue8m0" else octets & 127].astype(np.float64)


# Sparse matrices.


def chosen_columns(nibbles: NDArray[np.uint8], bits: int, k: int) -> NDArray[np.int64]:
    """The columns of A of the stored elements: metadata [..., m, chunks] to [..., m, k / 2].

    Each 2 bits name one of 4 elements, of 4-bit types a pair of 8; of .tf32 all 4 bits name one of 2 (9.7.14.6.1).
    """
    width = chunk_columns(bits)
    start = np.arange(k // width) * width
    if bits == 32:
        return start + (nibbles >> 3).astype(np.int64)
    pair = np.stack([nibbles & 3, nibbles >> 2], axis=-1).astype(np.int64)
    if bits == 4:
        pair = np.stack([2 * pair, 2 * pair + 1], axis=-1).reshape(*pair.shape[:-1], 4)
    return (start[:, None] + pair).reshape(*nibbles.shape[:-1], -1)


def legal_metadata(bits: int, *, ordered: bool = False) -> frozenset[int]:
    """The values of 4 bits of metadata that mean something (9.7.14.6.1, 9.7.16.10.8)."""
    if bits == 32:
        return frozenset({0b0100, 0b1110})
    every = range(16)
    return frozenset(n for n in every if (n & 3 < n >> 2 if ordered else n & 3 != n >> 2))


def checked_metadata(
    nibbles: NDArray[np.uint8], bits: int, machine: Machine, statement: Statement, *, ordered: bool = False
) -> NDArray[np.uint8]:
    """The metadata; illegal ones are reported, since they make their rows of the MMA undefined.

    A rerun replaces them: CUTLASS leaves them 0 in the rows past the matrix, which no instruction stores.
    """
    legal = sorted(legal_metadata(bits, ordered=ordered))
    wrong = ~np.isin(nibbles, legal)
    if not any_set(wrong):
        return nibbles
    machine.findings.report(
        descriptors.ILLEGAL_METADATA,
        statement,
        summary=f"metadata {int(nibbles[wrong][0]):#06b} selects no legal pair of elements",
        rule=f"Legal here: {', '.join(f'{value:#06b}' for value in legal)}",
        reads=True,
    )
    return nibbles if machine.perturbation is None else machine.perturbation.metadata(nibbles, wrong, legal)


def dense(stored: Values, columns: NDArray[np.int64], k: int) -> Values:
    """A sparse A with its zeros: stored elements [..., m, k / 2] and their columns to [..., m, k]."""
    whole = np.zeros((*stored.shape[:-1], k), np.float32)
    np.put_along_axis(whole, np.broadcast_to(columns, stored.shape), stored, axis=-1)
    return whole


# Products.


def multiply(a: Values, b: Values, *, wide: bool = False) -> NDArray[np.floating]:
    """A times B transposed, of integers: [..., m, k] and [..., n, k] to [..., m, n].

    `wide`: sums need more than the 24 bits of .f32, as products of ti16 have 22.
    """
    if wide:
        return a.astype(np.float64) @ np.swapaxes(b, -1, -2).astype(np.float64)
    return a @ np.swapaxes(b, -1, -2)


def total(product: NDArray[np.floating], c: NDArray[Any] | None, *, saturate: bool = False) -> NDArray[np.uint32]:
    """C, words of .s32, plus a product of integers: it wraps, or is clamped where `saturate`. No C is zero."""
    whole = product.astype(np.int64)
    if c is not None:
        whole += c.view(np.int32)
    if saturate:
        whole = whole.clip(-(2**31), 2**31 - 1)
    return whole.astype(np.uint32)


def addends(words: NDArray[Any], type: str) -> Values:
    """The values of C, words of .f32 or .f16."""
    return words.view(np.float16).astype(np.float32) if type == "f16" else words.view(np.float32)
