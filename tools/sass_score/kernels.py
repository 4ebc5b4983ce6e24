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
#: Line tables, and what cannot be in a module twice: variables, functions.
_LINES = re.compile(r"(?m)^\s*\.(?:file|loc)\b.*$")
_OPAQUE = re.compile(r"(?m)^\s*(?:\.visible\s+|\.weak\s+)?\.(?:global|const|func|shared|extern \.func)\b")
_SHARED = re.compile(r"\s*//.*$")
NEWEST = "9.3"
#: Names of files for line tables.
FILE = re.compile(r"(?m)^\s*\.file\b.*$")
#: Where the DWARF sections begin that compilers write behind the code.
_DEBUG = re.compile(r"^\s*\.section\s+\.debug", re.M)

#: (name, target): files of tests/data without suffix, or shipped kernels. Their words are changed.
SOURCES = (
    ("handwritten/groups", "sm_90a"), ("handwritten/language", "sm_90a"), ("handwritten/cub_sort", "sm_90a"),
    ("handwritten/warp_kit", "sm_90a"), ("handwritten/hopper_gemm", "sm_90a"), ("hopper/overlapped", "sm_90a"),
    ("hopper/ring", "sm_90a"), ("handwritten/dsmem_ring", "sm_90a"), ("blackwell/pair", "sm_100a"),
    ("blackwell/tilus-ring", "sm_100a"), ("blackwell/clc", "sm_100a"), ("handwritten/mxfp8_pair", "sm_100a"),
    ("handwritten/grid_barrier", "sm_80"), ("handwritten/cub_sort", "sm_86"), ("handwritten/grid_barrier", "sm_89"),
    ("handwritten/cub_sort", "sm_103a"), ("handwritten/grid_barrier", "sm_110a"), ("handwritten/cub_sort", "sm_121a"),
    ("handwritten/sm120_mxfp4", "sm_120a"), ("handwritten/tcgen05_attention", "sm_100a"),
)  # fmt: skip
#: Characters of PTX of the recorded kernels that share modules, and kernels in a module.
_LENGTHS, _TOGETHER = (1_500, 16_000), 12


@dataclass(frozen=True)
class Source:
    """PTX of one kernel, or of several, and what it is assembled for."""

    name: str
    target: str
    text: str

    @property
    def entry(self) -> str:
        match = _ENTRY.search(self.text)
        assert match is not None
        return match[1]

    @property
    def entries(self) -> list[str]:
        """The names of all kernels."""
        return _ENTRY.findall(self.text)


@functools.cache
def text_of(name: str) -> str:
    """The PTX of a recorded or shipped kernel, without the DWARF of its compiler."""
    path = DATA / f"{name}.ptx"
    text = path.read_text() if path.is_file() else find(name).plan().text
    if (match := _DEBUG.search(text)) is not None:
        text = text[: match.start()]
    return text


def modules() -> list[Source]:
    """Recorded kernels, by target, several in a module: k0_NAME, k1_NAME, ..."""
    by_target: dict[str, list[str]] = {}
    for folder in ("handwritten", "cases", "witnesses"):
        for path in sorted((DATA / folder).glob("*.ptx")):
            text = _LINES.sub("", text_of(f"{folder}/{path.stem}"))
            if len(_ENTRY.findall(text)) == 1 and _LENGTHS[0] < len(text) < _LENGTHS[1] and not _OPAQUE.search(text):
                by_target.setdefault(target_of(text) or "", []).append(text)
    return [
        _together(texts[start : start + _TOGETHER], target, f"{target} {start}")
        for target, texts in sorted(by_target.items())
        for start in range(0, len(texts), _TOGETHER)
    ]


def _together(texts: list[str], target: str, name: str) -> Source:
    heads: dict[str, None] = {}
    entries: list[str] = []
    for number, text in enumerate(texts):
        head, entry, _ = split(text)
        for line in head.split("\n"):
            if line.strip().startswith(".extern"):
                heads[_SHARED.sub("", line)] = None
        entries.append(renamed(entry, f"k{number}_{_ENTRY.findall(entry)[0]}"))
    head = f".version {NEWEST}\n.target {target}\n.address_size 64\n"
    return Source(name, target, head + "\n".join((*heads, *entries)))


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


def parts(text: str) -> tuple[str, list[str]]:
    """What stands before the first entry, and the entries."""
    head, entry, rest = split(text)
    found = [entry]
    while _ENTRY.search(rest):
        between, entry, rest = split(rest)
        found.append(between + entry)
    return head, [*found[:-1], found[-1] + rest]


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
