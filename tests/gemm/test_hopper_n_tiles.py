"""N tiles of Hopper that are no multiple of 16: groups of 8 rows of B, chunks of C that end in two 8x8 matrices."""

from __future__ import annotations

import re
from typing import Any, get_args, get_type_hints

import pytest

from ptxgen import Emulator, assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.instr import wgmma

NAME = "hopper/overlapped"
_ALONE: dict[str, Any] = {"cluster_m": 1, "stages": 3, "slots": 3}
_FP8: dict[str, Any] = {"dtype": "e4m3", "c_dtype": "bf16", "stages": 3, "slots": 4}
_ALL: dict[str, Any] = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu"}
#: (kernel, (M, N, K), choices): N and K end within a tile; where C has 16 bits, so do its 16 bytes in some.
CASES: list[tuple[str, tuple[int, int, int], dict[str, Any]]] = [
    ("hopper/wgmma", (70, 53, 72), {"n_tile": 24, "b_major": "mn", "swizzle": "none"}),
    ("hopper/ring", (70, 53, 136), {"n_tile": 24, "stages": 2, "dtype": "s8"}),
    ("hopper/ring", (70, 83, 136), {"n_tile": 40, "stages": 2, "swizzle": "64B", "c_dtype": "f32"}),
    ("hopper/specialized", (140, 120, 72), {"n_tile": 56, "swizzle": "32B", **_ALL}),
    # Three chunks of 24: 12 values a thread, of which gelu takes 8 at a time.
    (NAME, (140, 100, 72), {"n_tile": 72, **_ALONE, **_ALL, "batched": True}),
    (NAME, (140, 70, 136), {"n_tile": 40, **_ALONE, "b_major": "mn", "swizzle": "none", "dtype": "f16", "lag": 1}),
    (NAME, (300, 203, 72), {"n_tile": 88, "chunk": 96, **_ALONE, "consumers": "pingpong"}),
    (NAME, (141, 230, 72), {"n_tile": 104, "chunk": 128, "stages": 3, "slots": 4, "c_major": "m"}),
    (NAME, (140, 350, 72), {"n_tile": 168, **_ALONE}),
    (NAME, (140, 350, 72), {"n_tile": 168, **_ALONE, "consumers": "pingpong", "m_tile": 64}),
    (NAME, (140, 350, 72), {"n_tile": 168, **_ALONE, "consumers": "pingpong", "cluster_n": 2, "slots": 4}),
    (NAME, (140, 230, 72), {"n_tile": 168, **_ALONE, "m_tile": 256, "warpgroups": 2, "c_major": "m", "slots": 2}),
    # Slices of 84 rows of B, of which the second begins within a group of 8.
    (NAME, (140, 350, 72), {"n_tile": 168, "stages": 3, "slots": 4}),
    (NAME, (300, 180, 72), {"n_tile": 168, "stages": 3, "m_tile": 64, "cluster_m": 4, "scheduler": "grid"}),
    (NAME, (300, 350, 136), {"n_tile": 168, "stages": 3, "slots": 4, "swizzle": "64B", "scheduler": "stream"}),
    (NAME, (140, 250, 72), {"n_tile": 176, **_ALONE, "consumers": "pingpong", "chunk": 88}),
    (NAME, (140, 430, 272), {"n_tile": 200, **_FP8}),
    (NAME, (140, 430, 272), {"n_tile": 200, **_FP8, "promote": False, "consumers": "pingpong", "swizzle": "32B"}),
    (NAME, (140, 300, 72), {"n_tile": 248, **_ALONE, "chunk": 256, "chunk_buffers": 1, "stages": 2}),
    (NAME, (140, 300, 40), {"n_tile": 248, **_ALONE, "epilogue": "direct", "dtype": "tf32"}),
]


@pytest.mark.one_in(10)
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
    text = find(name).plan(**choices).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


@pytest.mark.parametrize(
    ("pattern", "new"),
    [
        # The two matrices of the last 8 columns change places.
        (r"(stmatrix\S*\.x2\S* \S+), \{(%r_pair0), (%r_pair1)\}", r"\1, {\3, \2}"),
        # The second CTA of the cluster loads the first slice of B.
        (r"mad\.lo\.u32 (%r_row_b, %r_slice_b), 84,", r"mad.lo.u32 \1, 0,"),
        # Its slice begins at a group of 8 rows.
        (r"mad\.lo\.u32 (%r_smem_b, %r_slice_b), 10752,", r"mad.lo.u32 \1, 10240,"),
    ],
)
def test_planted_bugs_are_found(pattern: str, new: str) -> None:
    plan = find(NAME).plan(n_tile=168, stages=3, slots=4)
    text, count = re.subn(pattern, new, plan.text)
    assert count == 3 if "x2" in pattern else count == 1
    result = GemmJob(plan, 140, 350, 72).run(Emulator(plan.target, multiprocessors=8, max_steps=400_000), text=text)
    assert not result.ok


def test_the_range_is_that_of_the_target() -> None:
    assert find(NAME).described()["n_tile"]["range"] == [16, 384, 8]
    assert find("blackwell/clc").described()["n_tile"]["range"] == [16, 256, 16]
    with pytest.raises(PlanError, match="n_tile must be 16 to 256 in steps of 16, not 40"):
        find("blackwell/clc").plan(n_tile=40)
    with pytest.raises(PlanError, match="n_tile must be 16 to 384 in steps of 8, not 44"):
        find(NAME).plan(n_tile=44)


@pytest.mark.parametrize(
    ("dtype", "form"),
    [
        ("f16", wgmma.mma_async_f16),
        ("tf32", wgmma.mma_async_tf32),
        ("e4m3", wgmma.mma_async_f8),
        ("s8", wgmma.mma_async_i8),
    ],
)
def test_planned_is_what_wgmma_has(dtype: str, form: type) -> None:
    has = get_args(get_type_hints(form)["n"])
    for n in range(16, 257, 8):
        choices = {"dtype": dtype, "n_tile": n, "m_tile": 64, "promote": False}
        if n in has:
            assert f".m64n{n}k" in find("hopper/specialized").plan(**choices).text
        else:
            with pytest.raises(PlanError, match=f"{dtype} takes an N tile in steps of 16 from 32 on, not {n}"):
                find("hopper/specialized").plan(**choices)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"b_major": "mn"}, "B has 168 rows a CTA; MN-major with swizzle 128B takes a multiple of 64"),
        ({"cluster_m": 2, "swizzle": "none"}, "K-major with swizzle none in 2 slices takes a multiple of 16"),
        ({"cluster_m": 4, "swizzle": "32B"}, "K-major with swizzle 32B in 4 slices takes a multiple of 16"),
        ({"n_tile": 248, "consumers": "pingpong"}, "248 registers for its accumulator and 26 more, 274; of 384"),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(NAME).plan(**{"n_tile": 168, **_ALONE, **choices})


@pytest.mark.parametrize(
    ("n_tile", "chunk", "expected"),
    [(168, 64, 56), (168, 32, 24), (168, 16, 8), (200, 64, 40), (248, 64, 8), (88, 96, 88)],
)
def test_a_chunk_is_the_largest_divisor(n_tile: int, chunk: int, expected: int) -> None:
    epilogue = find(NAME).plan(n_tile=n_tile, chunk=chunk, **_ALONE).epilogue
    assert (epilogue.chunk, epilogue.swizzle, epilogue.panels) == (expected, "none", 1)
