"""Line tables of a cubin: which line of the PTX, and of its source, an instruction came from.

ptxas -lineinfo writes two tables in DWARF's format (version 2, section 6.2): `.nv_debug_line_sass` maps addresses to
lines of the PTX text, `.debug_line` to the files that `.file` and `.loc` name. Relocations name the function of a
sequence. nvdisasm reads them too, but not in the call that prints life ranges.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxgen.files import unescaped_path

#: Address, line, file (0 where the table is of the PTX text).
Row = tuple[int, int, str]


class LineTableError(ValueError):
    """A line table that ends early or has another version."""


@dataclass
class LineTable:
    """Rows by function, in the order of their addresses."""

    rows: dict[str, list[Row]] = field(default_factory=dict)

    def at(self, function: str, address: int) -> tuple[int, str] | None:
        """(line, file) of the instruction at an address of a function."""
        rows = self.rows.get(function)
        if not rows:
            return None
        position = bisect_right(rows, address, key=lambda row: row[0]) - 1
        return None if position < 0 else rows[position][1:]


class _Reader:
    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data, self.offset = data, offset

    def take(self, form: str) -> int:
        try:
            (value,) = struct.unpack_from("<" + form, self.data, self.offset)
        except struct.error:
            raise LineTableError(f"the line table ends at byte {self.offset}, in the middle of a value") from None
        self.offset += struct.calcsize("<" + form)
        return value

    def unsigned(self) -> int:
        """ULEB128."""
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """SLEB128."""
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if byte & 0x40 else value

    def text(self) -> str:
        end = self.data.find(b"\0", self.offset)
        if end < 0:
            raise LineTableError(f"the line table ends at byte {len(self.data)}, in the middle of a name")
        found = self.data[self.offset : end].decode("utf-8", "replace")
        self.offset = end + 1
        return found


def read_lines(data: bytes, symbols: dict[int, str]) -> LineTable:
    """A line table. `symbols` gives the function by the offset of each relocated address. Raises LineTableError."""
    table = LineTable()
    offset = 0
    while offset + 4 < len(data):
        offset = _program(data, offset, symbols, table)
    for rows in table.rows.values():
        rows.sort(key=lambda row: row[0])
    return table


def _program(data: bytes, offset: int, symbols: dict[int, str], table: LineTable) -> int:
    """One line program; where the next begins."""
    reader = _Reader(data, offset)
    end = reader.take("I") + reader.offset
    version = reader.take("H")
    if version not in (2, 3):
        raise LineTableError(f"the line table has DWARF version {version}; 2 and 3 are known")
    header_end = reader.take("I") + reader.offset
    unit, _, line_base, line_range, opcode_base = (reader.take(form) for form in "BBbBB")
    lengths = [reader.take("B") for _ in range(opcode_base - 1)]
    folders = list(_names(reader))
    files = [""]
    while name := reader.text():
        folder, _, _ = reader.unsigned(), reader.unsigned(), reader.unsigned()
        files.append(_joined(folders[folder - 1], name) if 0 < folder <= len(folders) else name)
    reader.offset = header_end
    address, line, file, function = 0, 1, 1, ""

    def emit() -> None:
        table.rows.setdefault(function, []).append((address, line, files[file] if file < len(files) else ""))

    while reader.offset < end:
        code = reader.take("B")
        if code >= opcode_base:
            address += (code - opcode_base) // line_range * unit
            line += line_base + (code - opcode_base) % line_range
            emit()
        elif code == 0:
            size = reader.unsigned()
            behind = reader.offset + size
            extended = reader.take("B") if size else 0
            if extended == 1:  # end_sequence
                address, line, file, function = 0, 1, 1, ""
            elif extended == 2:  # set_address
                function = symbols.get(reader.offset, function)
                address = reader.take("Q" if size == 9 else "I")
            reader.offset = behind
        elif code == 1:
            emit()
        elif code == 2:
            address += reader.unsigned() * unit
        elif code == 3:
            line += reader.signed()
        elif code == 4:
            file = reader.unsigned()
        elif code == 8:
            address += (255 - opcode_base) // line_range * unit
        elif code == 9:
            address += reader.take("H")
        else:
            for _ in range(lengths[code - 1]):
                reader.unsigned()
    return end


def _joined(folder: str, name: str) -> str:
    """The path of a file in a folder, with its characters outside ASCII.

    `.file` has those as bytes in octal (`\\303\\274`), and ptxas splits a path at the last slash of either kind.
    """
    split = re.search(r"\\[23][0-7]{2}$", folder) and re.match(r"[23][0-7]{2}", name)
    return unescaped_path(f"{folder}\\{name}" if split else f"{folder}/{name}")


def _names(reader: _Reader) -> Iterator[str]:
    while name := reader.text():
        yield name
