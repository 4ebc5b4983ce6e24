"""The recorded H200 pages, read without `ptxgen.ncu`, changed as a regression would change them, and as a .ncu-rep."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.ncu_report import Value, WrittenLaunch, WrittenMetric, WrittenRule, write_report

DATA = Path(__file__).parents[1] / "data" / "ncu"
#: The matrix product among the recorded kernels: launches 2 and 7.
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
#: Columns before the metrics of the raw page.
FIXED = 11
_SCALE = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "u": 1e-6, "n": 1e-9, "m": 1e-3}

#: Profiles of hopper/overlapped on an H200: as it is, and with a regression planted; README.md there says which.
PROFILES = ("base", "again", "unswizzled", "stages3", "kept", "spill")
#: Those of which there are pages, too.
PAGED = ("base", "unswizzled", "spill")

Row = dict[str, str]
Change = Callable[[dict[str, float]], Mapping[str, float]]


def page(name: str) -> str:
    """The text of tests/data/ncu/NAME.csv.gz."""
    return gzip.decompress((DATA / f"{name}.csv.gz").read_bytes()).decode()


def profile(name: str) -> bytes:
    """A file tests/data/ncu/overlapped_NAME.xz: REPORT.ncu-rep or REPORT.PAGE.csv."""
    return lzma.decompress((DATA / f"overlapped_{name}.xz").read_bytes())


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def written(table: Sequence[Sequence[str]]) -> str:
    made = io.StringIO()
    csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    return made.getvalue()


def raw_of(*launches: int) -> str:
    """The raw page with these launches only."""
    table = rows(page("torch_ops.raw"))
    return written([*table[:2], *(table[2 + launch] for launch in launches)])


def changed(text: str, change: Change, kernel: str = GEMM) -> str:
    """A raw page in which a kernel's metrics are changed: `change` gets the numbers as printed, and gives new ones."""
    table = rows(text)
    header = table[0]
    for row in table[2:]:
        if row[4] != kernel:
            continue
        new = change({name: _number(cell) for name, cell in zip(header[FIXED:], row[FIXED:], strict=True)})
        for name, value in new.items():
            row[header.index(name)] = f"{value:.6f}"
    return written(table)


def _number(cell: str) -> float:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return float("nan")


def slowed(metrics: Mapping[str, float], factor: float, stalls: Mapping[str, float]) -> dict[str, float]:
    """The same work in `factor` times the time: cycles and duration grow, shares of peak shrink.

    `stalls` are the parts of the added warp cycles that each reason takes, 1 together.
    """
    new: dict[str, float] = {}
    ratios = [name for name in metrics if name.startswith(STALL) and name.endswith(PER_ISSUE)]
    total = sum(metrics[name] for name in ratios)
    for name, value in metrics.items():
        if name.startswith("gpu__time_duration") or ("__cycles_elapsed" in name and "per_second" not in name):
            new[name] = value * factor
        elif name.endswith("pct_of_peak_sustained_elapsed"):
            new[name] = value / factor
    for reason, part in stalls.items():
        new[f"{STALL}{reason}{PER_ISSUE}"] = metrics[f"{STALL}{reason}{PER_ISSUE}"] + total * (factor - 1) * part
    return {name: value for name, value in new.items() if value == value}


STALL, PER_ISSUE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"


# As a .ncu-rep file.


def base(cell: str, unit: str) -> Value:
    """A cell in ncu's base unit: ns, hz, byte, a rate per second."""
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return cell
    above, _, below = unit.partition("/")
    if above in ("us", "ms", "s"):
        value *= {"us": 1e3, "ms": 1e6, "s": 1e9}[above]
    elif above[:1] in "KMGT" and above[1:] in ("byte", "hz"):
        value *= _SCALE[above[0]]
    if below in ("us", "ns", "ms"):
        value /= _SCALE[below[0]]
    elif below == "Kbyte":
        value /= 1e3  # ncu means 1e3 times the number, as the profiles of the H200 show; the pages were printed of this
    if value.is_integer() and value >= 0 and "." not in cell and abs(value) < 2**53:
        return int(value)
    return value


def h200_launches(*launches: int) -> list[WrittenLaunch]:
    """Launches of the recorded raw page, all of their metrics in base units."""
    table = rows(page("torch_ops.raw"))
    header, units = table[0], table[1]
    made: list[WrittenLaunch] = []
    for launch in launches:
        row = table[2 + launch]
        metrics = {
            name: base(cell, unit)
            for name, unit, cell in zip(header[FIXED:], units[FIXED:], row[FIXED:], strict=True)
            if cell not in ("", "no data", "nan")
        }
        grid, block = (
            tuple(map(int, row[header.index(name)].strip("()").split(","))) for name in ("Grid Size", "Block Size")
        )
        made.append(
            WrittenLaunch(row[4], metrics, grid=(grid[0], grid[1], grid[2]), block=(block[0], block[1], block[2]))
        )
    return made


SECTIONS = (
    (
        "SpeedOfLight",
        "GPU Speed Of Light Throughput",
        (
            ("DRAM Frequency", "dram__cycles_elapsed.avg.per_second"),
            ("SM Frequency", "gpc__cycles_elapsed.avg.per_second"),
            ("Elapsed Cycles", "gpc__cycles_elapsed.max"),
            ("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Duration", "gpu__time_duration.sum"),
        ),
    ),
    ("LaunchStats", "Launch Statistics", (("Registers Per Thread", "launch__registers_per_thread"),)),
)
RULES = (
    WrittenRule("SOLBottleneck", "SpeedOfLight", "Compute is more heavily utilized than Memory.", 4, (2, 12.5)),
    WrittenRule("SOLFPRoofline", "SpeedOfLight", "The workload achieved 13% of this device's FP32 peak.", 1),
)


def synthetic() -> bytes:
    """A .ncu-rep file with the metrics of launches 2 and 7 of the recorded page, and what a page cannot hold.

    Instances, sections and rules are made up. ncu 2024.1 printed tests/data/ncu/synthetic.*.csv from it.
    """
    launches: list[WrittenLaunch] = []
    for number, each in enumerate(h200_launches(2, 7)):
        metrics: dict[str, Value | WrittenMetric] = dict(each.metrics)
        metrics["sass__inst_executed_per_opcode"] = WrittenMetric(60, {"HGMMA": 32, "UTMALDG": 8, "SYNCS": 20})
        metrics["inst_executed"] = WrittenMetric(
            30 + number, {0x7F0000001000 + 16 * pc: 10 + number * pc for pc in range(3)}
        )
        launches.append(
            WrittenLaunch(
                each.name, metrics, grid=each.grid, block=each.block, rules=RULES, sections=SECTIONS, locked=True
            )
        )
    return write_report(launches)
