"""bench.hopper without a GPU: candidates, records, the tuning table and the page."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import hopper
from bench.gpu.arms import Spec, build, packed
from bench.gpu.candidates import again, candidates, scaled
from bench.gpu.clock import PTX, Interval, intervals
from bench.gpu.deepgemm import configuration, kernels
from bench.gpu.ranking import planned_names, regret_of_planned
from bench.gpu.records import Record, from_json, geometric_mean, read_lines, to_json
from bench.gpu.report import floors, fp8, summary
from bench.gpu.suite import Row, suite
from bench.gpu.tuning import table
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.selection.dispatch import Choice, tuning_table
from ptxgen.timing import MACHINES
from ptxgen.toolchain import assemble


def line(**more: Any) -> dict[str, Any]:
    """What `measure` writes of a row."""
    arms = {
        "torch": {"kind": "torch", "us": 12.0, "turns": 8, "spread": 0.01, "cycles": 24000.0},
        "cublaslt 3": {"kind": "cublaslt", "us": 11.0, "cycles": 21000.0},
        "cublaslt 0": {"kind": "cublaslt", "us": 11.5},
        "hopper/overlapped n_tile=128": {"kind": "ptxgen", "dependent": False, "us": 10.0, "cycles": 20000.0},
        "hopper/overlapped dependent=true": {"kind": "ptxgen", "dependent": True, "us": 9.0},
    }
    found = [["hopper/overlapped n_tile=128", 9.5, 10.2], ["hopper/overlapped n_tile=64", 0.0, None]]
    machine = {"device": "NVIDIA H200", "driver": "1.2", "torch": "2", "cublaslt": 13, "date": "2026-01-02"}
    row = {"group": "llm", "m": 64, "n": 512, "k": 256, "dtype": "bf16", "source": "a model"}
    return {"row": row, **machine, "arms": arms, "candidates": found, "clock": {"mhz": 1500.0}, **more}


def test_the_suite_has_every_row_once() -> None:
    rows = suite()
    assert len({each.key for each in rows}) == len(rows)
    assert [each.m for each in rows if each.group == "square"] == [1024, 2048, 4096, 6144, 8192, 12288, 16384]
    assert Row("llm", 1, 4096, 4096).bytes == 2 * (4096 * 4097 + 4096)


def test_a_record_takes_the_best_arm_of_every_kind() -> None:
    record = Record.of(line())
    assert record.ratio("torch") == 1.2
    assert record.ratio("cublaslt") == 1.1
    assert record.ratio("cublaslt", cycles=True) == 1.05
    assert record.ratio("cublaslt", "ptxgen dependent") == pytest.approx(11 / 9)
    assert record.ratio("fast.cu") is None
    assert dict(record.candidates)["hopper/overlapped n_tile=128"] == 10.0  # not the first figure
    assert geometric_mean([1.0, 4.0]) == 2.0


def test_records_can_be_read_again(tmp_path: Path) -> None:
    known = Row("square", 1024, 1024, 1024, "bf16", "square")
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(line(row=known.__dict__)) + "\n")
    records = read_lines([file])
    assert [each.row.key for each in records] == [known.key]
    assert from_json(to_json(records)) == records


def test_the_table_has_the_fastest_and_dependent_ones_where_they_are_faster() -> None:
    read = tomllib.loads(table([Record.of(line())]))
    assert read["device"] == "NVIDIA H200"
    plain, dependent = read["row"]
    assert plain == {
        "shape": [64, 512, 256],
        "dtype": "bf16",
        "kernel": "hopper/overlapped",
        "options": ["n_tile=128"],
        "us": 10.0,
    }
    assert (dependent["dependent"], dependent["us"]) == (True, 9.0)
    slower = line()
    slower["arms"]["hopper/overlapped dependent=true"]["us"] = 10.5
    assert len(tomllib.loads(table([Record.of(slower)]))["row"]) == 1


def test_of_kernels_as_fast_the_table_has_the_kind_that_more_rows_share() -> None:
    def record(n: int, *candidates: tuple[str, float]) -> Record:
        name, us = candidates[0]
        figures = {"ptxgen": replace(Record.of(line()).figures["ptxgen"], name=name, us=us)}
        made = Record.of(line(row=Row("llm", 64, n, 256).__dict__))
        return replace(made, figures=figures, candidates=candidates)

    grid, plain = "hopper/overlapped scheduler=grid n_tile={}", "hopper/overlapped n_tile={}"
    records = [
        record(512, (plain.format(64), 10.0), (grid.format(64), 10.04)),
        record(1024, (grid.format(128), 20.0), (plain.format(128), 20.2)),
        record(2048, (plain.format(96), 30.0), (grid.format(96), 31.0), (grid.format(64), 30.1)),
    ]
    rows = tomllib.loads(table(records))["row"]
    assert [each["options"] for each in rows] == [
        ["scheduler=grid", "n_tile=64"],
        ["scheduler=grid", "n_tile=128"],
        ["scheduler=grid", "n_tile=64"],
    ]
    assert [each["us"] for each in rows] == [10.04, 20.0, 30.1]


@pytest.mark.parametrize("row", [Row("llm", 16, 4096, 512), Row("llm", 1, 2112, 512), Row("square", 512, 512, 512)])
def test_candidates_can_be_built_and_launched(row: Row) -> None:
    found = candidates(row, 2)
    assert len({each.spec for each in found}) == len(found) > 10
    for each in found[::9]:
        choice = Choice(each.spec.plan(), row.m, row.n, row.k)
        problem = choice.problem()
        order = None if problem.tile_order is None else 4096
        workspace = 8192 if problem.workspace_words else None
        a, b = choice.operands(1 << 20, 1 << 21)
        values = problem.arguments(a, b, 1 << 22, order=order, workspace=workspace)
        sizes = [
            len(packed(declared, value)) for (declared, _), value in zip(choice.plan.parameters, values, strict=True)
        ]
        assert set(sizes) <= {4, 8, 128}
    assert build(found[0].spec).error == ""


def test_an_earlier_record_names_its_fastest() -> None:
    record = Record.of(line())
    names = [each.spec.name for each in again(record.row, record, 1)]
    assert names[0] == "hopper/overlapped n_tile=128"
    assert "hopper/overlapped dependent=true" in names
    assert build(Spec("hopper/overlapped", ("n_tile=7",))).error.startswith("PlanError")


def test_n_tiles_between_steps_of_16_are_tried_where_they_fill_waves() -> None:
    """512x5376: 4 x 32 tiles of 128x168 on 132 multiprocessors, where 128x176 are 4 x 31 with padding."""
    row = Row("article", 512, 5376, 21504)
    for found in (candidates(row, 1), again(row, None, 1)):
        names = [each.spec.name for each in found if each.predicted == 0 and "n_tile=168" in each.spec.name]
        assert len(names) == 6
        assert (
            {"consumers=pingpong" in name for name in names}
            == {"cluster_n=2" in name for name in names}
            == {True, False}
        )
    tried = candidates(Row("square", 4096, 4096, 4096), 1)
    assert not any(each.spec.plan().n_tile % 16 for each in tried if each.predicted == 0)


def scaled_line() -> dict[str, Any]:
    """What `measure --deepgemm` writes of a square."""
    arms = {
        "DeepGEMM": {"kind": "DeepGEMM", "us": 12.0, "cycles": 24000.0},
        "DeepGEMM dependent": {"kind": "DeepGEMM dependent", "us": 11.0},
        "ours": {"kind": "ptxgen scaled", "dependent": False, "us": 10.0, "cycles": 16000.0},
        "ours dependent=true": {"kind": "ptxgen scaled", "dependent": True, "us": 8.0},
    }
    row = {"group": "square", "m": 1024, "n": 1024, "k": 1024, "dtype": "e4m3", "source": "square"}
    return line(row=row, arms=arms)


def test_fp8_with_scales_is_a_product_of_its_own(tmp_path: Path) -> None:
    promoted = scaled_line()
    promoted["arms"] = {"torch fast": {"kind": "torch fast", "us": 9.0}, "x": {"kind": "ptxgen", "us": 9.0}}
    files = [tmp_path / "promoted.jsonl", tmp_path / "scaled.jsonl"]
    for file, read in zip(files, (promoted, scaled_line()), strict=True):
        file.write_text(json.dumps(read) + "\n")
    (record,) = read_lines(files)
    assert record.ratio("torch fast") == 1.0
    assert record.ratio("DeepGEMM", "ptxgen scaled") == 1.2
    assert record.ratio("DeepGEMM", "fastest scaled") == 1.5
    words = "promoted fp8 with scales against DeepGEMM, worst"
    assert f"| {words} | 1.200 | 1.500 | 1.500 | - | 1 |" in summary([record])
    assert "| 1.200 | 1.375 |" in fp8([record])
    assert "DeepGEMM" not in fp8(read_lines(files[:1])) + summary(read_lines(files[:1]))
    assert read_lines([files[1], files[1]])[0].figures.keys() == {
        "DeepGEMM",
        "DeepGEMM dependent",
        "ptxgen scaled",
        "ptxgen scaled dependent",
    }


@pytest.mark.parametrize(
    ("shape", "expected"),
    # As its own code answers (csrc/jit_kernels/heuristics, compiled with stubs for torch).
    [
        ((4096, 4096, 7168), (256, 128, 1, 2, 3, 216544)),
        ((16, 2112, 7168), (16, 16, 1, 1, 16, 69088)),
        ((128, 24576, 1536), (128, 192, 1, 1, 4, 215392)),
        ((8192, 8192, 8192), (256, 128, 1, 2, 3, 216576)),
    ],
)
def test_the_kernel_that_deepgemm_chooses(shape: tuple[int, int, int], expected: tuple[int, ...]) -> None:
    made = configuration(*shape)
    found = made.block_m, made.block_n, made.cluster_m, made.cluster_n, made.stages, made.shared
    assert found == expected
    assert made in kernels(suite("e4m3"))


@pytest.mark.parametrize("m", [1, 64, 4096])
def test_candidates_with_scales_can_be_launched(m: int) -> None:
    row = Row("llm", m, 2112, 7168, "e4m3")
    found = scaled(row, 1)
    assert len({each.spec for each in found}) == len(found) > 20
    assert any("scales=2d1d" in each.spec.name for each in found) == (m <= 128)
    assert len(scaled(row, 0)) == 2
    for each in found[::9]:
        choice = Choice(each.spec.plan(), row.m, row.n, row.k)
        problem = choice.problem()
        assert choice.swapped == ("scales=2d1d" in each.spec.name)
        order = None if problem.tile_order is None else 4096
        workspace = 8192 if problem.workspace_words else None
        values = problem.arguments(
            1 << 20, 1 << 21, 1 << 22, order=order, workspace=workspace, scales=(1 << 23, 1 << 24)
        )
        declared = [each for each, _ in choice.plan.parameters]
        assert {len(packed(*each)) for each in zip(declared, values, strict=True)} <= {4, 8, 128}
    assert build(found[-1].spec).error == ""


def test_stamps() -> None:
    assert assemble(PTX).data
    words = [1000, 50, 3, 0, 1900, 1550, 3, 0, 10, 20, 3, 0, 30, 40, 4, 0]
    assert intervals(words) == [Interval(900, 1500), Interval(20, None)]


def test_the_page_is_that_of_the_data() -> None:
    recorded = hopper.load()
    page = hopper.PAGE.read_text()
    assert hopper.renewed(page, recorded) == page
    assert hopper.PICTURE.read_text() == hopper.picture(recorded)
    assert hopper.DATA.stat().st_size < 700_000


def test_the_table_is_that_of_the_data() -> None:
    measured = {(each.row.m, each.row.n, each.row.k, each.row.dtype) for each in hopper.load()}
    assert {(each.m, each.n, each.k, each.dtype) for each in tuning_table("h200").rows} <= measured


def test_the_floors_touch_rows_and_are_below_all() -> None:
    few = [each for each in hopper.load() if each.row.dtype == "bf16" and each.row.m <= 128 and each.row.group == "llm"]
    bytes_alone, line = floors(few)
    for floor in (bytes_alone, line):
        ratios = [
            min(f.us for kind, f in each.figures.items() if "dependent" not in kind) / floor.of(each) for each in few
        ]
        assert 0.999 < min(ratios) < 1.001
    assert sum(line.of(each) > bytes_alone.of(each) for each in few) > 0.9 * len(few)


def test_regret_of_planned_kernels() -> None:
    record = Record.of(line())
    key, best, other = record.row.key, "hopper/overlapped n_tile=128", "hopper/overlapped n_tile=64"
    candidates = ((best, 10.0), (other, 11.0), ("hopper/overlapped dependent=true", 9.0))
    said = regret_of_planned([replace(record, candidates=candidates)], {key: [other, "hopper/overlapped"]})
    assert "10.0%" in said.splitlines()[0]
    assert f"not measured: {key}: hopper/overlapped" in said
    assert "bf16: 1 rows, regret 10.00% in the mean, 0 within 2 %" in said
    names = planned_names([Row("llm", 8, 512, 512), Row("llm", 128, 512, 512, "e4m3")])
    assert [len(each) for each in names.values()] == [1, 2]
    assert all(Spec.named(name).plan().text for each in names.values() for name in each)


def test_the_planner_predicts_what_promoted_sums_take() -> None:
    """Root mean square of the logarithms, over every kernel that was measured: with scales, and without."""
    errors: dict[bool, list[float]] = {False: [], True: []}
    for record in hopper.load():
        row = record.row
        for name, us in record.candidates if row.dtype == "e4m3" else ():
            if "promote=false" in name or "dependent=true" in name:
                continue
            choice = Choice(Spec.named(name).plan(), row.m, row.n, row.k)
            problem = choice.problem()
            estimate = Estimate.of(choice.plan, MACHINES["h200"], problem.m, problem.n, problem.k)
            errors["scales=" in name].append(math.log(estimate.microseconds / us))
    # 20 % of those without scales before the model had the additions; 5 % of bf16.
    for found in errors.values():
        assert len(found) >= 123
        assert math.sqrt(sum(each**2 for each in found) / len(found)) < 0.08
