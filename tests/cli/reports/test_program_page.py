"""`ptxgen exec --html`: kernels with their launches, each finding once with the program's lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ptxgen import Emulator, Kernel, LaunchReport
from ptxgen.driver import Options
from ptxgen.driver.protocol import LaunchRequest
from ptxgen.driver.results import Results
from ptxgen.reports.program import ProgramPage
from tests.cli.reports.test_launches import RACE
from tests.cli.reports.test_page import Checker
from tests.driver.programs import compile_c
from tests.support.command_line import Cli

REQUEST = LaunchRequest(1, (2, 1, 1), (64, 1, 1), None, 0, 0, 0, b"", "")


def launched(text: str) -> LaunchReport:
    emulator = Emulator("sm_90a")
    return emulator.launch(Kernel.from_ptx(text), 1, 64, [emulator.empty(64, "u32")])


def page_of(results: Results, folder: Path) -> str:
    names = {each.kernel: each.kernel for each in results.launches}
    page = ProgramPage(["python", "a b.py"], "emulated sm_90a", 1, False, results.launches, names, results.notes).html()
    assert page.count("<h1>python 'a b.py' on emulated sm_90a</h1>".replace("'", "&#x27;")) == 1
    return page


def test_kernels_by_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "swap.py"
    source.write_text("".join(f"line_{number} = {number} < 9\n" for number in range(1, 40)))
    racy = RACE.replace(".loc 1 2 5", ".loc 1 12 5").replace("k.cu", "swap.py")
    results = Results(Options(target="sm_90a", quiet=True), out=io.StringIO())
    for _ in range(2):
        results.add(REQUEST, "swap<float>", launched(racy), 1)
    clean = launched(RACE.replace("xor.b32", "bar.sync 0;\n    xor.b32"))
    assert clean.ok, clean.summary()
    clean.gaps = ["races <counted>"]
    results.add(REQUEST, "clean", clean, 1)
    results.refuse(REQUEST, "absent", "it needs 400 kB of shared memory", 1)
    page = page_of(results, tmp_path)
    found = Checker(page)
    assert found.headings[1:] == ["What was checked", "Kernels", "swap<float>", "absent"]
    assert {each[1:] for each in found.links} <= found.ids
    assert page.count("<code>shared-race</code> error") == 1  # of both launches
    assert "launches 1, 2" in page
    assert '<span class="hit">   12  line_12 = 12 &lt; 9</span>' in page
    assert "swap.py:12:5" in page
    assert "clean: races &lt;counted&gt;" in page
    assert "absent: ended as refused" in page
    assert "1 did not begin: it needs 400 kB of shared memory" in page
    assert "3 of 4 launches went wrong; exit code 1" in page
    assert "<counted>" not in page


def test_a_program_without_launches(tmp_path: Path) -> None:
    page = page_of(Results(Options()), tmp_path)
    assert "No kernel was launched." in page
    assert Checker(page).headings[1:] == ["What was checked", "Kernels"]


def test_many_findings_stay_small(tmp_path: Path) -> None:
    results = Results(Options(quiet=True), out=io.StringIO())
    report = launched(RACE)
    for number in range(300):
        results.add(REQUEST, f"kernel_{number % 30}", report, 1)
    page = page_of(results, tmp_path)
    assert len(page) < 200_000
    assert page.count("launches ") > 30
    assert ", …" in page


def test_the_option(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = compile_c("registered.c", tmp_path / "registered", tmp_path)
    outcome = cli("exec", "--target", "sm_90a", "--html", "seite ü.html", str(program))
    assert outcome.code == 0, outcome
    assert outcome.err.endswith("ptxgen exec: page: seite ü.html\n")
    page = (tmp_path / "seite ü.html").read_text(encoding="utf-8")
    assert Checker(page).headings[1:] == ["What was checked", "Kernels"]
    assert "1 launch, none went wrong" in page
    assert "<code>increase</code>" in page
    refused = cli("exec", "--html", "none/x.html", str(program))
    assert (refused.code, refused.err) == (2, "error: cannot write none/x.html: there is no folder none\n")
