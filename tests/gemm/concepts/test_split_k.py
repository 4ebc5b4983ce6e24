"""Split K on Hopper: the CTAs of a cluster share the K blocks of a tile and add up their sums through shared memory."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ptxgen import Emulator, assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.plan import GemmPlan
from ptxgen.toolchain import disassemble

NAME = "hopper/overlapped"
#: One tile a CTA, small tiles.
GRID: dict[str, Any] = {"cluster_m": 1, "scheduler": "grid", "panel": 0, "n_tile": 32, "chunk": 32, "stages": 3}
#: Tiles of few tokens: weights along M, so that C is contiguous along M.
SWAPPED: dict[str, Any] = {**GRID, "c_major": "m", "m_tile": 64, "n_tile": 16, "chunk": 16, "chunk_buffers": 1}
#: (shape, choices)
CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((300, 30, 1000), {**SWAPPED, "split_k": 2}),
    ((130, 10, 1000), {**SWAPPED, "split_k": 4}),
    ((130, 10, 1000), {**SWAPPED, "split_k": 8}),  # four of eight CTAs only send
    ((200, 30, 1100), {**SWAPPED, "m_tile": 192, "split_k": 8}),  # twelve warps, of eight CTAs
    ((130, 10, 264), {**SWAPPED, "split_k": 4}),  # shares of 2, 2, 1 and 0 K blocks
    ((64, 16, 8), {**SWAPPED, "split_k": 8}),  # one K block
    ((67, 30, 400), {**SWAPPED, "split_k": 2}),  # lines of C that end inside 16 bytes
    ((200, 70, 520), {**GRID, "split_k": 2}),
    ((200, 70, 520), {**GRID, "split_k": 8}),  # a warp for each of eight CTAs
    ((100, 200, 1100), {**GRID, "split_k": 8, "n_tile": 128, "stages": 2}),  # a loop adds the sums of the others
    ((200, 70, 520), {**GRID, "split_k": 4, "epilogue": "direct"}),
    ((100, 70, 520), {**GRID, "split_k": 4, "m_tile": 64, "n_tile": 48, "chunk": 16, "panel": 2}),
    ((100, 70, 520), {**GRID, "split_k": 4, "m_tile": 64, "order": "hilbert"}),
    ((100, 70, 520), {**GRID, "split_k": 4, "m_tile": 64, "n_tile": 40, "chunk": 40}),
    ((300, 40, 200), {**GRID, "split_k": 2, "m_tile": 256, "warpgroups": 2}),
    ((100, 200, 200), {**GRID, "split_k": 2, "n_tile": 256, "chunk": 64, "stages": 2}),
    ((100, 40, 1000), {**GRID, "split_k": 4, "dtype": "e4m3", "c_dtype": "bf16", "m_tile": 64}),
    ((100, 40, 1000), {**SWAPPED, "split_k": 4, "dtype": "e4m3", "c_dtype": "f16", "promote": False}),
    ((100, 40, 1000), {**GRID, "split_k": 4, "dtype": "s8", "epilogue": "direct", "m_tile": 64}),
    (
        (100, 40, 400),
        {**GRID, "split_k": 4, "dtype": "f16", "m_tile": 64, "n_tile": 64, "a_major": "mn", "b_major": "mn"},
    ),
    ((100, 40, 400), {**SWAPPED, "split_k": 2, "dependent": True, "a_hint": "evict_first", "b_hint": "evict_last"}),
    (
        (100, 40, 400),
        {**GRID, "split_k": 2, "m_tile": 64, "alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu"},
    ),
]
#: The sums of other CTAs in the place of A and B, and CTAs that are no power of two.
UNEVEN: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((130, 10, 1000), {**SWAPPED, "split_k": 3}),
    ((130, 30, 1100), {**SWAPPED, "split_k": 6, "m_tile": 128, "sums": "ring"}),
    ((64, 16, 264), {**SWAPPED, "split_k": 7, "sums": "ring"}),  # five K blocks
    ((100, 70, 1100), {**GRID, "split_k": 5, "n_tile": 72, "chunk": 72, "stages": 3, "sums": "ring"}),
    ((200, 70, 520), {**GRID, "split_k": 8, "sums": "ring"}),
    ((100, 40, 700), {**GRID, "split_k": 2, "m_tile": 64, "sums": "ring", "epilogue": "direct"}),
    ((100, 40, 1000), {**GRID, "split_k": 3, "dtype": "e4m3", "c_dtype": "bf16", "sums": "ring"}),
    ((200, 40, 1000), {**GRID, "split_k": 5, "dtype": "e4m3", "promote": False, "c_dtype": "bf16", "m_tile": 192}),
]
#: Clusters along M, N or both, which multicast; a split K takes one for each share.
PLAIN: dict[str, Any] = {name: value for name, value in GRID.items() if name != "cluster_m"}
TURNED: dict[str, Any] = {name: value for name, value in SWAPPED.items() if name != "cluster_m"}
CLUSTERS: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((130, 60, 260), {**TURNED, "cluster_m": 2, "cluster_n": 2, "split_k": 2}),
    ((130, 40, 390), {**TURNED, "cluster_m": 2, "split_k": 3, "sums": "ring"}),
    ((70, 60, 330), {**TURNED, "cluster_m": 1, "cluster_n": 4, "split_k": 2, "sums": "ring"}),
    ((130, 40, 700), {**PLAIN, "cluster_m": 2, "split_k": 4, "dtype": "e4m3", "c_dtype": "bf16", "sums": "ring"}),
    ((130, 130, 200), {**PLAIN, "cluster_m": 2, "cluster_n": 4, "m_tile": 64}),
    ((300, 70, 200), {**TURNED, "cluster_m": 4, "cluster_n": 2, "scheduler": "static", "slots": 16, "panel": 2}),
    ((200, 70, 330), {**PLAIN, "cluster_m": 2, "cluster_n": 2, "dtype": "e4m3", "c_dtype": "bf16"}),
]
CASES += [*UNEVEN, *CLUSTERS]
BATCHED: dict[str, Any] = {**GRID, "split_k": 2, "m_tile": 64, "batched": True}


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1)])
@pytest.mark.parametrize(("shape", "choices"), CASES, ids=str)
def test_right_under_every_schedule(
    shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = find(NAME).plan(**choices)
    result = run_gemm(Emulator(plan.target, schedule, seed=seed, multiprocessors=8), plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_right_in_other_random_orders(parts: int, seed: int) -> None:
    plan = find(NAME).plan(**SWAPPED, split_k=parts)
    result = run_gemm(Emulator(plan.target, "random", seed=seed, multiprocessors=8), plan, 100, 10, 1000)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


def test_batches_are_right() -> None:
    plan = find(NAME).plan(**BATCHED)
    result = run_gemm(Emulator(plan.target, "late", multiprocessors=8), plan, 100, 40, 400, batches=3)
    assert result.ok, result.summary()
    assert result.problem.grid == (2, 2, 6)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "choices",
    [
        *(choices for _, choices in CASES),
        BATCHED,
        {**SWAPPED, "split_k": 8, "m_tile": 128, "n_tile": 128, "chunk": 64, "stages": 3},
        {**GRID, "split_k": 2, "m_tile": 128, "n_tile": 192, "chunk": 64, "stages": 2},
    ],
    ids=str,
)
def test_the_ptx_is_clean_and_no_register_spills(choices: dict[str, Any]) -> None:
    text = find(NAME).plan(**choices).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_nothing_of_the_gpu_is_fenced_or_invalidated_between_the_main_loop_and_the_stores(parts: int) -> None:
    """An arrival with .release.cluster would be a MEMBAR of the GPU, a wait with .acquire.cluster a CCTL.IVALL."""
    sass = disassemble(assemble(find(NAME).plan(**SWAPPED, split_k=parts).text).data)
    tail = sass[sass.index("HGMMA") : sass.index("UTMASTG")]
    assert "STAS.128" in tail
    assert not re.search(r"MEMBAR\.\w+\.(GPU|SYS)|CCTL|UCGABAR", tail)
    assert not re.search(r"MEMBAR\.\w+\.(GPU|SYS)", sass)


def test_the_shares_of_k() -> None:
    reduction = find(NAME).plan(**SWAPPED, split_k=4).reduction
    assert reduction is not None
    # 18 K blocks of 64: shares of 5, 5, 5 and 3.
    assert find(NAME).plan(**SWAPPED, split_k=4).share(1100) == 320
    # Four warps, each owned by one CTA; a warp has the sums of 16 rows and 16 columns, 1024 bytes.
    assert (reduction.owned, reduction.received, reduction.wanted.bytes) == (1, 3072, 3072)
    assert "sums 3 x 1024" in [each.sum for each in find(NAME).plan(**SWAPPED, split_k=4).shared.regions]


def _run(plan: GemmPlan, text: str) -> Any:
    return GemmJob(plan, 100, 10, 1000).run(
        Emulator(plan.target, "late", multiprocessors=8, max_steps=400_000), text=text
    )


@pytest.mark.parametrize(
    ("pattern", "new", "status"),
    [
        # A peer may not have started, nor initialized its mbarriers.
        (r"barrier\.cluster\.wait\.acquire\.aligned;(?=[^$]*\$multiply_tile)", "", "findings"),
        # The sums may not be there yet.
        (r"mov\.b32 %r_sums_phase, 0;", "mov.b32 %r_sums_phase, 1;", "fault"),
        # All multiply the first share.
        (r"mul\.lo\.u32 %r_k_first, %r_share, %r_rank;", "mov.b32 %r_k_first, 0;", "wrong"),
    ],
)
def test_planted_bugs_are_found(pattern: str, new: str, status: str) -> None:
    plan = find(NAME).plan(**SWAPPED, split_k=4)
    text, count = re.subn(pattern, new, plan.text)
    assert count == 1
    assert _run(plan, plan.text).ok
    assert _run(plan, text).status == status


@pytest.mark.parametrize("choices", [{"cluster_m": 1}, {"cluster_m": 2}], ids=str)
def test_sums_that_do_not_wait_for_the_end_of_the_ring_are_found(choices: dict[str, Any]) -> None:
    plan = find(NAME).plan(**{**SWAPPED, **choices}, split_k=3, sums="ring")
    text, count = re.subn(
        r"(%p_done, \[%r_ends_slot\+\d+\], %r_ends_phase;\n(?:\s*\.loc.*\n)*)\s*@!%p_done bra .*;", r"\1", plan.text
    )
    assert count == 1
    assert _run(plan, plan.text).ok
    assert _run(plan, text).status in ("findings", "fault")


def test_a_stage_that_only_its_own_cta_releases_is_found() -> None:
    plan = find(NAME).plan(**{**PLAIN, "cluster_m": 2, "cluster_n": 2, "m_tile": 64})
    count = 4 * (2 + 2 - 1)
    ring = plan.pipeline("ab")
    assert ring.empty_arrivals == count  # of its row and its column, not of the CTA across
    first = f"[smem+{ring.empty}], {count};"
    assert first in plan.text
    text = plan.text.replace(first, f"[smem+{ring.empty}], 4;")
    result = GemmJob(plan, 100, 60, 1000).run(
        Emulator(plan.target, "random", seed=1, multiprocessors=8, max_steps=400_000), text=text
    )
    assert not result.ok


def test_too_few_bytes_expected_is_found() -> None:
    plan = find(NAME).plan(**SWAPPED, split_k=4)
    text = plan.text.replace(
        f"[smem+{plan.pipeline('sums').full}], 3072;", f"[smem+{plan.pipeline('sums').full}], 2048;"
    )
    assert text != plan.text
    assert _run(plan, text).status == "findings"


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (
            {"split_k": 4},
            "split_k=4 takes scheduler=grid, consumers=cooperative, lag=0; this kernel has scheduler=static",
        ),
        (
            {**GRID, "split_k": 2, "cluster_m": 4, "cluster_n": 2},
            "a cluster has at most 8 CTAs, but 4×2 of split_k=2 has 16",
        ),
        (
            {**GRID, "scheduler": "stream", "cluster_m": 2, "cluster_n": 2},
            "stream takes clusters along M or along N, but 2×2 goes along both",
        ),
        ({**GRID, "split_k": 2, "lag": 1}, "this kernel has lag=1"),
        ({**GRID, "split_k": 2, "scheduler": "stream"}, "this kernel has scheduler=stream"),
        ({**GRID, "split_k": 2, "consumers": "pingpong"}, "this kernel has consumers=pingpong"),
        ({**GRID, "split_k": 9}, "split_k must be 1 to 8, not 9"),
        ({**GRID, "sums": "ring"}, "sums=ring takes split_k of 2 or more"),
        (
            {**GRID, "split_k": 8, "n_tile": 256, "stages": 2, "sums": "ring"},
            "sums 7 x 16384 bytes do not fit into the 98304 of a and b",
        ),
        (
            {**GRID, "split_k": 8, "n_tile": 128, "stages": 6},
            "c 2 x 8192 + sums 7 x 8192 + ab_full 6 x 8 + ab_empty 6 x 8 + sums_full 8); a CTA on sm_90a has 232448",
        ),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(NAME).plan(**choices)
