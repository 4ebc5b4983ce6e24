"""Plans: shared-memory maps, the concepts' numbers, and the errors of what does not fit."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ptxgen import check
from ptxgen.descriptors import TensorMap
from ptxgen.emulator import Emulator
from ptxgen.gemm import GemmConfig, GemmPlan, PlanError, SharedMap, find, kernels, parse_options
from ptxgen.gemm.concepts.accumulator import Accumulator
from ptxgen.gemm.concepts.operand import Operand
from ptxgen.gemm.concepts.shared_map import Wanted
from ptxgen.layouts.operands import operand_addresses
from ptxgen.toolchain import assemble

TILES = [(128, 128), (64, 32), (64, 256), (128, 256), (128, 48), (128, 32), (64, 176)]
KERNEL = "blackwell/swizzled"


def plan(name: str = KERNEL, **choices: Any) -> GemmPlan:
    return find(name).plan(**choices)


def test_regions_follow_each_other_on_their_alignment() -> None:
    wanted = [Wanted("x", 100, 16, ""), Wanted("y", 24, 1024, "", 3), Wanted("z", 8, 8, "")]
    shared = SharedMap.place(wanted, target="sm_100a")
    assert [(region.name, region.offset) for region in shared.regions] == [("x", 0), ("y", 1024), ("z", 1048)]
    assert (shared.bytes, shared.alignment, shared.offset("y")) == (1056, 1024, 1024)
    with pytest.raises(KeyError, match="no region 'w'; there are x, y, z"):
        shared.offset("w")
    with pytest.raises(KeyError, match="no pipeline 'abc'; there are ab, acc"):
        plan(KERNEL).pipeline("abc")


def test_what_does_not_fit_is_told_with_the_sum() -> None:
    with pytest.raises(
        PlanError, match=r"needs 240000 bytes of shared memory \(a 4 x 30000 \+ b 120000\).* has 232448"
    ):
        SharedMap.place([Wanted("a", 120000, 16, "", 4), Wanted("b", 120000, 16, "")], target="sm_100a")
    assert SharedMap.place([Wanted("a", 232448, 16, "")], target="sm_100a").bytes == 232448


@pytest.mark.parametrize(
    ("name", "choices", "words"),
    [
        (KERNEL, {"dtype": "f8"}, "dtype must be bf16, f16, tf32, e4m3, e5m2, e3m2, e2m3, e2m1, s8 or u8, not f8"),
        (KERNEL, {"dtype": "f16", "c_dtype": "s32"}, "f16 accumulates in f32; C cannot be s32"),
        (KERNEL, {"dtype": "bf16", "b_dtype": "e4m3"}, "no MMA multiplies bf16 by e4m3"),
        (KERNEL, {"dtype": "tf32", "b_major": "mn", "swizzle": "64B"}, "B of type tf32 takes the swizzle 128B"),
        ("hopper/wgmma", {"dtype": "tf32", "b_major": "mn"}, "K-major: wgmma transposes 16-bit types only"),
        (KERNEL, {"m_tile": 96}, "m_tile must be 64 to 256 in steps of 64, not 96"),
        (KERNEL, {"m_tile": 256}, "the M tile must be 64 or 128 (tcgen05.mma with cta_group::1), not 256"),
        (KERNEL, {"n_tile": 272}, "n_tile must be 16 to 256 in steps of 16, not 272"),
        (KERNEL, {"n_tile": 40}, "n_tile must be 16 to 256 in steps of 16, not 40"),
        (KERNEL, {"n_tile": "64"}, "n_tile must be a whole number, not '64'"),
        (KERNEL, {"n_tile": 176, "b_major": "mn"},
         "B has 176 rows a CTA; MN-major with swizzle 128B takes a multiple of 64"),
        (KERNEL, {"ntile": 64}, "blackwell/swizzled has no option ntile; it takes dtype, b_dtype, c_dtype,"),
        (KERNEL, {"scheduler": "clc"}, "blackwell/swizzled has no option scheduler; it takes"),
        ("modular-k5", {"m_tile": 64}, "the M tile must be 256 (tcgen05.mma with cta_group::2), not 64"),
        ("modular-k5", {"cluster_m": 1}, "cta_group::2 takes pairs of CTAs along M: cluster_m must be even, not 1"),
        ("modular-k5", {"cluster_m": 4, "cluster_n": 4}, "a cluster has at most 8 CTAs, but 4×4 has 16"),
        ("modular-k8", {"stages": 7},
         "needs 245972 bytes of shared memory (a 7 x 16384 + b 7 x 16384 + c 2 x 8192 + response 2 x 16 + "),
        ("modular-k8", {"stages": 25}, "stages must be 1 to 24, not 25"),
        ("modular-k8", {"b_dtype": "f16"}, "no MMA multiplies bf16 by f16"),
        ("modular-k8", {"scheduler": "stream"}, "scheduler must be grid, static or clc, not stream"),
        ("hopper-5", {"scheduler": "clc"}, "scheduler must be grid, static or stream, not clc"),
        ("hopper-3", {"stages": 1}, "stages must be at least 2: the consumers release a stage once the wgmmas"),
        ("hopper-5", {"stages": 1, "dtype": "e4m3", "n_tile": 64}, "stages must be at least 2: the consumers"),
    ],
)  # fmt: skip
def test_configs_that_have_no_plan(name: str, choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        plan(name, **choices)


def test_more_tensor_memory_than_there_is_is_told_with_the_sum() -> None:
    a, b = Operand("a", "bf16", "k", 128, "128B"), Operand("b", "bf16", "k", 256, "128B")
    with pytest.raises(PlanError, match=r"need 1024 TMEM columns \(3 x 256, .*\); there are 512"):
        Accumulator.of(a, b, m=128, n=256, cta_group=1, stages=3)


def test_other_names_of_types() -> None:
    assert plan(dtype="fp16", c_dtype="fp32").config.dtype == "f16"
    assert GemmConfig(dtype="fp16", c_dtype="fp32") == GemmConfig(dtype="f16", c_dtype="f32")


def test_options_as_text() -> None:
    assert parse_options({"tile": "256x224", "stages": "4", "dtype": "f16"}) == {
        "m_tile": 256, "n_tile": 224, "stages": 4, "dtype": "f16",
    }  # fmt: skip
    for given, words in (({"tile": "256"}, "tile must be M x N"), ({"stages": "x"}, "stages must be a whole number")):
        with pytest.raises(PlanError, match=words):
            parse_options(given)


def test_the_numbers_of_a_plan() -> None:
    made = plan(dtype="bf16", m_tile=128, n_tile=192)
    assert made.a.descriptor.encode() == 0x4000404000010000  # 128B swizzle, SBO 1024, LBO 1 by convention
    expected = 1 << 4 | 1 << 7 | 1 << 10 | (192 >> 3) << 17 | (128 >> 4) << 24
    assert isinstance(made.accumulator, Accumulator)
    assert made.accumulator.instruction.encode() == expected
    assert (made.k_tile, made.a.k_steps) == (64, (0, 2, 4, 6))
    assert made.pipeline("ab").tx_bytes == (128 + 192) * 64 * 2
    assert made.accumulator.columns == 256
    assert (made.accumulator.rows_per_warp, plan(m_tile=64).accumulator.rows_per_warp) == (32, 16)


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("major", ["k", "mn"])
@pytest.mark.parametrize("dtype", ["bf16", "e4m3"])
@pytest.mark.parametrize("peers", [1, 2])
def test_what_tma_writes_is_what_the_descriptor_reads(dtype: str, major: Any, swizzle: str, peers: int) -> None:
    """Every element of a stage: where the copies put it, and where each MMA's descriptor looks for it."""
    operand = Operand("a", dtype, major, 256, swizzle, peers=peers)
    size = operand.type.bytes
    from ptxgen.layouts.swizzle import swizzle as mode

    written: dict[int, tuple[int, int]] = {}
    for peer in range(peers):
        for copy in operand.copies:
            inner, outer = operand.box
            for line in range(outer):
                for element in range(inner):
                    address = copy.offset + peer * operand.slice_bytes + line * operand.row_bytes + element * size
                    place = (line, element) if major == "k" else (element, line)
                    row = copy.row + peer * operand.slice_rows + place[0]
                    written[int(mode(swizzle).apply(address))] = (row, copy.k + place[1])
    assert len(written) == operand.rows * operand.k_tile == operand.bytes // size
    descriptor = operand.descriptor
    for step, advance in enumerate(operand.k_steps):
        addresses = operand_addresses(
            type(descriptor).decode(descriptor.encode() + advance), major=major, rows=operand.rows, k=operand.mma_k,
            element_bits=8 * size,
        )  # fmt: skip
        for row in range(0, operand.rows, 3):
            for k in range(operand.mma_k):
                assert written[int(addresses[row, k])] == (row, step * operand.mma_k + k)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((0, 1, 8), "M must be 1 to 2147483647, not 0"),
        ((1, -5, 8), "N must be 1 to 2147483647, not -5"),
        (
            (1, 1, 65),
            "MK must be a multiple of 8 (lines of A must start on 16 bytes), not 65; pad the lines to lda = 72",
        ),
        ((1, 2**31 - 1, 8), "a grid has at most 65535 in y"),
    ],
)
def test_problems_that_cannot_be_launched(size: tuple[int, int, int], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words.replace("MK", "K"))):
        plan().problem(*size)


def test_numbers_are_whole_and_may_be_of_numpy() -> None:
    assert plan("modular-k8", stages=np.int64(4)) == plan("modular-k8", stages=4)
    rows: Any
    for rows in (64, np.int64(64)):
        assert plan().problem(rows, 64, 64).grid == (1, 1, 1)
    for rows in ("64", 64.5, None):
        with pytest.raises(PlanError, match=f"M must be a whole number, not {rows!r}"):
            plan().problem(rows, 64, 64)


def test_misaligned_and_short_leading_dimensions() -> None:
    with pytest.raises(PlanError, match="lda must be a multiple of 8"):
        plan().problem(16, 16, 64, lda=68)
    with pytest.raises(PlanError, match="ldb must be at least 64, the length of a line of B, not 8"):
        plan().problem(16, 16, 64, ldb=8)
    with pytest.raises(PlanError, match="N must be a multiple of 8"):
        plan("modular-k4").problem(16, 17, 64)
    assert plan().problem(16, 17, 64).leading("c") == 17
    assert plan("modular-k4").padded_problem(16, 17, 64).leading("c") == 24


def test_launch_of_a_problem_with_tails() -> None:
    problem = plan().problem(511, 253, 72)
    assert (problem.grid, problem.block) == ((4, 2, 1), (128, 1, 1))
    tensormap = problem.tensormap("b", 0x7F0000000000)
    assert (tensormap.dims, tensormap.strides, tensormap.box) == ((72, 253), (144,), (64, 128))
    assert plan("modular-k5").problem(511, 256, 72).grid == (4, 2, 1)
    assert plan("modular-k5").problem(1, 128, 72).grid == (2, 2, 1)  # whole clusters


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("c_dtype", ["", "f32"])
@pytest.mark.parametrize(("m_tile", "n_tile"), TILES)
def test_ptx_assembles_without_spills_or_warnings(dtype: str, c_dtype: str, m_tile: int, n_tile: int) -> None:
    made = plan(dtype=dtype, c_dtype=c_dtype, m_tile=m_tile, n_tile=n_tile)
    assert len(made.text.encode()) < 40_000
    assert check(made.text) == []
    cubin = assemble(made.text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])
    assert 0 < cubin.registers <= 255


def test_the_text_does_not_depend_on_the_problem() -> None:
    """K, M and N are parameters: only the types and the tile are in the text."""
    text = plan().text
    assert text == plan().text
    assert text.count("tcgen05.mma") == 4
    assert text.count("cp.async.bulk.tensor") == 2


def test_unknown_kernels_are_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match=f"there is no kernel 'x'; there are: {', '.join(kernels())}"):
        find("x")


@pytest.mark.parametrize("name", [KERNEL, "modular-k9"])
def test_rendering_is_fast(name: str) -> None:
    """A template that is compiled renders in under 80 ms of CPU time; best of five, in a process of its own."""
    code = (
        f"import time\nfrom ptxgen.gemm import find\nfind('{name}').plan().text\nbest = 9.0\n"
        f"for _ in range(5):\n    began = time.process_time()\n    find('{name}').plan().text\n"
        "    best = min(best, time.process_time() - began)\nprint(best)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 0.08


def test_arrays_of_another_size_or_type_are_refused() -> None:
    problem = find(KERNEL).plan(c_dtype="f32").problem(m=256, n=128, k=64)
    device = Emulator()
    shapes: list[tuple[tuple[int, int], Any]] = [
        ((256, 64), np.uint16),
        ((128, 64), np.uint16),
        ((256, 128), np.float32),
    ]
    a, b, c = (device.empty(extents, dtype) for extents, dtype in shapes)
    assert len(problem.arguments(a, b, c)) == len(problem.arguments(a, b.address, c.address))
    assert isinstance(problem.arguments(a, b, c)[0], TensorMap)
    for wrong, message in (
        ((device.empty((256, 64), np.float32), b, c), "A is 256×64 bf16, 32768 bytes, but .* has 65536"),
        (
            (device.empty((256, 32), np.float32), b, c),
            r"A is 256×64 bf16, but the elements .* have 4 bytes \(float32\)",
        ),
        ((device.empty((256, 64), np.float16), b, c), "A is 256×64 bf16, but the array has the type float16"),
        ((a, b, device.empty((256, 128), np.int32)), "C is 256×128 f32, but the array has the type int32"),
        ((a, a, c), "B is 128×64 bf16"),
        ((a, b, a), "C is 256×128 f32"),
        ((np.zeros((256, 64), np.uint16), b, c), "A is 256×64 bf16, on the device, but a NumPy array is given; copy"),
        ((a, None, c), "B is 128×64 bf16, on the device, but none is given"),
    ):
        with pytest.raises(PlanError, match=message):
            problem.arguments(*wrong)


def test_a_plan_is_made_in_short_steps() -> None:
    """One function a kind of plan; what each part needs stands in `ptxgen.gemm.parts`."""
    for made in (GemmPlan.of, GemmPlan._naive, GemmPlan._gemv):  # type: ignore[reportPrivateUsage]
        assert len(inspect.getsource(made).splitlines()) <= 45, made
