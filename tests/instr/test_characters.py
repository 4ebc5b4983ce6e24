"""Characters that ptxas reads as white space, line markers, and the end of a text, compared with ptxas."""

from __future__ import annotations

import subprocess

import pytest

import ptxgen
from ptxgen.toolchain import find_ptxas

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
LEGAL = {
    "Ctrl-Z at the end": ".entry k() { ret; }\n\x1a",
    "Ctrl-Z within": "\x1a.entry k()\x1a{ ret; }",
    "form feed": ".entry k()\f{ ret; }",
    "carriage returns": ".entry k()\r{\rret;\r}\r",
    "line marker": '# 1 "a.cu"\n.entry k() { ret; }',
    "line marker with flags": '.entry k() {\n  #line 7 "a.cu" 1 3\nret; }',
    "line marker behind a statement": '.entry k() { ret; # 1 "a.cu" 2\n}',
    "line marker at the end": '.entry k() { ret; }\n#9 "C:\\\\k.cu"\n',
    "directive in a comment": "/*\n#define X\n*/ .entry k() { ret; }",
}
ILLEGAL = {
    "NUL at the end": (".entry k() { ret; }\n\0", "trailing-nul", (5, 1)),
    "several NULs": (".entry k() { ret; }\0\0\0", "trailing-nul", (4, 20)),
    "include": ('  #include "a.ptx"\n.entry k() { ret; }', "preprocessor", (4, 3)),
    "shebang": (".entry k() {\n#!/bin/sh\nret; }", "preprocessor", (5, 1)),
    "line without a file": ("#line 7\n.entry k() { ret; }", "preprocessor", (4, 1)),
    "marker with a comment": ('.entry k() { ret; }\n# 1 "a.cu" // x', "preprocessor", (5, 1)),
    "marker without a line end": ('.entry k() { ret; }\n#9 "a.cu"', "preprocessor", (5, 1)),
    "marker of a Cyrillic path": ('# 1 "к.cu"\n.entry k() { ret; }', "non-ascii", (4, 1)),
}
UNREADABLE = {
    "float beyond a double": ".entry k() { .reg .f32 f; mov.f32 f, 1e400; ret; }",
    "float as an offset": ".shared .b32 s; .entry k() { .reg .b64 d; mov.b64 d, s+2e3; ret; }",
    "choice of floats as an offset": ".shared .b32 s; .entry k() { .reg .b64 d; mov.b64 d, s+(1 ? 0.5 : 1.0); ret; }",
    "float as an offset of an initial value": ".global .b32 s; .global .u64 p = generic(s)+0.5;",
    "vertical tab": ".entry k()\v{ ret; }",
    "escape": ".entry k() { ret; }\x1b",
    "NUL within": ".entry k() { \0ret; }",
    "integer before a dot": ".entry k() .maxnreg 24.maxntid 32 { ret; }",
    "octal before a dot": ".section .debug_str { .b8 01.b8 2 }",
    "inlined_at": ".entry k() { .reg .b32 inlined_at; ret; }",
    "function_name": ".entry k() { function_name: ret; }",
    "type of a section": ".section .b32 { .b8 1 }",
    "type as an address in a section": ".section .debug_info { .b64 .surfref .b64 1 }",
    "directive of a section": ".section .maxntid { .b8 1 }",
}


def _ptxas(text: str) -> bool:
    command = [str(find_ptxas()), "-arch", "sm_90a", "-o", "/dev/null", "/dev/stdin"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("body", LEGAL.values(), ids=LEGAL)
def test_legal(body: str) -> None:
    text = HEAD + body
    assert str(ptxgen.parse(text)) == text
    assert ptxgen.check(text) == []
    assert _ptxas(text)


@pytest.mark.parametrize(("body", "code", "place"), ILLEGAL.values(), ids=ILLEGAL)
def test_illegal(body: str, code: str, place: tuple[int, int]) -> None:
    (found,) = ptxgen.check(HEAD + body)
    assert (found.code, found.severity, (found.line, found.column)) == (code, "error", place)
    assert not _ptxas(HEAD + body)


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable(body: str) -> None:
    with pytest.raises(ptxgen.PtxSyntaxError):
        ptxgen.parse(HEAD + body)
    assert not _ptxas(HEAD + body)


def test_a_c_string_is_a_kernel() -> None:
    assert ptxgen.Kernel.from_ptx(f"{HEAD}.entry k() {{ ret; }}\n\0").name == "k"
