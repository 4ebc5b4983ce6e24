"""What makes Hopper kernels fast: stream-K, warpgroups of 128 rows, C along M, a lag, hints and dependent launches."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import Emulator, assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.concepts.workspace import Workspace
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.plan import GemmPlan

NAME = "hopper/overlapped"
#: Tiles of few tokens: weights along M, so that C is contiguous along M.
SWAPPED: dict[str, Any] = {"c_major": "m", "m_tile": 64, "n_tile": 16, "cluster_m": 1, "chunk": 16, "chunk_buffers": 1}
STREAM: dict[str, Any] = {"scheduler": "stream", "n_tile": 64, "cluster_m": 1, "panel": 0}
TALL: dict[str, Any] = {"dtype": "e4m3", "c_dtype": "bf16", "m_tile": 256, "warpgroups": 2, "stages": 2}
#: (shape, choices)
CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((300, 200, 200), {"m_tile": 256, "warpgroups": 2, "n_tile": 96, "chunk": 32, "slots": 4}),
    ((300, 260, 136), {"m_tile": 256, "warpgroups": 2, "n_tile": 192, "cluster_m": 1, "stages": 3, "slots": 2}),
    ((300, 200, 136), {"m_tile": 128, "n_tile": 128, "consumers": "pingpong", "slots": 4}),
    ((200, 200, 136), {"m_tile": 128, "warpgroups": 1, "n_tile": 64, "scheduler": "grid"}),
    ((300, 200, 400), {"n_tile": 64, "lag": 2, "slots": 4}),
    ((300, 200, 64), {"n_tile": 64, "lag": 3, "slots": 4}),
    ((300, 200, 136), {"n_tile": 64, "load_registers": 24, "slots": 4}),
    ((300, 200, 136), {"m_tile": 192, "n_tile": 64, "load_registers": 56, "slots": 4}),
    ((300, 70, 200), {"c_major": "m", "n_tile": 64, "chunk": 64, "slots": 4}),
    ((300, 30, 200), {**SWAPPED, "scheduler": "grid"}),
    # Lines of C that end inside 16 bytes.
    ((301, 70, 136), {"c_major": "m", "n_tile": 64, "chunk": 64, "slots": 4}),
    ((5, 30, 136), {**SWAPPED, "scheduler": "grid"}),
    ((300, 203, 136), {"m_tile": 256, "warpgroups": 2, "n_tile": 96, "chunk": 32, "slots": 4}),
    ((300, 30, 400), {**SWAPPED, "scheduler": "stream", "slots": 7}),
    ((600, 200, 136), {**STREAM, "slots": 3}),
    ((600, 200, 136), {**STREAM, "cluster_m": 2, "slots": 10}),
    ((600, 200, 136), {**STREAM, "cluster_n": 2, "order": "hilbert", "slots": 6}),
    ((100, 100, 64), {**STREAM, "slots": 6}),  # fewer K blocks than CTAs
    ((256, 128, 128), {**STREAM, "slots": 4}),  # nothing to split
    ((300, 260, 200), {**STREAM, "m_tile": 256, "warpgroups": 2, "panel": 2, "slots": 3}),
    ((300, 200, 200), {"n_tile": 64, "a_hint": "evict_first", "b_hint": "evict_last", "slots": 4}),
    ((300, 200, 200), {"n_tile": 64, "dependent": True, "slots": 4}),
    # Promoted sums of warpgroups of 128 rows, 64 at a time.
    ((300, 200, 400), {**TALL, "n_tile": 64, "slots": 4}),
    ((300, 203, 272), {**TALL, "n_tile": 96, "chunk": 32, "cluster_m": 1, "cluster_n": 2, "slots": 4}),
    ((300, 200, 400), {**TALL, "m_tile": 128, "warpgroups": 1, "consumers": "pingpong", "n_tile": 64, "slots": 4}),
    ((300, 200, 656), {**TALL, **STREAM, "slots": 6}),
    (
        (200, 200, 600),
        {
            "dtype": "e4m3",
            "c_dtype": "bf16",
            "promote": False,
            "m_tile": 128,
            "n_tile": 128,
            "consumers": "pingpong",
            "slots": 2,
        },
    ),
]


@pytest.mark.one_in(18)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1)])
@pytest.mark.parametrize(("shape", "choices"), CASES, ids=str)
def test_right_under_every_schedule(
    shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = find(NAME).plan(**choices)
    result = run_gemm(Emulator(plan.target, schedule, seed=seed, multiprocessors=8), plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "choices",
    [
        *(choices for _, choices in CASES),
        {"m_tile": 256, "warpgroups": 2, "n_tile": 192, "stages": 3, "lag": 1},
        {"m_tile": 128, "n_tile": 192, "consumers": "pingpong"},
        {"scheduler": "stream", "order": "hilbert"},
        {"scheduler": "stream", "m_tile": 256, "warpgroups": 2, "n_tile": 128},
        {**TALL, "n_tile": 128, "stages": 4, "chunk": 32, "chunk_buffers": 1},
        {**TALL, "n_tile": 136, "stages": 3, "cluster_m": 1},
        {**TALL, "m_tile": 128, "warpgroups": 1, "consumers": "pingpong", "n_tile": 128},
    ],
    ids=str,
)
def test_the_ptx_is_clean_and_no_register_spills(choices: dict[str, Any]) -> None:
    text = find(NAME).plan(**choices).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def _run(plan: GemmPlan, text: str, shape: tuple[int, int, int] = (600, 200, 136)) -> Any:
    return GemmJob(plan, *shape).run(Emulator(plan.target, "late", multiprocessors=8, max_steps=400_000), text=text)


def test_the_flags_of_the_workspace_are_0_after_a_launch() -> None:
    """So that the next launch can take the same workspace."""
    plan = find(NAME).plan(**STREAM, slots=3)
    device, problem = Emulator(plan.target, multiprocessors=4), plan.problem(600, 200, 136)
    kernel = ptxgen.Kernel.from_ptx(plan.text)
    a, b = (device.array(np.ones((lines, 136), ptxgen_bf16())) for lines in (600, 200))
    c, workspace = device.empty((600, 200), ptxgen_bf16()), device.array(np.zeros(problem.workspace_words, np.uint32))
    for _ in range(2):
        arguments = problem.arguments(a, b, c, workspace=workspace)
        report = device.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=plan.shared.bytes)
        assert report.ok, report.summary()
        assert (c.numpy().astype(np.float32) == 136).all()
        assert isinstance(plan.workspace, Workspace)
        words = workspace.numpy()
        assert not words[: plan.workspace.flag_bytes // 4].any()
        assert words.any()


def ptxgen_bf16() -> Any:
    from ml_dtypes import bfloat16

    return bfloat16


def test_planted_bugs_of_128_rows_are_found() -> None:
    plan = find(NAME).plan(**TALL, n_tile=32, chunk=32, slots=4)
    second = plan.a.row_offset(64) // 16
    lines = [f"add.u64 %rd_step_a, %rd_stage_a, {second + step};" for step in plan.a.k_steps]
    # The first 64 rows again.
    text = plan.text.replace(lines[2], lines[2].replace(str(second + 4), "4"))
    assert text != plan.text
    assert _run(plan, text, (300, 60, 272)).status == "wrong"
    # The stage is released while the wgmmas of the second 64 rows may read it.
    head, tail = plan.text.split(lines[-1])
    tail, count = re.subn(r"(wgmma\.wait_group[^;]*;)(.*?mbarrier\.arrive[^;]*;)", r"\2 \1", tail, count=1, flags=re.S)
    assert count == 1
    findings = _run(plan, head + lines[-1] + tail, (300, 60, 656)).launch.findings
    assert any(each.message.startswith("race") and "stage" in each.message for each in findings)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("pattern", "new", "status"),
    [
        # The sums may not be there yet.
        (r"st\.release\.gpu\.global\.u32", "st.relaxed.gpu.global.u32", "findings"),
        # The first part of a tile is stored without the others.
        (r"@!%p_behind bra \$complete", "bra $complete", "wrong"),
    ],
)
def test_planted_bugs_of_stream_k_are_found(pattern: str, new: str, status: str) -> None:
    plan = find(NAME).plan(**STREAM, slots=3)
    text, count = re.subn(pattern, new, plan.text)
    assert count == 1
    assert _run(plan, plan.text).ok
    assert _run(plan, text).status == status


def test_one_arrival_too_few_for_the_lag_is_a_deadlock() -> None:
    plan = find(NAME).plan(n_tile=64, lag=1, slots=4)
    lag = plan.pipeline("lag")
    text = plan.text.replace(f"[smem+{lag.full}], 4;", f"[smem+{lag.full}], 5;")
    assert text != plan.text
    assert _run(plan, text).status == "deadlock"


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"c_major": "m", "epilogue": "direct"}, "c_major=m takes wgmma and epilogue=tma, without alpha,"),
        ({"c_major": "m", "bias": "bf16"}, "c_major=m takes wgmma and epilogue=tma, without alpha,"),
        ({"warpgroups": 1, "n_tile": 64, "epilogue": "direct"}, "warpgroups of 128 rows take epilogue=tma"),
        (
            {**TALL, "n_tile": 160},
            "240 registers for its accumulator (160 + 80 for a K block of 64 rows) and 26 more, 266; of 384",
        ),
        ({"warpgroups": 3}, "a warpgroup multiplies 64 or 128 rows: 3 cannot share m_tile = 128"),
        (
            {"m_tile": 192, "n_tile": 272, "cluster_m": 1, "stages": 2},
            "136 registers for its accumulator and 26 more, 162; of 512 threads",
        ),
        ({"m_tile": 256, "warpgroups": 2, "stages": 2}, "256 registers for its accumulator and 26 more, 282; of 384"),
        ({"load_registers": 24, "m_tile": 64}, "load_registers=24 takes two or more consumer warpgroups"),
        ({"load_registers": 48}, "load_registers must be 0, 24, 32, 40 or 56, not 48"),
        ({"lag": 4}, "lag=4 takes two warpgroups, at least 5 stages and whole tiles"),
        ({"lag": 1, "m_tile": 64}, "lag=1 takes two warpgroups, at least 2 stages and whole tiles"),
        ({"lag": 1, "scheduler": "stream"}, "lag=1 takes two warpgroups, at least 2 stages and whole tiles"),
        ({"scheduler": "stream", "batched": True}, "stream takes a Hopper kernel with roles and without batches"),
        ({"scheduler": "stream", "slots": 1}, "slots must be at least 2, the CTAs of a cluster, not 1"),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(NAME).plan(**choices)


@pytest.mark.parametrize(
    ("m_tile", "n_tile", "producer", "consumers", "threads"),
    [
        (128, 128, 0, 232, 384),
        (128, 128, 24, 240, 384),
        (128, 128, 56, 224, 384),
        (192, 96, 0, 160, 512),
        (192, 96, 56, 152, 512),
        (256, 64, 0, 112, 640),
    ],
)
def test_the_consumers_share_what_the_producer_leaves(
    m_tile: int, n_tile: int, producer: int, consumers: int, threads: int
) -> None:
    """By hand: a CTA begins with 65536 registers, in steps of 8 a thread, and setmaxnreg moves them in steps of 8."""
    roles = find(NAME).plan(m_tile=m_tile, n_tile=n_tile, stages=2, load_registers=producer).roles
    assert roles.registers is not None
    assert roles.registers == (producer or {384: 40, 512: 32, 640: 24}[threads], consumers)
    begins = 65536 // threads // 8 * 8 * threads
    assert begins - 8 * (threads - 128) < 128 * roles.registers[0] + (threads - 128) * consumers <= begins


def test_the_workspace_is_an_argument() -> None:
    problem = find(NAME).plan(**STREAM, slots=3).problem(600, 200, 136)
    # 3 CTAs x 8 warps: a flag of 4 bytes each, padded to 256, and 32 registers of 32 lanes.
    assert problem.workspace_words == (256 + 3 * 8 * 32 * 128) // 4
    with pytest.raises(PlanError, match="the kernel takes a workspace, but none is given"):
        problem.arguments(0, 0, 0)


def test_no_fence_of_the_gpu_in_the_main_loop() -> None:
    """An arrival with .release.cluster would be a MEMBAR of the GPU in every K block."""
    text = find(NAME).plan().text
    assert "mbarrier.arrive.shared::cluster.b64" in text
    assert ".release.cluster.shared::cluster" not in text
    assert ".acquire.cluster.shared::cta" not in text
