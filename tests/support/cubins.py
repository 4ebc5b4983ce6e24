"""Cubins of the recorded kernels, and cubins with one instruction changed."""

from __future__ import annotations

import functools
import io
import json
import re

from elftools.elf.elffile import ELFFile

from ptxgen.sass import Function, Listing, load
from ptxgen.toolchain import Cubin, assemble
from tests.support.paths import DATA


@functools.cache
def cubin(name: str) -> Cubin:
    """The cubin of a handwritten kernel, assembled once: ptxas does not always choose the same registers."""
    path = DATA / "handwritten" / f"{name}.ptx"
    target = json.loads(path.with_suffix(".json").read_text())["arch"]
    return assemble(path.read_text(), target, options=("-lineinfo",))


def starved(name: str) -> str:
    """The PTX of a handwritten kernel without the directives that would keep ptxas from giving it few registers."""
    text = (DATA / "handwritten" / f"{name}.ptx").read_text()
    return re.sub(r"^\s*\.(maxntid|reqntid|minnctapersm|maxnreg)\b.*$", "", text, flags=re.M)


@functools.cache
def listing(name: str) -> Listing:
    """The listing of a handwritten kernel, with the PTX."""
    return load(cubin(name), origin=name)


def text_offset(data: bytes, function: str) -> int:
    """Where the code of a function begins in a cubin."""
    section = ELFFile(io.BytesIO(data)).get_section_by_name(f".text.{function}")
    assert section is not None
    return int(section["sh_offset"])


def with_word(data: bytes, function: Function, index: int, word: int) -> bytes:
    """The cubin with another 128-bit word in the place of an instruction."""
    start = text_offset(data, function.name) + function.instructions[index].address
    return data[:start] + word.to_bytes(16, "little") + data[start + 16 :]
