"""Characters outside ASCII: ptxas takes them in comments alone. A home folder in Cyrillic comes into .file."""

from __future__ import annotations

import pytest

import ptxgen

MODULE = """.version 8.0
.target sm_75
.address_size 64
{before}
.visible .entry k()
{{
{inside}
    ret;
}}
{after}
"""
ILLEGAL = {
    "file at the end": ("", "", '.file 1 "C:/Users/Иван/sum.cu"'),
    "file at the start": ('.file 1 "/home/josé/k.cu"', "", ""),
    "file with a time stamp": ('.file 1 "/home/中/k.cu", 5, 6', "", ""),
    "second file": ('.file 1 "a.cu"\n.file 2 "naïve.cu"', ".loc 2 1 1", ""),
    "pragma of the module": ('.pragma "nounroll";\n.pragma "é";', "", ""),
    "pragma of a statement": ("", '.pragma "größe";', ""),
}
LEGAL = {
    "line comment": ("// ключ", "", ""),
    "block comment": ("/* 中 */", "/* ü */", ""),
    "comment behind a statement": ("", "mov.u32 %r1, 1; // größe", ""),
    "escaped path": ('.file 1 "C:\\\\Users\\\\k.cu"', "", ""),
}


@pytest.mark.parametrize("place", ILLEGAL.values(), ids=ILLEGAL)
def test_illegal(place: tuple[str, str, str]) -> None:
    text = module(place)
    found = [each for each in ptxgen.check(text) if each.code == "non-ascii"]
    assert [each.severity for each in found] == ["error"]
    assert not text.splitlines()[found[0].line - 1].isascii()
    with pytest.raises(ptxgen.AssemblerError, match="non-ASCII"):
        ptxgen.assemble(text)


@pytest.mark.parametrize("place", LEGAL.values(), ids=LEGAL)
def test_legal(place: tuple[str, str, str]) -> None:
    text = module(place)
    assert [each for each in ptxgen.check(text) if each.severity == "error"] == []
    ptxgen.assemble(text)


def module(place: tuple[str, str, str]) -> str:
    before, inside, after = place
    return MODULE.format(before=before, inside=f".reg .b32 %r1;\n{inside}", after=after)
