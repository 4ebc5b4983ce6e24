"""Dumps of SASS that others made: files of `cuobjdump --dump-sass`, and of `nvdisasm -hex`.

A dump of cuobjdump names its functions by `Function : NAME` under `code for sm_90a`, and gives branch targets as
addresses. It has encodings, so control codes are known; life ranges, resources and line tables are not.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ptxgen.sass.listing import Function, Instruction, Listing
from ptxgen.sass.parse import ListingError, parse

_CODE = re.compile(r"^\s*code for (sm_\w+)\s*$", re.M)
_FUNCTION = re.compile(r"^\s*Function : (\S+)\s*$", re.M)
_SECTION = re.compile(r"^\s*\.section\s+\.text\.", re.M)
_ENCODING = re.compile(r"/\*[0-9a-f]{4,}\*/.*/\* 0x[0-9a-f]{16} \*/")
_TARGET = re.compile(r"^\s*\.target\s+(\w+)|EF_CUDA_SM(\d+)", re.M)
#: Opcodes whose last operand may be an address of code.
_JUMPS = frozenset({"BRA", "BSSY", "CALL", "JMP", "WARPSYNC", "BRXU", "BRX"})
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def is_dump(text: str) -> bool:
    """Whether a text is a dump with SASS."""
    return bool(_FUNCTION.search(text) or _SECTION.search(text))


def read_dump(text: str, name: str, target: str | None = None) -> Listing:
    """The listing in a dump; of several targets the one that is named. Raises ListingError."""
    if not _ENCODING.search(text):
        raise ListingError("this dump has no encodings; make it with cuobjdump --dump-sass, or nvdisasm -hex")
    starts = list(_CODE.finditer(text))
    if not starts:
        known = _TARGET.search(text)
        return _listing(text, name, known[1] or f"sm_{known[2]}" if known else target or "unknown")
    parts: dict[str, list[str]] = {}
    for start, end in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
        body = text[start.end() : end]
        if _FUNCTION.search(body):
            parts.setdefault(start[1], []).append(body)
    if target is not None and len(parts) != 1:
        parts = {each: bodies for each, bodies in parts.items() if each == target}
    if len(parts) != 1:
        have = ", ".join(dict.fromkeys(each[1] for each in starts))
        raise ListingError(f"this dump has {len(parts) or 'no'} targets with functions ({have}); name a target")
    ((target, bodies),) = parts.items()
    return _listing("\n".join(bodies), name, target)


def _listing(text: str, name: str, target: str) -> Listing:
    functions = parse(_FUNCTION.sub(lambda match: f'.section .text.{match[1]},"ax"', text))
    made = tuple(_finished(each) for each in functions if each.instructions)
    return Listing(name, target, made, has_life_ranges=False)


def _finished(function: Function) -> Function:
    """A function with labels in the place of addresses, and without the padding at its end."""
    instructions = list(function.instructions)
    while instructions and instructions[-1].opcode == "NOP":
        instructions.pop()
    at = {each.address: each.index for each in instructions}
    if instructions:
        at[instructions[-1].address + 16] = len(instructions)
    labels = dict(function.labels)
    made = [_labelled(each, at, labels) for each in instructions]
    bytes_of_code = function.instructions[-1].address + 16 if function.instructions else 0
    return replace(function, instructions=tuple(made), labels=labels, code_bytes=bytes_of_code)


def _labelled(each: Instruction, at: dict[int, int], labels: dict[str, int]) -> Instruction:
    if each.targets or each.opcode not in _JUMPS or not each.operands or not _ADDRESS.fullmatch(each.operands[-1]):
        return each
    address = int(each.operands[-1], 16)
    if address not in at:
        return each
    label = f".L_x_{address:x}"
    labels[label] = at[address]
    return replace(each, operands=(*each.operands[:-1], f"`({label})"), targets=(label,))
