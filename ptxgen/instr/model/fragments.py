"""Fragments: how many registers of a thread hold its part of a matrix. PTX ISA 9.7.14.4.1, 9.7.14.5, 9.7.14.6.2."""

import re
from functools import lru_cache

WARP = 32


@lru_cache(maxsize=256)
def dimensions(shape: str) -> tuple[int, int, int]:
    """M, N and K of a shape such as `m16n8k16`: A is M x K, B is K x N, C and D are M x N."""
    m, n, k = re.findall(r"\d+", shape)
    return int(m), int(n), int(k)


def registers(elements: int, bits: int) -> int:
    """Registers of each thread for a matrix that a warp shares evenly: of 64 bits for elements of 64, else of 32."""
    return elements * bits // (WARP * max(32, bits))
