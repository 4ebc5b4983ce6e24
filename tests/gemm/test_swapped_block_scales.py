"""fp8 with fp32 scales where A and B are swapped: 128x128 of A and 1x128 of B, C contiguous along M."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, assemble, check
from ptxgen.device import Kernel
from ptxgen.gemm import GemmPlan, PlanError, find
from ptxgen.gemm.block_scales import m_major, quantize_blocks, quantize_rows
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.reference.promoted import PromotedReference
from ptxgen.gemm.selection.dispatch import Choice, Tuned, best

NAME = "hopper/overlapped"
SWAPPED: dict[str, Any] = {
    "dtype": "e4m3", "c_dtype": "bf16", "scales": "2d1d", "c_major": "m", "cluster_m": 1, "panel": 0, "slots": 4,
    "chunk_buffers": 1, "scheduler": "grid", "stages": 2,
}  # fmt: skip
#: (shape, choices)
CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((200, 13, 304), {"m_tile": 64, "n_tile": 16, "chunk": 16, "stages": 3}),
    ((300, 20, 400), {"m_tile": 128, "n_tile": 32, "chunk": 32, "scheduler": "static"}),
    ((200, 64, 272), {"m_tile": 64, "n_tile": 64, "scheduler": "static", "slots": 3}),
    ((264, 100, 136), {"m_tile": 128, "n_tile": 128, "stages": 3}),
    # More K blocks than lanes: the scales of A are loaded three times.
    ((70, 8, 8400), {"m_tile": 64, "n_tile": 16, "chunk": 16, "stages": 4}),
    ((70, 30, 8208), {"m_tile": 64, "n_tile": 32, "chunk": 32, "stages": 4, "split_k": 2}),
    # Four CTAs share K; of three K blocks the last has none.
    ((130, 60, 328), {"m_tile": 64, "n_tile": 64, "split_k": 4}),
    ((140, 9, 1032), {"m_tile": 128, "n_tile": 16, "chunk": 16, "split_k": 8}),
    # Warpgroups outside A, and those of 128 rows.
    ((140, 40, 272), {"m_tile": 192, "n_tile": 48, "chunk": 48}),
    ((70, 100, 272), {"m_tile": 256, "warpgroups": 2, "n_tile": 112, "chunk": 16}),
    ((500, 30, 300), {"m_tile": 128, "warpgroups": 1, "n_tile": 32, "chunk": 32}),
    ((500, 40, 272), {"m_tile": 64, "n_tile": 32, "chunk": 32, "consumers": "pingpong", "scheduler": "static"}),
    ((300, 40, 656), {"m_tile": 64, "n_tile": 40, "chunk": 40, "scheduler": "stream", "slots": 6, "stages": 3}),
    ((150, 40, 272), {"m_tile": 128, "n_tile": 32, "chunk": 32, "cluster_m": 2, "scheduler": "static"}),
    ((150, 20, 272), {"m_tile": 64, "n_tile": 16, "chunk": 16, "cluster_n": 2, "scheduler": "static"}),
    ((130, 20, 272), {"dtype": "e5m2", "b_dtype": "e4m3", "m_tile": 64, "n_tile": 24, "chunk": 24}),
]


def _plan(**choices: Any) -> GemmPlan:
    return find(NAME).plan(**{**SWAPPED, "m_tile": 64, "n_tile": 32, "chunk": 32, **choices})


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1)])
@pytest.mark.parametrize(("shape", "choices"), CASES, ids=str)
def test_right_under_every_schedule(
    shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = _plan(**choices)
    result = run_gemm(Emulator(plan.target, schedule, seed=seed, multiprocessors=8), plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize(
    ("choices", "schedule"),
    [
        ({"m_tile": 128, "n_tile": 32, "cluster_m": 2, "scheduler": "static"}, "late"),
        ({"m_tile": 192, "n_tile": 48, "chunk": 48}, "random"),
        ({"m_tile": 64, "n_tile": 16, "chunk": 16, "split_k": 2}, "eager"),
    ],
    ids=str,
)
def test_each_batch_has_scales_of_its_own(choices: dict[str, Any], schedule: Any) -> None:
    plan = _plan(**choices, batched=True)
    device = Emulator(plan.target, schedule, seed=1, multiprocessors=8)
    result = GemmJob(plan, 260, 40, 272, seed=1, more={"batches": 3}).run(device)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize(
    "choices",
    [
        *(choices for _, choices in CASES),
        {"batched": True, "m_tile": 128, "n_tile": 128, "stages": 4},
        *({"m_tile": m_tile, "n_tile": n_tile, "stages": 6} for m_tile in (64, 128) for n_tile in (16, 128)),
        {"m_tile": 256, "warpgroups": 2, "n_tile": 112, "chunk": 112, "scheduler": "static", "stages": 3},
        {"m_tile": 192, "n_tile": 96, "stages": 4, "scheduler": "static"},
    ],
    ids=str,
)
def test_the_ptx_is_clean_and_no_register_spills(choices: dict[str, Any]) -> None:
    text = _plan(**{"chunk": 16, **choices}).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def test_two_ctas_of_64_rows_share_the_registers_of_a_multiprocessor() -> None:
    for tokens in (16, 32, 64):
        plan = _plan(n_tile=tokens, chunk=16, dependent=True)
        assert assemble(plan.text).registers * plan.roles.threads * 2 <= 65536


def test_the_same_bits_as_without_the_swap() -> None:
    """One set of arrays, handed to both kernels as the dispatcher's choices say."""
    m, n, k = 20, 200, 400
    random = np.random.default_rng(2)
    tokens, weights = random.standard_normal((m, k)), random.standard_normal((n, k))
    (a, sfa), (b, sfb) = quantize_rows(tokens), quantize_blocks(weights)
    own = find(NAME).plan(dtype="e4m3", c_dtype="bf16", scales="1d2d", m_tile=64, n_tile=64, stages=2)
    found = []
    for plan in (own, _plan()):
        choice, device = Choice(plan, m, n, k), Emulator("sm_90a")
        problem = choice.problem()
        arrays = choice.operands(device.array(a), device.array(b))
        scales = choice.operands(device.array(m_major(sfa)), device.array(sfb))
        c = device.array(np.zeros((m, n), np.uint16))
        arguments = problem.arguments(*arrays, c, scales=scales)
        kernel = Kernel.from_ptx(plan.text)
        device.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=plan.shared.bytes)
        found.append(c.numpy())
    assert (found[0] == found[1]).all()
    values = (found[1].astype(np.uint32) << 16).view(np.float32)
    assert np.abs(values - tokens @ weights.T).max() < 6


def test_the_reference_is_near_what_the_dequantized_operands_give() -> None:
    """An independent formula: products in float64 of values that have their scales."""
    reference = PromotedReference(_plan().problem(200, 70, 400), 3)
    (a, b), (sfa, sfb) = reference.inputs, reference.row_scales
    assert (sfa.shape, sfb.shape) == ((2, 4), (70, 4))
    assert np.log2([sfa.max() / sfa.min(), sfb.max() / sfb.min()]).min() > 15
    left, right = (np.zeros(each.shape) for each in (a, b))
    for k in range(400):
        right[:, k] = b[:, k].astype(np.float64) * sfb[:, k // 128]
        for row in range(200):
            left[row, k] = float(a[row, k]) * sfa[row // 128, k // 128]
    sums, _ = reference.sums(slice(None), slice(None))
    # Each of the four wgmmas of a K block cuts 33 addends and the sum at 13 bits.
    assert (np.abs(sums - left @ right.T) <= 4 * 34 * 2.0**-13 * (np.abs(left) @ np.abs(right).T)).all()


@pytest.mark.parametrize(
    ("pattern", "new", "shape"),
    [
        (r"and\.b32 %r_sfb_lane, %r_lane, 3", "and.b32 %r_sfb_lane, %r_lane, 1", (130, 20, 272)),
        (r"add\.u32 %r_sfa_from, %r_sfa_from, 1", "add.u32 %r_sfa_from, %r_sfa_from, 0", (130, 20, 272)),
        (r"mov\.b32 %r_sfa_lane, %r_sfa_next", "mov.b32 %r_sfa_lane, %r_sfa_lane", (64, 8, 4224)),
        (r"shr\.u32 %r_sfa_block, %r_sfa_block, 7", "shr.u32 %r_sfa_block, %r_sfa_block, 8", (130, 20, 272)),
    ],
)
def test_a_wrong_scale_is_found(pattern: str, new: str, shape: tuple[int, int, int]) -> None:
    plan = _plan()
    text, count = re.subn(pattern, new, plan.text)
    assert count == 1
    result = GemmJob(plan, *shape).run(Emulator(plan.target), text=text)
    assert result.status == "wrong"


def test_scales_that_are_overwritten_before_they_are_read_are_found() -> None:
    plan = _plan()
    text = plan.text
    start, end = text.index("ld.shared.v2.b32"), text.index("mul.rn.f32 %r_factor0")
    after = text.index("fma.rn.f32", end)
    products = text.index("    add.u32 %r_sfa_from", end)
    products = text.rindex("\n", end, text.rindex("{", end, products)) + 1
    text = text[:start] + text[products:after] + text[start:products] + text[after:]
    result = GemmJob(plan, 200, 20, 656).run(Emulator(plan.target), text=text)
    assert any("race" in each.message for each in result.launch.findings), result.summary()


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"dtype": "bf16"}, "scales=2d1d multiply promoted sums of e4m3 and e5m2 (promote=true), not those of bf16"),
        ({"promote": False}, "not those of e4m3 without promote"),
        ({"c_major": "n"}, "scales=2d1d take c_major=m"),
        (
            {"m_tile": 256, "warpgroups": 2, "n_tile": 128, "chunk": 64},
            "(128 + 64 for a K block of 64 rows + 42 for scales)",
        ),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        _plan(**choices)


def test_arguments_have_the_layout_that_the_kernel_reads() -> None:
    problem, device = _plan().problem(200, 50, 304, ldc=200), Emulator("sm_90a")
    a, b, c = (device.empty(shape, "u8") for shape in ((200, 304), (50, 304), (50, 400)))
    sfa, sfb = device.empty((2, 3), np.float32), device.empty((3, 52), np.float32)
    arguments = problem.arguments(a, b, c, scales=(sfa, sfb))
    assert arguments[2] is sfa
    assert arguments[3].dims == (50, 3)
    assert problem.encoded["sfb"].box == (32, 1)
    for given, words in (
        ((), "the kernel takes the scales of A and B, but none are given"),
        ((sfb, sfa), "sfa must be 2×3 f32, [blocks of 128 rows of A, K blocks], row-major; the array has the shape"),
        (
            (sfa, device.empty((50, 3), np.float32)),
            "sfb must be 3×52 f32, [K blocks, N rounded up to 4], N contiguous (m_major makes them); the array has the "
            "shape (50, 3), which is row-major: m_major transposes and pads them",
        ),
        ((sfa, device.empty((3, 50), np.float32)), "the array has the shape (3, 50)"),
        ((sfa, device.empty((3, 52), np.float16)), "the array has the type float16"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            problem.arguments(a, b, c, scales=given)


def test_the_dispatcher_exchanges_scales_with_their_matrices() -> None:
    few = best(16, 4096, 7168, "e4m3", c_dtype="bf16", scales="1d2d")
    assert few.swapped
    assert few.plan.config.scales == "2d1d"
    options = ("c_dtype=bf16", "c_major=m", "m_tile=64", "n_tile=16", "chunk=16", "cluster_m=1")
    row = Tuned(16, 4096, 7168, "e4m3", NAME, options, 9.0)
    assert row.plan({"scales": "1d2d"}).config.scales == "2d1d"
