"""Statements of PTX taken out of their surroundings, with registers of the comparison's own module.

A statement keeps its opcode, modifiers and the shape of its operands; each register becomes the next one of its type.
What refers to a symbol, a label or an unknown name is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxgen.instr.model.operands import EXAMPLE_OPAQUE

#: Control flow and calls, whose operands are names.
SKIPPED = frozenset({"bra", "brx", "call", "ret", "exit", "brkpt", "trap", "alloca", "stacksave", "stackrestore"})
#: Stands for an immediate whose value the source does not say.
IMMEDIATE = "#"

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)*(?=[\s;]|$)")
_DIRECTIVE = re.compile(
    r"^\.(?:loc|version|target|address_size|file)\b[^\n]*(?:\n|$)|^\.(?:visible|weak|entry|func)\b[^{]*\{"
)
_LABEL = re.compile(r"[A-Za-z_$%][\w$]*\s*:(?!:)")
_DECLARED = re.compile(r"\.reg\s*(?:\.(v[24])\s*)?\.(\w+)\s+(.*)", re.S)
_NAME = re.compile(
    r"%\[\w+\]|[%$]?[A-Za-z_$][\w$]*(?:\.[\w]+)?|%\d+|\$\d+|0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+U?|\d[\w.]*"
)
_NUMBER = re.compile(r"0[fFdD][0-9a-fA-F]+$|0[xX][0-9a-fA-F]+U?$|\d+U?$|\d*\.\d+(?:[eE][-+]?\d+)?$")
_COMPONENT = re.compile(r"[xyzwrgba]$|[bh]\d+$")
_SPECIAL = re.compile(
    r"%(?:n?tid|n?ctaid|(?:n?cluster|cluster_(?:n?ctaid|n?ctarank))\w*|gridid|laneid|n?warpid|n?smid|clock\w*|"
    r"globaltimer\w*|lanemask_\w+|pm\d+|pm\d+_64|envreg\d+|dynamic_smem_size|\w*smem\w*|is_explicit_cluster|"
    r"current_graph_exec|reserved_smem\w*)(?:\.[xyzw])?$"
)

#: Register types that the comparison's module declares under another name.
_REGISTER = {"bf16": "b16", "f16x2": "b32", "bf16x2": "b32", "tf32": "b32"}

#: What a name is: a register type ("b32"), a register and its vector length ("v2.b32"), IMMEDIATE, or None: unknown.
Resolve = Callable[[str], str | None]


class Unknown(ValueError):
    """A name in a statement that is no register, number or special register."""


@dataclass(frozen=True, slots=True, order=True)
class Statement:
    """An instruction without its predicate: opcode with modifiers, and operands of the comparison's module."""

    opcode: str
    operands: str

    def __str__(self) -> str:
        return f"{self.opcode} {self.operands};" if self.operands else f"{self.opcode};"

    @property
    def root(self) -> str:
        return self.opcode.split(".")[0]

    @property
    def modifiers(self) -> list[str]:
        return self.opcode.split(".")[1:]


def without_comments(text: str) -> str:
    return _COMMENT.sub(" ", text)


def statements(body: str, resolve: Resolve, left_out: Counter[str] | None = None) -> Iterator[Statement]:
    """The instructions of some PTX text. `resolve` says what names are that the text itself does not declare."""
    declared: dict[str, str] = {}

    def known(name: str) -> str | None:
        return declared.get(name) or resolve(name)

    for piece in without_comments(body).split(";"):
        chunk = _bare(piece)
        if not chunk:
            continue
        if chunk.startswith(".reg"):
            _declare(chunk, declared)
            continue
        match = _OPCODE.match(chunk)
        if match is None or chunk.startswith("."):
            continue
        opcode = match[0]
        if opcode.split(".")[0] in SKIPPED:
            continue
        try:
            yield Statement(opcode, canonical(chunk[match.end() :], known))
        except Unknown as error:
            if left_out is not None:
                left_out[str(error)] += 1


def _bare(piece: str) -> str:
    """A piece between semicolons without scopes, labels, directives and the predicate before its instruction."""
    chunk = piece.strip()
    while True:
        before = chunk
        chunk = chunk.lstrip("{} \t\r\n")
        label = _LABEL.match(chunk)
        if label:
            chunk = chunk[label.end() :].lstrip()
        chunk = _DIRECTIVE.sub("", chunk)
        chunk = re.sub(r"^@!?\s*[%$]?[\w$]+\s+", "", chunk)
        if chunk == before:
            return chunk.strip()


def _declare(chunk: str, declared: dict[str, str]) -> None:
    match = _DECLARED.match(chunk)
    if match is None:
        return
    vector, type_, names = match.groups()
    kind = f"{vector}.{type_}" if vector else type_
    for each in names.split(","):
        name = re.match(r"\s*([%$]?[A-Za-z_$][\w$]*)\s*(?:<(\d+)>)?", each)
        if name is None:
            continue
        if name[2]:
            declared.update((f"{name[1]}{index}", kind) for index in range(min(int(name[2]), 2000)))
        declared[name[1]] = kind


def canonical(operands: str, resolve: Resolve) -> str:
    """The operands with registers of the comparison's module, numbered by type in order of appearance."""
    numbers: dict[str, str] = {}
    counts: Counter[str] = Counter()

    def register(name: str, kind: str) -> str:
        if name not in numbers:
            counts[kind] += 1
            index = counts[kind] - 1
            if index >= 400:
                raise Unknown("too many registers")
            if kind.startswith("v"):
                if kind not in ("v2.b32", "v4.b32") or index > 8:
                    raise Unknown(f"register of type {kind}")
                numbers[name] = f"%x_{kind[:2]}_{index}"
            else:
                numbers[name] = f"%x_{_REGISTER.get(kind, kind)}_{index}"
        return numbers[name]

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if _NUMBER.match(name) or name in ("_", "WARP_SZ"):
            return name
        if _SPECIAL.match(name):
            return name
        kind = resolve(name)
        component = ""
        if kind is None and "." in name:
            base, component = name.rsplit(".", 1)
            kind = resolve(base) if _COMPONENT.match(component) else None
            name, component = base, f".{component}"
        if kind is None:
            raise Unknown(f"name {match[0]}" if len(match[0]) < 30 else "name")
        if kind == IMMEDIATE:
            return IMMEDIATE
        if kind in EXAMPLE_OPAQUE:
            return EXAMPLE_OPAQUE[kind]
        return register(name, kind) + component

    text = _NAME.sub(replaced, operands)
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*,\s*", ", ", re.sub(r"\s*([|{}\[\]])\s*", r"\1", text))
