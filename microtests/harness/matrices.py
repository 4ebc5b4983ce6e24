"""Where tensor core instructions keep matrices in registers and in shared memory, and their products: for references.

From the formulas of PTX ISA 9.7.14.5 (fragments), 9.7.15.5.1 (descriptors, canonical layouts) and, for the figures of
sparse metadata, CUTLASS (mma_traits_sm90_gmma_sparse.hpp). Shares nothing with the emulator.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Element types by name, as they lie in memory. tf32 is a .f32 whose low bits are not read. Those of 6 and 4 bits have
#: a byte each (6 bits its lowest ones, 4 bits the four above the lowest two), but e2m1x8 half a byte.
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m1x8": ml_dtypes.float4_e2m1fn,
}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4,
        "u4": 4, "b1": 1, "s32": 32, "e3m2": 8, "e2m3": 8, "e2m1": 8, "e2m1x8": 4}  # fmt: skip


#: The NaN of sums.
_NAN = {"f16": 0x7FFF, "f32": 0x7FFFFFFF}


def random_elements(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values whose sums are exact in any order: small whole numbers, or all values of integers."""
    if kind in ("s8", "s4"):
        half = 1 << (BITS[kind] - 1)
        return rng.integers(-half, half, shape).astype(np.int64)
    if kind in ("u8", "u4", "b1"):
        return rng.integers(0, 1 << BITS[kind], shape).astype(np.int64)
    return rng.choice(np.array([-4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4]), shape)


def raw(kind: str, values: Array) -> Array:
    """The words of elements, as 64-bit integers."""
    bits = BITS[kind]
    if kind in ("s8", "u8", "s4", "u4", "b1", "s32"):
        return (values.astype(np.int64) & ((1 << bits) - 1)).astype(np.uint64)
    made = values.astype(DTYPES[kind])
    if kind in _NAN:
        found = made.view(np.uint16 if kind == "f16" else np.uint32)
        return np.where(np.isnan(made), _NAN[kind], found).astype(np.uint64)
    if kind in ("e2m1", "e2m1x8"):
        codes = made.view(np.uint8).astype(np.uint64)
        return codes << np.uint64(2) if kind == "e2m1" else codes
    return made.view({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]).astype(np.uint64)


def packed(words: Array, bits: int) -> Array:
    """Elements along the last axis put together into registers of 32 bits, the first lowest; one each from 32 on."""
    if bits >= 32:
        return words.reshape(words.shape[:-1]).astype(np.uint64 if bits == 64 else np.uint32)
    shifts = np.arange(words.shape[-1], dtype=np.uint64) * np.uint64(bits)
    return (words << shifts).sum(-1, dtype=np.uint64).astype(np.uint32)


def _lanes() -> tuple[Array, Array]:
    lane = np.arange(32)
    return lane // 4, lane % 4


def a_registers(kind: str, a: Array) -> Array:
    """A, [8 or 16, K], as [register, lane]."""
    rows, k = a.shape
    bits = BITS[kind]
    per = max(32 // bits, 1)
    group, inside = _lanes()
    halves = rows // 8
    found = []
    for register in range(halves * (k // (4 * per))):
        row = group + 8 * (register % halves)
        column = register // halves * 4 * per + inside * per
        columns = column[:, None] + np.arange(per)
        found.append(packed(raw(kind, a)[row[:, None], columns], bits))
    return np.array(found)


def b_registers(kind: str, b: Array) -> Array:
    """B, [K, 8], as [register, lane]."""
    return a_registers(kind, np.ascontiguousarray(b.T))


def d_places(rows: int, columns: int) -> tuple[Array, Array]:
    """Row and column of accumulators [value, lane]: pairs of columns, of each row and the one 8 below it."""
    group, inside = _lanes()
    places = [
        (group + 8 * half, 8 * block + 2 * inside + low)
        for block in range(columns // 8)
        for half in range(rows // 8)
        for low in (0, 1)
    ]
    return np.array([row for row, _ in places]), np.array([column for _, column in places])


def d_registers(kind: str, d: Array) -> Array:
    """An accumulator, [8 or 16, N], as [register, lane]; two .f16 in a register. NaNs are those of tensor cores."""
    rows, columns = d_places(*d.shape)
    words = d.astype(DTYPES[kind])[rows, columns]
    if kind in _NAN:
        words.view(np.uint16 if kind == "f16" else np.uint32)[np.isnan(words)] = _NAN[kind]
    if kind == "f16":
        pairs = words.view(np.uint16).astype(np.uint64).reshape(-1, 2, 32)
        return (pairs[:, 0] | pairs[:, 1] << np.uint64(16)).astype(np.uint32)
    return words.view(np.uint64 if kind == "f64" else np.uint32)


def warpgroup(kind: str, d: Array) -> Array:
    """An accumulator of 64 rows as [register, thread]: each warp has 16 of them."""
    return np.concatenate([d_registers(kind, d[16 * warp : 16 * warp + 16]) for warp in range(4)], 1)


def warpgroup_a(kind: str, a: Array) -> Array:
    """A of 64 rows as [register, thread]."""
    return np.concatenate([a_registers(kind, a[16 * warp : 16 * warp + 16]) for warp in range(4)], 1)


# Sparse A.

#: Columns of A that four bits of metadata describe.
CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}


def sparse_a(
    kind: str, rows: int, k: int, rng: np.random.Generator, stored: Array | None = None
) -> tuple[Array, Array, Array]:
    """(A with its zeros, what is stored of it, the metadata as [row, chunk]); by default stored are small numbers."""
    bits = BITS[kind]
    width = CHUNK[bits]
    chunks = k // width
    if stored is None:
        stored = random_elements(kind, (rows, k // 2), rng)
    full = np.zeros((rows, k), stored.dtype)
    meta = np.zeros((rows, chunks), np.uint64)
    for row in range(rows):
        for chunk in range(chunks):
            if bits == 32:  # one of two: its index as a pair of two-bit ones
                index = int(rng.integers(2))
                full[row, 2 * chunk + index] = stored[row, chunk]
                meta[row, chunk] = 0b1110 if index else 0b0100
                continue
            first, second = sorted(int(each) for each in rng.choice(4, 2, replace=False))
            meta[row, chunk] = first | second << 2
            step = width // 4  # of 4 bits pairs are kept
            for place, index in enumerate((first, second)):
                source = chunk * width // 2 + place * step
                full[row, chunk * width + index * step : chunk * width + (index + 1) * step] = stored[
                    row, source : source + step
                ]
    return full, stored, meta


def named(kind: str, meta: Array) -> Array:
    """Which elements of a sparse A, of 8 bits or more, its metadata name: [row, K]."""
    rows, chunks = meta.shape
    found = np.zeros((rows, chunks, CHUNK[BITS[kind]]), bool)
    row, chunk = np.indices(meta.shape)
    if BITS[kind] == 32:
        found[row, chunk, (meta >> np.uint64(3)).astype(np.int64)] = True
    else:
        for index in (meta & np.uint64(3), meta >> np.uint64(2)):
            found[row, chunk, index.astype(np.int64)] = True
    return found.reshape(rows, -1)


def metadata_registers(kind: str, meta: Array, selector: int, rng: np.random.Generator) -> Array:
    """The metadata of 16 rows as a register of each lane; those that the selector leaves out hold anything."""
    found = rng.integers(0, 2**32, 32, dtype=np.uint64)
    rows, chunks = meta.shape
    wide = BITS[kind] >= 16
    span = 4 if wide else 8
    threads = chunks // span * (1 if wide else 2)
    used = np.zeros(32, bool)
    for row in range(rows):
        for chunk in range(chunks):
            half, group = row // 8, row % 8
            within = chunk // span if wide else 2 * (chunk // span) + half
            bit = (16 * half if wide else 0) + 4 * (chunk % span)
            lane = 4 * group + threads * selector + within
            if not used[lane]:
                found[lane], used[lane] = 0, True
            found[lane] |= meta[row, chunk] << np.uint64(bit)
    return found.astype(np.uint32)


# Operands in shared memory.

_XOR = {0: 0, 32: 1, 64: 3, 128: 7}
#: The code of a swizzle in bits 62 and 63 of a descriptor of wgmma.
SWIZZLE_CODES = {0: 0, 128: 1, 64: 2, 32: 3}


def swizzled(offset: Array, swizzle: int) -> Array:
    """Bits 4 and up of an address, changed by bits 7 and up."""
    return offset ^ (((offset >> 7) & _XOR[swizzle]) << 4)


def image(
    kind: str, values: Array, swizzle: int, k_major: bool, rng: np.random.Generator, start: int = 0
) -> tuple[Array, int, int]:
    """(bytes of shared memory from a 1024-byte boundary, LBO, SBO) with an operand [rows, K] at `start`.

    What is not the operand's holds random bytes.
    """
    rows, k = values.shape
    bits = BITS[kind]
    row, column = np.arange(rows)[:, None], np.arange(k)[None, :]
    if bits == 1:
        words = packed(raw(kind, values).reshape(rows, k // 8, 8), 1).astype(np.uint8)
        row, column, size = np.arange(rows)[:, None], np.arange(k // 8)[None, :], 1
    else:
        words, size = raw(kind, values), bits // 8
    if k_major:
        byte = column * size
        if swizzle and words.shape[1] * size > swizzle:  # a sparse product's B, in halves (fact k-major-halves)
            lbo, sbo = 256 * (rows // 8 + 1), 256
            place = row % 8 * swizzle + row // 8 * sbo + byte // swizzle * lbo + byte % swizzle
        elif swizzle:
            lbo, sbo = 16, 8 * swizzle
            place = row % 8 * swizzle + row // 8 * sbo + byte
        else:
            lbo, sbo = rows * 16, 128
            place = row % 8 * 16 + row // 8 * sbo + byte // 16 * lbo + byte % 16
    else:
        byte = row * size
        if swizzle:
            lbo, sbo = 8 * swizzle * (k // 8), 8 * swizzle
            place = byte % swizzle + byte // swizzle * lbo + column % 8 * swizzle + column // 8 * sbo
        else:
            lbo, sbo = 128 * (rows * size // 16), 128
            place = column % 8 * 16 + column // 8 * lbo + byte // 16 * sbo + byte % 16
    place = swizzled(np.broadcast_to(place, words.shape) + start, swizzle)
    length = -(-(int(place.max()) + size) // 1024) * 1024
    memory = rng.integers(0, 256, length).astype(np.uint8)
    for byte_index in range(size):
        memory[place + byte_index] = (words >> np.uint64(8 * byte_index)).astype(np.uint8) if size > 1 else words
    return memory, lbo, sbo


def descriptor(lbo: int, sbo: int, swizzle: int) -> int:
    """A descriptor of wgmma without the address."""
    return (lbo >> 4) << 16 | (sbo >> 4) << 32 | SWIZZLE_CODES[swizzle] << 62
