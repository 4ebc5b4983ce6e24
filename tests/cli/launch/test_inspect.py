"""`ptxgen run --lines`, `--trace`, `--at` and `--show`: what they print and write, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen.gemm import find
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
    shown = outcome.out[outcome.out.index(f"line {mma_line}, hit 2: tcgen05.mma") :]
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


@pytest.mark.parametrize(
    "words", [["--at", "9", "--show", "stack"], ["--at", "9", "--show", "smem:a/0=128:f16"], ["--trace", "x.pftrace"]]
)
def test_what_can_be_refused_at_once_is_refused_before_the_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("ptxgen.emulator.observers.trace.find_spec", lambda _: None)
    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", lambda *_, **__: pytest.fail("it ran"))
    assert cli("run", KERNEL, *SIZES, *words).code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "5x"], "--at takes LINE, LINE#HIT or LINE#HIT@WARP, such as line:87#2, or finding, "),
        (["--at", "87#0"], "--at takes LINE"),
        (["--at", "9999"], "line 9999 has no instruction; the nearest is line "),
        (["--show", "mbarriers"], "--show shows the state at a line: add --at LINE[#HIT]"),
        (["--at", "findings"], "or finding, finding:CODE or finding#HIT, not 'findings'"),
        (["--at", "finding:shared-race"], "no launch since has had a finding shared-race 1 times: 0 came up"),
        (["--why", "d[3,5]"], "there is no array 'd'; there are a, b, c"),
        (["--why", "c[3]"], "c has shape (128, 256), and no element [3]"),
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
