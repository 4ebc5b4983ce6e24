"""`--format` of check: SARIF by its schema, GitHub's workflow commands, several files and one exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import unquote

import pytest

from ptxgen.device import Access, Finding
from ptxgen.reports import Failure, Place, Report, Result, sarif, workflow_commands
from ptxgen.reports.convert import found
from tests.support.command_line import Cli
from tests.support.json_schema import problems
from tests.support.paths import ROOT

SCHEMA = json.loads((ROOT / "tests/data/sarif/schema-part.json").read_text(encoding="utf-8"))
LEGAL = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n    bar.sync 0;\n    ret;\n}\n"
ILLEGAL = LEGAL.replace("bar.sync", "bar.synk")
WARNED = (
    LEGAL.replace("bar.sync 0;", ".reg .b32 %r<4>;\n    shfl.down.b32 %r1, %r2, 1, 31;")
    .replace("8.6", "6.3")
    .replace("sm_90a", "sm_75")
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a legal, an illegal and a misplaced file, which is the working directory."""
    for name, text in (("a.ptx", LEGAL), ("sub/b ü%.ptx", ILLEGAL), (".hidden/c.ptx", "nonsense"), ("d.txt", "no")):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_several_files_and_folders_have_one_exit_code(cli: Cli, project: Path) -> None:
    outcome = cli("check", "a.ptx", ".")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.count("legal for sm_90a") == 1  # once, though it is named and in the folder
    assert outcome.out.endswith("2 files: 1 error\n")
    assert cli("check", "a.ptx", "a.ptx").out == "a.ptx: legal for sm_90a\n1 file: all legal\n"
    assert cli("check", ".", "--fail-on", "never").code == 0
    unusable = cli("check", "a.ptx", "none.ptx", "sub")
    assert unusable.code == 2
    assert unusable.err.startswith("error: cannot read none.ptx: no such file or directory")
    assert unusable.out.endswith("3 files: 1 error, 1 not usable\n")
    (project / "empty").mkdir()
    assert cli("check", "empty").err == "error: empty has no .ptx files\n"


def test_a_folder_that_cannot_be_listed_is_not_legal(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def refused(folder: str) -> object:
        if Path(folder).name == "sub":
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refused)
    outcome = cli("check", ".")
    assert outcome.err.startswith("error: cannot read ./sub: ")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (2, "2 files: all legal, 1 not usable")
    outcome = cli("check", "sub")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: cannot read sub: ")


def test_a_comment_that_accepts_nothing_known_is_named_by_its_line(cli: Cli, project: Path) -> None:
    (project / "c.ptx").write_text(".version 8.0\n.target sm_90a\n// ptxgen: accept shred-race: a reason\n")
    outcome = cli("check", "a.ptx", "c.ptx", "--format", "github")
    assert outcome.code == 2
    assert "::error file=c.ptx,line=3,title=unusable input::c.ptx:3: no check has the code 'shred-race'" in outcome.out


def test_a_comment_for_no_code_is_reported(cli: Cli, project: Path) -> None:
    (project / "a.ptx").write_text(f"{LEGAL}// ptxgen: accept unknown-modifier: nothing follows\n")
    assert "accepted, but not found any more: [unknown-modifier] by the comment in a.ptx:9" in cli("check", "a.ptx").out


def test_sarif_fits_the_schema_and_says_where_and_what_to_do(cli: Cli, project: Path) -> None:
    (project / "broken.ptx").write_text("garbage")
    outcome = cli("check", ".", "none.ptx", "--format", "sarif")
    log = json.loads(outcome.out)
    assert list(problems(log, SCHEMA)) == []
    (run,) = log["runs"]
    by_rule = {each["ruleId"]: each for each in run["results"]}
    assert by_rule.keys() == {"unknown-modifier", "syntax-error"}
    illegal = by_rule["unknown-modifier"]
    physical = illegal["locations"][0]["physicalLocation"]
    assert unquote(physical["artifactLocation"]["uri"]) == "sub/b ü%.ptx"
    assert physical["artifactLocation"]["uri"] == "sub/b%20%C3%BC%25.ptx"
    assert physical["region"] == {"startLine": 6, "startColumn": 8, "endColumn": 13}
    assert run["tool"]["driver"]["rules"][illegal["ruleIndex"]]["id"] == "unknown-modifier"
    change = illegal["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert change["insertedContent"] == {"text": "bar.sync"}
    line = ILLEGAL.splitlines()[change["deletedRegion"]["startLine"] - 1]
    assert line[change["deletedRegion"]["startColumn"] - 1 : change["deletedRegion"]["endColumn"] - 1] == "bar.synk"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("cannot read none.ptx")
    assert run["invocations"][0]["executionSuccessful"] is False


def test_the_validator_sees_what_is_wrong(cli: Cli, project: Path) -> None:
    log = json.loads(cli("check", ".", "--format", "sarif").out)
    for path, value in (("level", "bad"), ("locations", [1]), ("extra", 1), ("ruleIndex", -2)):
        log["runs"][0]["results"][0][path] = value
        assert list(problems(log, SCHEMA))
        del log["runs"][0]["results"][0][path]


def test_a_file_gets_the_report_and_people_the_text(cli: Cli, project: Path) -> None:
    outcome = cli("check", "sub", "--format", "sarif=out.sarif", "--format", "github")
    assert list(problems(json.loads((project / "out.sarif").read_text()), SCHEMA)) == []
    (line,) = outcome.out.splitlines()
    assert line.startswith(
        "::error file=sub/b ü%25.ptx,line=6,col=8,endColumn=13,title=illegal modifier [unknown-modifier]::illegal"
    )
    assert line.endswith("%0Afix: use bar.sync")
    assert "1 error" in cli("check", "sub", "--format", "json=out.json").out
    assert json.loads((project / "out.json").read_text())["files"][0]["ok"] is False
    assert cli("check", "a.ptx", "--format", "github").out == ""
    whole = cli("check", "a.ptx", "--json")
    assert json.loads(whole.out) == {"file": "a.ptx", "target": "sm_90a", "ok": True, "diagnostics": []}
    assert cli("check", "a.ptx", "--format", "json").out == whole.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--format", "serif"], "--format must be text, json, sarif or github, not 'serif'; did you mean sarif?"),
        (["--format", "sarif="], "--format sarif= names no file"),
        (["--format", "text=x"], "--format text is for standard output; redirect it (> FILE)"),
        (["--format", "sarif=none/x"], "cannot write none/x: there is no folder none"),
        (["--format", "sarif", "--json"], "standard output takes one format, not json and sarif; give one a file: "
         "--format sarif=FILE"),
        (["--fail-on", "eror"], "--fail-on must be error, advice or never, not 'eror'; did you mean error?"),
        (["--target", "sm_91"], "--target must be an architecture such as sm_90a or sm_100a, not 'sm_91'; did you mean "
         "sm_90 or sm_103?"),
        (["--accept", "none.toml"], "cannot read none.toml: no such file or directory"),
        (["--watch", "--format", "sarif"], "--watch is for a file and its words, not for --format"),
        (["--watch", "sub"], "--watch is for one file"),
    ],
)  # fmt: skip
def test_unusable_options_are_one_sentence(cli: Cli, project: Path, words: list[str], sentence: str) -> None:
    outcome = cli("check", "a.ptx", *words)
    if "did you mean sm_90" in sentence:
        assert outcome.err.startswith(f"error: {sentence.partition(';')[0]}")
    else:
        assert outcome.err == f"error: {sentence}\n"
    assert (outcome.code, outcome.out) == (2, "")


def test_warnings_fail_where_advice_does(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "w.ptx"
    file.write_text(WARNED)
    assert "w.ptx: 1 warning\n" in cli("check", file).out
    assert cli("check", file).code == 0
    assert cli("check", file, "--fail-on", "advice").code == 1


def test_a_finding_is_at_the_line_of_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "soft max.cu"
    source.write_text("\n" * 20)
    library = tmp_path.parent / "header.h"
    library.write_text("\n" * 20)
    access = Access("writer", 9, "st.shared.f32 [%r1], %f1;", warp=1, source="soft max.cu:14")
    finding = Finding("shared-race", "error", "100% wrong:\n", 7, "ld.shared.f32 %f1, [%r1];",
                      "header.h:3:1, inlined at soft max.cu:12:5", title="race", fix="a, barrier",
                      accesses=(access,))  # fmt: skip
    files = {"soft max.cu": str(source), "header.h": str(library)}
    made = found(finding, files, "k.ptx", {"kernel": "k"})
    assert made.place == Place(str(source), 12, 5)  # not the library's line, which is not in the working directory
    assert [str(place) for place, _ in made.related] == [f"{source}:14", "k.ptx:7"]
    log = sarif(Report((made,), (Failure("cannot read x"),)))
    assert list(problems(json.loads(json.dumps(log)), SCHEMA)) == []
    first, second = workflow_commands(Report((made,), (Failure("cannot, read: x"),)))
    assert first.startswith("::error file=soft max.cu,line=12,col=5,title=")
    assert "::race: 100%25 wrong" in first
    assert "%0Afix: a, barrier%0A" in first
    assert "\n" not in first
    assert second == "::error title=unusable input::cannot, read: x"
    escaped = Result("a", "note", "x\r\ny", Place("a:b,c.ptx", 1))
    (line,) = workflow_commands(Report((escaped,)))
    assert line == "::notice file=a%3Ab%2Cc.ptx,line=1,title=a [a]::x%0D%0Ay"


def test_places_outside_the_working_directory_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = Result("wrong-result", "error", "x", Place(str(tmp_path / "out side.ptx"), 3))
    location = json.dumps(sarif(Report((result,))))
    assert f'"file://{tmp_path}/out%20side.ptx"' in location
    assert "%SRCROOT%" not in location


def test_paths_are_those_from_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever folder the command runs in. CI systems drop results elsewhere: a source there gives way to the PTX."""
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "gpu").mkdir()
    for source in (tmp_path / "outside.cu", repository / "k.cu"):
        source.write_text("\n" * 20)
    monkeypatch.chdir(repository / "gpu")
    for name, place, other in (
        ("k.cu", "file=k.cu,line=12,", "the PTX"),
        ("outside.cu", "file=gpu/k.ptx,line=7,", "the source"),
    ):
        path = (repository if name == "k.cu" else tmp_path) / name
        finding = Finding("shared-race", "error", "x", 7, "ld.shared.f32 %f1, [%r1];", f"{name}:12:5", title="race")
        made = found(finding, {name: str(path)}, "k.ptx")
        (line,) = workflow_commands(Report((made,)))
        assert line.startswith(f"::error {place}")
        assert [what for _, what in made.related] == [other]
        (result,) = json.loads(json.dumps(sarif(Report((made,)))))["runs"][0]["results"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert uri == {"uri": place.split("=")[1].split(",")[0], "uriBaseId": "%SRCROOT%"}


def test_a_diagnostic_of_a_source_elsewhere_is_at_the_ptx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    outside, here = tmp_path / "k.cu", tmp_path / "here"
    outside.write_text("\n" * 20)
    here.mkdir()
    monkeypatch.chdir(here)
    lines = [".version 8.7", ".target sm_90a", ".address_size 64", f'.file 1 "{outside}"', ".visible .entry k() {"]
    Path("k.ptx").write_text("\n".join([*lines, ".reg .f32 %f;", ".loc 1 3 0", "add.f99 %f, %f, %f;", "ret;", "}"]))
    assert cli("check", "k.ptx", "--format", "github").out.startswith("::error file=k.ptx,line=8,")
    monkeypatch.chdir(tmp_path)
    assert cli("check", "here/k.ptx", "--format", "github").out.startswith("::error file=k.cu,line=3,")


def test_a_dash_is_standard_output(cli: Cli, project: Path) -> None:
    assert cli("check", ".", "--format", "github=-").out == cli("check", ".", "--format", "github").out
    assert not Path("-").exists()
