"""Our own layouts in CuTe's notation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.cute import of_mode, of_offsets


def notation(offsets: NDArray[np.int64], bits: int, mode: str) -> list[str]:
    """A line with the CuTe layout of byte offsets before the XOR of a mode, in elements; none where there is none."""
    if bits < 8 or (offsets * 8 % bits).any():
        return []
    found = of_offsets(offsets * 8 // bits)
    if found is None:
        return []
    swizzle = of_mode(mode)
    if not swizzle.bits:
        return [f"CuTe: {found} (elements)"]
    scaled = f", {swizzle.scaled(bits)} on elements" if bits > 8 else ""
    return [f"CuTe: {swizzle} on bytes{scaled} o {found}"]
