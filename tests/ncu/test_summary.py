"""Summaries: hottest lines, what is not measured, rules in plain text, and numbers for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.ncu import Launch, Metric, Rule, Sample, read, summarize
from ptxgen.ncu.show import plain, quantity_text, summary_lines
from ptxgen.ncu.summary import hottest


def sample(offset: int, samples: int, **more: object) -> Sample:
    made = Sample(0x1000 + offset, offset, f"OP{offset}", samples=samples, executed=8, stalls={"wait": samples})
    return replace(made, **more)  # type: ignore[arg-type]


def test_samples_of_one_ptx_line_are_added_up() -> None:
    samples = [
        sample(0, 30, ptx_line=7, ptx="ld.global.f32 %f1, [%rd3];"),
        sample(16, 25, ptx_line=9, ptx="add.f32 %f2, %f1, %f1;"),
        sample(32, 20, ptx_line=9, ptx="add.f32 %f2, %f1, %f1;", stalls={"long_scoreboard": 20}),
    ]
    first, second = hottest(samples, 5)
    assert (first.place, first.samples, first.share) == ("PTX 9", 45, 45 / 75)
    assert (first.text, first.stall) == ("OP16  ← add.f32 %f2, %f1, %f1;", "wait")
    assert (second.place, second.samples, second.executed) == ("PTX 7", 30, 8)
    assert [each.place for each in hottest(samples, 1)] == ["PTX 9"]


def test_without_ptx_the_source_line_or_the_offset_stands() -> None:
    lines = hottest([sample(0, 3, source="/src/a.cu:54"), sample(16, 2), sample(32, 0)], 5)
    assert [each.place for each in lines] == ["a.cu:54", "+0x10"]
    assert hottest([], 5) == []


def test_a_figure_that_was_not_measured_is_named_not_shown(pages: dict[str, Path]) -> None:
    launch = read(pages["torch_ops.details"]).launches[2]
    shown = list(summary_lines(summarize(launch)))
    assert "  local memory   no spilled registers" in shown
    assert shown[-1] == "  not measured   tensor pipe, TMA, shared memory, stalls, hottest lines"
    empty = list(summary_lines(summarize(Launch("k", 0))))
    assert empty[0] == "k (launch 0)"
    assert len(empty) == 2
    assert "time" in empty[1]


def test_stalls_add_up_to_the_cycles(pages: dict[str, Path]) -> None:
    """What an average warp stands in all stalls, and issues, is what it lives: the SM's active cycles."""
    launch = read(pages["torch_ops.raw"]).launches[2]
    summary = summarize(launch)
    issued, warps = launch.value("smsp__inst_issued.avg"), launch.value("smsp__warps_active.avg.per_cycle_active")
    assert issued is not None
    assert warps
    cycles = sum(each.cycles or 0.0 for each in summary.stalls) + issued / warps
    assert cycles == pytest.approx(launch.value("smsp__cycles_active.avg"), rel=0.02)  # counters of different passes
    assert sum(each.share for each in summary.stalls) < 1


def test_rules_with_the_largest_estimate_come_first() -> None:
    rules = (
        Rule("Small", "S", "OPT", "one", 5.0, "global"),
        Rule("Information", "S", "INF", "two"),
        Rule(
            "Large", "S", "OPT", "See @url:the guide:https://x.y/z@ and @section:Occupancy:Occupancy@.", 20.0, "local"
        ),
    )
    shown = [line.strip() for line in summary_lines(summarize(Launch("k", 0, rules=rules)))]
    assert shown[1] == "rules          OPT Large: 20 % (local): See the guide and Occupancy."
    assert shown[2] == "OPT Small: 5 % (global): one"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("See @url:CUDA Best Practices Guide:https://a.b/c#d@ for more", "See CUDA Best Practices Guide for more"),
        ("at @sass:0x1000:this line@", "at this line"),
        ("in @section:MemoryWorkloadAnalysis:Memory Workload Analysis@", "in Memory Workload Analysis"),
        ("at @source:a.cu:12:line 12@", "at line 12"),
        ("mail a@b.c", "mail a@b.c"),
    ],
)
def test_links_of_rules(message: str, text: str) -> None:
    assert plain(message) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (174656, "ns", "174.7 us"),
        (800, "ns", "800 ns"),
        (2.5e9, "ns", "2.5 s"),
        (1.61e9, "hz", "1.61 GHz"),
        (33554432, "byte", "33.55 MB"),
        (0, "byte", "0 B"),
        (213188, "byte/block", "213.2 KB"),
        (9.2e12, "byte/s", "9.2 TB/s"),
        (90.2488, "%", "90.2 %"),
        (65536, "inst", "65 536"),
        (283889.25, "cycle", "283.9 k cycles"),
        (25955784, "wavefront", "25.96 M"),
        (7, "sector", "7 sector"),
        (0.25, "", "0.25"),
    ],
)
def test_numbers_for_people(value: float, unit: str, text: str) -> None:
    assert quantity_text(value, unit) == text


def test_a_metric_without_a_number_has_no_base() -> None:
    assert Metric("x", None, "us").base is None
    assert Metric("x", "text").base is None
    assert Metric("x", float("nan"), "us").base is None
