"""What the commands print when all is well, and the report of a run that went wrong."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen.catalog import kernels
from ptxgen.cli.launch.run import run
from ptxgen.device import Finding, LaunchReport
from ptxgen.gemm import find
from tests.support.command_line import Cli, Outcome
from tests.support.fake_device import FakeDevice, deadlock

KERNEL = "blackwell/swizzled"


def run_on(device: FakeDevice, cli: Cli, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Outcome:
    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", lambda *_, **__: device)
    return cli("run", KERNEL, "--m", 128, "--n", 256, "--k", 64, *arguments)


def shift_columns(c: np.ndarray) -> None:
    c[:, 0:32] += 7


def test_help_leads_everywhere(cli: Cli) -> None:
    outcome = cli("--help")
    assert outcome.code == 0
    commands = ["run", "sweep", "kernels", "build", "assemble", "check", "explain", "layout", "coverage"]
    for command in commands:
        assert command in outcome.out
        detail = cli(command, "--help")
        assert (detail.code, detail.err) == (0, "")
        assert f"Usage: ptxgen {command}" in detail.out
    assert cli().out == outcome.out
    assert re.fullmatch(r"ptxgen 0\.1\.0\nptxas(?: \d+\.\d+\.\d+|: .+)\n", cli("--version").out)


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, ptxgen.cli.main as m; m.execute(['--help']);"
        "print([n for n in ('numpy', 'jinja2', 'ptxgen.gemm', 'ptxgen.syntax', 'cuda') if n in sys.modules])"
    )
    best = 9.0
    for _ in range(3):
        start = os.times()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        end = os.times()
        best = min(best, end.children_user + end.children_system - start.children_user - start.children_system)
        assert done.stdout.splitlines()[-1] == "[]"
    assert best < 0.8  # 0.2 s on an idle machine


def test_kernels_lists_every_kernel(cli: Cli) -> None:
    outcome = cli("kernels")
    assert outcome.code == 0
    for name, entry in kernels().items():
        assert f"{name}  {entry.target}" in outcome.out
        assert set(entry.rungs) <= set(outcome.out.split())


def test_kernels_shows_one(cli: Cli) -> None:
    outcome = cli("kernels", "modular-k8")
    words = " ".join(outcome.out.split())
    assert "blackwell/clc sm_100a modular-k8" in words
    assert "from blackwell/overlapped adds scheduler=clc, accumulators=2, clc_stages=2" in words
    assert "stages 6 1..24" in words
    assert "dtype bf16 bf16|f16|tf32|e4m3|e5m2|s8|u8" in words


def test_kernels_as_json(cli: Cli) -> None:
    listed = json.loads(cli("kernels", "--json").out)
    assert [each["name"] for each in listed] == list(kernels())
    by_rung = {rung: each for each in listed for rung in each["rungs"]}
    eighth = by_rung["modular-k8"]
    assert (eighth["name"], eighth["target"]) == ("blackwell/clc", "sm_100a")
    assert eighth["options"]["stages"]["range"] == [1, 24, 1]
    assert eighth["options"]["stages"]["default"] == 6
    assert eighth["options"]["cta_group"]["choices"] == [1, 2]
    for each in listed:
        assert each["summary"]
        for option in each["options"].values():
            assert option["help"]
            assert ("choices" in option) != ("range" in option)
    assert json.loads(cli("kernels", "blackwell/clc", "--json").out) == eighth


def test_build_prints_or_writes_the_same_text(cli: Cli, tmp_path: Path) -> None:
    text = find(KERNEL).plan(dtype="f16", c_dtype="f32", m_tile=64, n_tile=96).text
    options = ["--dtype", "f16", "--c-dtype", "f32", "--set", "tile=64x96"]
    assert cli("build", KERNEL, *options).out == text
    path = tmp_path / "x.ptx"
    outcome = cli("build", KERNEL, *options, "-o", path)
    assert path.read_text() == text
    assert outcome.out.startswith(f"{path}: gemm_f16_f32_64x96 for sm_100a, ")


def test_a_right_run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run_on(FakeDevice(), cli, monkeypatch, "--dtype", "f16", "--seed", 5)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("blackwell/swizzled for sm_100a on a fake ──")
    assert lines[-1] == "✓ correct"
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert "\x1b" not in outcome.out
    text = " ".join(outcome.out.split())
    for words in (
        "M 128, N 256, K 64; f16 in, f32 accumulation, f16 out; seed 5",
        "128×128, 1 step of 64 in K; grid 1×2 = 2 CTAs of 128 threads",
        "b 16384 16384 B, 128 rows",
        "32796 of 232448 bytes (14%)",
        "ab 1 stage; full: 1 arrival and 32768 bytes; empty: 1 arrival acc 1 stage; full: 1 arrival",
        "128 of 512 TMEM columns × 128 lanes: the accumulator in columns 0-127",
        "smem A, B 0x4000404000010000 128B swizzle, SBO 1024 bytes",
        "instruction 0x08200010 f16, 128×128, f16×f16→f32",
        "128×64, box 128×64, 128B swizzle",
        "256×64, box 128×64, 128B swizzle",
        "registers, no spills, no warnings; PTX ",
        "ok, 1 234 567 warp-instructions, eager schedule",
        "32768 of 32768 elements right; ",
        "C untouched",
        "of the tolerance",
        "because tensor cores may truncate where others round; plus half an ulp for the rounding to f16 (at most "
        "2⁻¹¹·|c|)",
        "time plan+render ",
        "assemble ",
        "emulate ",
    ):
        assert words in text, words


@pytest.mark.parametrize("width", [80, 100])
def test_the_report_fits_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run_on(FakeDevice(), cli, monkeypatch).out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40


def test_a_wrong_run_names_elements_and_lines(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run_on(FakeDevice(shift_columns), cli, monkeypatch)
    assert (outcome.code, outcome.err) == (1, "")
    source = find(KERNEL).plan().text.splitlines()
    first_mma = next(number for number, line in enumerate(source, 1) if "tcgen05.mma" in line)
    stores = [number for number, line in enumerate(source, 1) if "st.global" in line]
    text = " ".join(outcome.out.split())
    assert "error: 4096 of 32768 elements of C are wrong; the first: C[0, 0] is " in text
    assert "all wrong elements are in columns 0-31 of the tiles in tile column 0 of 2" in text
    assert f"made by lines {first_mma}, " in text
    assert f"C is stored by lines {stores[0]}, " in text
    lines = outcome.out.splitlines()
    assert any(line.startswith(f"> {first_mma} │     tcgen05.mma") for line in lines)
    assert any(line.startswith(f"> {stores[0]} │ ") and "st.global" in line for line in lines)
    assert lines[-1].startswith("✗ wrong")


def test_a_deadlock_shows_its_line_with_neighbors(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    outcome = run_on(deadlock(), cli, monkeypatch)
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    at = lines.index("line 91: error: [deadlock] 4 warps wait for a phase that nothing completes")
    source = find(KERNEL).plan().text.splitlines()
    numbers = [number for number in range(86, 97) if ".loc" not in source[number - 1]]
    middle = numbers.index(91)
    for shown, number in zip(lines[at + 1 : at + 6], numbers[middle - 2 : middle + 3], strict=True):
        written = f"{'>' if number == 91 else ' '} {number} │ {source[number - 1]}".rstrip()
        assert shown == written or (shown.endswith("…") and written.startswith(shown[:-1]))
    assert "C was not compared: the kernel did not run to its end" in outcome.out
    assert lines[-1].startswith("✗ deadlock")


def test_the_same_lines_are_shown_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("deadlock", "error", f"CTA {n} waits", 91, "x") for n in range(3)]
    lines = run_on(FakeDevice(report=LaunchReport("deadlock", findings)), cli, monkeypatch).out.splitlines()
    assert sum(line.startswith("> 91 │") for line in lines) == 1
    assert [line for line in lines if "waits" in line] == [
        f"line 91: error: [deadlock] CTA {n} waits" for n in range(3)
    ]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_on_the_emulator(cli: Cli, schedule: str) -> None:
    outcome = cli("run", KERNEL, "--m", 200, "--n", 72, "--k", 136, "--schedule", schedule)
    assert (outcome.code, outcome.err) == (0, "")
    assert "blackwell/swizzled on emulated sm_100a" in outcome.out
    assert f"warp-instructions, {schedule} schedule" in outcome.out


def test_many_schedules(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager, late, and random ones with growing seeds, up to the first that fails; it says how to get that again."""
    outcome = cli("run", KERNEL, "--m", 128, "--n", 128, "--k", 64, "--schedules", 4)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "✓ correct under all 4 schedules"
    opened: list[tuple[Any, ...]] = []

    def open_device(device: str, kernel: str, target: str, schedule: str, seed: int, *_: Any, **__: Any) -> FakeDevice:
        opened.append((schedule, seed))
        findings = [Finding("shared-race", "error", "two accesses", 30, "x")] if seed == 7 else []
        return FakeDevice(report=LaunchReport("findings" if findings else "ok", findings, 5, device="a fake"))

    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", open_device)
    outcome = cli("run", KERNEL, "--m", 128, "--n", 256, "--k", 64, "--schedules", 20, "--seed", 5, "--jobs", 0)
    assert opened == [("eager", 5), ("late", 5), ("random", 5), ("random", 6), ("random", 7)]
    assert outcome.code == 1
    assert "✗ findings in schedule 5; again with --schedule random --seed 7" in outcome.out
    report = json.loads(
        cli("run", KERNEL, "--m", 128, "--n", 256, "--k", 64, "--schedules", 1, "--jobs", 0, "--json").out
    )
    assert (report["schedules_tried"], report["schedule"]) == (1, "eager")
    assert report["schedules"] == [{"schedule": "eager", "seed": 0, "status": "ok"}]


@pytest.mark.parametrize("option", [("--jobs", 2), ("--dask", "tcp://127.0.0.1:1")])
def test_one_run_is_one_process(cli: Cli, option: tuple[object, ...]) -> None:
    outcome = cli("run", KERNEL, *option)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == ["error: --jobs and --dask are for --schedules: one run is one process"]


def test_advice(cli: Cli) -> None:
    """Only where it is asked for: with rows of 144 bytes the epilogue stores row by row."""
    arguments = ("run", KERNEL, "--m", 128, "--n", 72, "--k", 64, "--set", "n_tile=48")
    assert "uncoalesced-access" not in cli(*arguments).out
    outcome = cli(*arguments, "--advice", 4)
    assert (outcome.code, outcome.err) == (0, "")
    assert "uncoalesced-access" in outcome.out


@pytest.mark.parametrize("count", [0, -3])
def test_no_schedules(cli: Cli, count: int) -> None:
    outcome = cli("run", KERNEL, "--schedules", count)
    assert (outcome.code, outcome.err.strip()) == (2, f"error: --schedules must be 1 or more, not {count}")


def test_an_edited_kernel_that_hangs_on_the_emulator(cli: Cli, ptx_file: Path) -> None:
    ptx_file.write_text(ptx_file.read_text().replace("], 32768;", "], 32760;"))
    outcome = cli("run", KERNEL, "--ptx", ptx_file, "--m", 128, "--n", 128, "--k", 64)
    assert outcome.code == 1
    assert "[expect-tx]" in outcome.out
    assert outcome.out.splitlines()[-1] == "✗ deadlock"


def test_findings_of_an_edited_file_name_the_file(cli: Cli, monkeypatch: pytest.MonkeyPatch, ptx_file: Path) -> None:
    findings = [Finding(f"race{n}", "error", "two accesses", 30 + n, "x") for n in range(12)]
    device = FakeDevice(report=LaunchReport("findings", findings, 5, device="a fake"))
    outcome = run_on(device, cli, monkeypatch, "--ptx", ptx_file)
    assert outcome.code == 1
    unfolded = "".join(outcome.out.split())
    assert f"{ptx_file}:30:error:[race0]twoaccesses" in unfolded
    assert "and 4 more; --json lists all" in outcome.out
    assert "with the PTX of" in outcome.out


def test_overwritten_surroundings(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(memory: bytearray, start: int, end: int) -> None:
        memory[end] = 0

    outcome = run_on(FakeDevice(change_memory=change), cli, monkeypatch)
    assert outcome.code == 1
    assert "the kernel wrote outside C: 1 bytes changed past its end" in " ".join(outcome.out.split())


def test_json_says_the_same(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    right = json.loads(run_on(FakeDevice(), cli, monkeypatch, "--json").out)
    assert (right["ok"], right["status"], right["grid"]) == (True, "ok", [1, 2, 1])
    assert right["comparison"]["wrong"] == 0
    assert right["descriptors"]["instruction"] == "0x08200490"
    assert len(right["descriptors"]["tensormap_a"]) == 256
    assert right["shared"]["bytes"] == 32796
    assert set(right["seconds"]) == {"plan+render", "assemble", "inputs", "encode", "launch", "compare"}

    def nan(c: np.ndarray) -> None:
        c[0, 0] = np.nan

    outcome = run_on(FakeDevice(nan), cli, monkeypatch, "--json")
    wrong = json.loads(outcome.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert outcome.code == 1
    assert wrong["status"] == "wrong"
    assert wrong["comparison"]["largest_error"] == "inf"
    assert wrong["comparison"]["first_wrong"]["got"] == "nan"
    assert wrong["complaints"][0]["lines"]


def test_assemble_reports_and_writes(cli: Cli, ptx_file: Path, tmp_path: Path) -> None:
    cubin = tmp_path / "x.cubin"
    outcome = cli("assemble", ptx_file, "-o", cubin)
    assert (outcome.code, outcome.err) == (0, "")
    data = cubin.read_bytes()
    assert data.startswith(b"\x7fELF")
    assert f"assembled for sm_100a, {len(data)} bytes of cubin, written to {cubin}" in outcome.out
    for words in ("registers  ", "spills     none", "shared     0 bytes a CTA", "no warnings"):
        assert words in outcome.out


def test_assemble_shows_what_ptxas_refuses(cli: Cli, ptx_file: Path) -> None:
    lines = ptx_file.read_text().splitlines()
    line = next(number for number, each in enumerate(lines, 1) if "shr.u32 %r_warp" in each)
    lines[line - 1] = "    shr.u32 %r_warp, %rd_tensormap_a, 5;"
    ptx_file.write_text("\n".join(lines))
    outcome = cli("assemble", ptx_file)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ptxas refused the PTX for sm_100a\n")
    assert f"{line} |     shr.u32 %r_warp, %rd_tensormap_a, 5;" in outcome.err
    assert "Traceback" not in outcome.err


def test_check_of_legal_and_illegal_text(cli: Cli, ptx_file: Path) -> None:
    outcome = cli("check", ptx_file)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{ptx_file}: legal for sm_100a\n", "")
    outcome = cli("check", ptx_file, "--target", "sm_90a")
    assert outcome.code == 1
    assert "error: " in outcome.out
    lines = ptx_file.read_text().splitlines()
    line = next(number for number, each in enumerate(lines, 1) if "shr.u32 %r_warp" in each)
    lines[line - 1] = "    shr.u32 %r_warp, %rd_tensormap_a, 5;"
    ptx_file.write_text("\n".join(lines))
    outcome = cli("check", ptx_file)
    first, source, caret, last = outcome.out.splitlines()
    assert first.startswith(f"{ptx_file}:{line}:22: error: ")
    assert source == f"> {line} │     shr.u32 %r_warp, %rd_tensormap_a, 5;"
    assert caret.index("^") == source.index("%rd_tensormap_a")
    assert last == f"{ptx_file}: 1 error"
    assert outcome.code == 1


def test_check_reads_standard_input(ptx_file: Path) -> None:
    command = [sys.executable, "-c", "from ptxgen.cli.main import main; main()", "check", "-"]
    done = subprocess.run(command, input=ptx_file.read_bytes(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"-: legal for sm_100a\n")


def test_explain(cli: Cli, tmp_path: Path) -> None:
    assert "SBO" in cli("explain", "smem", "0x4000404000010000").out
    assert cli("explain", "wgmma", "0x4000004000010000").out.startswith("WgmmaDescriptor")
    assert "bf16" in cli("explain", "idesc", "0x08200490").out
    made = find(KERNEL).plan().problem(512, 512, 512).tensormap("a", 4096)
    path = tmp_path / "map"
    path.write_bytes(made.encode())
    assert cli("explain", "tensormap", path).out == made.explain() + "\n"
    assert cli("explain", "tensormap", "0x" + made.encode().hex()).out == made.explain() + "\n"
    path.write_bytes(b"123")
    assert cli("explain", "tensormap", path).err == f"error: a tensormap has 128 bytes, but {path} has 3\n"


def test_explain_an_instruction(cli: Cli) -> None:
    outcome = cli("explain", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3]")
    assert outcome.code == 0
    for words in ("2 repetitions", "{%r1, %r2}", "[%r3]", "tcgen05.wait::ld", "PTX ISA 8.6", "sm_100a"):
        assert words in outcome.out
    refused = cli("explain", "tcgen05.ld.sync.aligned.16x256b.x128.b32")
    assert (refused.code, "the nearest legal form is tcgen05.ld.sync.aligned.16x256b.x32.b32" in refused.out) == (
        1,
        True,
    )
    (found,) = json.loads(cli("explain", "bar.sync 0", "--json").out)
    assert (found["key"], found["issued_by"]) == ("barrier.bar_sync", "warp")


def test_coverage(cli: Cli) -> None:
    assert "tcgen05" in cli("coverage").out
    assert cli("coverage", "--markdown").out.startswith("# Coverage\n")
    assert {"mbarrier", "tma"} <= {row["family"] for row in json.loads(cli("coverage", "--json").out)}


def test_an_ascii_terminal_gets_a_report_too(ptx_file: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", "from ptxgen.cli.main import main; main()", "kernels"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"blackwell/swizzled" in done.stdout


def test_a_reader_that_stops_early_causes_no_traceback() -> None:
    command = f"{sys.executable} -c 'from ptxgen.cli.main import main; main()' build {KERNEL} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == find(KERNEL).plan().text.splitlines(keepends=True)[0]
    assert done.stderr == ""


def test_as_a_module() -> None:
    """`python -m ptxgen` does the same."""
    found = subprocess.run(
        [sys.executable, "-m", "ptxgen", "kernels"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert "blackwell/swizzled" in found.stdout


def test_an_ascii_locale(tmp_path: Path) -> None:
    """Files of the package are UTF-8 whatever the locale says, and paths may have any characters."""
    file = tmp_path / "mit ä raum" / "ü k.ptx"
    file.parent.mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "LANG", "PYTHONUTF8")}
    environment |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    for words in (["build", "hopper/wgmma", "-o", file], ["check", file]):
        command = [sys.executable, "-X", "utf8=0", "-m", "ptxgen", *map(str, words)]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_the_options_of_run_are_in_groups(cli: Cli) -> None:
    """The first group is short; those for inspection, schedules, a GPU and a file of one's own stand below it."""
    page = cli("run", "--help").out
    sections = re.findall(r"(?m)^(\S.*):\n((?:  .*\n?|\n)+)", page)
    options = {title: re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", text) for title, text in sections}
    assert options["The problem"][:2] == ["--batches", "--groups"]
    assert {"--schedule", "--schedules", "--explore", "--jobs", "--dask"} == set(options["Schedules (emulator)"])
    assert {"--lines", "--trace", "--at", "--show", "--why"} == set(options["Inspection (emulator)"])
    assert {"--device", "--ncu", "--ncu-report", "--ncu-options"} == set(options["A GPU"])
    assert {"--arg", "--out", "--grid", "--block"} <= set(options["A file of your own"])
    assert len(options["Options"]) <= 16
    assert len(inspect.getsource(run).splitlines()) <= 100
