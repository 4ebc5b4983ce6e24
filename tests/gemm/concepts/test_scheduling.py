"""Ping-pong consumers, tiles along a Hilbert curve, and promoted sums."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import assemble, check
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import run_gemm

PINGPONG: dict[str, Any] = {"consumers": "pingpong", "m_tile": 64, "n_tile": 64, "slots": 4}
HILBERT: dict[str, Any] = {"order": "hilbert", "n_tile": 64}
#: (rung, shape, choices); slots of 4 CTAs with many tiles, an odd number of them, and one tile.
CASES: list[tuple[str, tuple[int, int, int], dict[str, Any]]] = [
    ("hopper/overlapped", (200, 133, 128), PINGPONG),
    ("hopper/persistent", (70, 200, 200), {**PINGPONG, "cluster_m": 1, "stages": 3, **HILBERT, "slots": 2}),
    ("hopper/overlapped", (1, 1, 64), PINGPONG),
    ("blackwell/panels", (260, 70, 64), {**HILBERT, "n_tile": 32, "stages": 2}),
    ("blackwell/tilus-raster", (200, 100, 64), HILBERT),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 1), ("random", 2)])
@pytest.mark.parametrize(("name", "shape", "choices"), CASES, ids=str)
def test_other_orders_and_consumers(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], schedule: Any, seed: int
) -> None:
    plan = find(name).plan(**choices)
    device = ptxgen.Emulator(plan.target, schedule, seed=seed, multiprocessors=4)
    result = run_gemm(device, plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("hopper/overlapped", {"consumers": "pingpong", "m_tile": 64}),
        ("hopper/persistent", {"consumers": "pingpong", "m_tile": 64, "n_tile": 256, "order": "hilbert"}),
        ("hopper/overlapped", {"consumers": "pingpong", "m_tile": 64, "alpha": True, "source": "bf16", "bias": "bf16",
                               "activation": "silu"}),
        ("blackwell/panels", {"order": "hilbert"}),
    ],
    ids=str,
)  # fmt: skip
def test_the_ptx_is_small_and_clean(name: str, choices: dict[str, Any]) -> None:
    text = find(name).plan(**choices).text
    assert len(text.encode()) < 60_000
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def test_without_turns_the_warpgroups_mix_their_stages() -> None:
    """The second warpgroup would take a stage of a round for that of the round before."""
    plan = find("hopper/overlapped").plan(**PINGPONG, cluster_m=1, stages=2)
    wait = re.compile(r"\{\n(.*\n)?\$wait:\n(.*\n)?.*try_wait.*%r_turn_slot.*\n(.*\n)*?.*bra \$wait;\n.*\}\n")
    text = wait.sub("", plan.text)
    assert text != plan.text
    schedules: list[tuple[Any, int]] = [("eager", 0), ("late", 0), ("random", 1)]
    results = [
        run_gemm(ptxgen.Emulator("sm_90a", schedule, seed=seed), plan, 200, 133, 136, text=text)
        for schedule, seed in schedules
    ]
    assert not any(result.ok for result in results)


def test_a_sum_that_is_not_promoted_is_found() -> None:
    plan = find("hopper/wgmma").plan(dtype="e4m3", n_tile=48)
    for line, other in (
        ("add.f32 %r_value3, %r_value3, %r_partial3;", "mov.b32 %r_value3, %r_partial3;"),
        ("%rd_step_a, %rd_step_b, 1,", "%rd_step_a, %rd_step_b, 0,"),
    ):
        assert line in plan.text
        result = run_gemm(ptxgen.Emulator("sm_90a"), plan, 64, 48, 400, text=plan.text.replace(line, other))
        assert not result.ok


def test_both_sums_of_eight_bit_types_must_fit() -> None:
    words = (
        "a consumer needs 256 registers for its accumulator (128 + 128 for a K block of 64 rows) and 26 more, 282; "
        "of 128 threads each has 255"
    )
    with pytest.raises(PlanError, match=re.escape(words)):
        find("hopper/wgmma").plan(dtype="e4m3", n_tile=256)


@pytest.mark.parametrize("side", [1, 2, 8, 32])
def test_the_hilbert_curve_goes_from_neighbor_to_neighbor(side: int) -> None:
    scheduler = find("hopper/overlapped").plan(**HILBERT).scheduler
    table = scheduler.table(side * 256, side * 64)  # clusters of 2 CTAs of 128 rows
    assert table is not None
    x, y = (table & 0xFFFF).astype(int), (table >> 16).astype(int)
    assert sorted(table.tolist()) == sorted(i + 65536 * j for i in range(side) for j in range(side))
    assert (np.abs(np.diff(x)) + np.abs(np.diff(y)) == 1).all()


def test_the_table_holds_every_tile_of_a_rectangle_once() -> None:
    scheduler = find("hopper/overlapped").plan(**HILBERT).scheduler
    table = scheduler.table(5 * 256 - 1, 3 * 64 - 1)
    assert table is not None
    assert table.dtype == np.uint32
    assert sorted(table.tolist()) == sorted(i + 65536 * j for i in range(5) for j in range(3))


@pytest.mark.parametrize(
    ("name", "choices", "words"),
    [
        ("hopper/overlapped", {"consumers": "pingpong", "m_tile": 192},
         "a warpgroup multiplies 64 or 128 rows: 1 cannot share m_tile = 192"),
        ("hopper/specialized", {"consumers": "pingpong", "m_tile": 64}, "pingpong takes a persistent kernel"),
        ("hopper/overlapped", {"order": "x"}, "order must be panels or hilbert, not x"),
        ("blackwell/clc", {"consumers": "pingpong"}, "blackwell/clc has no option consumers"),
    ],
)  # fmt: skip
def test_what_has_no_plan(name: str, choices: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        find(name).plan(**choices)


def test_the_table_is_an_argument() -> None:
    problem = find("blackwell/panels").plan(**HILBERT).problem(512, 256, 64)
    assert problem.plan.parameters[-4:] == [(".param .u64", "order"), *((".param .u32", each) for each in "mnk")]
    with pytest.raises(PlanError, match="the kernel takes a table of tiles, but none is given"):
        problem.arguments(0, 0, 0)
    short = ptxgen.Emulator().empty(3, np.uint32)
    with pytest.raises(PlanError, match=r"the table of tiles is 8 u32, 32 bytes, but .* has 12"):
        problem.arguments(0, 0, 0, order=short)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("n_tile", "more"), [(176, {}), (144, {"dtype": "f16"})])
def test_warpgroups_of_128_rows_store_all_of_them_in_a_loop(schedule: Any, n_tile: int, more: dict[str, Any]) -> None:
    """More than 8 chunks: those of both blocks of 64 rows rotate through the registers."""
    plan = find("hopper/overlapped").plan(
        m_tile=128, n_tile=n_tile, stages=2, chunk=16, cluster_m=1, consumers="pingpong", **more
    )
    assert plan.epilogue.rotates
    device = ptxgen.Emulator("sm_90a", schedule=schedule, multiprocessors=2)
    result = run_gemm(device, plan, 300, n_tile + 24, 136)
    assert result.ok, result.summary()
    assert not result.launch.findings
