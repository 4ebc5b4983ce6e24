"""The page's held-out tables are of the recorded rows, all of which only judge."""

from __future__ import annotations

import json

from bench.gpu.fit import read, require_tuning
from bench.gpu.held_out import part_of
from bench.gpu.judge import DATA, PAGE, ROOT, Judged, judged, renewed, summary

SURVEY = ROOT / "bench" / "data" / "hopper-survey.jsonl.gz"


def test_no_row_both_tunes_and_judges() -> None:
    rows = [Judged(**each) for each in json.loads(DATA.read_text())["rows"]]
    assert len(rows) > 200
    assert {part_of(each.n, each.k) for each in rows} == {"judging"}
    measured = list(read([SURVEY]))
    require_tuning([each.row for each in measured])
    assert {each.product for each in measured} == {each.product for each in rows}


def test_the_page_has_the_recorded_tables() -> None:
    text = PAGE.read_text()
    assert renewed(text) == text


def test_rows_are_read_with_the_kernel_of_the_card_that_ran() -> None:
    row = {"group": "drawn", "m": 3, "n": 512, "k": 512, "dtype": "bf16", "source": ""}
    while part_of(row["n"], row["k"]) != "judging":
        row["n"] += 8
    chosen = {
        "names": ["x", "y"],
        "rows": [{"row": row, "product": "bf16", "of": {"h200": [1, 4.5], "h100": [0, 5.5]}}],
    }
    times = {
        "cublaslt 3": [6.0, 0, 9],
        "cublaslt 0": [7.0, 0, 9],
        "torch": [8.0, 0, 9],
        "x": [5.0, 0, 9],
        "y": [4.0, 0, 9],
    }
    lines = [json.dumps({"device": "NVIDIA H200"}), json.dumps({"row": row, "product": "bf16", "judged": times})]
    (found,) = judged(chosen, lines)[1]
    assert (found.cublaslt, found.torch, found.ours, found.expected, found.kernel) == (6.0, 8.0, 4.0, 4.5, "y")
    assert found.ratio == 1.5
    rows = [
        found,
        Judged("fast", 600, 512, 512, 1.0, 2.0, 4.0, 1.0, "y"),
        Judged("promoted", 9, 512, 512, 1, 1, 1, 1, "y"),
    ]
    assert "| all | 1 | 1.500 | 1.500 | 2.000 | 1 | 0.250 | 0.250 | 0.500 | 1 | 1.000 | 1.000 | 1.000 |" in summary(
        rows
    )
