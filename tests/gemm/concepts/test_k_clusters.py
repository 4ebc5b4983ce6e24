"""K split over clusters, or CTAs without: sums in global memory, and the last warp to come adds them up."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxgen
from ptxgen import Emulator, assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.concepts.workspace import SplitWorkspace
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.prediction import timed
from ptxgen.gemm.prediction.timed import predict_gemm
from ptxgen.gemm.selection.arguments import Packed
from ptxgen.gemm.selection.dispatch import Choice

NAME = "hopper/overlapped"
_APART: dict[str, Any] = {"scheduler": "grid", "panel": 0, "cluster_m": 1, "stages": 2, "chunk": 32}
_FP8: dict[str, Any] = {"dtype": "e4m3", "c_dtype": "bf16"}
#: ((M, N, K), choices): K blocks that the parts do not divide, fewer than parts, and tails in M, N and K.
CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((140, 70, 328), {**_APART, "n_tile": 64, "k_clusters": 2}),
    ((70, 140, 700), {**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 8}),
    ((70, 140, 136), {**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 4}),  # fewer K blocks than parts
    ((200, 100, 456), {**_APART, "n_tile": 96, "m_tile": 192, "k_clusters": 3}),
    ((300, 70, 328), {**_APART, "n_tile": 64, "cluster_m": 2, "k_clusters": 2}),
    ((140, 140, 456), {**_APART, "n_tile": 64, "cluster_n": 2, "k_clusters": 3, "m_tile": 64, "panel": 8}),
    ((300, 140, 328), {**_APART, "n_tile": 64, "cluster_m": 2, "cluster_n": 2, "k_clusters": 4}),
    ((300, 140, 328), {**_APART, "n_tile": 64, "cluster_m": 4, "cluster_n": 2, "k_clusters": 2, "m_tile": 64}),
    ((261, 70, 328), {**_APART, "n_tile": 64, "c_major": "m", "k_clusters": 2, "cluster_n": 2}),
    ((140, 70, 328), {**_APART, "n_tile": 64, "k_clusters": 2, "epilogue": "direct", "c_dtype": "f32"}),
    ((140, 70, 328), {**_APART, "n_tile": 64, "k_clusters": 3, "alpha": True, "bias": "f32", "activation": "relu"}),
    ((140, 70, 656), {**_APART, **_FP8, "n_tile": 64, "k_clusters": 2}),
    ((140, 70, 656), {**_APART, **_FP8, "n_tile": 64, "k_clusters": 3, "promote": False, "cluster_m": 2}),
    ((300, 70, 656), {**_APART, **_FP8, "n_tile": 64, "m_tile": 256, "warpgroups": 2, "k_clusters": 2}),
    ((140, 70, 656), {**_APART, "n_tile": 64, "k_clusters": 2, "dtype": "s8", "epilogue": "direct"}),
    # Clusters that split their share of K themselves.
    ((140, 70, 968), {**_APART, "n_tile": 64, "k_clusters": 2, "split_k": 2}),
    ((140, 70, 1352), {**_APART, "n_tile": 64, "k_clusters": 3, "split_k": 3, "sums": "ring"}),
    ((70, 140, 1100), {**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 4, "split_k": 4, "sums": "ring"}),
    ((70, 140, 264), {**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 2, "split_k": 8}),  # fewer K blocks
    ((300, 70, 712), {**_APART, "n_tile": 64, "cluster_m": 2, "k_clusters": 3, "split_k": 2, "sums": "ring"}),
    ((130, 140, 712), {**_APART, "n_tile": 64, "c_major": "m", "cluster_n": 2, "k_clusters": 2, "split_k": 3}),
    ((140, 70, 1300), {**_APART, **_FP8, "n_tile": 64, "k_clusters": 2, "split_k": 4, "promote": False}),
    ((140, 70, 1100), {**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 16}),
    ((140, 300, 328), {**_APART, "n_tile": 272, "k_clusters": 2, "cluster_m": 2, "chunk": 136, "chunk_buffers": 1}),
]


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


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "choices",
    [
        *(choices for _, choices in CASES),
        {**_APART, "n_tile": 256, "k_clusters": 8, "stages": 4, "cluster_m": 4, "cluster_n": 2},
        {**_APART, "n_tile": 384, "k_clusters": 5, "cluster_m": 2, "chunk": 64},
        {**_APART, "n_tile": 200, "m_tile": 192, "k_clusters": 3, "chunk": 40, "cluster_n": 2},
        {**_APART, "n_tile": 160, "m_tile": 192, "k_clusters": 2, "cluster_m": 2, "c_major": "m"},
        {**_APART, "n_tile": 256, "k_clusters": 2, "cluster_m": 2, "c_major": "m", "chunk": 64},
        {**_APART, **_FP8, "n_tile": 200, "k_clusters": 3, "chunk": 40, "cluster_m": 2},
        {**_APART, "n_tile": 256, "k_clusters": 3, "stages": 4, "split_k": 4, "sums": "ring"},
        {**_APART, "n_tile": 192, "k_clusters": 16, "stages": 4, "split_k": 8, "sums": "ring", "m_tile": 64},
        {
            **_APART,
            "n_tile": 208,
            "m_tile": 192,
            "k_clusters": 2,
            "stages": 3,
            "split_k": 3,
            "chunk": 104,
            "chunk_buffers": 1,
            "sums": "ring",
        },
        {**_APART, "n_tile": 200, "c_major": "m", "k_clusters": 4, "split_k": 4, "chunk": 40, "sums": "ring"},
    ],
    ids=str,
)
def test_the_ptx_is_clean_and_no_register_spills(choices: dict[str, Any]) -> None:
    text = find(NAME).plan(**choices).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def _launch(device: Emulator, plan: Any, shape: tuple[int, int, int], workspace: Any, seed: int = 3) -> bytes:
    """C of random operands. `workspace`: a device array that is reused from launch to launch."""
    m, n, k = shape
    random, problem = np.random.default_rng(seed), plan.problem(m, n, k)
    a, b = (device.array(random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16)) for rows in (m, n))
    c = device.empty((m, n), ml_dtypes.bfloat16)
    report = device.launch(
        ptxgen.Kernel.from_ptx(plan.text), problem.grid, problem.block,
        problem.arguments(a, b, c, workspace=workspace.address), shared_bytes=plan.shared.bytes,
    )  # fmt: skip
    assert report.ok, report.summary()
    assert report.findings == []
    return c.numpy().tobytes()


def test_one_workspace_serves_launches_of_other_kernels_and_shapes() -> None:
    """Counters are in one place, and 0 after each launch: nothing of a launch disturbs the next."""
    kernels = [
        (find(NAME).plan(**{**_APART, "n_tile": 64, "k_clusters": 3}), (140, 72, 328)),
        (find(NAME).plan(**{**_APART, "n_tile": 32, "m_tile": 64, "k_clusters": 2}), (300, 200, 136)),
    ]
    words = max(plan.problem(*shape).workspace_words for plan, shape in kernels)
    device = Emulator("sm_90a", "random", seed=2, multiprocessors=4)
    workspace = device.array(np.zeros(words, np.uint32))
    made = [_launch(device, *each, workspace) for each in [*kernels, *kernels]]
    assert made[:2] == made[2:]
    found = workspace.numpy()
    assert not found[: 65536 // 4].any()
    assert found.any()


def test_sums_do_not_depend_on_who_comes_last() -> None:
    """Clusters are added in the order of K: the bits are the same under every schedule."""
    plan, shape, made = find(NAME).plan(**{**_APART, "n_tile": 64, "m_tile": 64, "k_clusters": 5}), (70, 72, 704), set()
    for schedule, seed in (("eager", 0), ("late", 0), ("random", 1), ("random", 2), ("random", 3)):
        device = Emulator("sm_90a", schedule, seed=seed, multiprocessors=8)  # type: ignore[arg-type]
        workspace = device.array(np.zeros(plan.problem(*shape).workspace_words, np.uint32))
        made.add(_launch(device, plan, shape, workspace))
    assert len(made) == 1


def test_parts_need_not_run_at_once() -> None:
    """One CTA at a time: the last part of a tile finds the sums of the others."""
    plan, shape = find(NAME).plan(**{**_APART, "n_tile": 64, "k_clusters": 4}), (140, 72, 520)
    device = Emulator("sm_90a", multiprocessors=1)
    assert _launch(device, plan, shape, device.array(np.zeros(plan.problem(*shape).workspace_words, np.uint32)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("atom.acq_rel.gpu.global.inc.u32", "atom.relaxed.gpu.global.inc.u32"),
        ("atom.acq_rel.gpu.global.inc.u32", "atom.release.gpu.global.inc.u32"),
        ("atom.acq_rel.gpu.global.inc.u32", "atom.acquire.gpu.global.inc.u32"),
        ("atom.acq_rel.gpu.global.inc.u32", "atom.acq_rel.cta.global.inc.u32"),
        # The first cluster is added twice.
        (r"add\.u64 (%rd_sums, %rd_sums), 32768;", r"add.u64 \1, 0;"),
        # Every cluster leaves its sums in the place of the first.
        (r"mul\.wide\.u32 (%rd_own_sums, %r_k_cluster), 32768;", r"mul.wide.u32 \1, 0;"),
    ],
)
def test_planted_bugs_are_found(old: str, new: str) -> None:
    plan = find(NAME).plan(**{**_APART, "n_tile": 64, "k_clusters": 2})
    text, count = re.subn(old, new, plan.text)
    assert count == 1
    result = GemmJob(plan, 140, 70, 328).run(Emulator(plan.target, "late", multiprocessors=8), text=text)
    assert not result.ok or "missing-fence" in [each.code for each in result.launch.findings]


def test_the_workspace_by_hand() -> None:
    """128x64 tiles of 8 warps, 32 registers of 32 lanes of 4 bytes each, of 3 parts."""
    problem = find(NAME).plan(**{**_APART, "n_tile": 64, "k_clusters": 3}).problem(300, 200, 136)
    assert problem.grid == (3, 4, 3)
    assert problem.workspace_words * 4 == 65536 + 12 * 3 * 8 * 32 * 32 * 4
    assert SplitWorkspace(2, 8, 32, "f32").bytes_of(2048) == 65536 + 2048 * 2 * 8 * 4096
    with pytest.raises(PlanError, match="counters for 2048 tiles of 8 warps, not for 2049"):
        SplitWorkspace(2, 8, 32, "f32").bytes_of(2049)
    with pytest.raises(PlanError, match="the kernel takes a workspace, but none is given"):
        problem.arguments(0, 16, 32)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"sums": "ring"}, "sums=ring takes split_k of 2 or more"),
        ({"scheduler": "static"}, "k_clusters=2 takes scheduler=grid"),
        ({"split_k": 3, "batched": True}, "split_k=3 k_clusters=2 takes scheduler=grid"),
        ({"split_k": 4, "cluster_m": 4}, "a cluster has at most 8 CTAs, but 4×1 of split_k=4 has 16"),
        ({"k_clusters": 17}, "k_clusters must be 1 to 16, not 17"),
        ({"batched": True}, "batched=false; this kernel has batched=true"),
        ({**_FP8, "scales": "1d2d"}, "scales=none, batched=false; this kernel has scales=1d2d"),
        ({"cluster_m": 4, "cluster_n": 4}, "a cluster has at most 8 CTAs, but 4×4"),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(NAME).plan(**{**_APART, "n_tile": 64, "k_clusters": 2, **choices})


def test_a_prepared_launch_takes_the_workspace_by_its_address() -> None:
    """Beside A, B, C and a bias; a kernel without one has no place for it."""
    for more, count in (({"k_clusters": 2}, 1), ({"k_clusters": 1}, 0)):
        choice = Choice(find(NAME).plan(**{**_APART, "n_tile": 64, **more}), 300, 200, 136)
        made = Packed.of(choice, choice.problem(), None)
        names = [name for _, name in choice.plan.parameters]
        assert [names[at] for at in made.places[4]] == ["workspace"] * count


def test_the_predicted_time_has_the_sums_of_the_last_part(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = find(NAME).plan(**{**_APART, "n_tile": 128, "k_clusters": 4})
    made = predict_gemm(plan, 256, 512, 1024, "h200").cycles
    monkeypatch.setattr(timed, "_workspace", lambda problem, words: np.zeros(words, np.uint32))
    assert made > predict_gemm(plan, 256, 512, 1024, "h200").cycles + 1000
