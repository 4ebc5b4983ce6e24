"""CSV pages: the raw and details page of one H200 run agree, the source page, and pages that cannot be used."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxgen.ncu import ReportError, read
from ptxgen.ncu.labels import labelled_metric
from tests.ncu import recorded
from tests.ncu.conftest import Save


def test_the_raw_page_has_every_value(pages: dict[str, Path]) -> None:
    report = read(pages["torch_ops.raw"])
    table = recorded.rows(recorded.page("torch_ops.raw"))
    assert report.page == "raw"
    assert len(report.launches) == 12
    for launch, row in zip(report.launches, table[2:], strict=True):
        for name, unit, cell in zip(table[0][11:], table[1][11:], row[11:], strict=True):
            metric = launch.metrics[name]
            assert metric.unit == unit
            if re.fullmatch(r"-?[\d,]+(\.\d+)?", cell):
                assert metric.value == float(cell.replace(",", ""))
            elif cell != "nan":
                assert metric.value == (cell if cell not in ("", "no data") else None)
    gemm = report.launches[2]
    assert (gemm.name, gemm.grid, gemm.block, gemm.cluster) == (recorded.GEMM, (2, 66, 1), (384, 1, 1), (2, 1, 1))
    assert str(gemm.device) == "NVIDIA H200 (compute capability 9.0)"
    assert (gemm.passes, gemm.stream, gemm.process) == (38, 7, "python3.12")
    duration = gemm.metrics["gpu__time_duration.sum"].base
    assert duration is not None
    assert (duration.value, duration.unit, duration.resolution) == (174656, "ns", pytest.approx(0.0005))


def test_the_details_page_is_the_raw_page_rounded(pages: dict[str, Path]) -> None:
    raw, details = read(pages["torch_ops.raw"]), read(pages["torch_ops.details"])
    assert [each.name for each in raw.launches] == [each.name for each in details.launches]
    for exact, printed in zip(raw.launches, details.launches, strict=True):
        unknown = [name for name in printed.metrics if "/" in name and "__" not in name]
        # Of other metrics in other versions of ncu, and a page does not say its version.
        assert unknown == ["Compute Workload Analysis/Issue Slots Busy", "Compute Workload Analysis/SM Busy"]
        assert len(printed.metrics) > 80
        for name, metric in printed.metrics.items():
            if name not in exact.metrics:
                assert name in (*unknown, "dram__bytes.sum.per_second")  # the raw page leaves that out
                continue
            one, other = exact.metrics[name].base, metric.base
            if one is None or other is None:
                assert exact.metrics[name].value == metric.value
                continue
            assert one.unit in (other.unit, ""), name  # the raw page leaves out the unit of a compression ratio
            printed_to = max(other.resolution, one.resolution, 0.005 * (other.unit == "" or other.unit == "cycle"))
            assert abs(one.value - other.value) <= printed_to * (1 + 1e-6) + 1e-9 * abs(one.value), name


def test_rules_of_the_details_page(pages: dict[str, Path]) -> None:
    launch = read(pages["torch_ops.details"]).launches[0]
    rule = next(each for each in launch.rules if each.name == "FPInstructions")
    assert (rule.section, rule.kind, rule.speedup, rule.speedup_of) == ("InstructionStats", "OPT", 7.042, "global")
    assert rule.message.startswith("This kernel executes 4849664 fused and 2687488 non-fused FP32 instructions.")


def test_names_of_metrics_stay() -> None:
    assert labelled_metric("Any", "sm__cycles_active.avg") == "sm__cycles_active.avg"
    assert labelled_metric("Any", "New Label") == "Any/New Label"
    sections = ("GPU Speed Of Light Throughput", "Memory Workload Analysis")
    assert len({labelled_metric(section, "Memory Throughput") for section in sections}) == 2


def test_messages_of_ncu_and_of_the_program_are_skipped(save: Save) -> None:
    text = 'max error: 0.5", 3 runs\n==PROF== Connected to process 1\n' + recorded.raw_of(2) + "==PROF== Disconnected\n"
    assert len(read(save("noisy.csv", text)).launches) == 1


def test_a_packed_page_is_read(save: Save) -> None:
    path = recorded.DATA / "torch_ops.raw.csv.gz"
    assert len(read(path).launches) == 12
    with pytest.raises(ReportError, match="is a gzip file that cannot be unpacked"):
        read(save("cut.csv.gz", path.read_bytes()[:5000]))
    with pytest.raises(ReportError, match=r"is a compressed \.ncu-rep file; unpack it first"):
        read(save("report.gz", gzip.compress(b"NVR\0")))


def test_a_page_of_powershell_is_read(save: Save) -> None:
    assert len(read(save("utf16.csv", recorded.raw_of(2).encode("utf-16"))).launches) == 1


# The source page, in the form that ncu 2024.1 prints.

SOURCE = """"Kernel Name","scale(float *)",
"Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)",\
"Instructions Executed","Avg. Threads Executed","Address Space","stall_long_sb","stall_wait",\
"stall_long_sb (Not Issued)","smsp__pcsamp_sample_count"
"0x7f0000001000","      LDG.E R0, desc[UR4][R2.64] ","5","3","128","32","Global(1)","4","1","3","5"
"0x7f0000001010","      FADD R5, R0, R0 ","70","66","128","32","-","70","0","66","70"
"0x7f0000001020","      EXIT ","0","0","128","32","-","0","0","0","0"
"""


def test_the_source_page(save: Save) -> None:
    report = read(save("source.csv", SOURCE))
    (launch,) = report.launches
    assert report.page == "source"
    assert launch.name == "scale(float *)"
    assert [each.offset for each in launch.samples] == [0, 16, 32]
    hot = launch.samples[1]
    assert (hot.sass, hot.samples, hot.not_issued, hot.executed) == ("FADD R5, R0, R0", 70, 66, 128)
    assert hot.stalls == {"long_scoreboard": 70}
    total = launch.metrics["smsp__pcsamp_sample_count"]
    assert (total.value, len(total.instances)) == (75, 3)
    assert launch.metrics["inst_executed"].value == 384
    assert launch.metrics["Avg. Threads Executed"].value is None  # no sum of averages
    assert launch.metrics["smsp__pcsamp_warps_issue_stalled_long_scoreboard"].value == 74


def test_two_kernels_on_a_source_page(save: Save) -> None:
    launches = read(save("two.csv", SOURCE + SOURCE.replace("scale", "shift"))).launches
    assert [(each.name, each.index, len(each.samples)) for each in launches] == [
        ("scale(float *)", 0, 3),
        ("shift(float *)", 1, 3),
    ]


def test_lines_of_the_source_view_with_sass(save: Save) -> None:
    head = '"File Path","/src/a.cu"\n"Function Name","scale(float *)"\n'
    header = '"Line No","Source","Address","Source","Instructions Executed","# Samples"\n'
    body = (
        '"7","x += x;","-","-","256","75"\n'
        '"","","0x1000","FADD R5, R0, R0","128","70"\n'
        '"","","...","...","-","-"\n'
        '"","","0x1020","EXIT","128","5"\n'
    )
    samples = read(save("mixed.csv", head + header + body)).launches[0].samples
    assert [(each.sass, each.source, each.samples) for each in samples] == [
        ("FADD R5, R0, R0", "/src/a.cu:7", 70),
        ("EXIT", "/src/a.cu:7", 5),
    ]


# Pages that cannot be used: one sentence that says what is there.


def raw(change: Callable[[str], str] = lambda text: text) -> str:
    return change(recorded.raw_of(2))


def details() -> str:
    return recorded.page("torch_ops.details")


def comma(text: str) -> str:
    """A page as a German spreadsheet has its numbers: 1.234,56."""
    table = recorded.rows(text)
    swap = str.maketrans(",.", ".,")
    for row in table[2:]:
        row[11:] = [cell.translate(swap) if re.fullmatch(r"[\d.,]+", cell) else cell for cell in row[11:]]
    return recorded.written(table)


BAD = {
    "empty": ("", r"is empty"),
    "blank": ("\n\n  \n", r"is empty"),
    "messages only": ("==PROF== Connected to process 1\n==PROF== Disconnected\n", r"is empty: ncu --csv"),
    "binary": (b"\x00\x01\x02\x03rubbish", r"neither a \.ncu-rep file nor a CSV page of ncu: it begins with 00 01 02"),
    "not UTF-8": (b"caf\xe9,1\n", r"nor text: byte 0xe9 at 3"),
    "prose": ("It was a dark and stormy night.\n", r"it begins with 'It was a dark"),
    "other CSV": ("name,value\na,1\n", r"neither a \.ncu-rep file nor a CSV page of ncu: it begins with 'name,value'"),
    "header of raw": ("\n".join(raw().split("\n")[:1]), r"has the header of a raw page and no kernel"),
    "units of raw": ("\n".join(raw().split("\n")[:2]), r"not its row of units and one row a kernel"),
    "header of details": (details().split("\n")[0], r"has the header of a details page and no kernel"),
    "cut in a cell": (raw()[:-40], r"line 3 .*(is no CSV|has \d+ fields)"),
    "cut in details": (details()[:100_000], r"is no CSV|has \d+ fields"),
    "mixed output": (raw().replace('"168"', '"168"\nhello\n"', 1), r"has \d+ fields, its header \d+|is no CSV"),
    "semicolons": (raw(lambda text: text.replace('","', '";"')), r"separates its fields with ';'"),
    "decimal comma": (raw(comma), r"line \d+ has the number '[\d.,]+', of a locale with (a decimal comma|points)"),
    "summary": (
        '"ID","Kernel Name","Invocations","Minimum","Maximum","Average"\n"0","k"',
        r"is a summary over launches",
    ),
    "source without rows": ('"Kernel Name","scale(float *)",\n', r"names scale\(float \*\) and has no rows"),
    "source without metrics": ('"Line No","Source"\n"1",".version 8.0"\n', r"source lines without metrics"),
    "source without addresses": ('"Line No","Source","# Samples"\n"1","x","5"\n', r"has no addresses"),
    "address": (SOURCE.replace("0x7f0000001010", "there"), r"line 4 has the address 'there'"),
    "source cut": (SOURCE[:-60], r"line \d+ (has \d+ fields|is no CSV)"),
    "source, comma": (SOURCE.replace('"128","32"', '"1.280,5","32"'), r"'1\.280,5', of a locale with a decimal comma"),
    "no name": (raw(lambda text: text.replace(f'"{recorded.GEMM}"', '""')), r"line 3 names no kernel"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_pages(case: str, save: Save) -> None:
    data, said = BAD[case]
    path = save("page.csv", data)
    with pytest.raises(ReportError, match=said) as raised:
        read(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert "\n" not in message


def test_a_missing_file() -> None:
    with pytest.raises(ReportError, match=r"cannot read /nowhere/x\.csv: no such file or directory"):
        read("/nowhere/x.csv")


def test_an_unknown_kernel_lists_those_there(pages: dict[str, Path]) -> None:
    report = read(pages["torch_ops.raw"])
    with pytest.raises(ReportError, match=f"there is no kernel 'flash'; its kernels: void at::.*, {recorded.GEMM}"):
        report.select("flash")
    with pytest.raises(ReportError, match="4 kernels match 'void at::'"):
        report.select("void at::")
    assert len(report.select("nvjet").launches) == 2


def test_a_page_cut_between_rows_is_never_read_wrong(save: Save) -> None:
    """Every cut of a page is refused, or read as the launches before it."""
    text = recorded.raw_of(2, 7)
    whole = read(save("whole.csv", text)).launches
    for size in range(len(text) - 60_000, len(text), 997):
        try:
            launches = read(save("cut.csv", text[:size])).launches
        except ReportError:
            continue
        for one, other in zip(launches, whole, strict=False):
            assert all(
                metric.value == other.metrics[name].value or metric.value != metric.value
                for name, metric in one.metrics.items()
            )
