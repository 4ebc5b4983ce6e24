"""Read the text of `nvdisasm -c -hex -plr -lrm narrow`: one listing with encodings and the life ranges of registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ptxgen.sass.listing import FILES, Function, Instruction, Registers

#: What nvdisasm is asked for; `-gp` cannot be had in the same call, so `lines` reads the line tables itself.
OPTIONS = ("-c", "-hex", "-plr", "-lrm", "narrow")
#: The same without life ranges, which nvdisasm 13 does not find in cubins of CUDA 12 and older.
PLAIN_OPTIONS = ("-c", "-hex")
#: The opcode of an instruction that nvdisasm prints as its encoding alone, as ldmatrix.s8.s4 by nvdisasm 13.5.
UNNAMED = "UNNAMED"
_SECTION = re.compile(r"^\s*\.section\s+\.text\.(\S+?),")
_LABEL = re.compile(r"^([\w.$@]+):")
_FIRST = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*/\* 0x([0-9a-f]{16}) \*/")
_SECOND = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")
_GUARD = re.compile(r"(@!?U?P[T0-9]+)\s+(.*)")
_NOTE = re.compile(r"\(\*\"(.*?)\"\*\)")
_TARGET = re.compile(r"`\(([^()]+)\)")
_LABELS_IN = re.compile(r"\.L_x_\d+")
#: In the life-range table: a register is read, written, or both.
_MARKS = re.compile(r"[v^x]")
_REUSE = re.compile(r"\.reuse\b")


class ListingError(ValueError):
    """Text that is not a listing of nvdisasm in the expected form."""


@dataclass
class _Columns:
    """Where the life-range table has which register: by file, the position of each column and its number."""

    #: (start of the file's part of the row, {offset: register}).
    files: dict[str, tuple[int, dict[int, int]]] = field(default_factory=dict)

    def read(self, row: str) -> Registers:
        """One row of the table, from its first `|` on."""
        parts = _cells(row)
        live, reads, writes = [0, 0, 0, 0], set[tuple[str, int]](), set[tuple[str, int]]()
        for position, (file, (_, numbers)) in enumerate(self.files.items()):
            if position >= len(parts):
                break
            part = parts[position]
            first = min(numbers, default=len(part))
            count = part[:first].strip()
            live[FILES.index(file)] = int(count) if count.isdigit() else 0
            for match in _MARKS.finditer(part, first):
                if (number := numbers.get(match.start())) is not None:
                    if match[0] != "^":
                        reads.add((file, number))
                    if match[0] != "v":
                        writes.add((file, number))
        return Registers(frozenset(reads), frozenset(writes), (live[0], live[1], live[2], live[3]))


def _cells(row: str) -> list[str]:
    """The parts of a row between `|`, from after the first one on; columns keep their positions."""
    return row.rstrip().removesuffix("|").split("|")


def _columns(header: Sequence[str]) -> _Columns:
    """The columns of a table from its header: names of files, then register numbers, digits from top to bottom."""
    rows = [_cells(row) for row in header]
    names = [name.strip() for name in rows[0]]
    found = _Columns()
    for position, name in enumerate(names):
        digits = [row[position] for row in rows[1:] if position < len(row) and re.search(r"\d", row[position])]
        numbers: dict[int, int] = {}
        width = max(map(len, digits), default=0)
        for offset in range(width):
            text = "".join(row[offset] for row in digits if offset < len(row) and row[offset].isdigit())
            if text:
                numbers[offset] = int(text)
        found.files[name] = (position, numbers)
    unknown = set(found.files) - set(FILES)
    if unknown:
        raise ListingError(f"nvdisasm lists register files that are not known: {', '.join(sorted(unknown))}")
    return found


@dataclass
class _Section:
    """A function while it is being read."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    subroutines: dict[str, int] = field(default_factory=dict)

    def finished(self) -> Function:
        return Function(self.name, tuple(self.instructions), self.labels, self.subroutines)


def parse(text: str, lines: Mapping[tuple[str, int], tuple[int | None, str]] | None = None) -> list[Function]:
    """The functions of a listing. `lines` gives PTX line and source by (function, address).

    Raises ListingError with the line that cannot be read.
    """
    found: list[_Section] = []
    columns = _Columns()
    header: list[str] = []
    pending: tuple[int, str, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        code, _, table = line.partition(" // |")
        if section := _SECTION.match(code):
            found.append(_Section(section[1]))
            header = []
            continue
        if not found:
            continue
        current = found[-1]
        if not code.strip() and table:
            header.append(table)
            if len(header) > 1 or re.search(r"GPR", table):
                columns = _columns([row for row in header if re.search(r"\w", row)])
            continue
        if match := _FIRST.match(code):
            pending = int(match[1], 16), match[2], int(match[3], 16)
        elif match := _SECOND.match(code):
            if pending is None:  # the first half of an instruction for which nvdisasm has no name
                place = current.instructions[-1].address + 16 if current.instructions else 0
                pending = place, UNNAMED, int(match[1], 16)
                continue
            address, written, low = pending
            word = low | int(match[1], 16) << 64
            registers = columns.read(table) if table else Registers()
            made = _instruction(len(current.instructions), address, written, word, registers)
            located = (lines or {}).get((current.name, address))
            current.instructions.append(replace(made, ptx_line=located[0], source=located[1]) if located else made)
            pending = None
        elif match := _LABEL.match(code):
            name, index = match[1], len(current.instructions)
            if name == f".text.{current.name}" or name == current.name:
                continue
            (current.labels if name.startswith(".L") else current.subroutines)[name] = index
        elif re.match(r"^\s*/\*[0-9a-f]{4,}\*/", code):
            raise ListingError(f"line {number}: an instruction without an encoding: {code.strip()}")
    return [each.finished() for each in found]


def _instruction(index: int, address: int, written: str, word: int, registers: Registers) -> Instruction:
    written = _REUSE.sub("", written)
    targets = tuple(_TARGET.findall(written))
    for note in _NOTE.findall(written):
        targets += tuple(_LABELS_IN.findall(note))
    written = _NOTE.sub("", written).strip().rstrip(";").strip()
    predicate = ""
    if match := _GUARD.match(written):
        predicate, written = match[1], match[2]
    mnemonic, _, rest = written.partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    return Instruction(
        index, address, predicate, opcode, tuple(modifiers), tuple(_operands(rest)), word, registers, targets=targets
    )


def _operands(text: str) -> Iterator[str]:
    """Operands at the commas that are not inside brackets or braces."""
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield text[start:position].strip()
            start = position + 1
    if last := text[start:].strip():
        yield last
