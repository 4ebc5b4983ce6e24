"""What an editor shows of PTX text: diagnostics, hover, completion."""

from __future__ import annotations

import itertools

import pytest

from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from ptxgen.language_server.completion import opcodes
from ptxgen.language_server.document import Document

TEXT = """\
.version 8.7
.target sm_100a
.address_size 64
.visible .entry twice(.param .u64 data)
{
    .reg .pred %p, %odd;
    .reg .b32 %lane, %x<3>;
    .reg .b64 %at;
    .shared .align 16 .b8 tile[512];
    mov.u32 %lane, %tid.x;  // the lane
loop:
    {
        .reg .b32 %inner;
        add.u32 %inner, %lane, 1;
    }
    @%p bra loop;
    ld.param.u64 %at, [data];
    ld.global.u32 %x0, [%at];
    st.global.u32
        [%at], %x0;
    ret;
}
"""


def at(text: str, mark: str = "|") -> tuple[Document, int, int]:
    """A document, with the line and column of the mark in it."""
    before = text[: text.index(mark)]
    return Document(text.replace(mark, "", 1)), before.count("\n"), len(before.rpartition("\n")[2])


def completed(old: str, new: str) -> list[str]:
    """What is offered at the `|` in a changed text."""
    assert old in TEXT
    document, line, column = at(TEXT.replace(old, new))
    return [each.text for each in document.completions(line, column)]


def test_legal_text_has_no_diagnostics() -> None:
    assert Document(TEXT).diagnostics() == []
    assert Document(TEXT.replace("\n", "\r\n")).diagnostics() == []


def test_a_diagnostic_marks_the_operand() -> None:
    text = TEXT.replace("add.u32 %inner, %lane, 1", "add.u32 %inner, %at, 1")
    (found,) = Document(text).diagnostics()
    line = text.split("\n")[found.line]
    assert line[found.begin : found.end] == "%at"
    assert (found.severity, found.code) == ("error", "operand-type")
    assert ".b64" in found.message


def test_a_diagnostic_has_the_nearest_legal_form() -> None:
    (found,) = Document(TEXT.replace("ld.global.u32", "ld.gobal.u32")).diagnostics()
    assert "the nearest legal form is ld.global.u32" in found.message


@pytest.mark.parametrize(
    ("old", "new", "line", "others"),
    [
        ("add.u32 %inner, %lane, 1;", "add.u32 %inner %lane, 1;", 13, []),
        # An unfinished instruction is noticed in the next line, which is fine.
        ("mov.u32 %lane, %tid.x;", "mov.u32 %lane, ", 10, []),
        ("    ld.param.u64 %at, [data];", "    ld.param\n    ld.param.u64 %x1, [data];", 17, ["operand-type"]),
        # Names whose declaration does not parse are not called undeclared.
        (".reg .b64 %at;", ".reg .b64 %at", 8, []),
        ("ret;\n}", "ret;\n", 22, None),
    ],
)
def test_what_does_not_parse(old: str, new: str, line: int, others: list[str] | None) -> None:
    """It is reported where it is, and the rest is still checked."""
    assert old in TEXT
    document = Document(TEXT.replace(old, new))
    first, *rest = document.diagnostics()
    assert (first.line, first.code, first.severity) == (line, "syntax", "error")
    assert first.message.startswith("expected ")
    assert [each.code for each in rest] == (others or [])


@pytest.mark.parametrize("text", ["", "\n", "}", "{", "ld", "\0", ".version", "/*", "é", ".version 8\n.target sm_1"])
def test_any_text_can_be_looked_at(text: str) -> None:
    document = Document(text)
    document.diagnostics()
    for line, shown in enumerate(document.lines):
        for column in range(len(shown) + 1):
            document.hover(line, column)
            document.completions(line, column)


def test_hover_explains_the_instruction() -> None:
    found = Document(TEXT).hover(17, 8)
    assert found is not None
    for words in (
        "the value at an address",
        "```ptx\nld",
        "PTX ISA 9.7.9.8",
        "memory.ld(",
        "| `.global` | space |",
        "since 1.0",
    ):
        assert words in found, found


def test_hover_says_what_a_name_is() -> None:
    document = Document(TEXT)
    shown = {}
    for word, line in (
        ("%x0", 17),
        ("%tid.x", 9),
        ("tile", 8),
        ("loop", 15),
        ("data", 16),
        ("%inner", 13),
        ("%x0", 19),
    ):
        found = document.hover(line, document.lines[line].index(word) + 1)
        assert found is not None, word
        shown[word, line] = found.split("\n")[0]
    assert shown == {
        ("%x0", 17): "`%x0`: register .b32",
        ("%tid.x", 9): "`%tid.x`: special register .u32, since PTX ISA 1.0 on sm_10 or later",
        ("tile", 8): "`tile`: variable .shared .b8, 512 bytes",
        ("loop", 15): "`loop`: label",
        ("data", 16): "`data`: parameter .u64",
        ("%inner", 13): "`%inner`: register .b32",
        ("%x0", 19): "`%x0`: register .b32",
    }


def test_hover_names_what_is_illegal() -> None:
    text = TEXT.replace("ld.global.u32", "ld.gobal.u32")
    found = Document(text).hover(17, 8)
    assert found is not None
    assert "**error**: " in found
    assert "`ld.global.u32`" in found


def test_hover_where_there_is_nothing() -> None:
    document = Document(TEXT)
    assert document.hover(9, len("    mov.u32 %lane, %tid.x;  // t")) is None
    assert document.hover(21, 1) is None
    assert document.hover(500, 0) is None


def test_modifiers_continue_an_opcode_legally() -> None:
    new = "tcgen05.ld.sync.aligned.32x32b.|"
    offered = completed("ret;", f"{new}\n    ret;")
    assert f"{new[:-1]}x16" in offered
    assert all(each.startswith(new[:-1]) for each in offered)
    assert not any(".x256" in each for each in offered)
    assert completed("ret;", "tcgen05.ld.sync.aligned.16x256b.x12|\n    ret;") == []  # has at most x32
    assert completed("ret;", "ld.glo|\n    ret;") == ["ld.global"]
    assert completed("ret;", "{ lab: @!%p ld.glo|\n    ret;") == ["ld.global"]
    assert "ld.global.v2" in completed("ret;", "ld.global.|  ret;")


def test_opcodes_are_those_of_the_target() -> None:
    assert [each for each in completed("ret;", "tcge|\n    ret;") if each.startswith("tcgen05.mma")]
    assert completed("ret;", "wgm|\n    ret;") == []
    document, line, column = at(TEXT.replace("sm_100a", "sm_90a").replace("ret;", "wgm|"))
    assert "wgmma.mma_async" in [each.text for each in document.completions(line, column)]


def test_every_form_can_be_typed() -> None:
    """Each modifier of each form is offered behind those before it."""
    load_all()
    for forms in REGISTRY.values():
        for form in forms:
            for made in itertools.islice(form.variants(), 5):
                text = made.opcode_text
                begun = form.form.opcode
                for token in text[len(begun) :].split(".")[1:]:
                    assert f"{begun}.{token}" in [each.text for each in opcodes(f"{begun}.")], text
                    begun += f".{token}"


def test_names_in_scope() -> None:
    offered = completed("add.u32 %inner, %lane, 1;", "add.u32 %inner, %|")
    assert {"%inner", "%lane", "%x0", "%x2", "%at", "%tid.x", "%clock64"} <= set(offered)
    assert offered.index("%inner") < offered.index("%lane") < offered.index("%tid.x")
    assert not {"%x3", "data", "loop"} & set(offered)
    assert completed("add.u32 %inner, %lane, 1;", "add.u32 %inner, %lan|").count("%lane") == 1
    assert "%inner" not in completed("ld.global.u32 %x0", "ld.global.u32 %|")
    assert completed("[%at], %x0;", "[dat|") == ["data"]
    assert "tile" in completed("[%at];\n    st", "[t|\n    st")


def test_labels_and_predicates() -> None:
    assert completed("bra loop;", "bra |") == ["loop"]
    assert completed("@%p bra", "@|") == ["%p", "%odd"]
    assert completed("@%p bra", "@!%o|") == ["%odd"]


def test_nothing_is_offered_in_comments_and_directives() -> None:
    assert completed("// the lane", "// ld.|") == []
    assert completed(".reg .b64 %at;", ".re|") == []


def test_names_of_the_state_before_while_the_text_does_not_parse() -> None:
    text = TEXT.replace("ret;\n}", "st.global.u32 [%a")
    document = Document(text, Document(TEXT))
    assert "%at" in [each.text for each in document.completions(20, len(document.lines[20]))]


def test_nothing_follows_behind_the_last_line() -> None:
    document = Document(TEXT)
    assert document.completions(len(document.lines), 0) == []
    assert document.hover(len(document.lines), 0) is None


def test_what_a_comment_accepts_is_no_diagnostic() -> None:
    """As for `ptxgen check`; a comment that cannot be used is marked."""
    broken = TEXT.replace("ld.global.u32", "ld.gobal.u32")
    line = next(number for number, each in enumerate(broken.split("\n")) if "ld.gobal" in each)
    assert [each.line for each in Document(broken).diagnostics()] == [line]
    comment = "// ptxgen: accept unknown-modifier: a test\n"
    lines = broken.split("\n")
    accepted = "\n".join([*lines[:line], comment.strip(), *lines[line:]])
    assert Document(accepted).diagnostics() == []
    found, other = Document(accepted.replace(": a test", "")).diagnostics()
    assert (found.line, found.code, other.code) == (line, "accept", "unknown-modifier")
    assert found.message.startswith("an accepting comment is '// ptxgen: accept CODE: reason'")
