"""Drawn shapes: their distribution, and that a shape that judges never tunes."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from bench.gpu.fit import require_tuning
from bench.gpu.held_out import LEAST, MOST, MOST_M, class_of, draw, part_of
from bench.gpu.suite import Row


def test_parts_have_no_shape_in_common_and_are_always_the_same() -> None:
    tuning, judging = draw("tuning", 300, "bf16", 1), draw("judging", 300, "bf16", 1)
    assert not {(each.n, each.k) for each in tuning} & {(each.n, each.k) for each in judging}
    assert tuning == draw("tuning", 300, "bf16", 1) != draw("tuning", 300, "bf16", 2)
    assert {part_of(each.n, each.k) for each in tuning} == {"tuning"}
    parts = Counter(part_of(n, k) for n in range(512, 1024, 8) for k in range(512, 1024, 8))
    assert 0.45 < parts["tuning"] / parts.total() < 0.55


@pytest.mark.parametrize(("dtype", "step"), [("bf16", 8), ("e4m3", 16)])
def test_the_distribution_is_the_stated_one(dtype: str, step: int) -> None:
    rows = draw("judging", 2000, dtype, 3)
    assert len({each.key for each in rows}) == 2000
    extents = [extent for each in rows for extent in (each.n, each.k)]
    assert all(LEAST <= extent <= MOST and extent % step == 0 for extent in extents)
    assert all(1 <= each.m <= MOST_M for each in rows)
    odd = sum(extent % 64 != 0 for extent in extents) / len(extents)
    assert abs(odd - 1 / 3) < 0.03
    # Log-uniform: as many in each half of the logarithms.
    assert abs(sum(each.m < math.sqrt(MOST_M) for each in rows) / 2000 - 0.5) < 0.05
    assert abs(sum(extent < math.sqrt(LEAST * MOST) for extent in extents) / 4000 - 0.5) < 0.05
    assert {class_of(each.m) for each in rows} == {"1-8", "9-64", "65-512", "above"}


def test_a_judging_row_cannot_be_fitted() -> None:
    require_tuning(draw("tuning", 20, "bf16", 5))
    (row,) = draw("judging", 1, "bf16", 5)
    with pytest.raises(ValueError, match=f"{row.n}x{row.k} judges"):
        require_tuning([Row("drawn", 1, row.n, row.k)])
