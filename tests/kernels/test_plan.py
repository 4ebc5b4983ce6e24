"""Plans: shared-memory maps, the GEMM plan's numbers, and the PTX that follows from them."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ptxgen import check
from ptxgen.emulator import Emulator
from ptxgen.kernels import KERNELS, GemmConfig, GemmPlan, PlanError, SharedMap, find
from ptxgen.toolchain import assemble

TILES = [(128, 128), (64, 32), (64, 256), (128, 256), (128, 48), (128, 32), (64, 176)]
KERNEL = "blackwell/swizzled"


def plan(**choices: object) -> GemmPlan:
    return find(KERNEL).plan(**choices)


def test_regions_follow_each_other_on_their_alignment() -> None:
    shared = SharedMap.place([("x", 100, 16, ""), ("y", 24, 1024, ""), ("z", 8, 8, "")], target="sm_100a")
    assert [(region.name, region.offset) for region in shared.regions] == [("x", 0), ("y", 1024), ("z", 1048)]
    assert (shared.bytes, shared.alignment, shared.offset("y")) == (1056, 1024, 1024)
    with pytest.raises(KeyError, match="no region 'w'; there are x, y, z"):
        shared.offset("w")


def test_what_does_not_fit_is_told_with_the_numbers() -> None:
    with pytest.raises(PlanError, match=r"need 240000 bytes of shared memory \(a 120000, b 120000\).* has 232448"):
        SharedMap.place([("a", 120000, 16, ""), ("b", 120000, 16, "")], target="sm_100a")
    assert SharedMap.place([("a", 232448, 16, "")], target="sm_100a").bytes == 232448


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"dtype": "f8"}, "dtype must be bf16 or f16, not f8"),
        ({"dtype": "bf16", "c_dtype": "f16"}, "the output type must be bf16 (as the input) or f32, not f16"),
        ({"m_tile": 96}, "the M tile must be 64 or 128 (tcgen05.mma with cta_group::1), not 96"),
        ({"n_tile": 272}, "the N tile must be 32 to 256 in steps of 16, not 272"),
        ({"n_tile": 40}, "the N tile must be 32 to 256 in steps of 16, not 40"),
        ({"n_tile": 16}, "the N tile must be 32 to 256 in steps of 16, not 16"),
    ],
)
def test_configs_that_have_no_plan(choices: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        plan(**choices)


def test_other_names_of_types() -> None:
    assert plan(dtype="fp16", c_dtype="fp32").config == GemmConfig(dtype="f16", c_dtype="f32")


def test_the_numbers_of_a_plan() -> None:
    made = plan(dtype="bf16", m_tile=128, n_tile=192)
    assert made.a_descriptor.encode() == 0x4000404000010000  # 128B swizzle, SBO 1024, LBO 1 by convention
    assert made.instruction_descriptor.encode() == 1 << 4 | 1 << 7 | 1 << 10 | (192 >> 3) << 17 | (128 >> 4) << 24
    assert (made.k_tile, made.k_steps, made.k_step_advance) == (64, 4, 2)
    assert made.stage_bytes == (128 + 192) * 64 * 2 == made.barrier("loaded").tx_bytes
    assert made.tmem_columns == 256
    assert (made.rows_per_warp, plan(m_tile=64).rows_per_warp) == (32, 16)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((0, 1, 8), "M must be 1 to 2147483647, not 0"),
        ((1, -5, 8), "N must be 1 to 2147483647, not -5"),
        (
            (1, 1, 65),
            "K must be a multiple of 8 (TMA requires 16-byte-aligned rows), not 65; pad A and B with zeros to K = 72",
        ),
        ((1, 2**31 - 1, 8), "a grid has at most 65535 in y"),
    ],
)
def test_problems_that_cannot_be_launched(size: tuple[int, int, int], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        plan().problem(*size)


def test_launch_of_a_problem_with_tails() -> None:
    problem = plan().problem(511, 253, 72)
    assert (problem.grid, problem.block) == ((4, 2, 1), (128, 1, 1))
    tensormap = problem.tensormap("b", 0x7F0000000000)
    assert (tensormap.dims, tensormap.strides, tensormap.box) == ((72, 253), (144,), (64, 128))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("c_dtype", [None, "f32"])
@pytest.mark.parametrize(("m_tile", "n_tile"), TILES)
def test_ptx_assembles_without_spills_or_warnings(dtype: str, c_dtype: str | None, m_tile: int, n_tile: int) -> None:
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
    with pytest.raises(PlanError, match=f"there is no kernel 'x'; there are: {', '.join(KERNELS)}"):
        find("x")


def test_rendering_is_fast() -> None:
    """A template that is compiled renders in under 50 ms of CPU time; best of five, in a process of its own."""
    code = (
        "import time\nfrom ptxgen.kernels import find\nfind('blackwell/swizzled').plan().text\nbest = 9.0\n"
        "for _ in range(5):\n    began = time.process_time()\n    find('blackwell/swizzled').plan().text\n"
        "    best = min(best, time.process_time() - began)\nprint(best)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 0.05


def test_arrays_of_another_size_are_refused() -> None:
    problem = find("blackwell/swizzled").plan(c_dtype="f32").problem(m=256, n=128, k=64)
    device = Emulator()
    a, b, c = (
        device.empty(extents, dtype)
        for extents, dtype in (
            ((256, 64), np.uint16),
            ((128, 64), np.uint16),
            ((256, 128), np.float32),
        )
    )
    assert len(problem.arguments(a, b, c)) == len(problem.arguments(a, b.address, c.address))
    for wrong, message in (
        (
            (device.empty((256, 64), np.float32), b, c),
            "A is 256×64 bf16, 32768 bytes, but .* has 65536",
        ),
        ((a, a, c), "B is 128×64 bf16"),
        ((a, b, a), "C is 256×128 f32"),
    ):
        with pytest.raises(PlanError, match=message):
            problem.arguments(*wrong)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"ntile": 64}, "a plan has no ntile; it takes dtype, c_dtype, m_tile, n_tile, swizzle, ptx"),
        ({"n_tile": "64"}, "n_tile must be a whole number, not '64'"),
    ],
)
def test_choices_that_there_are_not(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        find("blackwell/swizzled").plan(**choices)
