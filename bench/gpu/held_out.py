"""Shapes drawn at random: some tune the dispatcher, others only judge it.

The distribution: M log-uniform from 1 to 16384; N and K log-uniform from 512 to 32768, multiples of 8, a third of them
no multiples of 64, the others of 64 or of 128 with equal chance; of fp8 multiples of 16, as cublasLt requires. The
parts have no N and K in common: a hash of the
two decides which part a problem belongs to, so that a row that judges never tunes a neighbor of itself.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from typing import Literal, cast, get_args

from bench.gpu.suite import Row, suite

Part = Literal["tuning", "judging"]
MOST_M, LEAST, MOST = 16384, 512, 32768
#: Problems beyond are not drawn for tuning: one launch takes more than 5 ms.
LARGEST_TUNING_FLOPS = 2e12


def part_of(n: int, k: int) -> Part:
    """The part that problems with this N and K belong to."""
    digest = hashlib.sha256(f"{n}x{k}".encode()).digest()
    return "judging" if digest[0] % 2 else "tuning"


def draw(part: Part, count: int, dtype: str, seed: int) -> list[Row]:
    """So many rows of a part, always the same for a seed."""
    source = random.Random(f"{part} {dtype} {seed}")
    made: dict[str, Row] = {}
    least = 16 if dtype in ("e4m3", "e5m2") else 8
    while len(made) < count:
        m = round(math.exp(source.uniform(0, math.log(MOST_M))))
        n, k = _extent(source, least), _extent(source, least)
        row = Row("drawn", m, n, k, dtype, f"{part} {seed}")
        if part_of(n, k) != part or (part == "tuning" and row.flops > LARGEST_TUNING_FLOPS):
            continue
        made.setdefault(row.key, row)
    return list(made.values())


def rows_of(dtype: str, drawn: Sequence[str] | None) -> list[Row]:
    """The rows of the suite, or drawn ones: `drawn` has the part, how many and their seed. Raises ValueError."""
    if not drawn:
        return suite(dtype)
    part, count, seed = drawn
    if part not in get_args(Part):
        raise ValueError(f"{part!r} is no part of the drawn rows: {' or '.join(get_args(Part))}")
    return draw(cast(Part, part), int(count), dtype, int(seed))


def _extent(source: random.Random, least: int) -> int:
    """N or K, a multiple of `least`."""
    odd = source.random() < 1 / 3
    step = least if odd else source.choice((64, 128))
    while True:
        value = round(math.exp(source.uniform(math.log(LEAST), math.log(MOST))) / step) * step
        if LEAST <= value <= MOST and not (odd and value % 64 == 0):
            return value


def class_of(m: int) -> str:
    """The class of a number of rows, as the page reports them."""
    return "1-8" if m <= 8 else "9-64" if m <= 64 else "65-512" if m <= 512 else "above"


CLASSES = ("1-8", "9-64", "65-512", "above")
