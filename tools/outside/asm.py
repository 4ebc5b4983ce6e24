"""GNU inline assembly in C++ and CUDA sources: templates with the register types of their constraints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tools.outside.statements import IMMEDIATE, Statement, statements

_BEGIN = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__|inline|goto)\s*)*\(")
_TOKEN = re.compile(
    r'R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\]|\\.)*)"|\'(?:[^\'\\]|\\.)*\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<word>[A-Za-z_]\w*)|(?P<other>::|\S)",
    re.S,
)
_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'"}
#: Register types of constraints, as nvcc declares them.
CONSTRAINTS = {"r": "b32", "l": "b64", "h": "b16", "f": "f32", "d": "f64", "q": "b128", "b": "pred"}
_IMMEDIATES = {"n", "i", "I", "J", "C", "s"}


def extract(text: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements of all inline assembly in a source file; `left_out` counts what has no fixed text."""
    # A macro's line breaks are no part of its strings.
    text = text.replace("\\\n", "\n")
    for begin in _BEGIN.finditer(text):
        sections = _sections(text, begin.end())
        if sections is None:
            left_out["unbalanced"] += 1
            continue
        template, *rest = sections
        if any(kind == "word" for kind, _ in template):
            left_out["macro in the template"] += 1
            continue
        body = "".join(value for kind, value in template if kind == "text")
        operands = _operands(rest[:2])
        if operands is None:
            left_out["macro in the constraints"] += 1
            continue
        # `%%tid.x` is a register of PTX; what is left of it is no operand.
        yield from statements(body.replace("%%", "%"), lambda name, known=operands: known.get(name), left_out)


def _sections(text: str, at: int) -> list[list[tuple[str, str]]] | None:
    """The tokens between the colons of an asm statement that begins at `at`."""
    sections: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for match in _TOKEN.finditer(text, at, min(len(text), at + 60_000)):
        if match["comment"]:
            continue
        if match["raw"] is not None:
            sections[-1].append(("text", match["raw"]))
        elif match["text"] is not None:
            sections[-1].append(("text", re.sub(r"\\(.)", lambda m: _ESCAPE.get(m[1], m[0]), match["text"])))
        elif match["word"]:
            sections[-1].append(("word", match["word"]))
        elif match["other"]:
            other = match["other"]
            if other == ")" and depth == 0:
                return sections
            depth += (other in "([") - (other in ")]")
            if depth == 0 and other in (":", "::"):
                sections.extend([[]] * (len(other) - 1) + [[]])
                continue
            sections[-1].append(("other", other))
    return None


def _operands(sections: list[list[tuple[str, str]]]) -> dict[str, str] | None:
    """Names of operands (`%0`, `%[name]`) with their register types; None if a macro hides some."""
    known: dict[str, str] = {}
    count = 0
    kinds: list[str] = []
    for section in sections:
        depth, name = 0, ""
        for position, (kind, value) in enumerate(section):
            if kind == "other" and value in "([":
                if value == "[" and depth == 0 and section[position + 1][0] == "word":
                    name = section[position + 1][1]
                depth += 1
            elif kind == "other" and value in ")]":
                depth -= 1
            elif depth == 0 and kind == "text":
                letter = value.strip("=+&% ")
                if letter.isdigit() and int(letter) < len(kinds):
                    type_ = kinds[int(letter)]
                elif letter in CONSTRAINTS:
                    type_ = CONSTRAINTS[letter]
                elif letter in _IMMEDIATES:
                    type_ = IMMEDIATE
                elif "r" in letter or "n" in letter:
                    type_ = IMMEDIATE if "n" in letter else "b32"
                else:
                    return None
                kinds.append(type_)
                known[f"%{count}"] = type_
                if name:
                    known[f"%[{name}]"] = type_
                count, name = count + 1, ""
            elif depth == 0 and kind == "word":
                return None
    return known
