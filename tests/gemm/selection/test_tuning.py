"""What `ptxgen tune` remembers, and that `best` takes it: without a GPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptxgen.gemm import PlanError, best
from ptxgen.gemm.selection import dispatch
from ptxgen.gemm.selection.tuning import Timed, as_toml, candidates, remember, row_of


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path))
    return SimpleNamespace(name="NVIDIA H200", target="sm_90a", version="13.0")


GIVEN = [
    {"dtype": "bf16"},
    {"dtype": "e4m3", "c_dtype": "bf16", "promote": False},
    {"dtype": "e4m3", "c_dtype": "bf16"},
    {"dtype": "bf16", "b_major": "mn"},
]


@pytest.mark.parametrize("given", GIVEN)
def test_best_takes_what_was_measured_and_other_problems_are_as_before(gpu: Any, given: dict[str, Any]) -> None:
    shape, other = (333, 2880, 2880), (334, 2880, 2880)
    before = best(*shape, device="h200", **given)
    assert before.known == "predicted"
    untouched = best(*other, device="h200", **given)
    slower = candidates(gpu, *shape, given, 6)[5]
    remember(gpu, [Timed(slower, 11.25, 0.01)])
    after = best(*shape, device="h200", **given)
    assert (after.known, after.us, after.expected) == ("measured", 11.25, "11.2 µs, measured")
    assert after.plan.config == slower.plan.config != before.plan.config
    assert best(*other, device="h200", **given) == untouched
    assert best(*shape, device="h100", **given).known == "predicted"
    remember(gpu, [Timed(before, 10.0, 0.01)])  # a later one replaces it
    assert best(*shape, device="h200", **given).plan.config == before.plan.config


def test_products_of_a_shape_are_rows_of_their_own(gpu: Any) -> None:
    for number, given in enumerate(GIVEN[:3]):
        remember(gpu, [Timed(candidates(gpu, 64, 4096, 4104, given, 2)[number % 2], 5.0 + number, 0.0)])
    for number, given in enumerate(GIVEN[:3]):
        assert best(64, 4096, 4104, device="h200", **given).us == 5.0 + number


def test_a_table_can_be_read_again(gpu: Any, tmp_path: Path) -> None:
    rows = tuple(row_of(Timed(each, 3.5, 0.0)) for each in candidates(gpu, 2, 512, 1040, {"dtype": "bf16"}, 8))
    assert any(each.kernel == dispatch.GEMV for each in rows)
    table = dispatch.Table("a GPU", "1", "2026-01-01", rows)
    (tmp_path / "table.toml").write_text(as_toml(table))
    read = dispatch.read_table(tmp_path / "table.toml")
    assert sorted(map(repr, read.rows)) == sorted(map(repr, rows))
    for each in rows:
        each.plan({"dtype": "bf16"})


def test_without_a_cache_nothing_is_remembered(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", "")
    with pytest.raises(PlanError, match="PTXGEN_CACHE is empty"):
        remember(gpu, [])
