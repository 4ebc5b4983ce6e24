"""Tiles of more columns than a wgmma has: two wgmmas of half the columns each, and two TMA boxes of B."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxgen
from ptxgen import Emulator, assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.concepts.accumulator import RegisterAccumulator
from ptxgen.gemm.job import GemmJob, run_gemm

NAME = "hopper/overlapped"
_ALONE: dict[str, Any] = {"cluster_m": 1, "stages": 2, "slots": 3}
_GRID: dict[str, Any] = {"cluster_m": 1, "stages": 2, "scheduler": "grid"}
_FAST: dict[str, Any] = {"dtype": "e4m3", "c_dtype": "bf16", "promote": False, **_ALONE}
_ALL: dict[str, Any] = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu"}
_SMALL: dict[str, Any] = {"chunk": 136, "chunk_buffers": 1}
#: (kernel, (M, N, K), choices): M, N and K end within a tile.
CASES: list[tuple[str, tuple[int, int, int], dict[str, Any]]] = [
    (NAME, (140, 300, 136), {"n_tile": 272, **_ALONE}),
    (NAME, (260, 600, 264), {"n_tile": 272, **_GRID, **_SMALL, "stages": 3}),
    (NAME, (140, 290, 136), {"n_tile": 288, **_ALONE, "m_tile": 64, "slots": 2}),
    (NAME, (140, 470, 136), {"n_tile": 384, **_ALONE}),
    (NAME, (140, 470, 136), {"n_tile": 384, **_ALONE, "b_major": "mn", "a_major": "mn"}),
    (NAME, (140, 350, 136), {"n_tile": 320, **_ALONE, "b_major": "mn", "swizzle": "64B"}),
    (NAME, (140, 330, 136), {"n_tile": 304, **_ALONE, "swizzle": "32B"}),
    (NAME, (140, 330, 136), {"n_tile": 304, **_ALONE, "swizzle": "none", "dtype": "f16"}),
    (NAME, (140, 330, 136), {"n_tile": 304, **_GRID, "epilogue": "direct", "dtype": "tf32"}),
    (NAME, (140, 333, 136), {"n_tile": 320, **_ALONE, **_ALL}),
    (NAME, (140, 300, 136), {"n_tile": 288, **_ALONE, "batched": True, "lag": 1}),
    # Weights along M, C contiguous along M.
    (NAME, (261, 290, 136), {"n_tile": 272, **_GRID, **_SMALL, "c_major": "m"}),
    (NAME, (140, 350, 136), {"n_tile": 336, **_ALONE, "c_major": "m", "chunk": 168}),
    # Warpgroups that take turns.
    (NAME, (200, 300, 136), {"n_tile": 272, **_ALONE, "consumers": "pingpong", "m_tile": 64, "chunk": 136}),
    (
        NAME,
        (200, 390, 136),
        {"n_tile": 384, **_ALONE, "consumers": "pingpong", "m_tile": 64, "cluster_n": 2, "slots": 4},
    ),
    # Clusters that multicast: slices of B have at most 256 rows.
    (NAME, (270, 300, 136), {"n_tile": 272, "stages": 3, "slots": 4, **_SMALL}),
    (NAME, (270, 600, 136), {"n_tile": 304, **_GRID, "cluster_n": 2}),
    (NAME, (270, 600, 136), {"n_tile": 288, **_GRID, "cluster_m": 2, "cluster_n": 2}),
    (NAME, (500, 300, 136), {"n_tile": 272, **_GRID, "cluster_m": 4, "m_tile": 64}),
    # K split, with sums of their own and in place of A and B.
    (NAME, (140, 300, 400), {"n_tile": 272, **_GRID, "m_tile": 64, "split_k": 2, "chunk": 16}),
    (NAME, (140, 300, 400), {"n_tile": 272, **_GRID, **_SMALL, "split_k": 3, "sums": "ring", "stages": 3}),
    (NAME, (270, 300, 400), {"n_tile": 288, **_GRID, "cluster_m": 2, "split_k": 2, "sums": "ring", "stages": 3}),
    (NAME, (270, 300, 400), {"n_tile": 320, **_GRID, "c_major": "m", "split_k": 4, "sums": "ring", "stages": 3}),
    (NAME, (300, 300, 264), {"n_tile": 272, "stages": 2, "scheduler": "stream", "cluster_m": 1, "slots": 4}),
    # Three and four warpgroups, whose registers at the launch are too few for one wgmma.
    (NAME, (200, 300, 136), {"n_tile": 208, **_ALONE, "m_tile": 192}),
    (NAME, (200, 300, 136), {"n_tile": 256, **_GRID, "m_tile": 192}),
    (NAME, (200, 300, 136), {"n_tile": 256, **_ALONE, "m_tile": 192, "c_major": "m", "cluster_n": 2, "slots": 4}),
    (NAME, (270, 300, 136), {"n_tile": 160, **_ALONE, "m_tile": 256}),
    (NAME, (140, 300, 272), {"n_tile": 272, **_FAST}),
    (NAME, (140, 300, 272), {"n_tile": 288, **_FAST, "scheduler": "grid", "cluster_m": 2}),
    (NAME, (140, 300, 272), {"n_tile": 288, **_ALONE, "dtype": "s8", "epilogue": "direct"}),
    (NAME, (300, 400, 136), {"n_tile": 272, **_ALONE, "grouped": "masked", "batched": True}),
    ("hopper/ring", (70, 330, 136), {"n_tile": 320, "stages": 2}),
    ("hopper/wgmma", (70, 280, 72), {"n_tile": 272}),
]


@pytest.mark.one_in(30)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1)])
@pytest.mark.parametrize(("name", "shape", "choices"), CASES, ids=str)
def test_right_under_every_schedule(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = find(name).plan(**choices)
    result = run_gemm(Emulator(plan.target, schedule, seed=seed, multiprocessors=8), plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "choices"), [(name, choices) for name, _, choices in CASES], ids=str)
def test_the_ptx_is_clean_and_no_register_spills(name: str, choices: dict[str, Any]) -> None:
    plan = find(name).plan(**choices)
    assert check(plan.text) == []
    cubin = assemble(plan.text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])
    assert isinstance(plan.accumulator, RegisterAccumulator)
    assert plan.accumulator.halves == 2
    assert f".m64n{plan.n_tile // 2}k" in plan.text


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"n_tile": 264}, "two wgmmas share an N tile of 264 columns, which must be a multiple of 16"),
        (
            {"n_tile": 320, "b_major": "mn"},
            "two wgmmas share an N tile of 320 columns, which, with B MN-major and swizzle 128B, must be a multiple "
            "of 128",
        ),
        (
            {"n_tile": 304, "dtype": "s8", "epilogue": "direct"},
            "s8 takes an N tile in steps of 32 from 272 on, not 304",
        ),
        ({"n_tile": 400}, "n_tile must be 16 to 384 in steps of 8, not 400"),
        (
            {"n_tile": 272, "dtype": "e4m3", "c_dtype": "bf16"},
            "a consumer needs 272 registers for its accumulator (136 + 136 for a K block of 64 rows) and 26 more, 298; "
            "of 384 threads each has 232",
        ),
        ({"n_tile": 272, "m_tile": 192}, "a consumer needs 136 registers for its accumulator and 26 more, 162"),
        # Halves of 108 columns are none of a wgmma.
        ({"n_tile": 216, "m_tile": 192}, "a consumer needs 108 registers for its accumulator and 26 more, 134"),
        ({"n_tile": 272, "m_tile": 256, "warpgroups": 2}, "a consumer needs 272 registers for its accumulator"),
        ({"n_tile": 384, "stages": 4}, "bytes of shared memory"),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(NAME).plan(**{**_ALONE, **choices})


@pytest.mark.parametrize("n_tile", range(272, 385, 16))
def test_halves_are_those_of_the_whole(n_tile: int) -> None:
    """By hand: 136 columns are 68 registers and 136 rows of B of 128 bytes; TMA brings them in two boxes."""
    plan = find(NAME).plan(n_tile=n_tile, **_ALONE)
    text, half = plan.text, n_tile // 2
    each = re.findall(r"m64n(\d+)k16\S* \{ (%r_value\d+), .*?, (%r_value\d+) \}", text)
    first = (str(half), "%r_value0", f"%r_value{half // 2 - 1}")
    second = (str(half), f"%r_value{half // 2}", f"%r_value{half - 1}")
    assert each == [first, second] * 4
    assert re.findall(r"add\.u64 %rd_half_b, \S+ (\d+);", text) == [str(half * 128 // 16)] * 4
    assert plan.b.box == (64, half)
    assert [(each.offset, each.k, each.row) for each in plan.b.copies] == [(0, 0, 0), (half * 128, 0, half)]
    assert plan.pipeline("ab").tx_bytes == (128 + n_tile) * 128


def test_a_slice_of_a_multicast_is_one_box() -> None:
    plan = find(NAME).plan(n_tile=384, cluster_m=2, stages=2)
    assert (plan.b.box, len(plan.b.copies), plan.b.slice_bytes) == ((64, 192), 1, 192 * 128)


@pytest.mark.parametrize(("pattern", "new", "count"), [
    # The second wgmma multiplies the first half of B, or the rows 8 further up.
    (r"(add\.u64 %rd_half_b, \S+) 1088;", r"\1 0;", 4),
    (r"(add\.u64 %rd_half_b, \S+) 1088;", r"\1 1024;", 4),
    # The second box has the rows of the first, or takes their place.
    (r"(add\.u32 %r_copy_row, %r_row_b,) 136;", r"\1 0;", 1),
    (r"(\[%r_smem_b)\+33792\]", r"\1+32768]", 1),
])  # fmt: skip
def test_planted_bugs_are_found(pattern: str, new: str, count: int) -> None:
    plan = find(NAME).plan(n_tile=272, m_tile=64, **_ALONE)
    text, found = re.subn(pattern, new, plan.text)
    assert found == count
    result = GemmJob(plan, 70, 280, 72).run(Emulator(plan.target, multiprocessors=8, max_steps=400_000), text=text)
    assert not result.ok


def test_sums_have_the_bits_of_narrow_tiles() -> None:
    """An element's sum does not depend on the columns of its tile."""
    random, made = np.random.default_rng(3), []
    rows_a, rows_b = (random.standard_normal((rows, 200)).astype(ml_dtypes.bfloat16) for rows in (100, 272))
    for n_tile in (136, 272):
        plan = find(NAME).plan(n_tile=n_tile, **_ALONE)
        device, problem = Emulator(plan.target, multiprocessors=8), plan.problem(100, 272, 200)
        a, b, c = device.array(rows_a), device.array(rows_b), device.empty((100, 272), rows_a.dtype)
        report = device.launch(
            ptxgen.Kernel.from_ptx(plan.text), problem.grid, problem.block, problem.arguments(a, b, c),
            shared_bytes=plan.shared.bytes,
        )  # fmt: skip
        assert report.ok, report.summary()
        made.append(c.numpy().tobytes())
    assert made[0] == made[1]
