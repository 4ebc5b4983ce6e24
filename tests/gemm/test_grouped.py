"""Groups of rows with a matrix B of their own (contiguous), and batches with rows of their own number (masked)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import assemble
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import GemmJob, GemmResult

SCHEDULES = [("eager", 0), ("late", 0), ("random", 1), ("random", 2)]
_SMALL: dict[str, Any] = {"n_tile": 64, "stages": 2}
CASES: list[tuple[str, tuple[int, int, int], dict[str, Any], dict[str, Any]]] = [
    ("hopper/overlapped", (300, 72, 136), {"cluster_m": 1, "scheduler": "grid", "panel": 0}, {"groups": 3}),
    ("hopper/overlapped", (1000, 40, 72), {"slots": 4}, {"groups": 5}),
    ("hopper/overlapped", (300, 40, 72), {"consumers": "pingpong", "m_tile": 64, "cluster_m": 1, "slots": 3},
     {"groups": 2}),
    ("hopper/overlapped", (300, 130, 136),
     {"dtype": "e4m3", "c_dtype": "bf16", "cluster_m": 1, "cluster_n": 2, "slots": 4}, {"groups": 3}),
    ("hopper/overlapped", (300, 130, 72),
     {"dtype": "f16", "a_major": "mn", "b_major": "mn", "source": "bf16", "alpha": True, "cluster_m": 1, "slots": 2},
     {"groups": 3}),
    ("blackwell/clc", (600, 72, 136), {}, {"groups": 3}),
    ("blackwell/clc", (300, 72, 72), {"order": "hilbert", "source": "f32", "bias": "bf16"}, {"groups": 2}),
    ("blackwell/converged", (1000, 40, 72), {}, {"groups": 1}),
    ("blackwell/pipelined", (300, 72, 136), {}, {"groups": 3}),
    ("hopper/overlapped", (300, 300, 384),
     {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d", "n_tile": 136, "cluster_m": 1, "cluster_n": 2, "slots": 4},
     {"groups": 3}),
    ("hopper/overlapped", (600, 200, 200),
     {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d", "n_tile": 96, "m_tile": 64, "consumers": "pingpong",
      "cluster_m": 2, "slots": 4}, {"groups": 3}),
    ("blackwell/mxfp8-overlap64", (600, 200, 256), {"n_tile": 128}, {"groups": 3}),
    ("blackwell/nvfp4-converged", (300, 130, 512), {"n_tile": 128}, {"groups": 2}),
    ("blackwell/mxfp8-quantizing", (300, 128, 256), {"n_tile": 128}, {"groups": 2}),
]  # fmt: skip
MASKED: list[tuple[str, tuple[int, int, int], dict[str, Any], dict[str, Any]]] = [
    ("hopper/overlapped", (300, 72, 136), {"cluster_m": 1, "scheduler": "grid", "panel": 0}, {"batches": 4}),
    ("hopper/overlapped", (600, 40, 72), {"slots": 4}, {"batches": 3}),
    ("hopper/overlapped", (300, 72, 72), {"c_major": "m", "cluster_m": 1, "slots": 3}, {"batches": 3}),
    ("hopper/overlapped", (300, 200, 304),
     {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d", "n_tile": 136, "cluster_m": 1, "cluster_n": 2, "slots": 4},
     {"batches": 4}),
    ("hopper/overlapped", (600, 136, 200),
     {"dtype": "e5m2", "c_dtype": "f32", "scales": "1d2d", "n_tile": 96, "m_tile": 64, "cluster_m": 2, "slots": 4,
      "epilogue": "direct"}, {"batches": 3}),
    ("hopper/overlapped", (130, 72, 136),
     {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d", "cluster_m": 1, "scheduler": "grid", "panel": 0},
     {"batches": 3}),
    ("blackwell/clc", (600, 40, 136), {}, {"batches": 4}),
    ("blackwell/converged", (600, 40, 136), {}, {"batches": 4}),
    ("blackwell/pipelined", (600, 72, 72), {"cta_group": 1, "cluster_m": 1, "m_tile": 128}, {"batches": 3}),
    ("blackwell/mxfp8-overlap64", (300, 200, 256), {"n_tile": 128}, {"batches": 4}),
    ("blackwell/mxfp8-tma-store", (300, 136, 256), {"n_tile": 64, "overlap": 32, "scheduler": "clc"}, {"batches": 3}),
    ("blackwell/nvfp4-converged", (140, 96, 512), {"n_tile": 96, "c_dtype": "bf16"}, {"batches": 3}),
]  # fmt: skip


def run(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], more: dict[str, Any], schedule: Any, seed: int
) -> GemmResult:
    plan = find(name).plan(**{**_SMALL, **choices})
    device = ptxgen.Emulator(plan.target, schedule, seed=seed, multiprocessors=8)
    return GemmJob(plan, *shape, seed=seed, more=more).run(device)


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(("name", "shape", "choices", "more"), CASES, ids=str)
def test_groups_of_rows(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], more: dict[str, Any], schedule: str, seed: int
) -> None:
    result = run(name, shape, {**choices, "grouped": "contiguous"}, more, schedule, seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(("name", "shape", "choices", "more"), MASKED, ids=str)
def test_batches_of_few_rows(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], more: dict[str, Any], schedule: str, seed: int
) -> None:
    result = run(name, shape, {**choices, "grouped": "masked", "batched": True}, more, schedule, seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mad.lo.s32 %r_blocks_sfa, %r_batch, %r_matrix_blocks, %r_blocks_sfa;", ""),
        ("mad.lo.s32 %r_blocks_sfb, %r_batch, %r_matrix_blocks, %r_blocks_sfb;", ""),
        ("mad.lo.u64 %rd_batch_c, %rd_batch, 4, %rd_c;", "mov.b64 %rd_batch_c, %rd_c;"),
    ],
)
def test_scales_and_lines_of_another_batch_are_wrong(old: str, new: str) -> None:
    plan = find("blackwell/mxfp8-initial").plan(**_SMALL, batched=True)
    job, text = GemmJob(plan, 130, 72, 256, more={"batches": 2}), plan.text.replace(old, new)
    assert job.run(ptxgen.Emulator("sm_100a")).ok
    assert text != plan.text
    assert not job.run(ptxgen.Emulator("sm_100a"), text=text).ok


def test_groups_of_the_reference() -> None:
    plan = find("hopper/overlapped").plan(**_SMALL, grouped="contiguous")
    job = GemmJob(plan, 1100, 40, 64, more={"groups": 3})
    groups, (a, b) = job.reference.groups, job.reference.inputs
    assert groups is not None
    assert plan.scheduler.group_rows == 256
    assert len(groups) == 1100
    assert {*groups} > {-1, 2}
    assert b.shape == (3, 40, 64)
    for start in range(0, 1100, 256):
        assert len(set(groups[start : start + 256])) == 1
    expected, allowed = job.reference.expect(slice(0, 1100), slice(0, 40))
    for row in range(0, 1100, 37):
        product = np.zeros(40) if groups[row] < 0 else b[groups[row]].astype(np.float64) @ a[row].astype(np.float64)
        assert np.allclose(expected[row], product)
    assert (allowed[groups < 0] < 1e-38).all()  # half an ulp of 0


def test_a_kernel_that_takes_one_matrix_for_all_is_wrong() -> None:
    plan = find("hopper/overlapped").plan(**_SMALL, cluster_m=1, slots=4, grouped="contiguous")
    assert plan.text.count("ld.global.b32 %r_batch, [%rd_groups];") == 1
    text = plan.text.replace("ld.global.b32 %r_batch, [%rd_groups];", "mov.b32 %r_batch, 0;")
    result = GemmJob(plan, 300, 40, 64, more={"groups": 3}).run(ptxgen.Emulator("sm_90a"), text=text)
    assert result.status == "wrong"
    assert result.wrong


def test_a_kernel_that_skips_no_tile_is_wrong() -> None:
    plan = find("blackwell/pipelined").plan(
        **_SMALL, cta_group=1, cluster_m=1, m_tile=128, grouped="masked", batched=True
    )
    text = re.sub(r"@%p_skip bra \S+;", "", plan.text)
    result = GemmJob(plan, 300, 40, 64, more={"batches": 3}).run(ptxgen.Emulator("sm_100a"), text=text)
    assert result.wrong == 0
    assert "bytes changed in rows of tiles that are to be skipped" in result.guards.damage
    assert result.status == "wrong"


@pytest.mark.parametrize("name", ["hopper/overlapped", "blackwell/converged", "blackwell/mxfp8-converged"])
@pytest.mark.parametrize("grouped", ["contiguous", "masked"])
def test_machine_code_needs_no_local_memory(name: str, grouped: str) -> None:
    text = find(name).plan(grouped=grouped, batched=grouped == "masked").text
    made = assemble(text)
    assert made.spill_stores == made.spill_loads == 0
    assert not made.warnings


@pytest.mark.parametrize(
    ("choices", "more", "message"),
    [
        ({"grouped": "contiguous", "batched": True}, {}, "grouped=contiguous takes batched=false"),
        ({"grouped": "contiguous", "split_k": 2, "scheduler": "grid"}, {}, "this kernel has split_k=2"),
        ({"grouped": "contiguous", "scheduler": "stream"}, {}, "this kernel has scheduler=stream"),
        ({"grouped": "contiguous", "dtype": "e4m3", "scales": "2d1d", "c_major": "m"}, {}, "has scales=2d1d"),
        ({"grouped": "masked"}, {}, "grouped=masked takes batched=true"),
        (
            {"grouped": "masked", "batched": True, "dtype": "e4m3", "scales": "2d1d", "c_major": "m"},
            {},
            "grouped=masked takes batched=true, split_k=1, k_clusters=1, consumers=cooperative, "
            "lag=0, scales=1d2d and whole tiles; "
            "this kernel has scales=2d1d",
        ),
        ({"grouped": "masked", "batched": True, "consumers": "pingpong", "m_tile": 64}, {}, "consumers=pingpong"),
        ({}, {"groups": 2}, "2 groups take a kernel with grouped=contiguous"),
        ({"grouped": "contiguous"}, {"groups": 0}, "the number of groups must be 1 to 2147483647, not 0"),
    ],
)
def test_what_groups_do_not_take(choices: dict[str, Any], more: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=re.escape(message)):
        GemmJob(find("hopper/overlapped").plan(**choices), 256, 64, 128, more=more)
