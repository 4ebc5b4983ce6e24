"""The block-scaled rungs: every one right to the bit under every schedule, and what ptxas makes of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import assemble, check, sass
from ptxgen.gemm import PlanError, find, kernels
from ptxgen.gemm.job import GemmJob, GemmResult
from ptxgen.gemm.reference.scaled import ScaledReference
from ptxgen.gemm.scales import dequantize, pack, packed_bytes, unpack, unpack_elements
from ptxgen.sass.classes import class_of

ENTRIES = [entry for entry in kernels().values() if "kind" in entry.options]
#: Each kernel with what it chooses for small problems, and for large ones, as far as that differs from other kernels.
VARIANTS = list(
    {
        each.plan(**large).config: (each.name, large)
        for each in ENTRIES
        for large in ([{}, each.large] if each.large else [{}])
    }.values()
)


def run(
    name: str, shape: tuple[int, int, int], schedule: Any, seed: int, *, whole_range: bool = False, **choices: Any
) -> GemmResult:
    plan = find(name).plan(**choices)
    device = ptxgen.Emulator(plan.target, schedule, seed=seed)
    return GemmJob(plan, *shape, seed, whole_range=whole_range).run(device)


def require_right(name: str, shape: tuple[int, int, int], schedule: Any, seed: int, **choices: Any) -> None:
    result = run(name, shape, schedule, seed, **choices)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()
    assert result.comparison is not None
    assert result.comparison.largest_error == 0


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("shape", "schedule", "choices"),
    [
        ((256, 256, 256), "eager", {}),
        # Tails in M and N, and a K that is no multiple of a K block.
        ((150, 133, 224), "late", {}),
        # Four tiles and more by one pair of CTAs: each accumulator is used again.
        ((260, 300, 96), "random", {"slots": 2}),
    ],
    ids=["whole", "tails", "many"],
)
@pytest.mark.parametrize(("name", "large"), VARIANTS, ids=str)
def test_a_rung_is_right(
    name: str, large: dict[str, Any], shape: tuple[int, int, int], schedule: str, choices: dict[str, Any]
) -> None:
    m, n, k = shape
    if find(name).plan().epilogue.quantizes:
        n = -(-n // 32) * 32
    require_right(name, (m, n, k), schedule, 1, **large, **choices)


FLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("b_dtype", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pair_of_types(dtype: str, b_dtype: str) -> None:
    require_right("mxfp8-initial", (130, 70, 128), "random", 2, dtype=dtype, b_dtype=b_dtype)


ONE_CTA = {"cta_group": 1, "cluster_m": 1, "m_tile": 128, "sfb_multicast": False, "n_tile": 192, "overlap": 64}
#: Choices that each reach other parts of the blocks.
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("mxfp8-initial", {"a_major": "mn", "n_tile": 64}),
    ("mxfp8-o11", {"a_major": "mn", "b_major": "mn", "dtype": "e5m2"}),
    ("mxfp8-o11", {"b_major": "mn", "b_dtype": "e5m2", "dtype": "e2m3"}),
    ("mxfp8-o11", {"c_dtype": "bf16", "alpha": True}),
    ("mxfp8-o11", {"c_dtype": "f16", "epilogue": "tma"}),
    (
        "mxfp8-o10",
        {
            "cta_group": 1,
            "cluster_m": 1,
            "m_tile": 128,
            "sfb_multicast": False,
            "n_tile": 192,
            "overlap": 64,
            "stages": 2,
        },
    ),
    ("mxfp8-initial", {"scheduler": "clc", "n_tile": 96}),
    ("mxfp8-initial", {"scheduler": "grid", "accumulators": 1, "n_tile": 224, "stages": 5}),
    ("mxfp8-o9", {"n_tile": 224, "overlap": 32, "scheduler": "clc", "order": "hilbert"}),
    ("mxfp8-quantizing", {"c_dtype": "e5m2", "overlap": 128, "store_bytes": 16, "alpha": True}),
    ("nvfp4", {"c_dtype": "bf16", "epilogue": "tma"}),
    # TMA stores of accumulators that share nothing, and shared columns that no single tcgen05.ld reads.
    ("mxfp8-initial", {"epilogue": "tma", "stages": 4}),
    ("mxfp8-o9", {"n_tile": 192, "overlap": 96, "chunk": 96}),
    ("nvfp4", {"scale_dtype": "ue8m0", "scale_block": 16}),
    ("nvfp4", {"scale_dtype": "ue8m0", "scale_block": 32, "k_tile_bytes": 256, "stages": 3}),
]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("name", "choices"), CHOICES, ids=str)
@pytest.mark.parametrize("schedule", ["late", "random"])
def test_other_choices(name: str, choices: dict[str, Any], schedule: str) -> None:
    require_right(name, (300, 288 if name == "mxfp8-quantizing" else 260, 128), schedule, 3, **choices)


@pytest.mark.parametrize("name", ["mxfp8-initial", "mxfp8-o11", "mxfp8-quantizing", "mxfp4", "nvfp4"])
def test_elements_and_scales_over_their_whole_range(name: str) -> None:
    plan = find(name).plan()
    reference = ScaledReference(plan.problem(270, 256, 256), 5, whole_range=True)
    assert all(np.unique(each).size == 256 for each in reference.row_scales)
    values = reference.values(slice(None), slice(None))
    assert np.isnan(values).any()
    assert np.isinf(values).any() or plan.config.kind == "mxf4nvf4"  # whose largest sums are finite
    blocks = np.isfinite(values).reshape(270, 8, 32).all(axis=2)
    assert 0.3 < blocks.mean() < 0.9
    require_right(name, (270, 256, 256), "random", 5, whole_range=True)


def test_the_whole_range_has_nan_infinities_and_zeros() -> None:
    plan = find("mxfp8-initial").plan(dtype="e5m2")
    reference = ScaledReference(plan.problem(200, 200, 256), 6, whole_range=True)
    a, b = (each.astype(np.float32) for each in reference.inputs)
    for matrix in (a, b):
        assert np.isnan(matrix).any()
        assert np.isinf(matrix).any()
        assert (matrix == 0).all(axis=1).any()
        assert np.isfinite(matrix).all(axis=1).mean() > 0.9
    assert (reference.values(slice(None), slice(None)) == 0).any()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max.NaN.abs", "max.abs"),
        ("max.s32 %r_scale, %r_scale, 0;", ""),
        ("selp.b32 %r_scale, 255, %r_scale, %p_broken;", ""),
        ("selp.b32 %r_pair0, 0, %r_pair0, %p_broken;", ""),
        ("sub.s32 %r_scale, %r_scale, 8;", "sub.s32 %r_scale, %r_scale, 7;"),
        ("sub.s32 %r_inverse, 254, %r_scale;", "sub.s32 %r_inverse, 253, %r_scale;"),
        ("max.NaN.abs.f32 %r_max0, %r_max0, %r_max3, %r_max3;", ""),
    ],
    ids=["NaN", "least scale", "NaN scale", "zeros", "exponent", "inverse", "largest"],
)
def test_the_whole_range_shows_what_a_quantizing_epilogue_gets_wrong(old: str, new: str) -> None:
    plan = find("mxfp8-quantizing").plan()
    assert old in plan.text
    job = GemmJob(plan, 100, 192, 256, seed=1, whole_range=True)
    result = job.run(ptxgen.Emulator(plan.target), text=plan.text.replace(old, new))
    assert result.status == "wrong"


def test_the_scales_of_c_count() -> None:
    plan = find("mxfp8-quantizing").plan()
    text = plan.text.replace("sub.s32 %r_scale, %r_scale, 8", "sub.s32 %r_scale, %r_scale, 7")
    assert text != plan.text
    result = GemmJob(plan, 40, 64, 64).run(ptxgen.Emulator("sm_100a"), text=text)
    assert not result.ok
    assert any("80 of 80 scales of C are wrong; the first: C[0, 0] is" in str(each) for each in result.errors)


def test_a_quantized_c_is_an_operand_again() -> None:
    """Its scales are in the blocks that a product takes; their padding is left alone."""
    plan, device = find("mxfp8-quantizing").plan(), ptxgen.Emulator("sm_100a")
    job = GemmJob(plan, 130, 160, 64, seed=4)
    problem, reference = job.problem, job.reference
    assert isinstance(reference, ScaledReference)
    a, b = (device.array(reference.lines(name)) for name in ("a", "b"))
    c, sfc = device.empty((130, 160), np.uint8), device.array(np.full(packed_bytes(130, 160), 7, np.uint8))
    scales = tuple(device.array(each) for each in reference.scales)
    kernel = ptxgen.Kernel.from_ptx(plan.text)
    arguments = problem.arguments(a, b, c, scales=scales, c_scales=sfc)
    device.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=plan.shared.bytes).raise_for_status()
    assert np.array_equal(sfc.numpy(), pack(unpack(sfc.numpy(), 130, 160), fill=7))
    values = dequantize(unpack_elements(c.numpy(), "e4m3"), unpack(sfc.numpy(), 130, 160))
    exact = reference.values(slice(None), slice(None)).astype(np.float64)
    largest = np.repeat(np.abs(exact).reshape(130, 5, 32).max(axis=2), 32, axis=1)
    assert (np.abs(values - exact) <= largest * 2.0**-3).all()  # saturated, or rounded to 4 bits


@pytest.mark.parametrize(
    ("name", "shape"),
    [("mxfp8-initial", (64, 48, 224)), ("mxfp4", (64, 48, 224)), ("nvfp4", (64, 48, 48))],
)
def test_the_reference_is_the_dequantized_product(name: str, shape: tuple[int, int, int]) -> None:
    plan = find(name).plan()
    job = GemmJob(plan, *shape)
    reference = job.reference
    assert isinstance(reference, ScaledReference)
    a, b = (
        dequantize(values, scales, operand.type)
        for values, scales, operand in zip(reference.inputs, reference.row_scales, plan.scales, strict=True)
    )
    alpha = job.problem.alpha if plan.config.alpha else 1
    found, allowed = reference.expect(slice(None), slice(None))
    assert (allowed == 0).all()
    assert np.all(np.abs(found - alpha * a @ b.T) <= abs(alpha) * shape[2] * 2.0**-23 * (np.abs(a) @ np.abs(b).T))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "choices"), [*VARIANTS, *CHOICES], ids=str)
def test_the_ptx_is_small_and_clean(name: str, choices: dict[str, Any]) -> None:
    text = find(name).plan(**choices).text
    assert len(text.encode()) < 60_000
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


#: Rungs of the article in their order.
LADDER = ["mxfp8-initial", *(f"mxfp8-o{i}" for i in range(1, 12))]


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", LADDER)
def test_local_memory_and_wide_stores(name: str) -> None:
    at = LADDER.index(name)
    function = sass.load(assemble(find(name).plan().text)).kernel()
    opcodes = {each.opcode for each in function.instructions}
    assert opcodes.isdisjoint(("LDL", "STL")) == (at >= 5)
    wide = [each for each in function.instructions if class_of(each) == "STG.256"]
    assert bool(wide) == (at >= 2 and at != 9)
    assert ("UTMASTG" in opcodes) == (at == 9)
    assert all(("NA" in each.modifiers) == (at >= 7) for each in wide)


def columns(name: str, **choices: Any) -> dict[str, tuple[int, int]]:
    regions = find(name).plan(**choices).accumulator.regions
    return {each.name: (each.first, each.first + each.columns - 1) for each in regions}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (LADDER[:1], [(0, 127), (128, 255), (256, 259), (260, 263)]),
        (LADDER[1:3], [(0, 255), (128, 383), (384, 387), (388, 395)]),
        (LADDER[3:11], [(0, 255), (128, 383), (384, 391), (392, 407)]),
        (LADDER[11:], [(0, 255), (192, 447), (448, 455), (456, 471)]),
        (["mxfp4"], [(0, 255), (192, 447), (448, 463), (464, 495)]),
        (["nvfp4"], [(0, 255), (192, 447), (448, 463), (464, 495)]),
    ],
)
def test_the_map_of_tensor_memory(names: list[str], expected: list[tuple[int, int]]) -> None:
    for name in names:
        found = columns(name)
        assert list(found) == ["accumulator 0", "accumulator 1", "sfa", "sfb"]
        assert list(found.values()) == expected


def test_large_problems_have_their_own_choices() -> None:
    def chosen(name: str, size: int, **choices: Any) -> tuple[str, str]:
        config = find(name).plan_for(size, 8192, 16384, **choices).config
        return config.order, config.epilogue

    assert chosen("mxfp8-o6", 4096) == chosen("mxfp8-o6", 8192) == ("hilbert", "direct")
    assert chosen("mxfp8-o8", 8191) == ("panels", "direct")
    assert chosen("mxfp8-o8", 8192) == ("hilbert", "direct")
    assert chosen("mxfp8-o9", 8191) == ("panels", "tma")
    assert chosen("mxfp8-o10", 8191) == ("panels", "direct")
    assert chosen("mxfp8-o10", 8192) == ("hilbert", "tma")
    assert chosen("mxfp8-o10", 8192, order="panels") == ("panels", "tma")


@pytest.mark.parametrize(
    ("name", "choices", "words"),
    [
        ("mxfp8-o11", {"overlap": 0},
         "accumulators and scales need 1024 TMEM columns (2 x 256 + sfa 8 + sfb 16, allocated as a power of two); "
         "there are 512"),
        ("mxfp8-initial", {"overlap": 128}, "overlap takes two accumulators with more columns than they share"),
        ("mxfp8-o11", {"scheduler": "grid"}, "overlapping accumulators are for persistent kernels"),
        ("mxfp8-initial", {"kind": ""}, "kind must be mxf8f6f4, mxf4, mxf4nvf4"),
        ("mxfp8-initial", {"kind": "mxf4"}, "kind::mxf4 multiplies e2m1, not e4m3"),
        ("mxfp8-initial", {"dtype": "bf16"}, "kind::mxf8f6f4 multiplies e4m3, e5m2, e2m3, e3m2, e2m1, not bf16"),
        ("mxfp8-initial", {"scale_dtype": "ue4m3"},
         "kind::mxf8f6f4 has ue8m0 with blocks of 32, not ue4m3 with blocks of 32"),
        ("nvfp4", {"scale_block": 32},
         "kind::mxf4nvf4 has ue4m3 with blocks of 16, ue8m0 with blocks of 16, ue8m0 with blocks of 32, not ue4m3"),
        ("mxfp8-initial", {"dtype": "e2m1", "a_major": "mn"}, "A of type e2m1 must be K-major"),
        ("mxfp8-initial", {"m_tile": 128}, "the M tile must be 256 (tcgen05.mma with cta_group::2), not 128"),
        ("mxfp8-initial", {"n_tile": 144}, "SFB has a TMEM column for every 32 rows; the tile must be a multiple"),
        ("mxfp8-initial", {"ptx": "8.7"}, "block-scaled MMAs say .block32: ptx must be 8.8 or later, not 8.7"),
        ("mxfp8-initial", {"cluster_m": 4}, "block-scaled kernels have clusters of 2×1 CTAs with cta_group::2"),
        ("mxfp8-initial", {"stages": 12}, "+ sfa 12 x 512 + sfb 12 x 512 + "),
        ("mxfp8-quantizing", {"epilogue": "tma"}, "C of e4m3 has a scale for every 32 columns: the epilogue must be"),
        ("modular-k8", {"c_dtype": "e4m3"}, "C of e4m3 takes a block-scaled kernel"),
        ("modular-k8", {"dtype": "e2m1"}, "e2m1 takes a block-scaled kernel such as mxfp8-initial"),
    ],
)  # fmt: skip
def test_configs_that_have_no_plan(name: str, choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find(name).plan(**choices)


def test_sizes_that_the_types_do_not_take() -> None:
    with pytest.raises(PlanError, match="K must be a multiple of 32, the block of e4m3 with ue8m0 scales, not 72"):
        find("mxfp8-initial").plan().problem(256, 256, 72)
    with pytest.raises(PlanError, match=r"K must be a multiple of 128 for B of e2m1, .* not 96; pad with zeros"):
        find("mxfp8-initial").plan(b_dtype="e2m1").problem(256, 256, 96)
    with pytest.raises(PlanError, match="N must be a multiple of 32, the columns of a scale of C, not 133"):
        find("mxfp8-quantizing").plan().problem(256, 133, 256)


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((512,), np.uint8, "sfa of 300×256 e4m3 must be 3×2 blocks of 128 rows by 4 scales of K, 512 bytes each: 3072"),
        ((300, 8), np.uint8, "flat or as 3×2×32×16 or 3×2×2×256; they are 300×8 bytes, which is row-major: pack them"),
        ((3072,), np.float16, "sfa are bytes of ue8m0, not float16"),
    ],
)
def test_scales_of_another_size_or_layout(shape: tuple[int, ...], dtype: Any, words: str) -> None:
    device = ptxgen.Emulator("sm_100a")
    problem = find("mxfp8-initial").plan().padded_problem(300, 256, 256)
    sfa, sfb = device.array(np.zeros(shape, dtype)), device.array(np.zeros(2048, np.uint8))
    with pytest.raises(PlanError, match=re.escape(words)):
        problem.arguments(0, 0, 0, scales=(sfa, sfb))
    with pytest.raises(PlanError, match="the kernel takes the scales of A and B, but none are given"):
        problem.arguments(0, 0, 0)
    quantizing = find("mxfp8-quantizing").plan().problem(256, 256, 256)
    with pytest.raises(PlanError, match="the kernel takes a place for the scales of C, but none is given"):
        quantizing.arguments(0, 0, 0, scales=(0, 0))
    with pytest.raises(PlanError, match="sfc of 256×256 e4m3 must be 2×2 blocks of 128 rows by 4 scales of K"):
        quantizing.arguments(0, 0, 0, scales=(0, 0), c_scales=device.array(np.zeros(256, np.uint8)))
    with pytest.raises(PlanError, match="the kernel takes no scales, but 2 are given"):
        find("modular-k6").plan().problem(256, 256, 256).arguments(0, 0, 0, scales=(sfa, sfb))


def test_packed_arrays_of_another_size() -> None:
    device = ptxgen.Emulator("sm_100a")
    problem = find("nvfp4").plan().problem(300, 256, 256)
    unpacked, packed = (device.array(np.zeros((300, width), np.uint8)) for width in (256, 128))
    with pytest.raises(PlanError, match=r"A is 300×256 e2m1, 38400 bytes, but the array .* has 76800"):
        problem.arguments(unpacked, 0, 0, scales=(0, 0))
    assert len(problem.arguments(packed, 0, 0, scales=(0, 0))) == 10
