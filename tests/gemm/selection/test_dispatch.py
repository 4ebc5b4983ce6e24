"""`best`: what was measured where there is a figure, else the planner's choice."""

from __future__ import annotations

import re

import pytest

from ptxgen.emulator import Emulator
from ptxgen.gemm import PlanError, best, find, kernels
from ptxgen.gemm.selection import dispatch
from ptxgen.gemm.selection.dispatch import Table, Tuned, machine_of, tuning_table
from ptxgen.gemm.selection.menu import forecasts
from ptxgen.gemm.selection.planner import plan_gemm
from ptxgen.timing import MACHINES

RUNG = "hopper/overlapped"


def row(m: int, n: int, k: int, *options: str) -> Tuned:
    return Tuned(m, n, k, "bf16", RUNG, options, 1.0)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (row(128, 512, 512, "n_tile=96"), row(32, 512, 512, "m_tile=64", "n_tile=64"))
    monkeypatch.setattr(dispatch, "tuning_table", lambda *_: Table("a GPU", "1", "2026-01-01", rows))
    monkeypatch.setenv("PTXGEN_CACHE", "")
    dispatch._choice.cache_clear()


@pytest.mark.parametrize(("m", "n_tile"), [(128, 96), (100, 96), (64, 96), (32, 64), (16, 64)])
def test_a_measured_row_of_up_to_twice_the_tokens_decides(measured: None, m: int, n_tile: int) -> None:
    chosen = best(m, 512, 512, "bf16", "h200")
    assert (chosen.plan.name, chosen.plan.n_tile) == (RUNG, n_tile)
    assert chosen.tuned is not None
    assert best(m, 512, 512, "f16", "h200").plan.n_tile == n_tile


@pytest.mark.parametrize("shape", [(129, 512, 512), (300, 512, 256), (256, 500, 512)])
def test_other_shapes_are_forecast_or_planned(measured: None, shape: tuple[int, int, int]) -> None:
    expected = forecasts(*shape, "h200", {"dtype": "bf16"}, 1)[0]
    chosen = best(*shape, device="NVIDIA H200")
    assert (chosen.tuned, chosen.known, chosen.us) == (None, "predicted", expected[0])
    assert chosen.operands("a", "b") == (("b", "a") if chosen.swapped else ("a", "b"))
    planned = plan_gemm(*shape, MACHINES["h200"], count=1, fixed={"dtype": "tf32"}).chosen.plan
    assert best(*shape, "tf32").plan.config == planned.config


def test_options_hold(measured: None) -> None:
    plan = best(128, 512, 512, "f16", "sm_90a", b_major="mn", bias="f32").plan
    assert (plan.a.dtype, plan.b.major, plan.epilogue.combination.bias) == ("f16", "mn", "f32")
    plan = best(128, 512, 512, "bf16", "sm_90a", b_major="mn").plan
    assert (plan.n_tile, plan.b.major) != (96, "k")


@pytest.mark.parametrize(("m", "n", "k"), [(1, 4096, 4096), (2, 28672, 4096)])
def test_one_or_two_rows_take_the_gemv_where_it_was_measured(m: int, n: int, k: int) -> None:
    chosen = best(m, n, k, "f16")
    assert (chosen.plan.name, chosen.known) == (dispatch.GEMV, "measured")
    assert chosen.plan.config.vectors == m
    assert chosen.problem().m == m
    assert best(m, n, k, "f16", bias="f16").plan.name == RUNG  # which the GEMV has not
    assert best(m, n, k, "f16", b_major="mn").plan.name == RUNG
    assert best(m, n, k, "bf16", "b200").plan.target == "sm_100a"


def test_where_nothing_is_forecast_one_row_takes_the_gemv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "forecasts", lambda *_: [])
    dispatch._choice.cache_clear()
    assert best(1, 4096, 4080, "f16").plan.name == dispatch.GEMV
    dispatch._choice.cache_clear()


def test_options_that_no_kernel_has_are_refused() -> None:
    with pytest.raises(PlanError, match="no option tile"):
        best(128, 512, 512, tile=3)


def test_devices() -> None:
    assert machine_of("B200").name == "b200"
    assert machine_of(Emulator("sm_90a")).name == "h200"
    with pytest.raises(
        PlanError, match=re.escape("unknown machine 'h99'; known are b200 (sm_100a), h200 (sm_90a), h100 (sm_90a)")
    ):
        best(1, 1, 1, device="h99")


def test_settings_make_the_same_config_again() -> None:
    entry = find(RUNG)
    config = entry.plan(cluster_m=1, cluster_n=2, n_tile=96).config
    assert "cluster_m=1" in entry.settings(config)
    assert Tuned(1, 1, 1, "bf16", RUNG, tuple(entry.settings(config)), 1.0).plan({}).config == config


@pytest.mark.parametrize("name", [each.stem for each in dispatch.FOLDER.glob("*.toml")])
def test_every_row_of_a_table_can_be_planned(name: str) -> None:
    machine, _, kind = name.partition("-")
    table = tuning_table(machine, kind)
    assert table.device
    assert table.driver
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", table.date)
    keys = {(each.m, each.n, each.k, each.product, each.dependent) for each in table.rows}
    assert len(keys) == len(table.rows)
    for each in table.rows:
        assert each.kernel in kernels()
        assert each.us > 0
        fp8 = {"c_dtype": "bf16", "promote": each.product == "promoted"} if each.dtype == "e4m3" else {}
        chosen = best(each.m, each.n, each.k, each.dtype, machine, dependent=each.dependent, **fp8)
        assert chosen.tuned == each
        chosen.problem()
