"""Tensors and boxes that the tests of TMA loads and of TMA stores share."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ptxgen.descriptors import TensorMap
from ptxgen.emulator import Emulator

#: Bytes of the destination buffer, which begins on a multiple of 1024.
BUFFER = 20480
SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "s64": 8, "f64": 8}
#: (bytes of a swizzled row, first address bit that is XORed, how many); the source begins at bit 7 (5.5.7).
SWIZZLES = {
    "none": (0, 4, 0), "32B": (32, 4, 1), "64B": (64, 4, 2), "128B": (128, 4, 3), "128B_atom_32B": (128, 5, 2),
    "128B_atom_64B": (128, 6, 1),
}  # fmt: skip


def random_case(rng: random.Random, dtype: str, rank: int, swizzle: str) -> tuple[Any, ...]:
    """(dims, strides, box, coords) with boxes that stick out at every side, and rows with gaps between them."""
    size = SIZES[dtype]
    widest = SWIZZLES[swizzle][0] or 16 * rng.randrange(1, 9)
    box = [16 * rng.randrange(1, widest // 16 + 1) // size]
    while rank > len(box):
        room = 16384 // (max(SWIZZLES[swizzle][0], box[0] * size) * int(np.prod(box[1:])))
        box.append(rng.randrange(1, max(2, min(room, 12) + 1)))
    dims = [rng.randrange(1, 3 * b + 2) for b in box]
    strides, stride = [], -(-dims[0] * size // 16) * 16
    for extent in dims[1:]:
        strides.append(stride + 16 * rng.randrange(3))
        stride = strides[-1] * extent
    step = 16 // size
    first = rng.randrange(-box[0] // step - 1, dims[0] // step + 2) * step if step else rng.randrange(-2, dims[0] + 1)
    coords = [first] + [rng.randrange(-b, d + 1) for b, d in zip(box[1:], dims[1:], strict=True)]
    if rng.random() < 0.3:  # wholly inside if it can be
        coords = [0] + [rng.randrange(max(1, d - b + 1)) for b, d in zip(box[1:], dims[1:], strict=True)]
    return tuple(dims), tuple(strides), tuple(box), tuple(coords)


def simple(emulator: Emulator, **changes: Any) -> TensorMap:
    options = {"dims": (64, 32), "strides": (128,), "box": (32, 8), **changes}
    # By its address: a map that reaches past its array is refused.
    return TensorMap.tiled("f16", emulator.array(np.zeros(64 * 32, np.uint16) + 1).address, **options)
