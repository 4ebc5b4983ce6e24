"""`ptxgen run --lines`, `--trace`, `--at` and `--show`: what they print and write, and what they refuse."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tests.support.command_line import Cli
from tests.support.paths import ROOT

KERNEL = "blackwell/tilus-roles"
SIZES = ("--m", 128, "--n", 256, "--k", 256)


#: Threads read what another warp has stored, and nothing synchronizes them.
RACE = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry race(.param .u64 out)
.reqntid 64
{
    .shared .align 16 .b8 buffer[256];
    .reg .b32 %thread, %at, %value, %other;
    .reg .b64 %out, %offset;
    mov.u32 %thread, %tid.x;
    mov.u32 %at, buffer;
    mad.lo.u32 %at, %thread, 4, %at;
    mul.wide.u32 %offset, %thread, 4;
    ld.param.u64 %out, [out];
    st.shared.b32 [%at], %thread;
    xor.b32 %at, %at, 128;
    ld.shared.b32 %value, [%at];
    add.u64 %out, %out, %offset;
    st.global.b32 [%out], %value;
    ret;
}
"""


@pytest.fixture(scope="module")
def mma_line() -> int:
    text = find(KERNEL).plan().text
    return next(number for number, line in enumerate(text.splitlines(), 1) if "tcgen05.mma." in line)


def test_counts_of_lines_are_written_next_to_the_text(cli: Cli, tmp_path: Path, mma_line: int) -> None:
    outcome = cli("run", KERNEL, *SIZES, "--lines", tmp_path / "lines.txt")
    assert (outcome.code, outcome.err) == (0, "")
    assert "instructions executed; " in outcome.out.splitlines()[-1]
    line = (tmp_path / "lines.txt").read_text().splitlines()[mma_line - 1]
    assert line.split()[:2] == ["4", str(mma_line)]  # the first MMA of each of 4 K tiles, by one warp


def test_a_trace_is_written(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    outcome = cli("run", KERNEL, *SIZES, "--trace", tmp_path / "run.pftrace")
    assert outcome.code == 0
    assert b"warp 5 (mma)" in (tmp_path / "run.pftrace").read_bytes()


def test_the_state_at_a_line(cli: Cli, mma_line: int) -> None:
    shows = ("mbarriers", "smem:a/1=128x64:f16:128B", "reg:%r_warp", "tmem:0-3")
    words = [word for each in shows for word in ("--show", each)]
    outcome = cli("run", KERNEL, *SIZES, "--schedule", "late", "--at", f"line:{mma_line}#2@5", *words)
    assert outcome.code == 0
    found = re.search(rf"line {mma_line} \(\S+:\d+\), hit 2: tcgen05.mma", outcome.out)
    assert found is not None, outcome.out
    shown = outcome.out[found.start() :]
    assert "(warp 5, CTA (0, 0, 0))" in shown
    assert "ab_full[2]: phase 0 (parity 0), 0 of 1 arrivals pending, 49152 bytes outstanding" in shown
    assert "a stage 1 at " in shown
    assert "%r_warp: [5 5 5" in shown
    assert "tensor memory, columns 0-3" in shown


def test_the_state_at_a_finding(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "race.ptx"
    path.write_text(RACE)
    words = (
        "--arg",
        "out=empty:u32:64",
        "--at",
        "finding:shared-race",
        "--show",
        "smem:buffer",
        "--show",
        "reg:%value",
    )
    outcome = cli("run", path, *words)
    assert outcome.code == 1
    shown = outcome.out[outcome.out.index("finding [shared-race], hit 1, at line ") :]
    assert "ld.shared.b32 %value, [%at];" in shown.splitlines()[0]
    assert "buffer at 0x400, 256 bytes:\n[" in shown
    assert "%value: [" in shown


def test_the_origin_of_an_element(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "race.ptx"
    path.write_text(RACE)
    outcome = cli("run", path, "--arg", "out=empty:u32:64", "--why", "out[40]")
    shown = outcome.out[outcome.out.index("out[40] (0x") :].splitlines()
    assert shown[1].startswith("  st.global (line 20, warp 1, lane 8, CTA 0)")
    assert shown[2].startswith("    ld.shared (line 18, warp 1, lane 8, CTA 0)")
    assert shown[3] == "      buffer of CTA 0"
    assert shown[4].startswith("        st.shared (line 16, warp 0, lane ")  # whose bytes lane 8 of warp 1 must not see
    as_json = json.loads(cli("run", path, "--arg", "out=empty:u32:64", "--why", "out[40]", "--json").out)
    assert [line.rstrip() for line in as_json["inspection"]] == [
        line.rstrip() for line in shown[: len(as_json["inspection"])]
    ]
    assert len(as_json["inspection"]) >= 5


@pytest.mark.parametrize("kernel", ["modular-k1", "race.ptx"])
def test_inspection_as_json(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "race.ptx").write_text(RACE)
    words = ["--m", "8", "--n", "8", "--k", "8"] if kernel == "modular-k1" else ["--arg", "out=empty:u32:64"]
    assert "inspection" not in json.loads(cli("run", kernel, *words, "--json").out)
    found = json.loads(cli("run", kernel, *words, "--json", "--lines", "counts.txt").out)
    assert found["inspection"][0].startswith("lines: ")
    assert (tmp_path / "counts.txt").read_text()


def test_a_job_in_a_python_file_is_inspected_too(cli: Cli) -> None:
    outcome = cli("run", ROOT / "docs" / "examples" / "rowsum.py", "--lines", "-")
    assert outcome.code == 0
    assert "instructions executed" in outcome.out.splitlines()[-1]


def test_a_register_is_shown_as_it_is_declared(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "race.ptx"
    path.write_text(
        RACE.replace("%value, %other;", "%value, %other; .reg .f32 %half; .reg .s32 %less;").replace(
            "    ret;", "    mov.f32 %half, 0.5;\n    mov.s32 %less, -3;\n    ret;"
        )
    )
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "ret;" in text)
    words = [word for each in ("reg:%half", "reg:%less", "reg:%thread") for word in ("--show", each)]
    outcome = cli("run", path, "--arg", "out=empty:u32:64", "--at", line, *words)
    for shown in ("%half: [0.5 0.5 ", "%less: [-3 -3 ", "%thread: [ 0  1 "):
        assert shown in outcome.out


def test_one_part_that_there_is_not_does_not_hide_the_others(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "race.ptx"
    path.write_text(RACE)
    words = ["--at", "finding", "--show", "reg:%nope", "--show", "reg:%thread", "--why", "out[3]"]
    outcome = cli("run", path, "--arg", "out=empty:u32:64", *words)
    assert outcome.code == 2
    assert "no register '%nope'; there are: %thread" in outcome.err
    assert "%thread: [" in outcome.out
    assert "out[3] (0x" in outcome.out


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without optional packages and without ncu, where nothing may be assembled or run."""
    monkeypatch.setattr("ptxgen.emulator.observers.trace.find_spec", lambda _: None)
    monkeypatch.setattr("shutil.which", lambda _: None)
    for package in ("distributed", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", lambda *_, **__: pytest.fail("it ran"))
    monkeypatch.setattr("ptxgen.cli.toolchain.ptx.assembled", lambda *_, **__: pytest.fail("it was assembled"))


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "9", "--show", "stack"], "--show takes smem:NAME"),
        (["--at", "9", "--show", "smem:a/0=128:f16"], "a tile is ROWSxCOLUMNS:TYPE[:SWIZZLE]"),
        (["--trace", "x.pftrace"], "pip install 'ptxgen[trace]'"),
        (["--trace", "none/x.pftrace"], "cannot write none/x.pftrace: there is no folder none"),
        (["--lines", "none/lines.txt"], "cannot write none/lines.txt: there is no folder none"),
        (["--lines", "."], "cannot write .: it is a folder"),
        (["--why", "d[3,5]"], "there is no array 'd'; there are a, b, c"),
        (["--why", "c[3]"], "c has shape (128, 256), and no element [3]"),
        (["--why", "c"], "an element is NAME[INDEX, ...], such as c[3,5], not 'c'"),
        (["--accept", "none.toml"], "cannot read none.toml: no such file or directory"),
        (["--device", "gpu", "--ncu"], "profiling needs ncu, and there is none on PATH"),
        (["--device", "gpu", "--ncu", "--ncu-report", "none/x.ncu-rep"], "there is no folder none"),
        (["--schedules", "2", "--dask", "tcp://127.0.0.1:1"], "pip install 'ptxgen[dask]'"),
        (["--schedules", "2", "--jobs", "-1"], "the number of processes must be 0 or more, not -1"),
    ],
)
def test_what_can_be_refused_at_once_is_refused_before_the_run(cli: Cli, words: list[str], sentence: str) -> None:
    outcome = cli("run", KERNEL, *SIZES, *words)
    assert outcome.code == 2
    assert sentence in outcome.err


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "out=none/out.npy"], "cannot write none/out.npy: there is no folder none"),
        (["--out", "out=out.pt"], "pip install 'ptxgen[torch]'"),
        (["--why", "in[3]"], "there is no array 'in'; there are out"),
        (["--why", "out[64]"], "out has shape (64,), and no element [64]"),
    ],
)
def test_a_file_of_ones_own_is_refused_at_once_too(cli: Cli, tmp_path: Path, words: list[str], sentence: str) -> None:
    path = tmp_path / "race.ptx"
    path.write_text(RACE)
    outcome = cli("run", path, "--arg", "out=empty:u32:64", *words)
    assert outcome.code == 2
    assert sentence in outcome.err


@pytest.mark.usefixtures("bare")
def test_a_job_is_refused_at_once_too(cli: Cli) -> None:
    outcome = cli("run", ROOT / "docs" / "examples" / "rowsum.py", "--why", "x[1000000,0]")
    assert outcome.code == 2
    assert "and no element [1000000, 0]" in outcome.err


@pytest.mark.parametrize(
    ("kernel", "more"),
    [
        ("hopper/wgmma", {}),
        ("hopper/wgmma", {"a_major": "mn", "c_major": "m", "epilogue": "tma"}),
        ("blackwell/mxfp4", {}),
        ("blackwell/clc", {"batched": True}),
    ],
)
def test_the_shapes_of_arrays_are_known_before_the_run(kernel: str, more: dict[str, Any]) -> None:
    batches = 2 if more.get("batched") else 1
    job = GemmJob(find(kernel).plan_for(256, 256, 256, **more), 256, 256, 256, more={"batches": batches})
    for name in ("a", "b"):
        assert job.shapes[name] == job.reference.lines(name).shape
    rows, columns = job.shapes["c"]
    assert rows * columns == batches * 256 * 256


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "5x"], "--at takes LINE, LINE#HIT or LINE#HIT@WARP, such as line:87#2, or finding, "),
        (["--at", "87#0"], "--at takes LINE"),
        (["--at", "9999"], "--at line:9999: there is no instruction; the nearest is in line "),
        (["--show", "mbarriers"], "--show shows the state at a line: add --at LINE[#HIT]"),
        (["--at", "findings"], "or finding, finding:CODE or finding#HIT, not 'findings'"),
        (["--at", "finding:shared-race"], "no launch since has had a finding shared-race 1 times: 0 came up"),
        (["--why", "c[3,5]", "--schedules", "3"], "--why inspects a single run; omit --schedules"),
        (["--lines", "-", "--schedules", "3"], "--lines inspects a single run; omit --schedules"),
        (["--trace", "t.pftrace", "--device", "gpu"], "--trace requires the emulator: a GPU does not stop at a line"),
        (["--at", "MMA", "--show", "smem:q"], "no shared variable or region 'q'; there are: a, "),
        (["--at", "MMA", "--show", "smem:a/9"], "a has 4 stages, no stage 9"),
        (["--at", "MMA", "--show", "smem:a/0=4096x64:f16:128B"], "is larger than a stage 0, which has 16384"),
        (["--at", "MMA", "--show", "smem:a/0=128:f16"], "a tile is ROWSxCOLUMNS:TYPE[:SWIZZLE]"),
        (["--at", "MMA", "--show", "smem:a/0=128x60:f16:128B"], "must be a multiple of 16 bytes, not 120"),
        (["--at", "MMA", "--show", "reg:%nope"], "no register '%nope'; there are: "),
        (["--at", "MMA", "--show", "stack"], "--show takes smem:NAME"),
    ],
)
def test_what_cannot_be_shown_is_refused(cli: Cli, mma_line: int, words: list[str], sentence: str) -> None:
    given = [word.replace("MMA", str(mma_line)) for word in words]
    outcome = cli("run", KERNEL, *SIZES, *given)
    assert outcome.code == 2
    assert sentence in outcome.err
