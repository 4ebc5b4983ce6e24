"""The names that parameters of a kernel have in its CUDA C++ source; nvcc writes k_param_0 and on for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ptxgen.device.kernel import Kernel

_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.MULTILINE)
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_HEAD = re.compile(r"\b__global__\b")
#: What may stand in parentheses before the name of a kernel.
_ATTRIBUTES = re.compile(
    r"__launch_bounds__|__cluster_dims__|__block_size__|__maxnreg__|__attribute__|alignas|decltype"
)
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(|[;{]")
#: The name that a parameter declares: the last word, behind a type and before bounds or a default value.
_DECLARED = re.compile(r"[\w>&*(]\s*\b([A-Za-z_]\w*)\s*\)?\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$", re.DOTALL)
_CLOSING = {"(": ")", "<": ">", "[": "]", "{": "}"}


def source_names(kernel: Kernel, path: str = "") -> dict[str, str]:
    """The source's name of each parameter that the compiler has numbered, by the name in the PTX.

    Read from the files that the PTX names (.file), or from `path`; empty where no definition in them fits the entry.
    """
    parameters = [each.name for each in kernel.parameters]
    if parameters != [f"{kernel.name}_param_{i}" for i in range(len(parameters))]:
        return {}
    named = [path] if path.endswith(".cu") else list[str]()
    for file in dict.fromkeys([*named, *map(str, _FILE.findall(kernel.text))]):
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            continue
        found = {
            names
            for name, names in definitions(text)
            if len(names) == len(parameters) and (name == kernel.name or f"{len(name)}{name}" in kernel.name)
        }
        if len(found) == 1:
            names = found.pop()
            return dict(zip(parameters, names, strict=True)) if len(set(names)) == len(names) else {}
    return {}


def definitions(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every kernel of a CUDA C++ source with the names of its parameters, if all of them have one."""
    code = _NO_CODE.sub(" ", text)
    for head in _HEAD.finditer(code):
        at = head.end()
        while (found := _CALLED.search(code, at)) is not None and found[1]:
            inside, at = _enclosed(code, found.end())
            if _ATTRIBUTES.fullmatch(found[1]):
                continue
            declared = [_DECLARED.search(each) for each in _separated(inside)]
            if all(declared):
                yield found[1], tuple(each[1] for each in declared if each is not None)
            break


def _enclosed(code: str, start: int) -> tuple[str, int]:
    """The text up to the parenthesis that closes the one before `start`, and where it ends."""
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if not depth:
            return code[start:place], place + 1
    return code[start:], len(code)


def _separated(inside: str) -> list[str]:
    """The declarations between the commas that no bracket encloses; none of an empty list or of (void)."""
    parts, open_brackets = [""], list[str]()
    for each in inside:
        if each in _CLOSING:
            open_brackets.append(_CLOSING[each])
        elif open_brackets and each == open_brackets[-1]:
            open_brackets.pop()
        if each == "," and not open_brackets:
            parts.append("")
        else:
            parts[-1] += each
    return [] if inside.strip() in ("", "void") else [each.strip() for each in parts]
