"""What a report says of what was only advised, counted or left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.command_line import Cli, Outcome

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 64
{
    .shared .align 4 .b8 words[4096];
    .reg .b32 %t, %v, %s, %a;
    .reg .b64 %out;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %s, words;
"""
#: Thread t stores word 32 t: all lanes in one bank.
CONFLICTS = f"""{HEAD}
    shl.b32 %a, %t, 6;
    add.u32 %a, %a, %s;
    st.shared.u32 [%a], %t;
    setp.eq.u32 %p, %t, 0;
    @%p st.global.u32 [%out], 7;
    ret;
}}
"""
#: Two warps overwrite the same words again and again: a race each time.
RACES = f"""{HEAD}
    and.b32 %a, %t, 31;
    mad.lo.u32 %a, %a, 4, %s;
    mov.u32 %v, 0;
$again:
    add.u32 %a, %a, 128;
    st.shared.u32 [%a+-128], %t;
    add.u32 %v, %v, 1;
    setp.lt.u32 %p, %v, 31;
    @%p bra $again;
    ret;
}}
"""


def launched(text: str, **options: float | bool) -> LaunchReport:
    device = Emulator("sm_90a", **options)  # type: ignore[arg-type]
    return device.launch(Kernel.from_ptx(text), 1, 64, [device.array(np.zeros(64, np.uint32))])


def test_all_is_checked() -> None:
    report = launched(CONFLICTS)
    assert (report.status, report.checked, report.gaps, report.advised) == ("ok", "complete", [], "")
    assert "checked in part" not in report.summary()


def test_advice_is_named() -> None:
    report = launched(CONFLICTS, advice=2)
    assert report.advised == "1 piece of advice: bank-conflicts"
    assert (report.fails(), report.fails("advice"), report.checked) == (False, True, "complete")


def test_checks_that_are_off() -> None:
    report = launched(RACES, checks=False)
    assert (report.status, report.checked) == ("ok", "partial")
    last = report.summary().splitlines()[-1]
    assert last == "checked in part: checks are off: only faults and deadlocks are reported"


def test_races_that_are_counted() -> None:
    text = f"""{HEAD}
    and.b32 %a, %t, 31;
    mad.wide.u32 %out, %a, 4, %out;
    mov.u32 %v, 0;
$again:
    st.global.u32 [%out], %t;
    add.u32 %v, %v, 1;
    setp.lt.u32 %p, %v, 80;
    @%p bra $again;
    ret;
}}
"""
    report = launched(text)
    assert "global-race" in [each.code for each in report.findings]
    assert report.gaps == ["races of one kind beyond 32 were counted, not examined"]


def test_findings_beyond_the_limit() -> None:
    """21 different instructions race: the report has 20 of them, and says so."""
    stores = "\n".join(f"    st.shared.u32 [words+{4 * number}], %t;" for number in range(21))
    report = launched(f"{HEAD}\n{stores}\n    ret;\n}}\n")
    assert report.checked == "partial"
    assert any("more than 20 different findings of shared-race" in gap for gap in report.gaps), report.gaps


@pytest.fixture
def conflicts(tmp_path: Path) -> Path:
    path = tmp_path / "conflicts.ptx"
    path.write_text(CONFLICTS)
    return path


def run(cli: Cli, path: Path, *words: str) -> Outcome:
    return cli("run", path, "--arg", "out=zeros:u32:64", *words)


def test_the_last_line_says_what_was_only_advised(cli: Cli, conflicts: Path) -> None:
    assert run(cli, conflicts).out.splitlines()[-1] == "✓ clean"
    found = run(cli, conflicts, "--advice", "2")
    assert (found.code, found.out.splitlines()[-1]) == (0, "✓ clean, with 1 piece of advice: bank-conflicts")


def test_failing_on_advice(cli: Cli, conflicts: Path) -> None:
    assert run(cli, conflicts, "--fail-on", "advice").code == 0
    assert run(cli, conflicts, "--advice", "2", "--fail-on", "advice").code == 1
    assert run(cli, conflicts, "--advice", "2", "--fail-on", "error").code == 0
    wrong = run(cli, conflicts, "--fail-on", "warning")
    assert (wrong.code, "--fail-on must be error, advice or never, not 'warning'" in wrong.err) == (2, True)


def test_failing_on_no_finding(cli: Cli, tmp_path: Path) -> None:
    racing = tmp_path / "r.ptx"
    racing.write_text(RACES)
    assert run(cli, racing).code == 1
    assert run(cli, racing, "--fail-on", "never").code == 0
    endless = tmp_path / "e.ptx"
    endless.write_text(RACES.replace("setp.lt.u32 %p, %v, 31;", "setp.ne.u32 %p, %v, 0;").replace("%a, 128;", "%a, 0;"))
    assert run(cli, endless, "--fail-on", "never", "--timeout", "0.5").code == 1  # it does not end


def test_json_says_how_much_was_checked(cli: Cli, conflicts: Path) -> None:
    made = json.loads(run(cli, conflicts, "--json").out)
    assert (made["checked"], made["gaps"]) == ("complete", [])
