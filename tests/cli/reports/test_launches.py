"""`--format` of run, exec, sass diff and audit: the same results, in the formats of CI systems."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from ptxgen import Kernel
from ptxgen.cli.launch.findings import program_results
from ptxgen.device import Accept
from ptxgen.driver.options import Options
from ptxgen.driver.protocol import LaunchRequest
from ptxgen.driver.results import Results
from ptxgen.emulator import Emulator
from ptxgen.reports import sarif
from tests.cli.reports.test_formats import SCHEMA
from tests.support.command_line import Cli
from tests.support.json_schema import problems

RACE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 y)
.reqntid 64
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 row[256];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, row;
    mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    xor.b32 %r3, %r3, 128;
    .loc 1 2 5
    ld.shared.u32 %r4, [%r3];
    ld.param.u64 %rd1, [y];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r4;
    ret;
}
.file 1 "k.cu"
"""
RUN = ["run", "k.ptx", "--arg", "y=empty:u32:64"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(RACE)
    (tmp_path / "k.cu").write_text("__global__ void k() {\n    y[i] = row[i ^ 32];\n}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_run_names_the_line_of_the_source(cli: Cli, folder: Path) -> None:
    outcome = cli(*RUN, "--format", "github", "--format", "sarif=out.sarif")
    assert outcome.code == 1
    (line,) = outcome.out.splitlines()
    assert line.startswith("::error file=k.cu,line=2,col=5,title=race [shared-race]::race: ld.shared (line 16, warp ")
    assert "%0Afix: " in line
    log = json.loads((folder / "out.sarif").read_text())
    assert list(problems(log, SCHEMA)) == []
    (result,) = log["runs"][0]["results"]
    assert result["properties"]["schedule"] == "eager"
    assert {each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]} == {13, 16}
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert "**Fix:**" in rule["help"]["markdown"]


def test_a_comment_in_the_source_makes_the_run_clean(cli: Cli, folder: Path) -> None:
    source = folder / "k.cu"
    source.write_text(source.read_text().replace(";\n}", ";  // ptxgen: accept shared-race: only a demonstration\n}"))
    outcome = cli(*RUN, "--format", "sarif=out.sarif", "--format", "github")
    assert (outcome.code, outcome.out) == (0, "")
    log = json.loads((folder / "out.sarif").read_text())
    assert list(problems(log, SCHEMA)) == []
    (result,) = log["runs"][0]["results"]
    reviewed = {"kind": "inSource", "status": "accepted", "justification": "only a demonstration"}
    assert (result["ruleId"], result["suppressions"]) == ("shared-race", [reviewed])
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    source.write_text(source.read_text().replace("shared-race", "global-race"))
    outcome = cli(*RUN)
    assert outcome.code == 1
    assert "accepted, but not found any more: [global-race] by the comment in k.cu:2" in outcome.out
    noted = cli(*RUN, "--format", "github").out.splitlines()
    assert noted[-1].startswith("::notice file=k.cu,line=2,title=unused acceptance [unused-accept]::")
    source.write_text(source.read_text().replace("global-race", "global-rase"))
    outcome = cli(*RUN)
    assert outcome.err == "error: k.cu:2: no check has the code 'global-rase'; did you mean global-race?\n"
    assert outcome.code == 2


def test_comments_of_a_source_in_a_folder_are_at_its_path(cli: Cli, folder: Path) -> None:
    source = folder / "gpu ü" / "k.cu"
    source.parent.mkdir()
    comment = "  // ptxgen: accept shared-race, global-race: x"
    source.write_text((folder / "k.cu").read_text().replace(";\n}", f";{comment}\n}}"))
    (folder / "k.cu").unlink()
    named = str(source).replace("ü", "\\303\\274")  # as nvcc writes it
    (folder / "k.ptx").write_text(RACE.replace('"k.cu"', f'"{named}"'))
    outcome = cli(*RUN, "--format", "github", "--format", "sarif=out.sarif")
    assert outcome.code == 0
    assert outcome.out.startswith("::notice file=gpu ü/k.cu,line=2,title=unused acceptance [unused-accept]::")
    results = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    uris = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in results]
    assert uris == ["gpu%20%C3%BC/k.cu"] * 2
    checked = source.read_text().replace("shared-race, global-race", "unknown-modifier")
    source.write_text(checked)
    assert cli("check", "k.ptx", "--format", "github").out.startswith("::notice file=gpu ü/k.cu,line=2,title=unused")


def test_a_template_of_an_author_is_named_by_its_path(cli: Cli, folder: Path) -> None:
    assert cli("kernels", "blackwell/swizzled", "--copy", "my ü").code == 0
    template = folder / "my ü" / "serial.ptx.j2"
    text = template.read_text()
    comment = "    ## ptxgen: accept shared-race: another"
    text = text.replace("{{ operand.expect(ab, pair) }}\n", "").replace("$wait:\n", f"$wait:\n{comment}\n", 1)
    template.write_text(text)
    line = text[: text.index(comment)].count("\n") + 2
    words = ("run", "my ü#mine", "--m", 128, "--n", 64, "--k", 64, "--format", "github", "--format", "sarif=out.sarif")
    outcome = cli(*words)
    assert outcome.code == 1
    assert f"::error file=my ü/serial.ptx.j2,line={line},title=deadlock [deadlock]::" in outcome.out
    (result,) = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20%C3%BC/serial.ptx.j2"
    template.write_text(text.replace("shared-race", "shared-rase"))
    assert "no check has the code 'shared-rase'; did you mean shared-race?" in cli(*words).err


def test_a_bad_comment_in_the_ptx_is_named_by_its_file(cli: Cli, folder: Path) -> None:
    (folder / "k.ptx").write_text(RACE.replace(".version 8.6\n", ".version 8.6\n// ptxgen: accept shared-rase: why\n"))
    outcome = cli(*RUN)
    assert outcome.err == "error: k.ptx:2: no check has the code 'shared-rase'; did you mean shared-race?\n"
    assert outcome.code == 2
    outcome = cli("run", "blackwell/swizzled", "--ptx", folder / "k.ptx")
    assert f"{folder / 'k.ptx'}:2: no check has the code 'shared-rase'" in outcome.err


def test_sass_diff_reports_each_kernel(cli: Cli, folder: Path) -> None:
    (folder / "other.ptx").write_text(RACE.replace("xor.b32 %r3, %r3, 128", "xor.b32 %r3, %r3, 64"))
    for _ in range(2):  # computed, then from the cache
        outcome = cli("sass", "diff", "k.ptx", "other.ptx", "--format", "github", "--format", "sarif=out.sarif")
        assert outcome.code == 1
        assert outcome.out.startswith("::error file=other.ptx,line=14,title=SASS changed [sass-changed]::k: different")
    assert list(problems(json.loads((folder / "out.sarif").read_text()), SCHEMA)) == []
    assert cli("sass", "diff", "k.ptx", "other.ptx", "--fail-on", "registers", "--format", "github").out == ""
    assert cli("sass", "k.ptx", "--format", "sarif").err == (
        "error: --format sarif and github go with ptxgen sass diff A B, which reports findings\n"
    )


def test_audit_notes_what_no_run_needs(cli: Cli, folder: Path) -> None:
    fenced = RACE.replace("    xor.b32", "    bar.sync 0;\n    membar.gl;\n    xor.b32")
    (folder / "k.ptx").write_text(fenced)
    outcome = cli("audit", *RUN[1:], "--jobs", "0", "--format", "github")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert any("title=unneeded synchronization [not-needed]::no run of k.ptx needs membar.gl" in each for each in lines)
    assert all(each.startswith("::notice file=k.ptx,line=15,col=5,") for each in lines)


def test_lines_of_a_source_are_never_those_of_its_ptx(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of CUDA C++ nobody has the PTX: place, message, fix and other accesses name lines of the source."""
    stored = RACE.replace("    st.shared", "    .loc 1 1 1\n    st.shared")
    monkeypatch.setattr("ptxgen.toolchain.compile_cuda", lambda *_: stored)
    outcome = cli("run", "k.cu", *RUN[2:], "--format", "github", "--format", "sarif=out.sarif")
    assert outcome.code == 1
    (line,) = outcome.out.splitlines()
    assert line.startswith("::error file=k.cu,line=2,col=5,title=race [shared-race]::race: ld.shared (k.cu:2:5, warp ")
    assert "%0Ak.cu:1: writer: st.shared (k.cu:1:1, warp " in line
    assert not re.search(r"\bline \d+", line.split("::", 2)[2])
    (result,) = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    assert [each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]] == [1]
    synchronized = stored.replace("    xor", "    bar.sync 0;\n    .loc 1 2 1\n    membar.gl;\n    xor")
    monkeypatch.setattr("ptxgen.toolchain.compile_cuda", lambda *_: synchronized)
    outcome = cli("audit", "k.cu", *RUN[2:], "--jobs", "0", "--format", "github")
    assert outcome.code == 0
    assert all(each.startswith("::notice file=k.cu,line=2,col=1,title=") for each in outcome.out.splitlines())
    assert "needs membar.gl" in outcome.out


def test_a_program_reports_each_finding_of_a_kernel_once(folder: Path) -> None:
    kernel = Kernel.from_ptx(RACE)
    device = Emulator()
    report = device.launch(kernel, 1, 64, [device.empty(64, "u32")])
    results = Results(Options(), io.StringIO())
    request = LaunchRequest(0, (1, 1, 1), (64, 1, 1), None, 0, 0, 0, b"", "")
    for _ in range(2):
        results.add(request, "k", report, 1)
    results.refuse(request, "k", "no GPU takes it", 1)
    made = program_results(results)
    assert [each.code for each in made.results] == ["shared-race", "refused-launch"]
    assert str(made.results[0].place) == "k.cu:2"
    assert list(problems(json.loads(json.dumps(sarif(made))), SCHEMA)) == []


@pytest.mark.parametrize(
    ("command", "uri"),
    [
        (["python", "k.py", "k.cu"], "k.cu"),  # the first that is there
        (["./k.cu"], "k.cu"),
        (["/bin/sh", "-c", "true"], "sh"),  # nothing of the repository
        ([], "ptxgen"),
    ],
)
def test_results_of_a_program_without_lines_have_a_location(folder: Path, command: list[str], uri: str) -> None:
    """GitHub takes no log in which a result has none: a program without -lineinfo, a launch that did not begin."""
    kernel = Kernel.from_ptx(RACE.replace("    .loc 1 2 5\n", ""))
    device = Emulator()
    results = Results(Options(), io.StringIO())
    request = LaunchRequest(0, (1, 1, 1), (64, 1, 1), None, 0, 0, 0, b"", "")
    results.add(request, "k", device.launch(kernel, 1, 64, [device.empty(64, "u32")]), 1)
    results.refuse(request, "k", "no GPU takes it", 1)
    log = json.loads(json.dumps(sarif(program_results(results, command))))
    assert list(problems(log, SCHEMA)) == []
    made = log["runs"][0]["results"]
    assert [each["ruleId"] for each in made] == ["shared-race", "refused-launch"]
    for each in made:
        (location,) = each["locations"]
        assert location["physicalLocation"]["artifactLocation"] == {"uri": uri, "uriBaseId": "%SRCROOT%"}
        assert location["physicalLocation"]["region"] == {"startLine": 1}


def test_what_is_accepted_in_vain_by_all_launches_of_a_program(folder: Path) -> None:
    kernel = Kernel.from_ptx(RACE)
    entries = [Accept("shared-race", "ld.shared.u32 %r4, [%r3];", "used"), Accept("shared-race", "ret;", "unused")]
    device = Emulator(accept=entries)
    results = Results(Options(), io.StringIO())
    request = LaunchRequest(0, (1, 1, 1), (64, 1, 1), None, 0, 0, 0, b"", "")
    results.add(request, "k", device.launch(kernel, 1, 64, [device.empty(64, "u32")]), 1)
    assert results.unused_accepts == entries[1:]
    made = program_results(results).results
    assert [(each.code, each.accepted) for each in made] == [("shared-race", "used"), ("unused-accept", "")]
