"""Reviewed findings: left out by code and instruction, reported once they do not fire; bad files are one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptxgen import Kernel
from ptxgen.device import Accept, AcceptError, LaunchReport, read_accepts
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

READ = "ld.shared.u32 %x, [data+8];"
BODY = f".shared .b32 data[4]; .reg .u32 %x;\n{READ}\nst.shared.u32 [data], %x;\nret;"
ENTRY = (
    '[[accept]]\ncode = "uninitialized-shared"\ninstruction = "ld.shared.u32   %x, [data + 8]"\nreason = "dropped"\n'
)


def report(accept: Any, body: str = BODY) -> LaunchReport:
    return Emulator(accept=accept).launch(Kernel.from_ptx(module(body)), 1, 1, [])


def test_a_reviewed_finding_is_left_out(tmp_path: Path) -> None:
    assert codes(report(())) == ["uninitialized-shared"]
    file = tmp_path / "accept.toml"
    file.write_text(ENTRY)
    accepted = report(file)
    assert (accepted.status, accepted.findings, accepted.unused_accepts) == ("ok", [], [])


@pytest.mark.parametrize(
    "entry",
    [
        Accept("shared-race", READ, "another code"),
        Accept("uninitialized-shared", "ld.shared.u32 %x, [data];", "another instruction"),
        Accept("uninitialized-shared", READ, "another kernel", "other"),
    ],
)
def test_other_entries_leave_it(entry: Accept) -> None:
    found = report([entry])
    assert codes(found) == ["uninitialized-shared"]
    unused = [] if entry.kernel else [entry]  # an entry for another kernel may fire there
    assert found.unused_accepts == unused
    assert ("accepted, but not found any more" in found.summary()) == bool(unused)


def test_what_ends_a_launch_cannot_be_accepted() -> None:
    found = report([Accept("trap", "trap;", "why not")], "trap;")
    assert (found.status, codes(found)) == ("fault", ["trap"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[accept]", "is not TOML"),
        ("[accept]\ncode = 'a'", r"must hold \[\[accept\]\] entries alone"),
        ("[other]\na = 1", r"must hold \[\[accept\]\] entries alone, not 'other'"),
        ("[[accept]]\ncode = 'a'\ninstruction = 'b'", "entry 1 needs a reason"),
        ("[[accept]]\ncode = 'a'\nreason = 'b'", "entry 1 needs an instruction"),
        (
            f"{ENTRY}[[accept]]\nline = 3",
            "entry 2 has the unknown key 'line'; it takes code, instruction, ",
        ),
        ("[[accept]]\ncode = 3", "entry 1: code must be a string, not 3"),
        ("accept = [1]", "entry 1 must be a table"),
    ],
)
def test_bad_files(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "accept.toml"
    file.write_text(text)
    with pytest.raises(AcceptError, match=words):
        read_accepts(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AcceptError, match=r"cannot read .*: no such file"):
        Emulator(accept=tmp_path / "none.toml")
