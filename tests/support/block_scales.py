"""Scale factors and instruction descriptors of block-scaled MMA, written from the manual's tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.support.tensor_layouts import CODES, values_of


def scaled_idesc(
    n: int,
    a: str,
    b: str,
    scale: str,
    ids: tuple[int, int] = (0, 0),
    *,
    sparse: bool = False,
    packed: bool = False,
    negate: tuple[bool, bool] = (False, False),
    majors: str = "kk",
) -> int:
    """PTX ISA tables 43 and 44, M 128."""
    code = {**CODES, "e2m1": 1} if packed else CODES
    return (
        sparse << 2
        | ids[1] << 4
        | code[a] << 7
        | code[b] << 10
        | negate[0] << 13
        | negate[1] << 14
        | (majors[0] == "m") << 15
        | (majors[1] == "m") << 16
        | n // 8 << 17
        | (scale == "ue8m0") << 23
        | 1 << 27
        | ids[0] << 29
    )


def scale_codes(rng: np.random.Generator, rows: int, count: int, type: str) -> NDArray[np.uint32]:
    if type == "ue8m0":
        return rng.integers(118, 137, (rows, count), dtype=np.uint32)
    return rng.integers(0, 0x7F, (rows, count), dtype=np.uint32)


def scale_values(codes: NDArray[np.uint32], type: str) -> NDArray[np.float64]:
    return np.ldexp(1.0, codes.astype(int) - 127) if type == "ue8m0" else values_of(codes, "e4m3")
