"""Call sites: what the stand-in sends of a launch's place in the program, in words."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path

from ptxgen.driver.names import short_name

#: Functions between a launch and the code that a person wrote.
_BETWEEN = re.compile(r"^(__device_stub__|_ZL?\d+__device_stub__|__wrapper__|cudaLaunch|_Z\w*cudaLaunch|_Z\d+__host__)")
_C_LIBRARY = re.compile(r"/libc[.-][^/]*$")


@lru_cache(maxsize=4096)
def describe(site: str, kernel: str) -> str:
    """`softmax.py:12 in main`, or `main` of a C++ program, with its line where there is debug information."""
    kind, _, rest = site.partition("\n")
    if kind == "python":
        place, _, function = rest.partition("\n")
        return _near(place) + (f" in {function}" if function and function != "<module>" else "")
    for line in rest.splitlines():
        path, _, offset = line.rpartition(" ")
        if _C_LIBRARY.search(path):  # such as memcpy, or the frame of a signal
            continue
        name, source = _symbol(path, int(offset, 16))
        shown = short_name(name)
        if not name or _BETWEEN.match(name) or _BETWEEN.match(shown) or shown == short_name(kernel):
            continue
        return f"{source} in {shown}" if source else shown
    return ""


def _near(place: str) -> str:
    """A path as seen from the working directory, if it is below that."""
    path, _, line = place.rpartition(":")
    return f"{os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path}:{line}"


def _symbol(path: str, offset: int) -> tuple[str, str]:
    """(mangled name, source line) of an address in a file."""
    table = _table(path)
    if table is None:
        return "", ""
    starts, names, lines = table
    index = bisect_right(starts, offset) - 1
    return (names[index] if index >= 0 else ""), _line(lines, offset)


def _line(lines: list[tuple[int, str]], offset: int) -> str:
    index = bisect_right(lines, offset, key=lambda each: each[0]) - 1
    return lines[index][1] if index >= 0 else ""


@lru_cache(maxsize=16)
def _table(path: str) -> tuple[list[int], list[str], list[tuple[int, str]]] | None:
    """The functions of an object file by address, and its source lines if it has debug information."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    try:
        with open(path if os.path.exists(path) else "/proc/self/exe", "rb") as file:
            elf = ELFFile(file)
            base = min((each["p_vaddr"] for each in elf.iter_segments() if each["p_type"] == "PT_LOAD"), default=0)
            symbols = {}
            for section in elf.iter_sections():
                if isinstance(section, SymbolTableSection):
                    for each in section.iter_symbols():
                        if each["st_info"]["type"] == "STT_FUNC" and each["st_value"]:
                            symbols[each["st_value"] - base] = each.name
            lines = _lines(elf, base)
    except (OSError, ELFError):
        return None
    ordered = sorted(symbols.items())
    return [address for address, _ in ordered], [name for _, name in ordered], lines


def _lines(elf: object, base: int) -> list[tuple[int, str]]:
    """(address, `main.cu:12`) from the debug information, sorted; empty without any."""
    from elftools.elf.elffile import ELFFile

    assert isinstance(elf, ELFFile)
    found: list[tuple[int, str]] = []
    if not elf.has_dwarf_info(strict=True):
        return found
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is None or state.end_sequence or not 0 <= state.file - first < len(files):
                continue
            name = files[state.file - first].name
            text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
            found.append((state.address - base, f"{Path(text).name}:{state.line}"))
    return sorted(found)
