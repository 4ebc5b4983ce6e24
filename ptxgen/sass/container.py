"""Where SASS comes from: PTX text, a cubin, another ELF file, or a fatbin; and the cache of disassembled cubins."""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from ptxgen.files import ptx_of_dump, read_file
from ptxgen.sass.cache import keep, kept, place
from ptxgen.sass.dumps import is_dump, read_dump
from ptxgen.sass.fatbin import FatbinError, entries, is_fatbin
from ptxgen.sass.lines import LineTable, LineTableError, read_lines
from ptxgen.sass.listing import Function, Instruction, Listing, Registers
from ptxgen.sass.parse import OPTIONS, PLAIN_OPTIONS, ListingError, parse
from ptxgen.toolchain import Cubin, DisassemblerError, assemble, disassemble

_ELF = b"\x7fELF"
_EM_CUDA = 190
#: Attributes of `.nv.info`: what each function uses.
_REGCOUNT, _FRAME_SIZE = 0x2F, 0x11


class ContainerError(ValueError):
    """Bytes that hold no SASS which can be read: what is there instead, and what is expected."""


def load(
    source: str | os.PathLike[str] | bytes | Cubin,
    *,
    target: str | None = None,
    origin: str | None = None,
    cache: bool = True,
) -> Listing:
    """The listing of a file (PTX, cubin, ELF, fatbin, dump of cuobjdump), of bytes, or of what `ptxgen.assemble` made.

    PTX is assembled with line tables, for its own target or `target`. Of a fatbin with several targets `target` picks
    one. Listings are cached by the bytes of the cubin and of nvdisasm (PTXGEN_CACHE names the folder; empty: none).
    Raises ContainerError, AssemblerError for PTX that ptxas refuses, ToolNotFoundError without nvdisasm.
    """
    ptx = log = ""
    if isinstance(source, Cubin):
        data, name, log = source.data, origin or "cubin", source.log
    elif isinstance(source, bytes):
        data, name = source, origin or "bytes"
    else:
        path = Path(source)
        name = origin or str(source)
        try:
            data = read_file(path)
        except OSError as error:
            raise ContainerError(f"{name}: {error.strerror or error}") from None
    if not data:
        raise ContainerError(f"{name} is empty; it must be PTX, a cubin, an ELF file or a fatbin")
    if not data.startswith(_ELF) and not is_fatbin(data) and (text := _text_of(data)) is not None:
        try:
            if is_dump(text):
                return read_dump(text, name, target)
            ptx = ptx_of_dump(text, target)
        except ValueError as error:
            raise ContainerError(f"{name}: {error}") from None
        cubin = assemble(ptx, target, options=("-lineinfo",))
        data, log = cubin.data, cubin.log
    elf = data if data.startswith(_ELF) and _machine(data, name) == _EM_CUDA else _extract(data, name, target)
    return replace(_disassembled(elf, name, cache=cache), ptx=ptx or _embedded(elf), log=log)


def _text_of(data: bytes) -> str | None:
    """The bytes as text, if they are PTX or a dump; else None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if re.search(r"^\s*\.(version|target)\b|^Fatbin \w+ code:", text, re.M) or is_dump(text) else None


def _open(data: bytes, name: str) -> ELFFile:
    try:
        return ELFFile(io.BytesIO(data))
    except (ELFError, struct.error, UnicodeDecodeError) as error:
        raise ContainerError(
            f"{name}: the ELF file is truncated or damaged ({error or type(error).__name__})"
        ) from None


def _machine(data: bytes, name: str) -> int:
    if len(data) < 64:
        raise ContainerError(f"{name}: the ELF file is truncated: {len(data)} bytes, its header alone has 64")
    segments, sections = struct.unpack_from("<QQ", data, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", data, 54)
    end = max(segments + segment_size * segment_count, sections + section_size * section_count)
    if end > len(data):
        raise ContainerError(
            f"{name}: the ELF file is truncated: it has {len(data)} bytes, and its headers end at byte {end}"
        )
    return struct.unpack_from("<H", data, 18)[0]


# Fatbins.


def _extract(data: bytes, name: str, target: str | None) -> bytes:
    """The cubin in a fatbin, or in a host's object file that has one. Raises ContainerError."""
    if data.startswith(_ELF):
        elf = _open(data, name)
        sections = [section for section in elf.iter_sections() if section.name in (".nv_fatbin", "__nv_relfatbin")]
        if not sections:
            raise ContainerError(f"{name} is an ELF file for another machine, without a section .nv_fatbin")
        data = b"".join(section.data() for section in sections)
    if not is_fatbin(data):
        start = data[:16].hex(" ")
        raise ContainerError(
            f"{name} is neither PTX, nor an ELF file, nor a fatbin: it begins with {start} ({len(data)} bytes)"
        )
    try:
        cubins = [each for each in entries(data) if each.kind == "elf"]
        have = ", ".join(f"sm_{each.architecture}" for each in cubins) or "none"
        if target is not None:
            wanted = int(re.sub(r"\D", "", target) or 0)
            cubins = [each for each in cubins if each.architecture == wanted]
        if len(cubins) != 1:
            what = f"no cubin{f' for {target}' if target else ''}" if not cubins else f"{len(cubins)} cubins"
            raise ContainerError(f"{name} has {what}; its cubins: {have}; name a target")
        return cubins[0].image()
    except FatbinError as error:
        raise ContainerError(f"{name}: {error}") from None


# Cubins.


class _Row(TypedDict):
    name: str
    instructions: list[list[object]]
    labels: dict[str, int]
    subroutines: dict[str, int]
    is_entry: bool
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int | None
    code_bytes: int
    padding: list[str]


def _disassembled(data: bytes, name: str, *, cache: bool) -> Listing:
    """The listing of a cubin, from the cache if it is there."""
    path = place("listing", data) if cache else None
    if isinstance(known := kept(path), dict):
        return _from_json(known, name)
    elf = _open(data, name)
    try:
        text, live = _text(data)
        functions = parse(text) if live else [_trimmed(each) for each in parse(text)]
    except (DisassemblerError, ListingError) as error:
        raise ContainerError(f"{name}: {error}") from None
    listing = Listing(name, _target(text, name), tuple(_described(elf, functions, name)), has_life_ranges=live)
    if path is not None:
        keep(path, _to_json(listing))
    return listing


def _text(data: bytes) -> tuple[str, bool]:
    """What nvdisasm prints, and whether it has life ranges. Raises DisassemblerError."""
    try:
        return disassemble(data, options=OPTIONS), True
    except DisassemblerError as error:
        if "life ranges" not in str(error):
            raise
        return disassemble(data, options=PLAIN_OPTIONS), False


def _trimmed(function: Function) -> Function:
    """A function without the NOPs that fill its section, which nvdisasm lists where it has no life ranges."""
    count = len(function.instructions)
    while count and function.instructions[count - 1].opcode == "NOP":
        count -= 1
    return replace(function, instructions=function.instructions[:count])


def _target(text: str, name: str) -> str:
    """The architecture that nvdisasm names."""
    if found := re.search(r"^\s*\.target\s+(\w+)", text, re.M):
        return found[1]
    if found := re.search(r"^\s*\.headerflags\s.*\bEF_CUDA_SM(\d+)\b", text, re.M):  # CUDA 12 and older
        return f"sm_{found[1]}{'a' if 'EF_CUDA_ACCELERATORS' in found[0] else ''}"
    raise ContainerError(f"{name}: nvdisasm's listing names no architecture")


def _described(elf: ELFFile, functions: list[Function], name: str) -> Iterator[Function]:
    """The functions with what the ELF file says of them: lines, registers, stack, shared memory."""
    numbers = _symbol_numbers(elf)
    uses = {attribute: _attribute(elf, attribute) for attribute in (_REGCOUNT, _FRAME_SIZE)}
    ptx_lines, source_lines = (_lines(elf, section, name) for section in (".nv_debug_line_sass", ".debug_line"))
    for function in functions:
        symbol = numbers.get(function.name, -1)
        shared = elf.get_section_by_name(f".nv.shared.{function.name}")
        code = elf.get_section_by_name(f".text.{function.name}")
        yield replace(
            function,
            instructions=tuple(
                _located(each, function.name, ptx_lines, source_lines) for each in function.instructions
            ),
            is_entry=elf.get_section_by_name(f".nv.constant0.{function.name}") is not None,
            registers=uses[_REGCOUNT].get(symbol),
            stack_bytes=uses[_FRAME_SIZE].get(symbol),
            shared_bytes=int(shared["sh_size"]) if shared is not None else 0,
            code_bytes=int(code["sh_size"]) if code is not None else 0,
            padding=_padding(function, code.data() if code is not None else b""),
        )


def _padding(function: Function, code: bytes) -> tuple[int, ...]:
    """The words of a section that are not listed."""
    listed = {each.address for each in function.instructions}
    return tuple(
        int.from_bytes(code[place : place + 16], "little") for place in range(0, len(code), 16) if place not in listed
    )


def _located(each: Instruction, function: str, ptx: LineTable, source: LineTable) -> Instruction:
    line, place = ptx.at(function, each.address), source.at(function, each.address)
    if line is None and place is None:
        return each
    return replace(each, ptx_line=line[0] if line else None, source=f"{place[1]}:{place[0]}" if place else "")


def _symbol_numbers(elf: ELFFile) -> dict[str, int]:
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return {}
    return {symbol.name: number for number, symbol in enumerate(table.iter_symbols()) if symbol.name}


def _attribute(elf: ELFFile, wanted: int) -> dict[int, int]:
    """An attribute of `.nv.info` by the number of the function's symbol."""
    section = elf.get_section_by_name(".nv.info")
    found: dict[int, int] = {}
    data = section.data() if section is not None else b""
    position = 0
    while position + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, position)
        position += 4
        if form != 4:  # a value of its own, in the place of the size
            continue
        if attribute == wanted and size >= 8:
            symbol, value = struct.unpack_from("<II", data, position)
            found[symbol] = value
        position += size
    return found


def _lines(elf: ELFFile, section: str, name: str) -> LineTable:
    found = elf.get_section_by_name(section)
    if found is None:
        return LineTable()
    relocations = elf.get_section_by_name(f".rela{section}") or elf.get_section_by_name(f".rel{section}")
    symbols: dict[int, str] = {}
    table = elf.get_section_by_name(".symtab")
    if isinstance(relocations, RelocationSection) and isinstance(table, SymbolTableSection):
        for each in relocations.iter_relocations():
            symbol = table.get_symbol(each["r_info_sym"])
            names = symbol.name or elf.get_section(symbol["st_shndx"]).name
            symbols[int(each["r_offset"])] = names.removeprefix(".text.")
    try:
        return read_lines(found.data(), symbols)
    except LineTableError as error:
        raise ContainerError(f"{name}: {section}: {error}") from None


def _embedded(data: bytes) -> str:
    """The PTX text that -lineinfo keeps in a cubin, without its comments; empty if there is none."""
    section = _open(data, "cubin").get_section_by_name(".nv_debug_ptx_txt")
    return section.data().replace(b"\0", b"\n").decode("utf-8", "replace") if section is not None else ""


# The cache.


def _to_json(listing: Listing) -> dict[str, object]:
    """A listing as the cache has it."""
    rows: list[_Row] = [
        {
            "name": each.name,
            "instructions": [_packed(instruction) for instruction in each.instructions],
            "labels": dict(each.labels),
            "subroutines": dict(each.subroutines),
            "is_entry": each.is_entry,
            "registers": each.registers,
            "stack_bytes": each.stack_bytes,
            "shared_bytes": each.shared_bytes,
            "code_bytes": each.code_bytes,
            "padding": [f"{word:x}" for word in each.padding],
        }
        for each in listing.functions
    ]
    return {"target": listing.target, "has_life_ranges": listing.has_life_ranges, "functions": rows}


def _packed(each: Instruction) -> list[object]:
    registers = each.registers
    return [
        each.address, each.predicate, each.mnemonic, each.operands, f"{each.word:x}", sorted(registers.reads),
        sorted(registers.writes), registers.live, each.ptx_line, each.source, each.targets,
    ]  # fmt: skip


def _from_json(kept: dict[str, object], name: str) -> Listing:
    functions: list[Function] = []
    rows = kept["functions"]
    assert isinstance(rows, list)
    for row in rows:
        packed, padding = row.pop("instructions"), tuple(int(word, 16) for word in row.pop("padding"))
        functions.append(
            Function(instructions=tuple(_unpacked(i, each) for i, each in enumerate(packed)), padding=padding, **row)
        )
    return Listing(name, str(kept["target"]), tuple(functions), has_life_ranges=bool(kept.get("has_life_ranges", True)))


def _unpacked(index: int, row: list) -> Instruction:  # type: ignore[type-arg]
    address, predicate, mnemonic, operands, word, reads, writes, live, line, source, targets = row
    opcode, *modifiers = mnemonic.split(".")
    registers = Registers(frozenset(map(tuple, reads)), frozenset(map(tuple, writes)), tuple(live))
    return Instruction(
        index,
        address,
        predicate,
        opcode,
        tuple(modifiers),
        tuple(operands),
        int(word, 16),
        registers,
        line,
        source,
        tuple(targets),
    )
