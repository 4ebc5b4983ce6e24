"""`ptxgen ncu`, `ptxgen run --ncu` and tools/ncu_parse.py: exit codes, and what they print."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxgen.gpu import GpuNotFoundError
from tests.ncu import recorded
from tests.support.command_line import Cli
from tools import ncu_parse

ROOT = Path(__file__).parents[3]


@pytest.fixture
def gemm(tmp_path: Path) -> Path:
    path = tmp_path / "gemm.csv"
    path.write_text(recorded.raw_of(2))
    return path


@pytest.fixture
def again(tmp_path: Path) -> Path:
    path = tmp_path / "again.csv"
    path.write_text(recorded.raw_of(7))
    return path


@pytest.fixture
def worse(tmp_path: Path) -> Path:
    def change(metrics: dict[str, float]) -> dict[str, float]:
        return recorded.slowed(metrics, 1.3, {"long_scoreboard": 1.0})

    path = tmp_path / "worse.csv"
    path.write_text(recorded.changed(recorded.raw_of(7), change))
    return path


def test_the_summary(cli: Cli, gemm: Path) -> None:
    made = cli("ncu", gemm)
    assert made.code == 0
    for line in (
        "  tensor pipe    90.2 % busy",
        "  TMA            65 536 loads, 1.611 GB; 8 192 stores, 33.55 MB",
        "  L2             47.7 %, hit rate 72.5 %, read 818 MB, write 33.55 MB",
        "  HBM            21.1 %, read 149 MB, write 28.33 MB",
        "  shared memory  25.96 M wavefronts, 150.6 k of them bank conflicts (0.6%)",
        "  local memory   none",
        "  stalls         barrier 31%, long scoreboard 19%, gmma 18%, mio throttle 15%, wait 8%",
        "  occupancy      14.6 % achieved, 18.8 % possible, waves 1, 1 CTA per SM by registers and shared memory",
        "  not measured   hottest lines",
        "note: a CSV page does not say which ncu and driver measured it",
    ):
        assert line in made.out.splitlines(), line
    assert "174.7 us, 283.9 k cycles, SM 1.61 GHz, memory 3.199 GHz" in made.out


def test_what_the_page_shows_is_printed(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    paths = {name: tmp_path / f"{name}.ncu-rep" for name in ("base", "unswizzled", "stages3", "spill")}
    for path in paths.values():
        path.write_bytes(recorded.profile(path.name))
    printed = cli("ncu", paths["base"]).out.splitlines()
    for name in ("unswizzled", "stages3", "spill"):
        printed += cli("ncu", "diff", paths["base"], paths[name]).out.splitlines()
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / "docs/ncu.md").read_text(), re.DOTALL)
    shown = [block for block in blocks if "  tensor pipe " in block or "over 3 and 3 launches" in block]
    assert len(shown) >= 2
    for line in "".join(shown).splitlines():
        assert line in printed, line


def test_chosen_metrics(cli: Cli, gemm: Path) -> None:
    made = cli("ncu", gemm, "--metrics", r"^gpu__time_duration\.(avg|sum)")
    assert made.out.splitlines()[1:] == ["  gpu__time_duration.avg  174.656 us", "  gpu__time_duration.sum  174.656 us"]
    everything = cli("ncu", gemm, "--all")
    assert len(everything.out.splitlines()) == 1 + 2227
    assert "  sass__inst_executed_register_spilling_mem_local" in everything.out
    assert "no value inst" in everything.out


def test_the_csv(cli: Cli, gemm: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("ncu", gemm, "--csv").out)))
    duration = next(row for row in rows if row["metric"] == "duration")
    assert (duration["value"], duration["unit"], duration["launch"]) == ("174656.0", "ns", "0")
    rows = list(csv.DictReader(io.StringIO(cli("ncu", gemm, "--csv", "--all").out)))
    assert len(rows) == 2227


def test_the_json(cli: Cli, gemm: Path) -> None:
    (report,) = json.loads(cli("ncu", gemm, "--json").out)["reports"]
    (launch,) = report["launches"]
    assert launch["name"] == recorded.GEMM
    assert len(launch["metrics"]) == 2227
    assert launch["summary"]["figures"]["duration"]["value"] == 174656
    assert launch["device"]["name"] == "NVIDIA H200"
    (report,) = json.loads(cli("ncu", gemm, "--json", "--metrics", "time_duration.sum").out)["reports"]
    assert list(report["launches"][0]["metrics"]) == ["gpu__time_duration.sum"]


def test_the_exit_codes_of_diff(cli: Cli, gemm: Path, again: Path, worse: Path, tmp_path: Path) -> None:
    same = cli("ncu", "diff", gemm, again)
    assert (same.code, same.out.splitlines()[1]) == (0, "no significant difference")
    other = cli("ncu", "diff", gemm, worse)
    assert other.code == 1
    assert other.out.splitlines()[0] == f"{recorded.GEMM}: duration 1.30x (174.7 -> 227.8 us)"
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    unusable = cli("ncu", "diff", gemm, empty)
    assert (unusable.code, unusable.out) == (2, "")
    assert unusable.err.startswith(f"error: {empty} is empty")
    assert len(unusable.err.splitlines()) == 1


def test_diff_as_json(cli: Cli, gemm: Path, worse: Path) -> None:
    made = json.loads(cli("ncu", "diff", gemm, worse, "--json").out)
    assert made["same"] is False
    (pair,) = made["pairs"]
    assert pair["time"] == pytest.approx(0.304, abs=0.001)
    assert pair["changes"][0]["key"] == "stall_long_scoreboard"
    assert pair["changes"][0]["share"] == pytest.approx(1.0, abs=0.05)


def test_the_threshold(cli: Cli, gemm: Path, worse: Path) -> None:
    assert cli("ncu", "diff", gemm, worse, "--threshold", "50").out.splitlines()[0].count("same duration") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.csv"], "cannot read nothing.csv: no such file or directory"),
        (["diff", "a"], "ptxgen ncu diff takes two reports, not 1"),
        (["GEMM", "--metrics", "["], "--metrics '[' is no regular expression"),
        (["GEMM", "--metrics", "no_such"], "none of the 2227 metrics matches 'no_such'; --all lists them"),
        (["diff", "GEMM", "GEMM", "--metrics", "no_such"], "no metric of both reports matches 'no_such'"),
        (["GEMM", "--kernel", "flash"], "there is no kernel 'flash'; its kernels: nvjet"),
        (["GEMM", "--json", "--csv"], "--csv and --json exclude each other"),
        (["diff", "GEMM", "GEMM", "--csv"], "--csv is for ptxgen ncu REPORT, not for ptxgen ncu diff"),
        (["diff", "GEMM", "GEMM", "--threshold", "-1"], "--threshold must be 0 or more, not -1"),
    ],
)
def test_bad_input(words: list[str], said: str, cli: Cli, gemm: Path) -> None:
    made = cli("ncu", *(str(gemm) if word == "GEMM" else word for word in words))
    assert made.code == 2
    assert said in made.err
    assert len(made.err.splitlines()) == 1


def test_the_script_is_the_command(
    gemm: Path, again: Path, worse: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, words in (
        ([str(gemm)], ["ncu", gemm]),
        (["--diff", str(gemm), str(again)], ["ncu", "diff", gemm, again]),
        (["--json", "--diff", str(gemm), str(worse)], ["ncu", "diff", gemm, worse, "--json"]),
        (["--diff", str(gemm), "nowhere"], ["ncu", "diff", gemm, "nowhere"]),
    ):
        code = ncu_parse.main(arguments)
        printed = capsys.readouterr()
        made = cli(*words)
        assert (code, printed.out, printed.err) == (made.code, made.out, made.err)


# ptxgen run --ncu, with a program in the place of ncu that writes a report.

#: Puts the program there in a mode; gives the file in which it notes its arguments.
Fake = Callable[[str], Path]
FAKE = """#!{python}
import pathlib, sys
words = sys.argv[1:]
place = pathlib.Path(words[words.index("--export") + 1])
pathlib.Path({log!r}).write_text("\\n".join(words))
mode = {mode!r}
if mode == "report":
    place.write_bytes(pathlib.Path({report!r}).read_bytes())
elif mode == "permission":
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", file=sys.stderr)
    sys.exit(1)
elif mode == "nothing":
    print("==WARNING== No kernels were profiled.")
else:
    print("==ERROR== The application returned an error code (1).")
    sys.exit(1)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Puts a program named ncu alone on PATH, and a GPU where there is none."""
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "recorded"
    report.write_bytes(recorded.synthetic())
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "log"

    def put(mode: str) -> Path:
        program = folder / "ncu"
        program.write_text(FAKE.format(python=sys.executable, log=str(log), report=str(report), mode=mode))
        program.chmod(0o755)
        return log

    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("ptxgen.gpu.Gpu", lambda: None)
    return put


RUN = ("run", "hopper/swizzled", "--device", "gpu", "--ncu")


def test_run_profiles_and_prints_the_summary(fake: Fake, cli: Cli) -> None:
    pytest.importorskip("ncu_report")
    log = fake("report")
    made = cli(*RUN, "--m", "256", "--set", "stages=3", "--dtype", "f16", "--alpha", "0.5", "--lda", "520")
    assert made.code == 0, made.err
    words = log.read_text().split("\n")
    assert words[:3] == ["--set", "full", "--import-source"]
    command = words[words.index(sys.executable) :]
    assert command[1:4] == ["-m", "ptxgen", "run"]
    for option, value in (
        ("--m", "256"), ("--set", "stages=3"), ("--dtype", "f16"), ("--device", "gpu"), ("--alpha", "0.5"),
        ("--lda", "520"),
    ):  # fmt: skip
        assert command[command.index(option) + 1] == value
    assert "--ncu" not in command
    first, *rest = made.out.splitlines()
    assert first.startswith("$ ")
    assert "--export hopper-swizzled.ncu-rep" in first
    assert rest == cli("ncu", "hopper-swizzled.ncu-rep").out.splitlines()


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("permission", "ncu may not read the counters of this GPU (ERR_NVGPUCTRPERM)"),
        ("nothing", "ncu ended with status 0 and no report: ==WARNING== No kernels were profiled."),
        ("failed", "ncu ended with status 1 and no report: ==ERROR== The application returned an error code (1)."),
    ],
)
def test_ncu_without_a_report(mode: str, said: str, fake: Fake, cli: Cli) -> None:
    fake(mode)
    made = cli(*RUN)
    assert (made.code, made.out) == (2, "")
    assert said in made.err


def test_run_without_ncu(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    made = cli(*RUN)
    assert made.code == 2
    assert made.err.startswith("error: profiling needs ncu, and there is none on PATH")
    assert len(made.err.splitlines()) == 1


def test_run_without_a_gpu(fake: Fake, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ncu_report")
    fake("report")

    def none() -> None:
        raise GpuNotFoundError("there is no NVIDIA driver here")

    monkeypatch.setattr("ptxgen.gpu.Gpu", none)
    none.__module__ = "ptxgen.gpu.device"
    made = cli(*RUN)
    assert (made.code, made.err) == (2, "error: there is no NVIDIA driver here\n")


def test_the_name_of_the_report(fake: Fake, cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    log = fake("report")
    assert cli(*RUN, "--ncu-report", "three.ncu-rep").code == 0
    assert "three.ncu-rep" in log.read_text().split("\n")
    assert (tmp_path / "three.ncu-rep").is_file()
    assert cli(*RUN, "--ncu-options", "--clock-control none").code == 0
    assert "\n--clock-control\nnone\n" in log.read_text()
    made = cli(*RUN, "--ncu-options", "--kernel-name '")
    assert (made.code, made.err) == (2, 'error: --ncu-options "--kernel-name \'": no closing quotation\n')
    made = cli(*RUN, "--ncu-report", "three")
    assert (made.code, made.err) == (2, "error: --ncu-report must end in .ncu-rep, not 'three'\n")
    made = cli("run", "hopper/swizzled", "--ncu-report", "three.ncu-rep")
    assert (made.code, made.err) == (2, "error: --ncu-report goes with --ncu\n")


def test_the_emulator_is_not_profiled(cli: Cli) -> None:
    made = cli("run", "hopper/swizzled", "--ncu")
    assert (made.code, made.err) == (2, "error: --ncu profiles a GPU: add --device gpu\n")
