"""Comparisons: planted regressions are named first, equal kernels are the same, gaps and errors say what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ptxgen.ncu import Comparison, Report, ReportError, compare, read
from ptxgen.ncu.show import comparison_lines
from tests.ncu import recorded
from tests.ncu.conftest import Save
from tests.ncu.recorded import changed, raw_of, slowed
from tests.ncu.test_pages import SOURCE

Open = Callable[[str], Report]
#: Multiprocessors of the H200.
PROCESSORS = 132


@pytest.fixture
def opened(save: Save) -> Open:
    names = iter(range(1000))
    return lambda text: read(save(f"{next(names)}.csv", text))


def lines(found: Comparison) -> list[str]:
    return list(comparison_lines(found))


def first(found: Comparison) -> str:
    """The first three lines."""
    return "\n".join(lines(found)[:3])


# Planted regressions: the recorded matrix product, changed as a kernel with that fault would measure.

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def bank_conflict(metrics: Mapping[str, float]) -> dict[str, float]:
    """Every store to shared memory takes 8 times its wavefronts; warps wait for the pipe, and others at the barrier."""
    added = 60_000.0 * PROCESSORS
    factor = 1 + 60_000.0 / metrics["sm__cycles_elapsed.max"]
    new = slowed(metrics, factor, {"mio_throttle": 0.6, "short_scoreboard": 0.15, "barrier": 0.25})
    new[CONFLICTS] = metrics[CONFLICTS] + added
    new["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] = (
        metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] + added
    )
    return new


def fewer_stages(metrics: Mapping[str, float]) -> dict[str, float]:
    """One stage less of shared memory, and the loads come too late: the same work waits for them."""
    new = slowed(metrics, 1.12, {"long_scoreboard": 0.8, "barrier": 0.2})
    for name in ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block"):
        new[name] = metrics[name] - 49.152
    return new


def spill(metrics: Mapping[str, float]) -> dict[str, float]:
    """Registers cut to 128: values go to local memory and back."""
    new = slowed(metrics, 1.25, {"lg_throttle": 0.5, "long_scoreboard": 0.5})
    new["launch__registers_per_thread"] = 128
    for name in ("smsp__sass_inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads"):
        new[name] = 1_600_000
    for name in ("smsp__sass_inst_executed_op_local_st.sum", "sass__inst_executed_local_stores"):
        new[name] = 1_200_000
    new["derived__local_spilling_requests"] = 2_800_000
    new["smsp__inst_executed.sum"] = metrics["smsp__inst_executed.sum"] + 2_800_000
    return new


@pytest.mark.parametrize(
    ("plant", "named", "launched"),
    [
        (bank_conflict, [r"shared-memory bank conflicts 53\.5x", r"stalled on mio throttle \d\.\d\dx"], ""),
        (fewer_stages, [r"stalled on long scoreboard 1\.\d\dx"], r"dynamic shared memory 213\.2 -> 164 KB"),
        (
            spill,
            [
                r"local-memory loads 0 -> 1\.6 M \(new\)",
                r"local-memory stores 0 -> 1\.2 M \(new\)",
                "stalled on lg throttle",
            ],
            r"registers per thread 168 -> 128",
        ),
    ],
)
def test_a_planted_regression_is_named_in_the_first_three_lines(
    plant: Callable[[dict[str, float]], Mapping[str, float]], named: list[str], launched: str, opened: Open
) -> None:
    """Against another measurement of the same kernel, so that its noise is there too."""
    found = compare(opened(raw_of(2)), opened(changed(raw_of(7), plant)))
    assert not found.same
    shown = first(found)
    assert re.search(r"duration 1\.\d\dx", shown)
    for each in (*named, launched):
        assert re.search(each, shown), shown
    improved = compare(opened(changed(raw_of(7), plant)), opened(raw_of(2)))
    assert re.search(r"duration 0\.\d\dx", first(improved))
    assert (
        "gone" in first(improved)
        if plant is spill
        else re.search(named[0].split(" 1")[0].split(r" 5")[0], first(improved))
    )


def test_shares_of_the_difference(opened: Open) -> None:
    (pair,) = compare(opened(raw_of(2)), opened(changed(raw_of(2), bank_conflict))).pairs
    shares = {each.key: each.share for each in pair.changes if each.share is not None}
    assert shares["shared_conflicts"] == pytest.approx(1.0, rel=0.01)  # planted: all of the added cycles
    assert shares["stall_mio_throttle"] == pytest.approx(0.6, rel=0.1)
    assert [each.key for each in pair.changes][:2] == ["shared_conflicts", "stall_mio_throttle"]
    assert pair.slower is True


def test_work_without_a_change_in_time_is_reported(opened: Open) -> None:
    def twice(metrics: Mapping[str, float]) -> dict[str, float]:
        names = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors.sum")
        return {name: metrics[name] * 1.8 for name in (*names, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed")}

    found = compare(opened(raw_of(2)), opened(changed(raw_of(2), twice)))
    assert not found.same
    assert "same duration" in first(found)
    assert re.search(r"L2 read bytes 1\.80x \(818 MB -> 1\.472 GB\)", first(found))


# Equal kernels.


def test_a_report_is_the_same_as_itself(opened: Open, pages: dict[str, Path]) -> None:
    for name in ("torch_ops.raw", "torch_ops.details", "synthetic.raw"):
        found = compare(read(pages[name]), read(pages[name]))
        assert found.same
        assert "no significant difference" in lines(found)
        assert len(found.pairs) == len(read(pages[name]).kernels)


def test_measuring_again_is_no_difference(opened: Open) -> None:
    """Launches 2 to 6 and 7 to 11 are the same five kernels, measured one after the other on one GPU."""
    found = compare(opened(raw_of(2, 3, 4, 5, 6)), opened(raw_of(7, 8, 9, 10, 11)))
    assert found.same
    assert lines(found)[-4] == "no significant difference"
    assert sum("no significant difference, duration" in line for line in lines(found)) == 4


def test_scaled_and_base_units_are_the_same(pages: dict[str, Path]) -> None:
    assert compare(read(pages["synthetic.raw"]), read(pages["synthetic.raw-base"])).same


def test_a_file_and_its_page_are_the_same(synthetic: Path, pages: dict[str, Path]) -> None:
    pytest.importorskip("ncu_report")
    found = compare(read(synthetic), read(pages["synthetic.raw"]))
    assert found.same
    assert "note: A is read from a .ncu-rep file, B from the raw page" in lines(found)
    assert "note: no version of ncu in B (a CSV page has none)" in lines(found)


# Noise and clocks.


def faster(factor: float) -> Callable[[dict[str, float]], dict[str, float]]:
    def change(metrics: Mapping[str, float]) -> dict[str, float]:
        return slowed(metrics, factor, {"long_scoreboard": 1.0})

    return change


def test_repeats_widen_the_noise(opened: Open) -> None:
    """4 % more is significant for one launch, but not where repeats spread by 6 %."""
    base, more = raw_of(2), changed(raw_of(2), faster(1.04))
    assert not compare(opened(base), opened(more)).same
    spread = changed(raw_of(2), faster(1.06))
    rows = [recorded.rows(text)[2] for text in (base, more, spread)]
    head = recorded.rows(base)[:2]
    a = recorded.written([*head, rows[0], rows[2]])
    b = recorded.written([*head, rows[1], rows[0]])
    found = compare(opened(a), opened(b))
    assert found.pairs[0].slower is None
    assert "repeats spread" in first(found)


def test_repeats_in_pairs_show_a_small_difference(opened: Open) -> None:
    """Two launches of different length, each 4 % longer: the spread between them does not hide it."""
    texts = [raw_of(2), changed(raw_of(2), faster(1.5))]
    rows = [recorded.rows(text)[2] for text in texts]
    longer = [recorded.rows(changed(text, faster(1.04)))[2] for text in texts]
    head = recorded.rows(texts[0])[:2]
    found = compare(opened(recorded.written([*head, *rows])), opened(recorded.written([*head, *longer])))
    assert found.pairs[0].slower is True
    assert found.pairs[0].time == pytest.approx(0.04, abs=0.002)


def test_another_clock_is_no_difference_of_the_kernel(opened: Open) -> None:
    def clocked(metrics: Mapping[str, float]) -> dict[str, float]:
        """20 % more clock: the same cycles in less time."""
        new = {name: value / 1.2 for name, value in metrics.items() if name.startswith("gpu__time_duration")}
        new |= {
            name: value * 1.2
            for name, value in metrics.items()
            if re.match(r"(sm|smsp|gpc)__cycles_elapsed.*per_second", name)
        }
        return new

    found = compare(opened(raw_of(2)), opened(changed(raw_of(2), clocked)))
    (pair,) = found.pairs
    assert pair.slower is None
    assert pair.time == 0.0
    assert "SM clock 1.61 GHz -> 1.932 GHz, elapsed cycles 1.00x" in first(found)


# What cannot be compared, or only in part.


def test_another_gpu_is_an_error(opened: Open) -> None:
    other = opened(raw_of(2).replace("NVIDIA H200", "NVIDIA H100 80GB HBM3"))
    with pytest.raises(ReportError, match=r"different GPUs: A is of NVIDIA H200 .*9\.0.*, B of NVIDIA H100"):
        compare(opened(raw_of(2)), other)


def test_another_compute_capability_is_an_error(opened: Open, pages: dict[str, Path]) -> None:
    one = read(pages["torch_ops.details"])
    text = recorded.page("torch_ops.details").replace('"0","9.0"', '"0","10.0"')
    with pytest.raises(ReportError, match=r"different GPUs: .*9\.0.*, B of .*10\.0"):
        compare(one, opened(text))


def test_other_kernels_are_an_error(opened: Open) -> None:
    with pytest.raises(ReportError, match=r"different kernels: A has nvjet.*; B has void at::.*--by-order"):
        compare(opened(raw_of(2)), opened(raw_of(6)))
    found = compare(opened(raw_of(2)), opened(raw_of(6)), by_order=True)
    assert not found.same
    assert "nvjet" in lines(found)[0]
    assert "void at::" in lines(found)[0]


def test_a_kernel_of_one_report_only_is_a_difference(opened: Open) -> None:
    found = compare(opened(raw_of(2, 6)), opened(raw_of(7)))
    assert not found.same
    assert [each.name for each in found.only_a] == [found.a.launches[1].name]
    assert any(line.startswith("only in A: void at::") and line.endswith(", 1 launch") for line in lines(found))


def test_another_number_of_launches_is_a_difference(opened: Open) -> None:
    found = compare(opened(raw_of(2, 7)), opened(raw_of(2)))
    assert not found.same
    assert "gap: A has 2 launches of it, B 1: all are compared as repeats" in lines(found)


def test_another_grid_is_a_difference(opened: Open) -> None:
    other = raw_of(2).replace('"(2, 66, 1)"', '"(66, 2, 1)"')
    found = compare(opened(raw_of(2)), opened(other))
    assert not found.same
    assert any("grid 2x66x1 -> 66x2x1" in line for line in lines(found)[:3])


def test_a_missing_metric_is_a_stated_gap(opened: Open) -> None:
    table = recorded.rows(raw_of(2))
    place = table[0].index(CONFLICTS)
    less = recorded.written([row[:place] + row[place + 1 :] for row in table])
    found = compare(opened(raw_of(2)), opened(less))
    assert not found.same
    assert f"gap: 1 metric only in A, not compared: {CONFLICTS}" in lines(found)


def test_a_renamed_metric_is_a_stated_gap(opened: Open) -> None:
    renamed = raw_of(2).replace(f'"{CONFLICTS}"', '"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_all.sum"')
    found = compare(opened(raw_of(2)), opened(renamed))
    assert not found.same
    assert any(
        f"only in A, not compared: {CONFLICTS} (renamed l1tex__data_bank_conflicts_pipe_lsu_mem_shared_all.sum?)"
        in line
        for line in lines(found)
    )


def test_another_unit_is_a_stated_gap(opened: Open) -> None:
    table = recorded.rows(raw_of(2))
    table[1][table[0].index("lts__t_sectors_srcunit_tex_op_read.sum")] = "request"
    found = compare(opened(raw_of(2)), opened(recorded.written(table)))
    assert not found.same
    assert "gap: L2 read bytes is in different units, not compared: request and sector" in lines(found)


def test_another_version_of_ncu_is_noted(save: Save) -> None:
    pytest.importorskip("ncu_report")
    from tests.support.ncu_report import write_report

    launches = recorded.h200_launches(2)
    one, other = (
        read(save(f"{version}.ncu-rep", write_report(launches, version=version))) for version in ("2025.1", "2025.3")
    )
    assert "note: measured by different versions of ncu: A 2025.1, B 2025.3; names and meanings may differ" in lines(
        compare(one, other)
    )


def test_what_the_command_lines_do_not_share_is_named(save: Save) -> None:
    pytest.importorskip("ncu_report")
    from dataclasses import replace

    from tests.support.ncu_report import write_report

    (launch,) = recorded.h200_launches(2)
    fewer = replace(launch, metrics={**launch.metrics, "launch__shared_mem_per_block_dynamic": 164036})
    one, other = (
        read(
            save(
                f"{stages}.ncu-rep", write_report([each], command=f"ptxgen run hopper/persistent --set stages={stages}")
            )
        )
        for stages, each in ((4, launch), (3, fewer))
    )
    assert "  launched with: dynamic shared memory 213.2 -> 164 KB; command line stages=4 -> stages=3" in lines(
        compare(one, other)
    )
    assert "stages" not in "\n".join(lines(compare(one, one))[:2])


def test_every_metric_can_be_asked_for(opened: Open) -> None:
    def change(metrics: Mapping[str, float]) -> dict[str, float]:
        return {"smsp__imc_requests.sum": metrics["smsp__imc_requests.sum"] * 3}

    found = compare(opened(raw_of(2)), opened(changed(raw_of(2), change)), metrics=re.compile("imc_requests"))
    assert found.same  # no figure of the summary differs
    first_metric = found.pairs[0].others[0]
    assert (first_metric.key, first_metric.significant) == ("smsp__imc_requests.sum", True)
    assert first_metric.ratio == pytest.approx(3)


def test_wording_is_positive(opened: Open) -> None:
    shown = "\n".join(lines(compare(opened(raw_of(2)), opened(changed(raw_of(7), spill)))))
    assert not re.search(r"\b(slower by|faster by|not un|less than no)\b", shown)
    assert not re.search(r"by 0\b", shown)


def test_time_that_nothing_explains_says_so(opened: Open) -> None:
    def longer(metrics: Mapping[str, float]) -> dict[str, float]:
        return {name: value * 1.3 for name, value in metrics.items() if name.startswith("gpu__time_duration")}

    assert "  no figure of these reports explains it" in first(
        compare(opened(raw_of(2)), opened(changed(raw_of(2), longer)))
    )


def test_a_higher_clock_does_not_hide_more_cycles(opened: Open) -> None:
    """5 % more cycles at 5 % more clock: the duration is the same, and the SMs bound this kernel."""

    def change(metrics: Mapping[str, float]) -> dict[str, float]:
        new = slowed(metrics, 1.05, {"barrier": 1.0})
        new |= {name: metrics[name] for name in metrics if name.startswith("gpu__time_duration")}
        clocks = r"(sm|smsp|gpc)__cycles_elapsed.*per_second"
        return new | {name: value * 1.05 for name, value in metrics.items() if re.match(clocks, name)}

    (pair,) = compare(opened(raw_of(2)), opened(changed(raw_of(2), change))).pairs
    assert pair.slower is True
    assert pair.time == pytest.approx(0.05, abs=0.001)


def test_source_pages_are_compared_by_their_samples(opened: Open) -> None:
    other = SOURCE.replace('"4","1","3","5"', '"1","4","1","5"').replace('"70","0","66","70"', '"10","60","5","70"')
    assert compare(opened(SOURCE), opened(SOURCE)).same
    found = compare(opened(SOURCE), opened(other))
    assert not found.same
    assert "no duration in these reports" in lines(found)[0]
    assert re.search(r"stalled on wait .*85\.3 %", first(found))


def test_many_equal_kernels_are_counted(opened: Open) -> None:
    table = recorded.rows(raw_of(2))
    many = recorded.written([*table[:2], *([*table[2][:4], f"kernel_{n}", *table[2][5:]] for n in range(20))])
    shown = lines(compare(opened(many), opened(many)))
    assert "12 more kernels: no significant difference" in shown
    assert sum(line.startswith("kernel_") for line in shown) == 8


@pytest.mark.parametrize(
    ("figure", "factor"),
    [
        ("gpc__cycles_elapsed.max", 1.05),
        ("gpu__time_duration.sum", 1.05),
        ("smsp__inst_executed.sum", 1.05),
        ("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", 1.05),
        ("smsp__sass_inst_executed_op_tma_ld.sum", 1.05),
        ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 0.95),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1.05),
        ("lts__t_sectors_srcunit_tex_op_read.sum", 1.5),
        ("dram__bytes_read.sum", 1.5),
        (CONFLICTS, 3),
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 1.5),
        ("launch__registers_per_thread", 168 / 167),
        ("launch__shared_mem_per_block_dynamic", 1.001),
    ],
)
def test_one_figure_alone_is_reported(figure: str, factor: float, opened: Open) -> None:
    found = compare(opened(raw_of(2)), opened(changed(raw_of(2), lambda metrics: {figure: metrics[figure] * factor})))
    assert not found.same
    assert "no significant difference" not in first(found)
