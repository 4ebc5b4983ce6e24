"""Where tcgen05's operands lie in shared and tensor memory, and its descriptors: for references.

From the formulas and figures of PTX ISA 9.7.16.3 and 9.7.16.4 (descriptors, canonical layouts), 9.7.16.10.4 (packing),
9.7.16.10.5 (accumulators), 9.7.16.10.7 (scale factors) and 9.7.16.10.8 (metadata). Shares nothing with the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness import numbers

Array = NDArray[Any]

# Elements.

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
#: Steps and the largest magnitude of elements whose products and sums over K are exact in .f32.
_RANGES = {"f16": (2**-5, 8), "bf16": (2**-3, 16), "tf32": (2**-5, 16), "e4m3": (2**-4, 16), "e5m2": (2**-4, 16)}


@cache
def table(kind: str) -> Array:
    """The value of every code of a type of at most 8 bits; NaNs and infinities as such."""
    codes = np.arange(1 << BITS.get(kind, 8))
    if kind in ("s8", "u8"):
        return np.where((kind == "s8") & (codes > 127), codes - 256, codes).astype(np.float64)
    return np.array([numbers.decode(int(code), numbers.FORMATS[kind]).as_float() for code in codes])


def codes_of(kind: str, values: Array) -> Array:
    """The words of values of a wide type, which has them all."""
    single = values.astype(np.float32)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return single.view(np.uint32) >> (16 if kind == "bf16" else 0)


def elements(kind: str, shape: tuple[int, int], rng: np.random.Generator, small: bool = False) -> tuple[Array, Array]:
    """(codes, values) whose sums of products are exact in any order; `small`: in .f16 too."""
    if kind in ("f16", "bf16", "tf32"):
        step, most = (0.5, 2) if small else _RANGES[kind]
        values = rng.integers(-int(most / step), int(most / step) + 1, shape) * step
        return codes_of(kind, values), values
    every = table(kind)
    legal = np.isfinite(every)
    if kind in _RANGES or small:
        step, most = (0.5, 2) if small else _RANGES[kind]
        legal &= (np.abs(np.nan_to_num(every)) <= most) & (np.nan_to_num(every) % step == 0)
    codes = rng.choice(np.flatnonzero(legal), shape).astype(np.uint32)
    return codes, every[codes]


def row_bytes(kind: str, codes: Array, rng: np.random.Generator, packed: bool = False) -> Array:
    """Rows of elements as bytes in shared memory: [rows, K] to [rows, bytes].

    4 and 6 bits: 16 elements in 16 bytes, of which the last 8 or 4 are padding, here random; `packed`: 4 bits without.
    """
    rows, k = codes.shape
    bits = BITS[kind]
    if bits >= 8:
        return np.ascontiguousarray(codes.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])).view(np.uint8)
    every = (codes[..., None] >> np.arange(bits)) & 1
    tight = np.packbits(every.reshape(rows, -1).astype(np.uint8), axis=1, bitorder="little")
    if packed:
        return tight
    found = rng.integers(0, 256, (rows, k // 16, 16)).astype(np.uint8)
    found[:, :, : 2 * bits] = tight.reshape(rows, k // 16, 2 * bits)
    return found.reshape(rows, k)


def row_words(kind: str, codes: Array, packed: bool = False) -> Array:
    """Rows of elements of A as words of tensor memory: 4 bits in bits 2 to 5 of a byte, 6 bits in its low ones."""
    if BITS[kind] < 8 and not packed:
        codes, kind = codes << (2 if BITS[kind] == 4 else 0), "u8"
    found = row_bytes(kind, codes, np.random.default_rng(0), packed)
    return np.ascontiguousarray(found).view(np.uint32)


# Shared memory.

#: Bytes of a row of a swizzle by name, its code (table 40), and the address bits that change: (lowest, count).
SWIZZLES: dict[str, tuple[int, int, tuple[int, int]]] = {
    "none": (16, 0, (4, 0)),
    "32B": (32, 6, (4, 1)),
    "64B": (64, 4, (4, 2)),
    "128B": (128, 2, (4, 3)),
    "128B_atom_32B": (128, 1, (5, 2)),
}


@dataclass(frozen=True)
class Image:
    """What shared memory holds from a boundary of 1024 bytes, and the bits of the descriptor but for the address."""

    memory: Array
    bits: int
    start: int
    #: Where the bytes of K go on that pass the end of a row of 128 bytes, in the absolute mode.
    following: int | None = None


def swizzled(address: Array, name: str) -> Array:
    """Bits of the 16- or 32-byte unit in 128 bytes, changed by the number of these 128 bytes."""
    low, count = SWIZZLES[name][2]
    return address ^ (((address >> 7) & ((1 << count) - 1)) << low)


def offsets_k(rows: int, size: int, name: str, lbo: int, sbo: int) -> Array:
    """Where byte b of row r lies, K-major: ((8,m),(T,2k)):((1T,SBO),(1,LBO)), or rows of the swizzle."""
    row, byte = np.arange(rows)[:, None], np.arange(size)[None, :]
    width = SWIZZLES[name][0]
    return row % 8 * width + row // 8 * sbo + (byte if name != "none" else byte % 16 + byte // 16 * lbo)


def offsets_mn(size: int, k: int, name: str, lbo: int, sbo: int) -> Array:
    """Where byte b along M or N of column k lies: [bytes, K]."""
    byte, column = np.arange(size)[:, None], np.arange(k)[None, :]
    width = SWIZZLES[name][0]
    if name == "none":
        return byte % 16 + byte // 16 * sbo + column % 8 * 16 + column // 8 * lbo
    group = 4 if name == "128B_atom_32B" else 8
    return byte % width + byte // width * lbo + column % group * width + column // group * sbo


def image(
    data: Array,
    name: str,
    rng: np.random.Generator,
    *,
    major: str = "k",
    size: int = 1,
    start: int = 0,
    gap: int = 0,
    based: bool = False,
    split: bool = False,
) -> Image:
    """An operand: bytes [rows, bytes of K], or MN-major elements of `size` bytes, [rows, K * size].

    It begins `start` bytes in. The swizzle goes by the address; `based`: its pattern begins there too, which the base
    offset tells. `gap` leaves so many patterns free after each of those that the strides step over. `split`: in the
    absolute mode of the leading dimension, for K-major rows of 128 bytes.
    """
    width = SWIZZLES[name][0]
    rows, length = data.shape
    if split:
        return _split(data, name, rng, start, 8 * width * (1 + gap))
    if major == "k":
        if name == "none":
            lbo = (-(-rows // 8) + gap) * 128
            sbo = 128
        else:
            lbo, sbo = 16, 8 * width * (1 + gap)
        place = offsets_k(rows, length, name, lbo, sbo)
        values = data
    else:
        k, across = length // size, rows * size
        group = 4 if name == "128B_atom_32B" else 8
        if name == "none":
            sbo = 128 * (1 + gap)
            lbo = sbo * -(-across // 16)
        else:
            sbo = group * width * (1 + gap)
            lbo = sbo * -(-k // group)
        place = offsets_mn(across, k, name, lbo, sbo)
        values = data.reshape(rows, k, size).transpose(0, 2, 1).reshape(across, k)
    place = start + swizzled(place, name) if based else swizzled(place + start, name)
    memory = rng.integers(0, 256, -(-(int(place.max()) + 1) // 1024) * 1024).astype(np.uint8)
    memory[place] = values
    return Image(memory, descriptor_bits(lbo, sbo, name, start >> 7 & 7 if based else 0), start)


def _split(data: Array, name: str, rng: np.random.Generator, start: int, sbo: int) -> Image:
    """Rows that begin `start` bytes into the rows of a tile, and go on in the same rows of the next (9.7.16.3.1.2)."""
    assert name == "128B", "the absolute mode is for 128-byte swizzle"
    rows, length = data.shape
    tile = (-(-rows // 8)) * sbo
    row, byte = np.arange(rows)[:, None], start + np.arange(length)[None, :]
    place = swizzled(row % 8 * 128 + row // 8 * sbo + byte % 128 + byte // 128 * tile, name)
    memory = rng.integers(0, 256, 2 * tile).astype(np.uint8)
    memory[place] = data
    return Image(memory, descriptor_bits(0, sbo, name) | 1 << 52, start, tile)


def descriptor_bits(lbo: int, sbo: int, name: str, base_offset: int = 0) -> int:
    """A shared-memory descriptor without the address (table 40)."""
    return (lbo >> 4) << 16 | (sbo >> 4) << 32 | 1 << 46 | base_offset << 49 | SWIZZLES[name][1] << 61


# Instruction descriptors.

_CODES = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_D_CODES = {"f16": 0, "f32": 1, "s32": 2}


def idesc(
    m: int,
    n: int,
    a: str,
    b: str,
    d: str,
    *,
    sparse: bool = False,
    selector: int = 0,
    saturate: bool = False,
    negate: tuple[int, int] = (0, 0),
    majors: tuple[str, str] = ("k", "k"),
    max_shift: int = 0,
) -> int:
    """The instruction descriptor of the kinds f16, tf32, f8f6f4 and i8 (table 42)."""
    return (
        selector
        | sparse << 2
        | saturate << 3
        | _D_CODES[d] << 4
        | _CODES[a] << 7
        | _CODES[b] << 10
        | negate[0] << 13
        | negate[1] << 14
        | (majors[0] == "mn") << 15
        | (majors[1] == "mn") << 16
        | (n >> 3) << 17
        | (m >> 4) << 24
        | {0: 0, 8: 1, 16: 2, 32: 3}[max_shift] << 30
    )


def scaled_idesc(
    m: int,
    n: int,
    a: str,
    b: str,
    scale: str,
    ids: tuple[int, int],
    *,
    packed: bool,
    sparse: bool = False,
    negate: tuple[int, int] = (0, 0),
    majors: tuple[str, str] = ("k", "k"),
    long: bool = False,
) -> int:
    """The instruction descriptor of the block-scaled kinds (tables 43 and 44); `packed`: mxf4 and mxf4nvf4."""
    types = 1 << 7 | 1 << 10 if packed else _CODES[a] << 7 | _CODES[b] << 10
    return (
        sparse << 2
        | ids[1] << 4
        | types
        | negate[0] << 13
        | negate[1] << 14
        | (majors[0] == "mn") << 15
        | (majors[1] == "mn") << 16
        | (n >> 3) << 17
        | (scale == "ue8m0") << 23
        | (m >> 7) << 27
        | ids[0] << 29
        | long << 31
    )


# Tensor memory.


@dataclass(frozen=True)
class Datapath:
    """How D and A lie on the lanes, for M (of a pair, both CTAs' rows), .cta_group, sparsity and .ws (9.7.16.10.5)."""

    m: int
    ctas: int = 1
    sparse: bool = False
    ws: bool = False
    #: The first lane, 0 or 16, where only half of the lanes are used.
    lane: int = 0

    @property
    def rows(self) -> int:
        """Rows of a CTA."""
        return self.m // self.ctas

    @property
    def halved(self) -> bool:
        """Whether only the first or second 16 lanes of each 32 are used (layouts C and F)."""
        return not self.ws and self.rows == 64 and (self.ctas == 1 or self.sparse)

    @property
    def parts(self) -> int:
        """Over how many groups of lanes N is spread (2 in layouts B and E, 4 in G)."""
        return 1 if self.halved else 128 // self.rows

    def lanes(self, part: int = 0) -> Array:
        """The lane of each row of a CTA, for a part of N."""
        row = np.arange(self.rows)
        if self.halved:
            return row // 16 * 32 + row % 16 + self.lane
        return row + self.rows * part

    def accumulators(self, n: int) -> tuple[Array, Array]:
        """(lane, column) of D's element [row of a CTA, n]."""
        width = n // self.parts
        lanes = np.stack([self.lanes(column // width) for column in range(n)], axis=1)
        return lanes, np.broadcast_to(np.arange(n) % width, lanes.shape)

    def spread(self, cells: Array, column: int, words: Array) -> None:
        """Put words of rows, [rows of a CTA, words], into cells [128, columns], once for each part of N."""
        for part in range(self.parts):
            cells[self.lanes(part), column : column + words.shape[1]] = words


def put_scales(cells: Array, column: int, scales: Array, first: int, windows: range = range(4)) -> None:
    """Scale factors [rows, scales] as bytes from byte `first` of words on, in windows of 32 lanes.

    Row r is on lane r % 32 of a window, in column r / 32; what passes the end of its word goes on in the next words, 4
    columns further for each 128 rows (figures 231 to 258; fact scales-k96).
    """
    following = 4 * -(-len(scales) // 128)
    for row, factors in enumerate(scales):
        for window in windows:
            lane = 32 * window + row % 32
            for index, factor in enumerate(factors, first):
                place, bit = column + row // 32 + index // 4 * following, 8 * (index % 4)
                cells[lane, place] = int(cells[lane, place]) & ~(0xFF << bit) | int(factor) << bit


def put_metadata(cells: Array, column: int, kind: str, meta: Array, path: Datapath, selector: int) -> None:
    """4 bits for each chunk of K, [rows, chunks], into cells (figures 262 to 267).

    f16 and tf32 have 8 chunks: 16 rows share 16 lanes of the column that the selector names; a cell has 4 chunks of a
    row and of the row 8 below, and the other 4 chunks are 8 lanes further. The others have 16 on each row's lane.
    """
    rows, chunks = meta.shape
    for part in range(path.parts):
        lanes = path.lanes(part)
        for row in range(rows):
            for chunk in range(chunks):
                lane, place, bit = int(lanes[row]), column + chunk // 8, 4 * (chunk % 8)
                if kind in ("f16", "tf32"):
                    lane += (chunk // 4 - row % 16 // 8) * 8
                    place, bit = column + selector, 16 * (row % 16 // 8) + 4 * (chunk % 4)
                keep = int(cells[lane, place]) & ~(0xF << bit)
                cells[lane, place] = keep | int(meta[row, chunk]) << bit


# Sparse A.

#: The values of 4 bits of metadata that name two places of four (9.7.16.10.8.2), and the places: low bits first.
PAIRS = {0b0100: (0, 1), 0b1000: (0, 2), 0b1100: (0, 3), 0b1001: (1, 2), 0b1101: (1, 3), 0b0110: (2, 1), 0b1110: (2, 3)}
#: Of tf32: which of two.
SINGLES = {0b0100: 0, 0b1110: 1}


def sparse(kind: str, stored: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(A [rows, K], metadata [rows, chunks]) of the values that are stored, [rows, K / 2]."""
    rows, half = stored.shape
    found = np.zeros((rows, 2 * half))
    row = np.arange(rows)
    if kind == "tf32":
        meta = rng.choice(np.array(list(SINGLES)), (rows, half))
        for chunk in range(half):
            found[row, 2 * chunk + np.vectorize(SINGLES.__getitem__)(meta[:, chunk])] = stored[:, chunk]
        return found, meta
    unit = 2 if kind in ("mxf4", "mxf4nvf4") else 1  # elements that stay together
    chunks = half // (2 * unit)
    meta = rng.choice(np.array(list(PAIRS)), (rows, chunks))
    for chunk in range(chunks):
        for place in range(2):
            where = np.array([PAIRS[int(bits)][place] for bits in meta[:, chunk]])
            for inner in range(unit):
                target = chunk * 4 * unit + where * unit + inner
                found[row, target] = stored[:, (2 * chunk + place) * unit + inner]
    return found, meta
