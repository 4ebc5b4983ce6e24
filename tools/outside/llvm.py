"""LLVM's inline assembly: calls of `inline_asm` in Python (CuTe DSL, JAX, Triton), and its text in .mlir and .ll files.

Operands are `$0`, `${1:r}` and so on, results first; constraints stand in one string, as in `"=r,l,~{memory}"`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tools.outside.asm import CONSTRAINTS
from tools.outside.statements import IMMEDIATE, Statement, statements

#: What calls are named that take a template and its constraints: `llvm.inline_asm`, `tl.inline_asm_elementwise`, ...
_CALLED = re.compile(r"(\w*inline_asm\w*|\w*inline_ptx\w*|InlineAsm|InlineAsmOp)$")
#: Text in MLIR and LLVM IR: `llvm.inline_asm has_side_effects "...", "..."`, `asm sideeffect "...", "..."`.
_TEXT = re.compile(r'\b(?:llvm\.inline_asm|asm)\b(?:\s+[\w=.\[\]]+)*\s+"([^"]*)"\s*,\s*"([^"]*)"')
_CONSTRAINTS = re.compile(r"\s*(?:[=+&%]*[a-zA-Z]|\d+|~\{[^}]*\})(?:\s*,\s*(?:[=+&%]*[a-zA-Z]|\d+|~\{[^}]*\}))*\s*")
_OPERAND = re.compile(r"\$\{(\d+)(?::\w+)?\}|\$(\d+)|\$\$")
#: Register types of LLVM's constraints; other letters are nvcc's.
_LETTERS = {**CONSTRAINTS, "c": "b16", "n": IMMEDIATE, "i": IMMEDIATE, "N": IMMEDIATE}


def extract_python(text: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements of all inline assembly in a Python file; `left_out` counts what has no fixed text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        left_out["not read as Python"] += 1
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _CALLED.match(_name(node.func)):
            yield from _of_call(node, left_out)


def extract_text(text: str, left_out: Counter[str]) -> Iterator[Statement]:
    """The statements of all inline assembly in MLIR or LLVM IR; in tests also where comments expect it."""
    for found in _TEXT.finditer(text):
        template = re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), found[1])
        yield from _statements(template.replace("\\n", "\n").replace("\\t", "\t"), found[2], left_out)


def _of_call(call: ast.Call, left_out: Counter[str]) -> Iterator[Statement]:
    """The first text that can be constraints is theirs; the template is the text before it."""
    values = [*call.args, *(each.value for each in call.keywords)]
    names = [*([None] * len(call.args)), *(each.arg for each in call.keywords)]
    texts = [_text(each) for each in values]
    constraints = next((i for i, name in enumerate(names) if name == "constraints"), None)
    if constraints is None:
        constraints = next((i for i, each in enumerate(texts) if each and _CONSTRAINTS.fullmatch(each)), None)
    if constraints is None or texts[constraints] is None:
        left_out["constraints that the program makes"] += 1
        return
    named = next((i for i, name in enumerate(names) if name in ("asm", "asm_string")), None)
    written = (ast.Constant, ast.JoinedStr, ast.BinOp)
    before = [index for index, value in enumerate(values[:constraints]) if isinstance(value, written)]
    template = named if named is not None else before[-1] if before else None
    body = texts[template] if template is not None else None
    if body is None:
        left_out["text that the program makes"] += 1
        return
    yield from _statements(body, texts[constraints] or "", left_out)


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _text(node: ast.expr) -> str | None:
    """The value of an expression that is a fixed text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion == -1:
        return _text(node.value)
    if isinstance(node, ast.JoinedStr):
        parts: Sequence[str | None] = [_text(each) for each in node.values]
        return None if None in parts else "".join(part or "" for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return None


def _statements(template: str, constraints: str, left_out: Counter[str]) -> Iterator[Statement]:
    known: dict[str, str] = {}
    kinds: list[str] = []
    for each in re.findall(r"~\{[^}]*\}|[^,]+", constraints):
        letter = each.strip().strip("=+&%* ")
        if letter.startswith("~"):
            continue
        kind = kinds[int(letter)] if letter.isdigit() and int(letter) < len(kinds) else _LETTERS.get(letter)
        if kind is None:
            left_out[f"constraint {letter[:20]}"] += 1
            return
        known[f"%{len(kinds)}"] = kind
        kinds.append(kind)
    body = _OPERAND.sub(lambda match: f"%{match[1] or match[2]}" if match[1] or match[2] else "$", template)
    yield from statements(body, known.get, left_out)
