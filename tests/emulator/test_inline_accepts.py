"""Comments that accept findings, in PTX and in its sources: their lines, other kernels, unused ones, bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen import Kernel
from ptxgen.device import AcceptError, LaunchReport
from ptxgen.device.inline import comments
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

READ = "ld.shared.u32 %x, [data+8];"
ACCEPT = "ptxgen: accept uninitialized-shared: dropped later"


def body(before: str = "", behind: str = "", read: str = READ) -> str:
    return f".shared .b32 data[4]; .reg .u32 %x;\n{before}\n{read} {behind}\nst.shared.u32 [data], %x;\nret;"


def report(text: str) -> LaunchReport:
    return report_of(module(text))


def report_of(ptx: str) -> LaunchReport:
    return Emulator().launch(Kernel.from_ptx(ptx), 1, 1, [])


@pytest.mark.parametrize(
    ("before", "behind", "read"),
    [
        (f"// {ACCEPT}", "", READ),
        ("", f"// {ACCEPT}", READ),
        ("", f"/* {ACCEPT} */", READ),
        (f"// {ACCEPT}\n\n// why\n", "", READ),
        (f"// {ACCEPT}\n// ptxgen: accept shared-race: another\n", "", READ),
        ("// ptxgen: accept shared-race, uninitialized-shared: both", "", READ),
        ("", f"// {ACCEPT}", "ld.shared.u32\n    %x,\n    [data+8];"),  # behind the last line of the statement
        ("//ptxgen:accept   uninitialized-shared :dropped later", "", READ),
    ],
)
def test_a_comment_accepts_what_is_in_its_line_or_the_next(before: str, behind: str, read: str) -> None:
    found = report(body(before, behind, read))
    assert (found.status, found.findings) == ("ok", [])
    assert [each.code for each in found.used_accepts] == ["uninitialized-shared"]
    assert {each.code for each in found.unused_accepts} <= {"shared-race"}


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (f"// {ACCEPT}\nmov.u32 %x, 1;", ""),  # for the line between
        (f"mov.u32 %x, 1; // {ACCEPT}", ""),
        ("// ptxgen: accept shared-race: another code", ""),
    ],
)
def test_other_comments_leave_it_and_are_reported(before: str, behind: str) -> None:
    found = report(body(before, behind))
    assert codes(found) == ["uninitialized-shared"]
    (unused,) = found.unused_accepts
    line = next(number for number, each in enumerate(module(body(before)).splitlines(), 1) if "accept" in each)
    assert unused.place == f"line {line}"
    assert f"accepted, but not found any more: [{unused.code}] by the comment in line {line}" in found.summary()


@pytest.mark.parametrize("place", [".version", ".target", ".visible", "{", ".shared", "}", "end"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_comment_for_no_instruction_is_reported(place: str, alone: bool) -> None:
    lines = module(body()).rstrip().splitlines()
    number = next((number for number, each in enumerate(lines) if each.strip().startswith(place)), len(lines))
    comment = "// ptxgen: accept shared-race: misplaced"
    if alone or number == len(lines):
        lines.insert(number, comment)
    else:
        lines[number] += f" {comment}"
    found = report_of("\n".join(lines) + "\n")
    assert [each.place for each in found.unused_accepts] == [f"line {number + 1}"]


def test_a_comment_of_another_entry_is_not_of_this_launch() -> None:
    text = module(body())
    other = "\n.visible .entry other()\n{\n    // ptxgen: accept shared-race: there\n    ret;\n}\n"
    found = Emulator().launch(Kernel.from_ptx(text + other, "other"), 1, 1, [])
    assert [each.code for each in found.unused_accepts] == ["shared-race"]
    entry = next(each.name for each in Kernel.from_ptx(text + other, "other").module.entries if each.name != "other")
    assert Emulator().launch(Kernel.from_ptx(text + other, entry), 1, 1, []).unused_accepts == []


def test_codes_of_check_are_not_of_launches() -> None:
    found = report(body(f"// {ACCEPT}\n// ptxgen: accept operand-type: for check"))
    assert (found.status, found.unused_accepts) == ("ok", [])


@pytest.mark.parametrize("name", ["soft max.py", "k.cu"])
def test_a_comment_in_the_source(tmp_path: Path, name: str) -> None:
    mark = "#" if name.endswith(".py") else "//"
    source = tmp_path / name
    located = f'.file 1 "{source}"'
    text = module(body(".loc 1 3 5")).replace(".visible .entry", f"{located}\n.visible .entry", 1)
    assert located in text

    def run() -> LaunchReport:
        return Emulator().launch(Kernel.from_ptx(text), 1, 1, [])

    assert codes(run()) == ["uninitialized-shared"]
    source.write_text(f"x = 1\n{mark} {ACCEPT}\ny = x[2]\n")
    assert (run().status, run().unused_accepts) == ("ok", [])
    source.write_text(f"x = 1\ny = 2\ny = x[2]  {mark} {ACCEPT} ä\n", encoding="utf-8")
    assert run().status == "ok"
    source.write_text(f"{mark} {ACCEPT}\nx = 1\ny = x[2]\n")
    assert codes(run()) == ["uninitialized-shared"]  # the line has no PTX
    left = [each.place for each in run().unused_accepts]
    assert left == ([] if name.endswith(".py") else ["k.cu:1"])  # in Python it may be for a kernel of another module
    source.write_text(f"x = 1\n{mark} {ACCEPT.replace('uninitialized-shared', 'shared-race')}\ny = x[2]\n")
    (unused,) = run().unused_accepts
    assert unused.place == f"{name}:2"


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("// ptxgen: accept", "PTX:3: an accepting comment is '// ptxgen: accept CODE: reason', not '// ptxgen: acc"),
        ("// ptxgen: accept shared-race", "CODE: reason"),
        ("// ptxgen: accept shared-race:  ", "CODE: reason"),
        ("// ptxgen: accept shared-race because", "CODE: reason"),
        (
            "/* ptxgen: accept shared-race */",
            "is '/* ptxgen: accept CODE: reason */', not '/* ptxgen: acc",
        ),
        ("{# ptxgen: accept #}", "is '{# ptxgen: accept CODE: reason #}'"),
        ("# ptxgen: accept : why", "is '# ptxgen: accept CODE: reason'"),
    ],
)
def test_a_bad_comment(comment: str, words: str) -> None:
    with pytest.raises(AcceptError) as caught:
        comments(f"\n\n{comment}\nret;", "PTX")
    assert words in str(caught.value)


def test_an_unknown_code_names_the_nearest() -> None:
    with pytest.raises(AcceptError, match=r"PTX:\d+: no check has the code 'shared-rase'; did you mean shared-race\?"):
        report(body("// ptxgen: accept shared-rase: x"))


def test_other_words_of_ptxgen_are_no_acceptances() -> None:
    assert comments("// ptxgen: blackwell/clc stages=4\n// ptxgen: acceptable\n// accept shared-race: x", "PTX") == ()


def test_what_ends_a_launch_cannot_be_accepted() -> None:
    assert report("// ptxgen: accept trap: why not\ntrap;").status == "fault"
