"""hopper/gemv: right and clean with every option, with rows and elements of K left over."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ptxgen.emulator import Emulator
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import run_gemm
from ptxgen.toolchain import assemble

GEMV = find("hopper/gemv")


@pytest.mark.parametrize(
    "options",
    [
        {"k_warps": 2},
        {"vectors": 2, "k_warps": 8, "dtype": "f16"},
        {"vectors": 4, "warp_rows": 2, "c_dtype": "f32"},
        {"vectors": 2, "warp_rows": 4, "k_warps": 4, "dependent": True},
    ],
    ids=lambda options: " ".join(f"{name}={value}" for name, value in options.items()),
)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_the_product_is_right(options: dict[str, Any], schedule: Literal["eager", "late", "random"]) -> None:
    for shape in ((1, 20, 2373), (3, 9, 520), (5, 33, 7)):  # whole blocks and a rest, pieces only, a tail only
        result = run_gemm(Emulator("sm_90a", schedule=schedule), GEMV.plan(**options), *shape)
        assert result.ok, result.summary()
        assert not result.launch.findings


def test_rows_of_b_are_dealt_out() -> None:
    plan = GEMV.plan(warp_rows=2, k_warps=4)
    assert plan.scheduler.columns == 4
    assert plan.problem(1, 4097, 64).grid == (1, 1025, 1)
    assert [region.bytes for region in plan.shared.regions] == [64]


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_nothing_spills_and_three_ctas_fit(vectors: int, rows: int) -> None:
    cubin = assemble(GEMV.plan(vectors=vectors, warp_rows=rows, k_warps=8).text)
    assert (cubin.spill_stores, cubin.spill_loads) == (0, 0)
    assert cubin.registers <= 84  # 65536 registers, 3 CTAs of 256 threads


def test_what_it_does_not_take() -> None:
    with pytest.raises(PlanError, match="multiplies bf16 or f16, not e4m3"):
        GEMV.plan(dtype="e4m3", c_dtype="bf16")
    with pytest.raises(PlanError, match="has no option bias"):
        GEMV.plan(bias="bf16")
    with pytest.raises(PlanError, match="K must be a multiple of 8"):
        GEMV.plan().problem(1, 8, 12)
