"""`[tool.ptxgen]`: what commands and the pytest plugin take from it, and what is wrong with a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxgen.cli.common.project import defaults
from ptxgen.project import ProjectError, find_project
from tests.cli.reports.test_launches import RACE, RUN
from tests.support.command_line import Cli

TABLE = '[tool.ptxgen]\ntarget = "sm_100a"\nschedules = 5\naccept = "ok.toml"\nfail-on = "advice"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(RACE)
    (tmp_path / "sub").mkdir()
    (tmp_path / "ok.toml").write_text(
        '[[accept]]\ncode = "shared-race"\ninstruction = "ld.shared.u32 %r4, [%r3];"\nreason = "a test"\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_the_nearest_table_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_project() is None
    table(folder, f'[tool.ruff]\n\n{TABLE}\n[tool.ptxgen.sass]\nfail-on = "spills"\n')
    table(folder / "sub", "[tool.ruff]\nline-length = 80  # of a project inside, without ptxgen's table\n")
    monkeypatch.chdir(folder / "sub")
    found = find_project()
    assert found is not None
    assert (found.target, found.accept, found.fail_on) == ("sm_100a", folder / "ok.toml", "advice")
    assert found.sass_fail_on == "spills"
    assert found.runs == [("eager", 0), ("late", 0), ("random", 0), ("random", 1), ("random", 2)]


def test_commands_take_their_defaults_from_it(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxgen.cli.toolchain.ptx.assembled", lambda *_, **__: None)  # ptxas takes a second a run
    assert cli(*RUN).code == 1
    table(folder, '[tool.ptxgen]\naccept = "ok.toml"\nschedules = 2\n')
    outcome = cli(*RUN, "--json", "--jobs", "0")
    assert outcome.code == 0
    assert [each["schedule"] for each in json.loads(outcome.out)["schedules"]] == ["eager", "late"]
    table(folder, '[tool.ptxgen]\nschedule = "late"\n')
    assert json.loads(cli(*RUN, "--json").out)["schedule"] == "late"
    assert json.loads(cli(*RUN, "--json", "--schedule", "eager").out)["schedule"] == "eager"
    table(folder, '[tool.ptxgen]\ntarget = "sm_80"\n')
    assert cli("check", "k.ptx").out == "k.ptx: legal for sm_80\n"
    assert cli("check", "k.ptx", "--target", "sm_90").out == "k.ptx: legal for sm_90\n"
    warned = RACE.replace("xor.b32 %r3, %r3, 128;", "shfl.down.b32 %r3, %r3, 1, 31;")
    (folder / "w.ptx").write_text(warned.replace("8.6", "6.3").replace("sm_90a", "sm_75"))
    table(folder, "[tool.ptxgen]\n")
    assert cli("check", "w.ptx").code == 0
    table(folder, '[tool.ptxgen]\nfail-on = "advice"\n')
    assert cli("check", "w.ptx").code == 1
    assert cli("check", "w.ptx", "--fail-on", "error").code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "k"], {"accept", "fail_on", "schedules"}),
        (["run", "k", "--schedule=late"], {"accept", "fail_on"}),
        (["run", "k", "--explore"], {"accept", "fail_on"}),
        (["run", "k", "--lines", "-"], {"accept", "fail_on"}),
        (["run", "k", "--device", "gpu"], {"fail_on"}),
        (["run", "k.cu"], {"target", "accept", "fail_on", "schedules"}),
        (["audit", "k.cu"], {"target", "accept"}),
        (["audit", "k.ptx"], {"accept"}),
        (["time", "k.cu"], {"target"}),
        (["time", "k.cu", "--machine", "h100"], set()),
        (["exec", "./a.out"], {"target", "accept", "fail_on"}),
        (["sass", "blackwell/clc"], set()),
        (["sass", "k.ptx"], {"target"}),
        (["sass", "diff", "a.cubin", "b.cubin"], {"fail_on"}),
        (["sass", "gate", "a.ptx"], {"target", "fail_on"}),
        (["kernels"], None),
        (["check", "--help"], None),
    ],
)
def test_what_does_not_go_with_the_words_is_left_out(folder: Path, words: list[str], expected: set[str] | None) -> None:
    table(folder, f'{TABLE}[tool.ptxgen.sass]\nfail-on = "spills"\n')
    found = defaults(words)
    assert found.get(words[0], {}).keys() == (expected or set())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.ptxgen]\nfail_on = 'error'", "has the unknown key 'fail_on'; did you mean fail-on?; it takes target, "),
        ("[tool.ptxgen]\ntargets = 'sm_90'", "unknown key 'targets'; did you mean target?"),
        ("[tool.ptxgen]\nzzz = 1", "unknown key 'zzz'; it takes target, schedule, schedules, accept, fail-on, sass"),
        ("[tool.ptxgen]\ntarget = 'sm_9'", "target must be an architecture such as sm_100a, not 'sm_9'; did you mean"),
        ("[tool.ptxgen]\ntarget = 90", "target must be a string, not 90"),
        ("[tool.ptxgen]\nfail-on = 'warn'", "fail-on must be error, advice or never, not 'warn'"),
        (
            "[tool.ptxgen]\nfail-on = 'advise'",
            "fail-on must be error, advice or never, not 'advise'; did you mean advice?",
        ),
        ("[tool.ptxgen]\nschedule = 'lazy'", "schedule must be eager, late or random, not 'lazy'"),
        ("[tool.ptxgen]\nschedule = ['late']", "schedule must be eager, late or random, not ['late']"),
        ("[tool.ptxgen]\nschedules = 0", "schedules must be a number from 1 to 100000, not 0"),
        ("[tool.ptxgen]\nschedules = 100001", "schedules must be a number from 1 to 100000, not 100001"),
        ("[tool.ptxgen]\nschedules = true", "schedules must be a number from 1 to 100000, not True"),
        ("[tool.ptxgen]\nschedules = 2\nschedule = 'late'", "leave out one of them"),
        ("[tool.ptxgen]\naccept = ''", "accept is empty"),
        ("[tool.ptxgen]\naccept = 1", "accept must be a string, not 1"),
        ("[tool.ptxgen]\nsass = 1", "[tool.ptxgen.sass] must be a table, not 1"),
        ("[tool.ptxgen.sass]\nfailon = 'x'", "[tool.ptxgen.sass] has the unknown key 'failon'; did you mean fail-on?"),
        ("[tool]\nptxgen = 3", "[tool.ptxgen] must be a table, not 3"),
        ("[tool.ptxgen", "is not TOML: "),
    ],
)
def test_a_bad_table_is_one_sentence(cli: Cli, folder: Path, text: str, words: str) -> None:
    table(folder, text)
    outcome = cli("check", "k.ptx")
    assert words in outcome.err
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert cli("kernels").code == 0  # which has none of the options
    with pytest.raises(ProjectError):
        find_project()


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("latin-1", "pyproject.toml:2 is not text in UTF-8: byte 0xe9"),
        ("utf-16", "pyproject.toml:1 is not text in UTF-8: byte 0xff"),
        ("utf-8-sig", "pyproject.toml is not TOML: "),
    ],
)
def test_a_table_in_another_encoding_is_not_ignored(cli: Cli, folder: Path, encoding: str, words: str) -> None:
    (folder / "pyproject.toml").write_bytes("[tool.ptxgen]\nfail-on = 'never'  # café\n".encode(encoding))
    outcome = cli("check", "k.ptx")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert words in outcome.err
    (folder / "pyproject.toml").write_bytes("[tool.other]\n# café\n".encode(encoding))
    assert cli("check", "k.ptx").code == 0


def test_a_missing_accept_file_is_named(cli: Cli, folder: Path) -> None:
    table(folder, '[tool.ptxgen]\naccept = "no such.toml"\n')
    outcome = cli("check", "k.ptx")
    assert outcome.err == f"error: cannot read {folder / 'no such.toml'}: no such file or directory\n"
    assert outcome.code == 2
