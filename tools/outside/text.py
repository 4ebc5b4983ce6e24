"""PTX text: files, FileCheck lines of LLVM's tests, and opcodes in literals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from tools.outside.statements import Statement, statements

#: Registers as LLVM and nvcc name them.
_CONVENTION = re.compile(r"%(p|rs|hh|h|rd|rl|rq|r|fd|f|SPL|SP)(\d*)$")
_TYPES = {
    "p": "pred", "rs": "b16", "h": "b16", "hh": "b32", "r": "b32", "rd": "b64", "rl": "b64", "rq": "b128", "f": "f32",
    "fd": "f64", "SP": "b64", "SPL": "b64",
}  # fmt: skip
_CHECK = re.compile(r"^\s*;\s*[A-Z][A-Z0-9_-]*:\s*(.*)$", re.M)
#: A string in a library that begins with an opcode of two modifiers or more.
_STRING = re.compile(rb"\0[\t ]*([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)+)(?:[ \t]|;)")
_CAPTURE = re.compile(r"\[\[([A-Z_]\w*):([^\]]*(?:\[[^\]]*\][^\]]*)*)\]\]")


def conventional(name: str) -> str | None:
    """The type of a register by its name, as LLVM and nvcc choose it."""
    match = _CONVENTION.match(name)
    return _TYPES[match[1]] if match else None


def extract_ptx(text: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements of a PTX file. Registers are declared by function, so each function is read by itself."""
    for function in re.split(r"^\s*\}\s*$", text, flags=re.M):
        yield from statements(function, conventional, left_out)


def extract_checks(text: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements that FileCheck lines expect; patterns for registers become registers."""
    captured: dict[str, str] = {}
    for match in _CHECK.finditer(text):
        line = re.sub(r"\{\{\\?\$?\}\}$", "", match[1].strip())
        if ";" not in line:
            continue

        def capture(found: re.Match[str]) -> str:
            captured[found[1]] = _registers(found[2], found[1])
            return captured[found[1]]

        line = _CAPTURE.sub(capture, line)
        line = re.sub(r"\[\[(\w+)\]\]", lambda found: captured.get(found[1], "unknown"), line)
        line = re.sub(r"\{\{(.*?)\}\}", lambda found: _registers(found[1], ""), line)
        yield from statements(line.split(";")[0] + ";", conventional, left_out)


def _registers(pattern: str, name: str) -> str:
    """A register that a pattern matches: `%r[0-9]+` gives one named after the capture."""
    plain = re.sub(r"\\d\+|\[0-9\][+*]|\[\[:digit:\]\]\+", str(sum(map(ord, name)) % 300), pattern)
    plain = plain.replace("\\", "").strip("()")
    return plain if re.fullmatch(r"%?[\w.]+|\.?[\w:.]+|[;,]?", plain) else "unknown"


def extract_printer(library: bytes, roots: Collection[str]) -> Iterator[str]:
    """Opcodes of `roots` at the start of strings that a compiled instruction printer writes, without operands.

    An opcode ends before a space, a tab or a semicolon; strings that end within one are its pieces, and left out.
    """
    for match in _STRING.finditer(library):
        opcode = match[1].decode()
        if opcode.split(".")[0] in roots:
            yield opcode


def extract_quoted(text: str, left_out: Counter[str]) -> Iterator[Statement | str]:
    """Opcodes in literals `ptx"..."`, without operands, and statements that regular expressions expect."""
    del left_out
    for match in re.finditer(r'ptx"([a-z][a-z0-9_]*(?:\.[\w:]+)+)"', text):
        yield match[1]
    for match in re.finditer(r'r"((?:[^"\\]|\\.)*;)"', text):
        plain = match[1].replace("\\d+", "1").replace("\\.", ".")
        plain = re.sub(r"\\([\[\]{}|])", r"\1", plain)
        if "\\" not in plain and not re.search(r"[()*+?^]", plain):
            yield from statements(plain, conventional, Counter())
