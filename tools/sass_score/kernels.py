"""Kernels whose cubins are changed: recorded ones, shipped ones, and the same for older and newer targets."""

from __future__ import annotations

import functools
import io
import re
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ptxgen.gemm import find
from ptxgen.toolchain import Cubin, assemble, target_of

DATA = Path(__file__).parents[2] / "tests" / "data"
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
#: Names of files for line tables.
FILE = re.compile(r"(?m)^\s*\.file\b.*$")
#: Where the DWARF sections begin that compilers write behind the code.
_DEBUG = re.compile(r"^\s*\.section\s+\.debug", re.M)

#: (name, target): files of tests/data without suffix, or shipped kernels.
SOURCES = (
    ("handwritten/groups", "sm_90a"), ("handwritten/hopper_gemm", "sm_90a"), ("handwritten/flash2", "sm_90a"),
    ("handwritten/language", "sm_90a"), ("handwritten/cub_sort", "sm_90a"), ("hopper/overlapped", "sm_90a"),
    ("handwritten/warp_kit", "sm_90a"), ("cases/t36_90_gemm_tf32_ptr", "sm_90a"),
    ("handwritten/blackwell_clc", "sm_100a"), ("handwritten/tcgen05_attention", "sm_100a"),
    ("handwritten/mxfp8_pair", "sm_100a"), ("blackwell/clc", "sm_100a"), ("blackwell/tilus-pair", "sm_100a"),
    ("cases/t36_100_attention_ws", "sm_100a"), ("handwritten/sm120_mxfp4", "sm_120a"),
    ("handwritten/ampere_splitk", "sm_80"), ("handwritten/ampere_splitk", "sm_86"),
    ("handwritten/ampere_splitk", "sm_89"), ("handwritten/ampere_splitk", "sm_103a"),
    ("handwritten/ampere_splitk", "sm_110a"), ("handwritten/ampere_splitk", "sm_121a"),
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """PTX of one kernel, and what it is assembled for."""

    name: str
    target: str
    text: str

    @property
    def entry(self) -> str:
        match = _ENTRY.search(self.text)
        assert match is not None
        return match[1]


@functools.cache
def text_of(name: str) -> str:
    """The PTX of a recorded or shipped kernel, without the DWARF of its compiler."""
    path = DATA / f"{name}.ptx"
    text = path.read_text() if path.is_file() else find(name).plan().text
    if (match := _DEBUG.search(text)) is not None:
        text = text[: match.start()]
    return text


@functools.cache
def recorded() -> list[tuple[str, str]]:
    """(name, target) of all kernels of tests/data with one entry."""
    found: list[tuple[str, str]] = []
    for folder in ("handwritten", "cases", "witnesses"):
        for path in sorted((DATA / folder).glob("*.ptx")):
            text = text_of(f"{folder}/{path.stem}")
            if len(_ENTRY.findall(text)) == 1 and (target := target_of(text)) is not None:
                found.append((f"{folder}/{path.stem}", target))
    return found


def source(name: str, target: str) -> Source:
    """A kernel for one target, whatever its own `.target` says."""
    return Source(name, target, re.sub(r"(?m)^(\s*\.target\s+)\w+", rf"\g<1>{target}", text_of(name), count=1))


def split(text: str) -> tuple[str, str, str]:
    """What stands before the first entry, the entry, and what stands behind it."""
    match = re.search(r"(?m)^\s*(?:\.(?:visible|weak|extern)\s+)?\.entry\b", text)
    assert match is not None
    end = text.index("{", match.start())
    depth = 1
    while depth:
        end += 1
        depth += (text[end] == "{") - (text[end] == "}")
    return text[: match.start()], text[match.start() : end + 1], text[end + 1 :]


def renamed(entry: str, name: str) -> str:
    """An entry under another name."""
    return _ENTRY.sub(f".entry {name}", entry, count=1)


def copies(each: Source, count: int) -> str:
    """A module with `count` copies of the kernel, named NAME_0, NAME_1, ..."""
    head, entry, rest = split(each.text)
    files = "".join(f"{line}\n" for line in FILE.findall(entry))
    entry = FILE.sub("", entry)
    parts = [renamed(entry, f"{each.entry}_{number}") for number in range(count)]
    return head + files + "\n".join(parts) + rest


def assembled(text: str, target: str, *options: str) -> Cubin:
    """The cubin of a text, with line tables."""
    return assemble(text, target, options=("-lineinfo", *options))


def text_offset(data: bytes, function: str) -> int:
    """Where the code of a function begins in a cubin."""
    section = ELFFile(io.BytesIO(data)).get_section_by_name(f".text.{function}")
    assert section is not None
    return int(section["sh_offset"])
