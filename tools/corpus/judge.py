"""What ptxgen makes of a PTX text: does it parse, print back, check without an error, and how fast."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field

from ptxgen import check
from ptxgen.syntax import PtxSyntaxError, parse


@dataclass
class Verdict:
    """The result for a text of `size` bytes: errors by kind, with the first line of each."""

    size: int
    parse_seconds: float = 0.0
    check_seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    undeclared: Counter[str] = field(default_factory=Counter)


def judge(text: str) -> Verdict:
    """Read, print and check a text."""
    verdict = Verdict(len(text))
    began = time.process_time()
    try:
        module = parse(text)
    except PtxSyntaxError as error:
        verdict.errors.append(f"syntax: {error}: {error.source_line.strip()}")
        return verdict
    verdict.parse_seconds = time.process_time() - began
    if str(module) != text:
        verdict.errors.append("the printed text differs")
    began = time.process_time()
    found = check(module)
    verdict.check_seconds = time.process_time() - began
    lines = text.split("\n")
    kinds: set[str] = set()
    for diagnostic in found:
        line = lines[diagnostic.line - 1]
        if diagnostic.code == "not-declared":
            verdict.undeclared[opcode_of(line[diagnostic.column - 1 :])] += 1
        elif diagnostic.severity == "error" and (kind := re.sub(r"\d+", "0", diagnostic.message)) not in kinds:
            kinds.add(kind)
            verdict.errors.append(f"{diagnostic}: {line.strip()}")
    return verdict


def opcode_of(line: str) -> str:
    """The opcode of an instruction, without its guard and modifiers."""
    match = re.match(r"(?:@!?[%\w]+\s+)?(\w+)", line)
    return match[1] if match else line
