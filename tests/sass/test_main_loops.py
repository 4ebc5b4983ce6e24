"""The main loops of the kernels: no local memory, no serialized wgmma, accumulators that stay in registers."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.gemm import find, kernels
from ptxgen.sass import load, summarize
from ptxgen.sass.flow import Flow
from ptxgen.toolchain import assemble
from tools.main_loops.__main__ import RUNGS
from tools.main_loops.loops import rows

HOPPER = [name for name, entry in kernels().items() if entry.target == "sm_90a" and name != "hopper/gemv"]  # no wgmma


@pytest.mark.parametrize("rung", RUNGS)
def test_loads_and_mmas_of_a_k_block(rung: str) -> None:
    """As docs/measurements.md has them; a change that makes them longer shows here."""
    load_row, mma = rows(rung, load(assemble(find(rung).plan().text).data))
    assert (load_row.role, mma.role) == ("load", "MMA")
    converged = find(rung).plan().config.converged
    assert load_row.instructions <= (31 if converged else 38)
    assert mma.instructions <= (89 if rung.startswith("nvfp4") else 45 if converged else 51)
    assert load_row.local == mma.local == 0
    if converged:  # whole warps keep stages, phases and descriptors in uniform registers
        assert load_row.r2ur == mma.r2ur == 0
    else:
        assert load_row.r2ur > 0 < mma.r2ur


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "choices", [{}, {"dtype": "e4m3", "c_dtype": "bf16", "n_tile": 128}, {"activation": "gelu", "bias": "f32"}], ids=str
)
@pytest.mark.parametrize("name", HOPPER)
def test_wgmma_is_not_serialized(name: str, choices: dict[str, Any]) -> None:
    """ptxas says nothing (C7517 would be a warning), and no loop with wgmma moves registers about or spills them."""
    plan = find(name).plan(**choices)
    cubin = assemble(plan.text)
    assert not cubin.warnings
    listing = load(cubin.data)
    function = listing.kernel()
    summary = summarize(function, listing)
    assert summary.local_loads == summary.local_stores == 0
    flow = Flow(function)
    loops = [flow.instructions(loop) for loop in flow.loops]
    with_mma = [body for body in loops if any(each.opcode.endswith("GMMA") for each in body)]
    assert with_mma
    assert sum(each.opcode == "MOV" for each in min(with_mma, key=len)) < 16
