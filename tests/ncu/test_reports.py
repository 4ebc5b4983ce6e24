"""Reading of .ncu-rep files, compared with NVIDIA's package, with what was written, and with the pages of ncu."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ptxgen.ncu import Launch, Metric, ReportError, read
from ptxgen.toolchain import assemble
from tests.ncu import recorded
from tests.ncu.conftest import Save
from tests.support.ncu_report import Value, WrittenLaunch, WrittenMetric, write_report

ncu_report = pytest.importorskip("ncu_report")

PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd3], %f2;
  ret;
}
"""
START = 0x7F0000001000


def available(synthetic: Path, profiles: dict[str, Path]) -> list[Path]:
    """The report that we write, those of an H200, and those of PTXGEN_NCU_REPORTS."""
    folder = os.environ.get("PTXGEN_NCU_REPORTS")
    more = sorted(path for path in Path(folder).glob("*.ncu-rep") if path.stat().st_size) if folder else []
    return [synthetic, *(profiles[f"{name}.ncu-rep"] for name in recorded.PROFILES), *more]


def test_every_metric_is_that_of_nvidias_package(synthetic: Path, profiles: dict[str, Path]) -> None:
    """Of metrics with many instances a sample of these, since the package takes long to give one."""
    rng = Random(0)
    for path in available(synthetic, profiles):
        actions = [action for each in ncu_report.load_report(str(path)) for action in each]
        launches = read(path).launches
        assert len(launches) == len(actions) > 0
        for launch, action in zip(launches, actions, strict=True):
            assert launch.name == action.name(action.NameBase_DEMANGLED)
            assert set(launch.metrics) == set(action.metric_names())
            compared = 0
            for name in action.metric_names():
                theirs, ours = action[name], launch.metrics[name]
                assert same(ours.value, theirs.value()), (path, name)
                assert ours.unit == theirs.unit()
                assert len(ours.instances) == theirs.num_instances()
                keys = theirs.correlation_ids() if theirs.has_correlation_ids() else None
                numbers = range(len(ours.instances))
                for number in numbers if len(numbers) <= 16 else (*rng.sample(numbers, 14), 0, numbers[-1]):
                    each = ours.instances[number]
                    assert same(each.value, theirs.value(number)), (path, name, number)
                    assert each.key == (keys.value(number) if keys is not None else None)
                compared += 1
            assert compared > 200


def same(one: object, other: object) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or (type(one) is type(other) and one == other)


def test_every_metric_is_what_was_written(synthetic: Path) -> None:
    launches = read(synthetic).launches
    for launch, each in zip(launches, recorded.h200_launches(2, 7), strict=True):
        written = {name: value for name, value in each.metrics.items() if name not in ("inst_executed",)}
        written.pop("sass__inst_executed_per_opcode")
        assert len(written) > 2000
        for name, value in written.items():
            metric = launch.metrics[name]
            assert metric.value == value, name
        opcodes = {each.key: each.value for each in launch.metrics["sass__inst_executed_per_opcode"].instances}
        assert opcodes == {"HGMMA": 32, "UTMALDG": 8, "SYNCS": 20}


def pages_of(report: Path, pages: dict[str, Path], synthetic: Path) -> Iterator[Path]:
    if report == synthetic:
        yield from (path for name, path in pages.items() if name.startswith("synthetic."))
    else:
        yield from (path for page in ("raw", "details") if (path := report.with_suffix(f".{page}.csv")).is_file())


def test_the_pages_of_ncu_agree_within_their_rounding(
    synthetic: Path, pages: dict[str, Path], profiles: dict[str, Path]
) -> None:
    for path in available(synthetic, profiles):
        found = list(pages_of(path, pages, synthetic))
        if not found:
            continue
        report = read(path)
        for page in found:
            other = read(page)
            assert len(other.launches) == len(report.launches)
            for launch, printed in zip(report.launches, other.launches, strict=True):
                assert (printed.name, printed.grid, printed.block) == (launch.name, launch.grid, launch.block)
                assert printed.device.capability == launch.device.capability
                if other.page == "details":
                    ours, theirs = (
                        sorted((rule.section, rule.name, rule.kind, round(rule.speedup or 0, 2)) for rule in each.rules)
                        for each in (launch, printed)
                    )
                    assert ours == theirs
                    assert len(ours) > 0
                compared = [
                    agrees(launch.metrics[SHARES_OF_2025.get(name, name)], metric)
                    for name, metric in printed.metrics.items()
                ]
                assert all(compared)
                assert len(compared) > (4 if other.page == "details" else 200)


#: Labels of the details page whose metrics depend on the version of ncu (`ptxgen.ncu.labels`).
SHARES_OF_2025 = {
    "Compute Workload Analysis/Issue Slots Busy": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    "Compute Workload Analysis/SM Busy": "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed",
}


def agrees(exact: Metric, printed: Metric) -> bool:
    one, other = exact.base, printed.base
    if one is None or other is None:
        unprinted = printed.value is None and len(exact.instances) > 0  # the page prints no sum of theirs
        alike = unprinted or exact.value in (printed.value, None) or str(exact.value) in ("nan", "inf")
        assert alike, (exact.name, exact.value, printed.value)
        return alike
    # Half a digit, and what a double of that size cannot hold.
    fits = abs(one.value - other.value) <= other.resolution * (1 + 1e-6) + 1e-9 * abs(one.value)
    assert fits, (exact.name, one, other)
    if printed.instances and all(isinstance(each.value, (int, float)) for each in exact.instances):
        assert len(printed.instances) == len(exact.instances), exact.name
    return fits


def test_samples_of_the_source_page_agree(profiles: dict[str, Path]) -> None:
    folder = os.environ.get("PTXGEN_NCU_REPORTS")
    more = sorted(Path(folder).glob("*.source.csv")) if folder else []
    for page in (*(profiles[f"{name}.source.csv"] for name in recorded.PAGED), *more):
        report = read(page.with_name(page.name.removesuffix(".source.csv") + ".ncu-rep"))
        for launch, printed in zip(report.launches, read(page).launches, strict=True):
            ours = {each.address: each for each in printed.samples}
            assert launch.samples
            for each in launch.samples:
                other = ours[each.address]
                assert (each.samples, each.executed or 0) == (other.samples, other.executed)
                assert " ".join(each.sass.split()).split()[0] == other.sass.split()[0]
                for reason, count in other.stalls.items():
                    assert each.stalls[reason] == count


def test_what_the_file_says_of_itself(synthetic: Path) -> None:
    report = read(synthetic)
    assert report.page == "ncu-rep"
    assert report.version == "2025.3.1.0 (build 0) (synthetic)"
    assert report.driver == "580.1"
    assert report.command == "/bin/app"
    launch = report.launches[0]
    assert (launch.grid, launch.block, launch.cluster) == ((2, 66, 1), (384, 1, 1), (2, 1, 1))
    assert str(launch.device) == "NVIDIA H200 (compute capability 9.0)"
    assert launch.device.multiprocessors == 132
    assert launch.passes == 38
    assert launch.clocks.locked is True
    assert launch.clocks.sm == pytest.approx(1.6098e9, rel=1e-3)
    rule = launch.rules[0]
    assert (rule.name, rule.kind, rule.section) == ("SOLBottleneck", "OPT", "SpeedOfLight")
    assert (rule.speedup, rule.speedup_of) == (12.5, "global")


def test_what_a_file_of_ncu_2025_says_of_itself(profiles: dict[str, Path]) -> None:
    report = read(profiles["stages3.ncu-rep"])
    assert report.version == "2025.3.1.0 (build 36398880) (public-release)"
    assert report.driver == "CUDA 13.0"
    assert report.command.startswith("ncu --set full --clock-control none")
    assert report.command.endswith("python3 variants.py stages3 4096 3")
    assert len(report.launches) == 3
    for launch in report.launches:
        assert (launch.name, launch.mangled) == ("gemm_bf16_bf16_128x256", "gemm_bf16_bf16_128x256")
        assert (launch.grid, launch.block, launch.cluster) == ((132, 1, 1), (384, 1, 1), (2, 1, 1))
        assert str(launch.device) == "NVIDIA H200 (compute capability 9.0)"
        assert (launch.passes, launch.clocks.locked, launch.gaps) == (38, False, ())
        hottest = max(launch.samples, key=lambda each: each.samples)
        assert hottest.source.startswith("blocks/wgmma.j2:")
        assert hottest.ptx.startswith("@%p_tells mbarrier.arrive.release.cluster")
        assert hottest.control


def sampled(name: str = "scale", cubin: bytes = b"") -> WrittenLaunch:
    counts: dict[int | str, Value] = {START + 16 * pc: pc + 1 for pc in range(8)}
    metrics = {
        "inst_executed": WrittenMetric(36, counts),
        "smsp__pcsamp_sample_count": WrittenMetric(36, counts),
        "smsp__pcsamp_warps_issue_stalled_wait": WrittenMetric(36, counts),
        "launch__function_pcs": WrittenMetric(START, {0: START}),
        "gpu__time_duration.sum": 1000.0,
    }
    return WrittenLaunch(name, metrics, cubin=cubin)


def test_samples_are_joined_with_sass_ptx_and_control_codes(save: Save) -> None:
    cubin = assemble(PTX, options=("-lineinfo",)).data
    launch = read(save("scale.ncu-rep", write_report([sampled(cubin=cubin)]))).launches[0]
    assert launch.gaps == ()
    assert [each.offset for each in launch.samples] == [16 * pc for pc in range(8)]
    lines = PTX.splitlines()
    named = [each for each in launch.samples if each.ptx_line is not None]
    assert len(named) == 8
    for each in named:
        assert each.ptx_line is not None
        assert each.ptx == lines[each.ptx_line - 1].strip()
        assert each.control
        assert each.stalls == {"wait": each.samples}
    assert any(each.sass.startswith("LDG") and each.ptx.startswith("ld.global.f32") for each in named)


def test_two_cubins_with_one_kernel_name_are_told_apart(save: Save) -> None:
    other = PTX.replace("add.f32 %f2, %f1, %f1", "mul.f32 %f2, %f1, %f1")
    cubins = [assemble(text, options=("-lineinfo",)).data for text in (PTX, other)]
    report = read(save("two.ncu-rep", write_report([sampled(cubin=cubin) for cubin in cubins])))
    for launch, opcode in zip(report.launches, ("add.f32", "mul.f32"), strict=True):
        assert any(each.ptx.startswith(opcode) for each in launch.samples)


def test_a_report_without_a_cubin_says_so(save: Save) -> None:
    launch = read(save("bare.ncu-rep", write_report([sampled()]))).launches[0]
    assert len(launch.samples) == 8
    assert launch.gaps == ("the report holds no cubin: no PTX lines and control codes of the samples",)


# Files that cannot be used.


def test_a_file_cut_anywhere_is_refused(synthetic: Path, save: Save) -> None:
    data = synthetic.read_bytes()
    for size in (1, 3, 4, 7, 9, 30, 200, 5000, len(data) // 2, len(data) - 1):
        with pytest.raises(ReportError) as raised:
            read(save("cut.ncu-rep", data[:size]))
        assert "\n" not in str(raised.value)
        assert ("truncated" in str(raised.value)) == (size >= 4), size


def test_a_damaged_result_is_refused(synthetic: Path, save: Save) -> None:
    """The package reads a file with such a result without a word, and gives a launch without metrics."""
    name = bytes(recorded.GEMM, "ascii")
    demangled = bytes([7 << 3 | 2, len(name)]) + name
    data = synthetic.read_bytes().replace(demangled, bytes([14 << 3 | 2]) + demangled[1:], 1)  # as another field
    with pytest.raises(ReportError, match="is damaged: ncu-report cannot read one of its 2 results"):
        read(save("damaged.ncu-rep", data))
    broken = synthetic.read_bytes().replace(demangled, bytes([7 << 3 | 3]) + demangled[1:], 1)  # no such wire type
    with pytest.raises(ReportError, match="its blocks cannot be read: it is damaged"):
        read(save("broken.ncu-rep", broken))


def test_a_changed_file_is_read_or_refused(synthetic: Path, save: Save) -> None:
    random = Random(7)
    whole = synthetic.read_bytes()
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        place = random.randrange(len(data))
        if random.random() < 0.5:
            data[place] = random.randrange(256)
        else:
            del data[place : place + random.randrange(1, 40)]
        said = refusal(save("changed.ncu-rep", bytes(data)))
        assert "\n" not in said
        refused += bool(said)
    assert refused > 20


def refusal(path: Path) -> str:
    """Why a file is refused, empty if it is read. Any other exception is a bug."""
    try:
        read(path)
    except ReportError as error:
        return str(error)
    return ""


def test_a_report_without_launches_is_refused(save: Save) -> None:
    with pytest.raises(ReportError, match="holds no profiled kernel"):
        read(save("none.ncu-rep", write_report([])))


def test_a_foreign_file_is_refused(save: Save) -> None:
    with pytest.raises(ReportError, match=r"no \.ncu-rep file: it begins with 7f 45 4c 46"):
        read(save("elf.ncu-rep", b"\x7fELF" + bytes(60)))


def test_the_missing_package_is_named(synthetic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(ReportError, match=r"ncu-report package .*: pip install 'ptxgen\[ncu\]'"):
        read(synthetic)


def test_launches_are_json(synthetic: Path) -> None:
    import json

    launch: Launch = read(synthetic).launches[0]
    text = json.dumps(launch.to_json(), allow_nan=False)
    made = json.loads(text)
    assert made["metrics"]["gpu__time_duration.sum"] == {"value": 174656.0, "unit": "ns"}
    assert made["metrics"]["sass__inst_executed_per_opcode"]["instances"][0] == {"key": "HGMMA", "value": 32}
    assert made["grid"] == [2, 66, 1]
