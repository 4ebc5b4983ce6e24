"""The forecast: lines that rows touch, the trees, the menu's file, and what `best` makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen.gemm import best, find, parse_options
from ptxgen.gemm.selection import dispatch
from ptxgen.gemm.selection.forecast import CARDS, Form, Task, columns, count, lines
from ptxgen.gemm.selection.forest import Forest
from ptxgen.gemm.selection.menu import FIELDS, RUNG, cost_of_scales, forecasts, menu_of, product_of

PRODUCTS = {"bf16": {"dtype": "bf16"}, "fast": {"dtype": "e4m3", "promote": False}, "promoted": {"dtype": "e4m3"}}


@pytest.fixture(autouse=True)
def _without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", "")


@pytest.mark.parametrize("pitch", [128, 10000, 6000, 5760, 64, 17 * 16, 96])
def test_lines_that_a_row_touches(pitch: int) -> None:
    counted = [len({byte // 128 for byte in range(row * pitch, row * pitch + 128)}) for row in range(128)]
    assert lines(pitch) == pytest.approx(sum(counted) / len(counted))


def test_rows_that_are_no_lines_cost_time() -> None:
    form = Form.of(find(RUNG).plan(n_tile=112, cluster_m=1, panel=8))
    aligned, odd = (count(columns([form]), Task.dense(4000, 4096, k, 2), CARDS["h200"]).us[0] for k in (4992, 5000))
    assert odd > 1.1 * aligned
    shared = Form.of(find(RUNG).plan(n_tile=256, cluster_m=2, panel=8))
    both = count(columns([form, shared]), Task.dense(4000, 4096, 5000, 2), CARDS["h200"]).us
    assert both[1] < both[0]  # larger tiles, and multicast


#: Two trees: the first splits on feature 1 at 5, its second child on feature 0 at 2; the second is a leaf.
FOREST = Forest(
    np.array([0, 5], np.int32),
    np.array([1, -1, 0, -1, -1, -1], np.int8),
    np.array([5.0, 10.0, 2.0, 20.0, 30.0, 0.5]),
    np.array([1, 0, 3, 0, 0, 0], np.int32),
    2,
)


def test_trees_add_up_their_leaves() -> None:
    rows = np.array([[0.0, 5.0], [2.0, 5.1], [2.1, 9.0]])
    assert FOREST.predict(rows).tolist() == [10.5, 20.5, 30.5]
    assert FOREST.predict(rows, end=1).tolist() == [10.0, 20.0, 30.0]
    assert FOREST.predict(rows, first=1).tolist() == [0.5, 0.5, 0.5]


def test_a_packed_forest_is_the_same() -> None:
    read = Forest.unpacked(FOREST.packed())
    for name in ("roots", "feature", "threshold", "children"):
        assert getattr(read, name).tolist() == getattr(FOREST, name).tolist()
    assert read.depth == FOREST.depth


@pytest.mark.parametrize("product", PRODUCTS)
def test_trees_of_the_file_end_in_leaves(product: str) -> None:
    """Each inner node has two children of its tree behind it, and each node but a root one parent."""
    forest = menu_of(product).forest
    inner = np.flatnonzero(forest.feature >= 0)
    children = forest.children[inner]
    assert (children > inner).all()
    reached = np.concatenate([forest.roots, children, children + 1])
    assert np.array_equal(np.sort(reached), np.arange(len(forest.feature)))


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_file_describes_kernels_of_the_rung(product: str) -> None:
    menu = menu_of(product)
    assert len(set(menu.options)) == len(menu.options) > 100
    for number in range(0, len(menu.options), 17):
        own = parse_options(dict(each.split("=", 1) for each in menu.options[number].split()))
        form = Form.of(find(RUNG).plan(**{**own, **PRODUCTS[product], "c_dtype": "bf16"}))
        assert [int(getattr(form, name)) for name in FIELDS] == [int(menu.columns[name][number]) for name in FIELDS]


@pytest.mark.parametrize("machine", ["h200", "h100"])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("shape", [(3, 1000, 5000), (333, 2880, 2880), (5000, 5000, 5008), (16384, 32768, 512)])
def test_best_takes_a_kernel_of_the_menu_and_expects_a_time(
    shape: tuple[int, int, int], product: str, machine: str
) -> None:
    chosen = best(*shape, device=machine, c_dtype="bf16", **PRODUCTS[product])
    assert (chosen.known, chosen.tuned) == ("predicted", None)
    first = forecasts(*shape, machine, {**PRODUCTS[product], "c_dtype": "bf16"}, 1)[0]
    assert chosen.us == first[0] > 0
    assert f"{chosen.us:.3g} µs, predicted" == chosen.expected
    m, n, k = shape
    floor = max((m + n) * k / CARDS[machine].memory, 2 * m * n * k / 2e9)
    assert 0.4 * floor < chosen.us < 40 + 12 * floor
    assert min(chosen.problem().grid) >= 1


@pytest.mark.parametrize("a_major", ["k", "mn"])
@pytest.mark.parametrize("b_major", ["k", "mn"])
def test_a_layout_leads_to_kernels_that_swap(a_major: str, b_major: str) -> None:
    """Kernels that compute Cᵀ = B·Aᵀ are tried with every layout, swapped as well."""
    given = {"dtype": "bf16", "a_major": a_major, "b_major": b_major}
    found = [each for each in dispatch.forecast_choices(24, 4096, 4224, "h200", given, 12) if each.swapped]
    assert found
    for each in found:
        assert (each.plan.config.a_major, each.plan.config.b_major) == (b_major, a_major)


def test_a_measured_swapped_kernel_takes_layouts_swapped() -> None:
    chosen = best(8, 4096, 4096, b_major="mn")
    assert chosen.tuned is not None
    assert chosen.swapped
    assert (chosen.plan.config.a_major, chosen.plan.config.b_major) == ("mn", "k")


def test_what_lies_along_n_is_not_swapped() -> None:
    chosen = best(24, 4096, 4096 + 128, bias="bf16")
    assert not chosen.swapped
    assert chosen.plan.epilogue.combination.bias == "bf16"


def test_c_of_32_bits_has_direct_stores() -> None:
    plan = best(200, 5120, 5120, dtype="e4m3").plan
    assert (plan.c_dtype, plan.config.epilogue) == ("f32", "direct")


def test_products() -> None:
    assert [product_of(each) for each in PRODUCTS.values()] == list(PRODUCTS)
    assert product_of({"dtype": "f16"}) == "bf16"
    assert product_of({"dtype": "tf32"}) is None
    assert product_of({"dtype": "e4m3", "scales": "1d2d"}) == "scaled"
    assert forecasts(64, 512, 512, "h200", {"dtype": "bf16", "n_tile": 64}, 1) == []
    assert best(64, 512, 520, n_tile=64).plan.n_tile == 64  # the planner's


def test_what_is_known_of_a_time() -> None:
    assert best(4096, 4096, 4096).known == best(64, 4096, 4096, "e4m3", c_dtype="bf16").known == "measured"
    near = best(20, 4096, 4096)
    assert (near.known, near.expected.split(", ")[1]) == ("interpolated", "interpolated from M 32")
    assert best(3000, 4096, 4096).known == "predicted"
    assert dispatch.tuning_table("h100").rows == ()


@pytest.mark.parametrize("shape", [(3, 1008, 5008), (333, 2880, 2880), (1320, 7040, 3472), (16384, 32768, 512)])
def test_scales_are_forecast_from_promoted_sums(shape: tuple[int, int, int]) -> None:
    given = {"dtype": "e4m3", "c_dtype": "bf16"}
    promoted, scaled = best(*shape, **given), best(*shape, **given, scales="1d2d")
    assert scaled.known == "predicted"
    assert promoted.us <= scaled.us < 1.5 * promoted.us
    assert scaled.plan.block_scales is not None
    assert scaled.plan.n_tile % 16 == 0 or scaled.swapped


def test_scales_cost_what_was_measured() -> None:
    """Tiles of 128, 80 and 104 columns, and swapped ones of 16 and 152, as docs/hopper-tuning.md has them."""
    n_tile, swapped = np.array([128.0, 80.0, 104.0, 16.0, 152.0]), np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    cost = cost_of_scales({"n_tile": n_tile, "swapped": swapped})
    assert np.allclose(cost, [1.0, 1.1, 1.3, 1.06, 1.4], rtol=0.02)
