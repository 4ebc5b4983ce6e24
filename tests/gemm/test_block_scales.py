"""fp8 with fp32 scales: 1x128 of A and 128x128 of B, multiplied into promoted sums."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fn, float8_e5m2

from ptxgen import Emulator, assemble, check
from ptxgen.gemm import GemmPlan, PlanError, find
from ptxgen.gemm.block_scales import dequantize, m_major, quantize_blocks, quantize_rows
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.reference.promoted import PromotedReference
from ptxgen.gemm.selection.dispatch import best

NAME = "hopper/overlapped"
SCALED: dict[str, Any] = {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d", "slots": 4, "chunk_buffers": 1}
GRID: dict[str, Any] = {"scheduler": "grid", "cluster_m": 1, "panel": 0, "stages": 2}
#: (shape, choices)
CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((130, 200, 304), {"n_tile": 64, "stages": 2}),
    ((300, 264, 400), {"n_tile": 128, "stages": 3}),
    # Tiles that begin within 128 rows of B, with the boundary anywhere.
    ((130, 300, 272), {"n_tile": 48, "chunk": 48, "stages": 2, "cluster_m": 1, "scheduler": "grid"}),
    ((200, 400, 136), {"n_tile": 112, "chunk": 16, "m_tile": 64, "stages": 2}),
    ((300, 500, 144), {"n_tile": 160, "chunk": 32, "stages": 3}),
    ((200, 500, 272), {"n_tile": 192, "stages": 3, "consumers": "pingpong", "m_tile": 64, "cluster_m": 1}),
    # A tile outside C.
    ((130, 100, 272), {"n_tile": 128, "stages": 2, "cluster_m": 1, "cluster_n": 2}),
    ((70, 40, 16), {"n_tile": 32, "chunk": 32, "stages": 4, "epilogue": "direct", "c_dtype": "f32"}),
    ((300, 200, 656), {"n_tile": 64, "scheduler": "stream", "slots": 6, "stages": 3, "panel": 0, "order": "hilbert"}),
    ((300, 200, 400), {"n_tile": 64, "stages": 3, "lag": 1, "alpha": True, "source": "bf16", "bias": "f32"}),
    # Warpgroups of 128 rows, 64 at a time.
    ((300, 200, 304), {"m_tile": 256, "warpgroups": 2, "n_tile": 64, "stages": 2}),
    ((300, 200, 272), {"m_tile": 256, "warpgroups": 2, "n_tile": 120, "chunk": 24, "stages": 2, "cluster_m": 1}),
    ((300, 200, 272), {"consumers": "pingpong", "n_tile": 96, "chunk": 32, "stages": 2, "cluster_m": 1}),
    # Four CTAs share K; of three K blocks the last has none.
    ((70, 200, 328), {"m_tile": 64, "n_tile": 64, "split_k": 4, **GRID}),
    ((70, 200, 1032), {"m_tile": 128, "n_tile": 48, "chunk": 48, "split_k": 2, **GRID}),
    ((130, 200, 272), {"dtype": "e5m2", "b_dtype": "e4m3", "n_tile": 96, "chunk": 32, "stages": 2}),
]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1)])
@pytest.mark.parametrize(("shape", "choices"), CASES, ids=str)
def test_right_to_the_bit_under_every_schedule(
    shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = find(NAME).plan(**{**SCALED, **choices})
    result = run_gemm(Emulator(plan.target, schedule, seed=seed, multiprocessors=8), plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("choices", "schedule"),
    [
        ({"n_tile": 160, "chunk": 32, "stages": 3}, "late"),
        ({"n_tile": 96, "chunk": 32, "consumers": "pingpong", "m_tile": 64, "cluster_m": 1}, "random"),
        ({"m_tile": 64, "n_tile": 64, "split_k": 2, **GRID}, "eager"),
        ({"m_tile": 256, "warpgroups": 2, "n_tile": 64, "stages": 2}, "random"),
    ],
    ids=str,
)
def test_each_batch_has_scales_of_its_own(choices: dict[str, Any], schedule: Any) -> None:
    plan = find(NAME).plan(**{**SCALED, **choices}, batched=True)
    device = Emulator(plan.target, schedule, seed=1, multiprocessors=8)
    result = GemmJob(plan, 130, 200, 272, seed=1, more={"batches": 3}).run(device)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mad.lo.u32 %r_sfb_group, %r_sfb_group, %r_sfb_last, %r_sfb_group;", "mov.b32 %r_sfb_group, 0;"),
        ("%r_tile_row, %r_k_scale, %r_batch", "%r_tile_row, %r_k_scale, 0"),
    ],
)
def test_scales_of_another_batch_are_found(old: str, new: str) -> None:
    plan = find(NAME).plan(**{**SCALED, "n_tile": 64, "stages": 2}, batched=True)
    text = plan.text.replace(old, new)
    assert text != plan.text
    result = GemmJob(plan, 130, 200, 144, more={"batches": 2}).run(Emulator(plan.target), text=text)
    assert result.status == "wrong"


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "choices",
    [
        *(choices for _, choices in CASES),
        {"batched": True, "n_tile": 128, "stages": 4},
        {"batched": True, "grouped": "masked", "n_tile": 128, "stages": 4},
        {"n_tile": 128, "cluster_m": 2, "stages": 5},
        {"n_tile": 160, "chunk": 32, "stages": 4, "consumers": "pingpong", "m_tile": 64},
        {"n_tile": 192, "stages": 4},
        {"m_tile": 256, "warpgroups": 2, "n_tile": 128, "stages": 3},
        {"m_tile": 256, "warpgroups": 2, "n_tile": 112, "chunk": 16, "stages": 4, "cluster_n": 2, "cluster_m": 1},
        {"consumers": "pingpong", "n_tile": 128, "stages": 5},
        {"m_tile": 192, "n_tile": 112, "chunk": 16, "stages": 4, "cluster_m": 1},
    ],
    ids=str,
)
def test_the_ptx_is_clean_and_no_register_spills(choices: dict[str, Any]) -> None:
    text = find(NAME).plan(**{**SCALED, **choices}).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def test_the_reference_is_near_what_the_dequantized_operands_give() -> None:
    """An independent formula: products in float64 of values that have their scales."""
    reference = PromotedReference(find(NAME).plan(**SCALED, n_tile=64).problem(70, 200, 400), 3)
    (a, b), (sfa, sfb) = reference.inputs, reference.row_scales
    assert (sfa.shape, sfb.shape) == ((70, 4), (2, 4))
    assert np.log2([sfa.max() / sfa.min(), sfb.max() / sfb.min()]).min() > 15
    left, right = (np.zeros(each.shape) for each in (a, b))
    for k in range(400):
        left[:, k] = a[:, k].astype(np.float64) * sfa[:, k // 128]
        for row in range(200):
            right[row, k] = float(b[row, k]) * sfb[row // 128, k // 128]
    sums, _ = reference.sums(slice(None), slice(None))
    # Each of the four wgmmas of a K block cuts 33 addends and the sum at 13 bits.
    assert (np.abs(sums - left @ right.T) <= 4 * 34 * 2.0**-13 * (np.abs(left) @ np.abs(right).T)).all()


def _plan(**choices: Any) -> GemmPlan:
    return find(NAME).plan(**{**SCALED, "n_tile": 64, "stages": 2, **choices})


@pytest.mark.parametrize(
    ("pattern", "new"),
    [
        (r"mul\.rn\.f32 %r_factor1, %r_sfa1", "mul.rn.f32 %r_factor1, %r_sfa0"),  # rows of the upper half
        (r"add\.u64 %rd_sfb0, %rd_sfb0, 4", "add.u64 %rd_sfb0, %rd_sfb0, 0"),  # the scale of the first K block
        (r"and\.b32 %r_sfb_columns, %r_tile_column, 127", "and.b32 %r_sfb_columns, %r_tile_column, 63"),
    ],
)
def test_a_wrong_scale_is_found(pattern: str, new: str) -> None:
    plan = _plan(n_tile=96, chunk=32)
    text, count = re.subn(pattern, new, plan.text)
    assert count == 1
    result = GemmJob(plan, 130, 300, 272).run(Emulator(plan.target), text=text)
    assert result.status == "wrong"


def test_scales_that_are_overwritten_before_they_are_read_are_found() -> None:
    plan = _plan()
    text = plan.text
    start, end = (text.index(words) for words in ("ld.shared.b32 %r_sfa1", "add.u32 %r_k_next"))
    after = text.index("fma.rn.f32", end)
    text = text[:start] + text[end:after] + text[start:end] + text[after:]
    result = GemmJob(plan, 300, 200, 656).run(Emulator(plan.target), text=text)
    assert any("race" in each.message for each in result.launch.findings), result.summary()


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"dtype": "bf16"}, "scales=1d2d multiply promoted sums of e4m3 and e5m2 (promote=true), not those of bf16"),
        ({"promote": False}, "not those of e4m3 without promote"),
        ({"c_major": "m"}, "scales=1d2d take c_major=n"),
        ({"n_tile": 176, "chunk": 16}, "tiles of 176 columns reach into three blocks of 128 rows of B"),
        ({"scales": "1x32"}, "scales must be none, 1d2d or 2d1d, not 1x32"),
        (
            {"m_tile": 256, "warpgroups": 2, "n_tile": 136, "chunk": 136},
            "a consumer needs 218 registers for its accumulator (136 + 68 for a K block of 64 rows + 14 for scales) "
            "and 26 more, 244; of 384 threads each has 232",
        ),
    ],
    ids=str,
)
def test_what_has_no_plan(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        _plan(**choices)


def test_arguments_have_the_layout_that_the_kernel_reads() -> None:
    problem, device = _plan().problem(50, 200, 304), Emulator("sm_90a")
    a, b, c = (device.empty(shape, "u8") for shape in ((50, 304), (200, 304), (50, 400)))
    sfa, sfb = device.empty((3, 52), np.float32), device.empty((2, 3), np.float32)
    arguments = problem.arguments(a, b, c, scales=(sfa, sfb))
    assert arguments[3] is sfb
    assert arguments[2].dims == (50, 3)
    assert problem.encoded["sfa"].box == (128, 1)
    for given, words in (
        ((), "the kernel takes the scales of A and B, but none are given"),
        (
            (device.empty((50, 3), np.float32), sfb),
            "sfa must be 3×52 f32, [K blocks, M rounded up to 4], M contiguous (m_major makes them); the array has the "
            "shape (50, 3), which is row-major: m_major transposes and pads them",
        ),
        ((device.empty((3, 50), np.float32), sfb), "the array has the shape (3, 50)"),
        ((device.empty((3, 52), np.float16), sfb), "the array has the type float16"),
        ((sfa, device.empty((3, 2), np.float32)), "sfb must be 2×3 f32, [blocks of 128 rows of B, K blocks], row"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            problem.arguments(a, b, c, scales=given)
    several = _plan(batched=True).problem(50, 200, 304, batches=2)
    a, b, c = (device.empty(shape, "u8") for shape in ((2, 50, 304), (2, 200, 304), (2, 50, 400)))
    made = several.arguments(
        a, b, c, scales=(device.empty((2, 3, 52), np.float32), device.empty((2, 2, 3), np.float32))
    )
    assert made[2].dims == (50, 3, 2)
    assert made[2].strides == (52 * 4, 3 * 52 * 4)
    with pytest.raises(PlanError, match=re.escape("sfa must be 2×3×52 f32, of each batch [K blocks, M rounded up")):
        several.arguments(a, b, c, scales=(sfa, sfb))
    with pytest.raises(PlanError, match="the kernel takes no scales, but 2 are given"):
        find(NAME).plan(dtype="e4m3", c_dtype="bf16", n_tile=64).problem(50, 200, 304).arguments(
            0, 0, 0, scales=(sfa, sfb)
        )


@pytest.mark.parametrize(("dtype", "largest", "type"), [("e4m3", 448, float8_e4m3fn), ("e5m2", 57344, float8_e5m2)])
@pytest.mark.parametrize("height", [1, 128])
def test_quantizers(height: int, dtype: str, largest: int, type: Any) -> None:
    """Against loops over blocks."""
    random = np.random.default_rng(1)
    values = random.standard_normal((200, 300)) * np.exp2(random.integers(-40, 40, (200, 300)))
    values[:128, :128] = 0
    elements, scales = (quantize_rows if height == 1 else quantize_blocks)(values, dtype)
    assert (elements.dtype, scales.dtype, scales.shape) == (type, np.float32, (-(-200 // height), 3))
    for row in range(0, 200, height):
        for k in range(0, 300, 128):
            block = values[row : row + height, k : k + 128]
            size = max(abs(float(each)) for each in block.ravel())
            scale = np.float32(size / largest) if size else np.float32(1)
            assert scales[row // height, k // 128] == scale
            expected = (block / np.float64(scale)).astype(type)
            assert elements[row : row + height, k : k + 128].tobytes() == expected.tobytes()
    back, spread = dequantize(elements, scales), np.repeat(np.repeat(scales, height, 0), 128, 1)[:200, :300]
    digits = 4 if dtype == "e4m3" else 3
    smallest = {"e4m3": 2.0**-9, "e5m2": 2.0**-16}[dtype]
    assert (np.abs(back - values) <= np.maximum(np.abs(values) * 2.0**-digits, smallest / 2 * spread)).all()


def test_quantizers_refuse_what_they_cannot_scale() -> None:
    for values, words in (
        (np.zeros(3), "quantize takes a matrix [rows, K], not 1 dimensions"),
        (np.full((2, 2), np.inf), "quantize takes finite values only"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            quantize_rows(values)
    with pytest.raises(PlanError, match="fp32 block scales are for e4m3 and e5m2, not e2m1"):
        quantize_blocks(np.zeros((2, 2)), "e2m1")
    with pytest.raises(PlanError, match=re.escape("must be 2×1 (1x128) or 1×1 (128x128), not 3×3")):
        dequantize(np.zeros((2, 2), float8_e4m3fn), np.ones((3, 3)))


def test_scales_of_a_in_memory() -> None:
    scales = np.arange(15, dtype=np.float32).reshape(5, 3)
    made = m_major(scales)
    assert made.shape == (3, 8)
    assert (made[:, :5] == scales.T).all()
    assert not made[:, 5:].any()
    with pytest.raises(PlanError, match="m_major takes row-major scales"):
        m_major(np.zeros(3))


def test_the_dispatcher_chooses_a_kernel_with_scales() -> None:
    choice = best(4096, 4096, 7168, "e4m3", c_dtype="bf16", scales="1d2d")
    assert choice.plan.block_scales is not None
    assert not choice.swapped
