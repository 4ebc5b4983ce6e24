"""Inputs: words near the edges of their types, and random bits. All seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.numbers import FORMATS, Format
from ptxgen.instr.model.types import Type

WORDS: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def integer_edges(bits: int) -> list[int]:
    """0, 1, -1, the extremes, and what shifts and masks stumble over."""
    top, mask = 1 << (bits - 1), (1 << bits) - 1
    near = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, top - 2, top - 1, top, top + 1, mask - 1, mask]
    return list(dict.fromkeys(each & mask for each in near))


def float_edges(format: Format) -> list[int]:
    """Zeros, subnormals, one and its neighbors, the largest, infinities and NaNs, of both signs."""
    one, step = format.bias << format.fraction, 1 << format.fraction
    top = format.sign - 1
    found = [
        0, 1, 2, step - 1, step, step + 1, one - 1, one, one + 1, one + step, one - step, one + (step >> 1),
        one + 10 * step, one + (format.fraction << format.fraction), format.largest - 1, format.largest,
        format.infinity, format.infinity + 1, format.infinity + (step >> 1), top,
    ]  # fmt: skip
    words = [word & top for word in found]
    return list(dict.fromkeys([*words, *(word | format.sign for word in words)] if format.signed else words))


def near_one(format: Format, rng: np.random.Generator, count: int) -> list[int]:
    """Numbers with few bits around one: sums that cancel and products that tie."""
    one, fraction = format.bias << format.fraction, format.fraction
    found = []
    for _ in range(count):
        word = one + (int(rng.integers(-8, 9)) << fraction) + (int(rng.integers(0, 16)) << max(fraction - 4, 0))
        found.append((word & (format.sign - 1)) | (format.sign if rng.integers(2) else 0))
    return found


def format_of(type: Type) -> Format | None:
    """The format of a type's elements, None of an integer."""
    name = type.name.removesuffix("x2").removesuffix("x4")
    return FORMATS.get(name)


def words(kind: str, bits: int, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """`count` words of a type by name ("u32", "f16", "b64"; packed ones element by element): edges and random bits."""
    base, _, packed = kind.partition("x")
    if packed and base in FORMATS | {"u16": 0, "s16": 0, "u8": 0, "s8": 0}:
        width = FORMATS[base].bits if base in FORMATS else int(base[1:])
        parts = [words(base, width, count, rng).astype(np.uint64) for _ in range(int(packed))]
        total = np.zeros(count, np.uint64)
        for index, part in enumerate(parts):
            total |= part << np.uint64(index * (bits // int(packed)))
        return total.astype(WORDS[bits])
    format = FORMATS.get(base)
    random = (
        [int(each) for each in rng.integers(0, 1 << min(bits, 64), count, dtype=np.uint64, endpoint=False)]
        if (bits < 64)
        else [int(each) for each in rng.integers(0, 2**64, count, dtype=np.uint64)]
    )
    edges = float_edges(format) if format is not None else integer_edges(bits)
    if format is not None:
        edges = [*edges, *edges, *near_one(format, rng, len(edges))]
    picks = rng.integers(0, len(edges), count)
    is_edge = rng.random(count) < 0.65
    chosen = [edges[pick] if edge else word for pick, edge, word in zip(picks, is_edge, random, strict=True)]
    # Every edge at least once, as far as there is room.
    for index, word in enumerate(dict.fromkeys(edges)):
        if index < count // 2:
            chosen[index] = word
    order = rng.permutation(count)
    mask = (1 << bits) - 1
    return np.array([chosen[index] & mask for index in order], WORDS[max(bits, 8)])


def floats(rng: np.random.Generator, shape: int | tuple[int, ...], low: int = -4, high: int = 5) -> NDArray[Any]:
    """Small whole numbers as float32, which tensor cores add exactly in any order."""
    return rng.integers(low, high, shape).astype(np.float32)
