"""The planner: waves, bytes and choices, against arithmetic by hand and walks over the tiles in plain Python."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ptxgen.gemm import PlanError, find, kernels, parse_options
from ptxgen.gemm.concepts.tile_scheduler import TileScheduler
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.prediction.traffic import (
    cluster_tiles,
    copies_in_l2,
    hbm_load_bytes,
    l2_load_bytes,
    least_load_bytes,
    tile_order,
)
from ptxgen.gemm.selection.planner import plan_gemm
from ptxgen.timing import MACHINES

B200, H200 = MACHINES["b200"], MACHINES["h200"]
MXFP8 = {"dtype": "e4m3", "c_dtype": "f32"}


def estimate(m: int, n: int, k: int, **options: object) -> Estimate:
    return Estimate(find("blackwell/panels").plan(**options), B200, m, n, k, 1500)


def test_the_open_problem_of_the_mxfp8_article_is_wave_quantization() -> None:
    """4096³ at 0.87 of cuBLAS: 256 tiles of 256x256 on 74 CTA pairs."""
    found = plan_gemm(4096, 4096, 4096, B200, fixed=MXFP8)
    shipped = found.shipped
    assert (shipped.tile, shipped.tiles, shipped.slots, shipped.whole_waves) == ("256×256", 256, 74, 4)
    assert round(shipped.waves, 2) == 3.46
    assert round(shipped.wave_efficiency, 3) == 0.865
    assert shipped.tensor_cycles == 4 * (4096 // 128) * 4 * 128
    assert (found.chosen.tile, found.chosen.config.cta_group) == ("256×240", 2)
    assert found.chosen.tensor_cycles == 4 * (4096 // 128) * 4 * 120
    assert 0.06 < found.gain < 0.07
    sentences = " ".join(found.explain())
    assert "256 tiles on 74 CTA pairs make 3.46 waves, so 4 at 86.5%" in sentences
    assert "Predicted for 256×240 instead of 256×256: about 7% faster" in sentences


def test_block_scaled_tiles_are_multiples_of_32_and_move_scales() -> None:
    found = plan_gemm(4096, 4096, 4096, B200, kernel="mxfp8-o11")
    assert (found.rung, found.chosen.tile, found.shipped.tile) == ("blackwell/mxfp8-overlap64", "256×192", "256×256")
    assert all(each.plan.n_tile % 32 == 0 for each in found.ranked)
    assert round(found.shipped.waves, 2) == 3.46
    # 16 K blocks of 256, 8 MMAs of 96 cycles each, in 5 waves; one scale for 32 elements.
    assert found.chosen.tensor_cycles == 5 * 16 * 8 * 96
    assert found.shipped.l2_bytes == 2 * 16 * 4096 * (4096 + 128) + 4 * 4096**2
    assert 0.06 < found.gain < 0.07
    assert found.shipped.config.order == "panels"
    assert plan_gemm(8192, 8192, 8192, B200, kernel="mxfp8-o11").shipped.config.order == "hilbert"
    # Before the rung that multicasts them, both CTAs of a pair load the scales of B.
    alone = plan_gemm(4096, 4096, 4096, B200, kernel="mxfp8-o3").shipped
    assert alone.l2_bytes == found.shipped.l2_bytes + 16 * 4096 * 128
    nvfp4 = plan_gemm(4096, 4096, 4096, B200, kernel="nvfp4").shipped
    assert nvfp4.l2_bytes == 2 * 16 * 4096 * (2048 + 256) + 4 * 4096**2
    with pytest.raises(PlanError, match="hopper/ring is for sm_90a; NVIDIA B200 runs sm_100a"):
        plan_gemm(4096, 4096, 4096, B200, kernel="hopper/ring")


def test_the_tile_of_modular_for_gemma() -> None:
    """512x8192x5376: their 256x224 makes 148 CTAs, one for each SM."""
    found = plan_gemm(512, 8192, 5376, B200)
    assert (found.chosen.tile, found.chosen.tiles, found.chosen.waves) == ("256×224", 74, 1)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_choice_is_the_best_of_all_plans(machine: object) -> None:
    """No configuration of the space is better than the choice by more than the tie."""
    for each in (B200, H200):
        if each is not machine:
            continue
        found = plan_gemm(3000, 2000, 1000, each, count=10_000)
        least = min(other.cycles for other in found.ranked)
        assert found.chosen.cycles <= 1.02 * least
        few = plan_gemm(3000, 2000, 1000, each, count=3)
        assert few.chosen.plan.config == found.chosen.plan.config
        assert len(few.ranked) == 3
        assert len(found.ranked) > 50
        for other in found.ranked:
            assert other.plan.shared.bytes <= each.shared_bytes.value
            assert other.plan.accumulator.columns <= each.tmem_columns.value
            more = other.config.stages + 1
            if more <= 12 and other.resident == 1:
                with pytest.raises(PlanError, match="shared memory"):
                    find(found.rung).plan(**{name: getattr(replace(other.config, stages=more), name)
                                             for name in find(found.rung).options})  # fmt: skip


@pytest.mark.parametrize("capacity", [500_000, 1_000_000, 3_000_000])
@pytest.mark.parametrize("order", [{"panel": 0}, {"panel": 3}, {"panel": 16}, {"panel": 0, "order": "hilbert"}])
def test_bytes_are_those_of_a_walk_over_the_tiles(order: dict[str, object], capacity: int) -> None:
    plan = find("blackwell/panels").plan(n_tile=96, **order)
    scheduler, m, n, k, slots = plan.scheduler, 1500, 1234, 640, 7
    x, y = cluster_tiles(scheduler, m, n)
    assert (x, y) == (6, 13)
    places = list(zip(*(each.tolist() for each in tile_order(scheduler, m, n)), strict=True))
    assert sorted(places) == [(i, j) for i in range(x) for j in range(y)]

    def size(name: str, index: int) -> int:
        step, extent = (256, m) if name == "a" else (96, n)
        return min(step, extent - index * step) * 2 * k

    from_l2 = sum(size("a", i) + size("b", j) for i, j in places)
    assert l2_load_bytes(scheduler, m, n, (2 * k, 2 * k)) == from_l2
    cache, loaded = list[tuple[str, int]](), 0
    for start in range(0, len(places), slots):
        wave = places[start : start + slots]
        needed = sorted({("a", i) for i, _ in wave}) + sorted({("b", j) for _, j in wave})
        loaded += sum(size(*each) for each in needed if each not in cache)
        cache = needed + [each for each in cache if each not in needed]
        total = 0
        for count, each in enumerate(cache):
            total += size(*each)
            if total > capacity:
                cache = cache[:count]
                break
    assert hbm_load_bytes(scheduler, m, n, (2 * k, 2 * k), slots, capacity) == loaded
    assert least_load_bytes(scheduler, m, n, (2 * k, 2 * k), slots, capacity) <= loaded
    once = (m + n) * 2 * k
    assert least_load_bytes(scheduler, m, n, (2 * k, 2 * k), 1000, capacity) == once
    assert hbm_load_bytes(scheduler, m, n, (2 * k, 2 * k), slots, once) == once <= loaded < from_l2


@pytest.mark.parametrize(("cluster", "panel", "copies"), [
    ((1, 1), 0, "once"), ((1, 1), 4, "B twice"), ((1, 1), 1, "once"), ((2, 1), 4, "once"),
])  # fmt: skip
def test_neighbors_that_share_rows_take_them_into_one_half_of_the_l2(
    cluster: tuple[int, int], panel: int, copies: str
) -> None:
    """128 rows of A make two tiles of 64: CTAs with the same rows of B are neighbors, or 4 tiles apart."""
    scheduler = TileScheduler("grid", 64, 64, cluster, panel)
    a, b = 128 * 100, 1024 * 100
    assert copies_in_l2(scheduler, 128, 1024, (100, 100)) == 2 * a + b * (2 if copies == "B twice" else 1)


def test_persistence_clusters_and_hints_have_their_measured_price() -> None:
    """512×4096×7168 on an H200: 47.4 µs with one tile per CTA, 47.9 persistent, 47.6 in clusters."""
    rung, shape = find("hopper/overlapped"), (512, 4096, 7168)
    own = {"n_tile": 128, "stages": 6, "panel": 0}
    grid, static, pairs = (
        Estimate.of(rung.plan(**own, **each), H200, *shape)
        for each in ({"cluster_m": 1, "scheduler": "grid"}, {"cluster_m": 1}, {"cluster_m": 2, "scheduler": "grid"})
    )
    assert grid.microseconds < static.microseconds < 1.05 * grid.microseconds
    assert 0.98 * grid.microseconds < pairs.microseconds < 1.02 * grid.microseconds
    few = {"m_tile": 64, "n_tile": 32, "cluster_m": 1, "scheduler": "grid", "stages": 12}
    plain, hinted = (Estimate.of(rung.plan(**few, a_hint=each), H200, 4096, 32, 4096) for each in ("", "evict_first"))
    assert hinted.microseconds < plain.microseconds
    assert plain.clock > H200.clock.value == grid.clock


def test_ctas_share_an_sm_by_shared_memory_and_registers() -> None:
    rung = find("hopper/overlapped")
    own = {"m_tile": 64, "n_tile": 64, "cluster_m": 1, "chunk_buffers": 1}

    def resident(n: int, **options: object) -> int:
        return Estimate.of(rung.plan(**{**own, **options}), H200, 64, n, 4096).resident

    assert resident(28672, scheduler="grid", stages=6) == 2
    assert resident(28672, scheduler="grid", stages=12) == 1
    assert resident(28672, stages=6) == 1  # persistent
    assert resident(4096, scheduler="grid", stages=6) == 1  # one tile for each SM
    assert resident(28672, scheduler="grid", stages=2, m_tile=128) == 1  # setmaxnreg: all registers


def test_few_rows_are_split_and_hinted() -> None:
    """8×2112×7168 (docs/hopper.md): 17 tiles of 128 weights, K shared by clusters of 4, of which 30 run at once."""
    chosen = plan_gemm(2112, 8, 7168, H200, fixed={"c_major": "m"}).chosen
    config = chosen.config
    assert (config.scheduler, config.a_hint, config.b_hint) == ("grid", "evict_first", "evict_last")
    assert config.split_k == 4
    assert chosen.waves < 1
    stream = plan_gemm(2112, 8, 7168, H200, fixed={"c_major": "m", "split_k": 1, "scheduler": "stream"}).chosen
    assert stream.cycles > chosen.cycles
    fixed = plan_gemm(
        2112, 8, 7168, H200, fixed={"c_major": "m", "scheduler": "grid", "split_k": 1, "a_hint": ""}
    ).chosen
    assert (fixed.config.scheduler, fixed.config.a_hint, fixed.config.b_hint) == ("grid", "", "")
    made = plan_gemm(128, 4096, 4096, H200).chosen.plan
    assert find(made.name).plan(**parse_options(dict(each.split("=") for each in made.settings))) == made


def test_ctas_do_not_search_their_tile_where_every_order_is_along_m() -> None:
    """16×7168×2048 on an H200: 8.60 µs along M, 9.04 in panels."""
    chosen = plan_gemm(7168, 16, 2048, H200, fixed={"c_major": "m"}).chosen
    assert (chosen.config.scheduler, chosen.config.panel) == ("grid", 0)
    options = {name: getattr(chosen.config, name) for name in find("hopper/overlapped").options}
    panels = Estimate.of(find("hopper/overlapped").plan(**{**options, "panel": 8}), H200, 7168, 16, 2048)
    assert 0.3 < panels.microseconds - chosen.microseconds < 0.6
    assert panels.hbm_bytes == chosen.hbm_bytes


def test_no_tile_has_rows_or_columns_that_a_smaller_one_spares() -> None:
    ranked = plan_gemm(100, 4096, 4096, H200, count=40).ranked
    assert {each.plan.m_tile for each in ranked} <= {64, 128}
    few = plan_gemm(4096, 20, 4096, H200, count=40, fixed={"c_major": "m"}).ranked
    assert max(each.plan.n_tile for each in few) <= 32
    asked = plan_gemm(100, 4096, 4096, H200, count=1, fixed={"m_tile": 192}).chosen
    assert asked.plan.m_tile == 192


def test_neighbors_that_split_k_take_a_row_into_both_halves_of_the_l2() -> None:
    """128×4096×14336 on an H200: 63 MB pass between the halves in CTAs of 64×64, 95 MB in clusters of 64×128."""
    rung, own = find("hopper/overlapped"), {"m_tile": 64, "cluster_m": 1, "scheduler": "grid", "panel": 0}
    alone = Estimate.of(rung.plan(**own, n_tile=64, stages=12, chunk_buffers=1), H200, 128, 4096, 14336)
    split = Estimate.of(rung.plan(**own, n_tile=128, stages=6, split_k=2), H200, 128, 4096, 14336)
    assert alone.hbm_bytes == split.hbm_bytes
    assert split.l2_fill_bytes > 1.8 * alone.l2_fill_bytes
    assert alone.microseconds < split.microseconds


def test_clusters_of_4_and_8_do_not_fill_the_gpcs() -> None:
    assert [H200.cluster_slots(each) for each in (1, 2, 4, 8)] == [132, 66, 30, 15]
    assert B200.cluster_slots(2) == 74


def test_a_ring_that_leaves_no_l1_cache_costs_bandwidth() -> None:
    rung, few = find("hopper/overlapped"), {"c_major": "m", "m_tile": 64, "n_tile": 16, "cluster_m": 1}
    small, large = (
        Estimate.of(rung.plan(**few, scheduler="grid", stages=each), H200, 28672, 16, 8192) for each in (12, 22)
    )
    assert small.shared_bytes < H200.most_shared.value < large.shared_bytes
    assert small.microseconds < large.microseconds


def test_the_order_of_tiles_is_the_one_with_the_fewest_bytes_from_memory() -> None:
    found = plan_gemm(8192, 8192, 8192, B200)
    assert found.chosen.tile == found.shipped.tile
    assert found.chosen.hbm_bytes < 0.7 * found.shipped.hbm_bytes
    kept = plan_gemm(8192, 8192, 8192, B200, fixed={"panel": 2})
    assert kept.chosen.hbm_bytes == found.shipped.hbm_bytes


def test_panels_are_those_of_the_template() -> None:
    """Three columns at a time; the last panel is narrower."""
    scheduler = TileScheduler("grid", 10, 10, (1, 1), 3)
    x, y = tile_order(scheduler, 20, 50)
    assert x.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]
    assert y.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]


def test_what_bounds_a_problem() -> None:
    assert plan_gemm(8192, 8192, 8192, B200).chosen.bound_by == "tensor"
    assert plan_gemm(8192, 8192, 16, B200).chosen.bound_by == "HBM"
    assert estimate(4096, 4096, 4096, m_tile=128, n_tile=64, cta_group=1, cluster_m=1).bound_by == "L2"
    tiny = estimate(512, 512, 512, m_tile=64, n_tile=32, cta_group=1, cluster_m=1, stages=12)
    assert tiny.k_block_cycles == 2 * B200.tma_issue.value  # A and B: one copy each
    shallow, deep = (estimate(4096, 4096, 4096, stages=each) for each in (2, 6))
    assert shallow.tensor_cycles > 1.5 * deep.tensor_cycles
    assert shallow.mma_efficiency < 0.7 < deep.mma_efficiency == 1
    grid, persistent = (estimate(4096, 4096, 4096, scheduler=each) for each in ("grid", "clc"))
    assert grid.fill_cycles == 4 * persistent.fill_cycles == 4 * B200.ring_hbm.value  # A and B pass half of the L2
    assert estimate(2048, 2048, 4096).fill_cycles == B200.ring_l2.value


def test_the_clock_moves_memory_against_the_tensor_cores() -> None:
    slow, fast = (plan_gemm(4096, 4096, 4096, B200, clock=clock) for clock in (1000, 1900))
    assert slow.chosen.tile == "256×128"
    assert fast.chosen.tile == "256×240"
    assert slow.safer is None
    middle = plan_gemm(4096, 4096, 4096, B200)
    assert middle.safer is not None
    assert middle.safer.tile == "256×240"
    assert any("TB/s from the L2" in sentence and "not B200" in sentence for sentence in middle.explain())


def test_fixed_options_stay() -> None:
    found = plan_gemm(4096, 4096, 4096, B200, fixed={"m_tile": 128, "n_tile": 96, "stages": 3, "cta_group": 1})
    assert {(each.tile, each.config.stages) for each in found.ranked} == {("128×96", 3)}
    assert plan_gemm(4096, 4096, 4096, H200, fixed={"c_dtype": "f32"}).chosen.config.epilogue == "direct"


def test_promoted_sums_are_planned_though_the_tile_of_the_rung_does_not_fit() -> None:
    found = plan_gemm(4096, 4096, 4096, H200, fixed={"dtype": "e4m3"})
    assert found.chosen.config.promote
    assert found.shipped.tile == "128×128"


@pytest.mark.parametrize(
    ("options", "shared", "alone"),
    [
        # Ping-pong: one warpgroup multiplies 128 rows, 64 at a time: 4 MMAs of 56 cycles, then 56 sums of a thread.
        ({"m_tile": 128, "n_tile": 112, "consumers": "pingpong"}, 8 * 56 / 0.89, 8 * 56 / 0.89 + 2 * (100 + 56)),
        # Cooperative: each of two warpgroups multiplies 64 rows, and adds while the other multiplies.
        ({"m_tile": 128, "n_tile": 112}, 8 * 56 / 0.89 + 100, 4 * 56 / 0.89 + 100 + 56),
        ({"m_tile": 192, "n_tile": 112}, 12 * 56 / 0.89 + 200, 4 * 56 / 0.89 + 100 + 56),
        ({"m_tile": 256, "n_tile": 128, "warpgroups": 2}, 16 * 64 / 0.89 + 100, 8 * 64 / 0.89 + 2 * (100 + 64)),
        # With scales of 128 rows of B, a tile of 96 columns may reach the next one at 32 or 64.
        ({"m_tile": 128, "n_tile": 96, "scales": "1d2d"}, 8 * 48 / 0.89 + 100, 4 * 48 / 0.89 + 100 + 48 + 2 * 30),
        ({"m_tile": 128, "n_tile": 128, "scales": "1d2d"}, 8 * 64 / 0.89 + 100, 4 * 64 / 0.89 + 100 + 64),
    ],
)
def test_promoted_sums_take_cycles_that_other_consumers_hide(
    options: dict[str, object], shared: float, alone: float
) -> None:
    """By hand, with MMAs at 0.89 of their interval: the p-norm of both with p = 6, and a ring that never waits."""
    fixed = {"dtype": "e4m3", "c_dtype": "bf16", "stages": 3, "cluster_m": 1, **options}
    ideal = {"ring_overlap": replace(H200.ring_overlap, value=1000), "ring_hbm": replace(H200.ring_hbm, value=0)}
    plan = find("hopper/overlapped").plan(**fixed)
    cycles = Estimate(plan, replace(H200, **ideal), 16384, 16384, 16384, 1500).k_block_cycles
    assert cycles == pytest.approx((shared**6 + alone**6) ** (1 / 6), rel=0.01)


def test_ping_pong_consumers_are_not_chosen_for_promoted_sums() -> None:
    """Nothing hides their additions: 179 µs for 4096³ on an H200, 106 without promotion (docs/hopper.md)."""
    chosen = plan_gemm(4096, 4096, 4096, H200, fixed={"dtype": "e4m3", "c_dtype": "bf16"}).chosen
    assert chosen.config.consumers == "cooperative"
    assert (chosen.tile, chosen.config.warpgroups) == ("256×128", 2)


def test_bad_input_is_refused() -> None:
    for m, n, k in ((0, 1, 1), (1, -1, 1), (1, 1, 1 << 20)):
        with pytest.raises(PlanError, match="must be 1 to 262144"):
            plan_gemm(m, n, k, B200)
    with pytest.raises(PlanError, match="clock must be 100 to 10000 MHz, not 0"):
        plan_gemm(64, 64, 64, B200, clock=0)
    with pytest.raises(PlanError, match="1 configuration or more"):
        plan_gemm(64, 64, 64, B200, count=0)
    with pytest.raises(PlanError, match="has no option consumers"):
        plan_gemm(64, 64, 64, B200, fixed={"consumers": "pingpong"})
    with pytest.raises(PlanError, match=r"no configuration of hopper/overlapped fits: .* must be K-major"):
        plan_gemm(64, 64, 64, H200, fixed={"dtype": "e4m3", "a_major": "mn"})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kernels())
def test_every_kernel_with_tiles_is_planned(name: str) -> None:
    """Also those without a ring, a scheduler, or both."""
    entry = find(name)
    machine = B200 if entry.target == "sm_100a" else H200
    if "n_tile" in entry.options:
        found = plan_gemm(640, 384, 256, machine, kernel=name, count=1)
        assert found.chosen.plan.name == name
    else:
        with pytest.raises(PlanError, match=f"^{name} has no tiles to choose from"):
            plan_gemm(640, 384, 256, machine, kernel=name)
