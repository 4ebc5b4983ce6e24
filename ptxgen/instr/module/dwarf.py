"""The DWARF data of a module for `.target ..., debug`, as far as ptxas reads it: units and entries of `.debug_info`.

ptxas 13.5 walks the units of `.debug_info` by the abbreviations of `.debug_abbrev`, and ends where the bytes do. Other
sections, and modules without the option `debug`, it takes as they are (measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ptxgen import syntax
from ptxgen.instr.model.symbols import Problem
from ptxgen.syntax.lexer import integer_value

_INFO, _ABBREV = ".debug_info", ".debug_abbrev"
#: Bytes of a unit's header before DWARF 5, and of its length, version and offset among them.
_HEADER, _LENGTH = 11, 4
_LAST_VERSION = 5
#: Bytes of the forms of fixed size (DWARF 4, 7.5.4); the others have a length, or end with a bit or a zero.
_FIXED = {
    0x00: 0, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x10: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x17: 4,
    0x19: 0, 0x20: 8,
}  # fmt: skip
_ADDRESS, _BLOCK2, _BLOCK4, _STRING, _BLOCK, _BLOCK1, _SIGNED = 0x01, 0x03, 0x04, 0x08, 0x09, 0x0A, 0x0D
_UNSIGNED, _REFERENCE, _EXPRESSION = 0x0F, 0x15, 0x18


class _MalformedError(Exception):
    """What is wrong at a place of the data."""


class _Bytes:
    """The bytes of a section, and the place of the next one."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _MalformedError("the data ends within an entry")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def leb(self) -> int:
        """A number in groups of seven bits."""
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def dwarf_problem(module: syntax.Module) -> tuple[syntax.Statement, Problem] | None:
    """What is wrong with the entries of `.debug_info`; None for a module without them."""
    sections = [item for item in module.items if isinstance(item, syntax.Section)]
    info = [item for item in sections if item.name == _INFO]
    if not info or not any(item.name == _ABBREV for item in sections):
        return None
    places = _labels(sections)
    texts = {name: _data(sections, name, places) for name in (_INFO, _ABBREV)}
    try:
        _walk(_Bytes(texts[_INFO]), texts)
    except _MalformedError as error:
        return info[0], Problem("debug-data", f"{_INFO} must be DWARF for .target debug: {error}")
    return None


def _labels(sections: Iterable[syntax.Section]) -> dict[str, int]:
    """The offset of each label in its section."""
    places: dict[str, int] = {}
    ends: dict[str, int] = {}
    for section in sections:
        at = ends.get(section.name, 0)
        for each in section.statements:
            if isinstance(each, syntax.Label):
                places[each.name] = at
            elif isinstance(each, syntax.SectionData):
                at += len(each.values) * (int(each.type[1:]) // 8)
        ends[section.name] = at
    return places


def _data(sections: Iterable[syntax.Section], name: str, places: Mapping[str, int]) -> bytes:
    data = bytearray()
    for section in sections:
        for each in section.statements if section.name == name else ():
            if isinstance(each, syntax.SectionData):
                bits = int(each.type[1:])
                for text in each.values:
                    data += (_value(text, places) % (1 << bits)).to_bytes(bits // 8, "little")
    return bytes(data)


def _value(text: str, places: Mapping[str, int]) -> int:
    """A number, or the offset of a label, sum or difference of these; functions and sections begin at 0."""
    sign = -1 if text.startswith("-") else 1
    if text.lstrip("-")[:1].isdigit():
        return sign * integer_value(text.lstrip("-"))
    if "+" in text:
        name, _, offset = text.partition("+")
        return places.get(name, 0) + integer_value(offset)
    first, _, second = text.partition("-")
    return places.get(first, 0) - places.get(second, 0)


def _walk(info: _Bytes, texts: Mapping[str, bytes]) -> None:
    """Read unit after unit to the end of the section."""
    while info.at < len(info.data):
        start = info.at
        length = info.number(_LENGTH)
        if length < _HEADER - _LENGTH:
            raise _MalformedError(f"a unit of {length} bytes is shorter than its header")
        end = start + _LENGTH + length
        if end > len(info.data):
            raise _MalformedError(f"a unit of {length} bytes goes beyond the section")
        unit = _Bytes(info.data[:end], info.at)
        version = unit.number(2)
        if version > _LAST_VERSION:
            raise _MalformedError(f"version {version} of DWARF is unknown")
        if version < _LAST_VERSION:
            offset, address = unit.number(4), unit.number(1)
            if offset >= len(texts[_ABBREV]) > 0:
                raise _MalformedError(f"its abbreviations begin at {offset}, beyond the end of {_ABBREV}")
            _entries(unit, _abbreviations(texts[_ABBREV], offset), address)
        info.at = end


def _abbreviations(data: bytes, offset: int) -> dict[int, list[int]]:
    """The forms of each abbreviation, by its number."""
    read = _Bytes(data, offset)
    found: dict[int, list[int]] = {}
    while read.at < len(data):
        number = read.leb()
        if number == 0:
            break
        read.leb()
        read.take(1)
        forms = list(_forms(read))
        found.setdefault(number, forms)
    return found


def _forms(read: _Bytes) -> Iterator[int]:
    while True:
        attribute, form = read.leb(), read.leb()
        if attribute == 0:  # whatever the form (measured)
            return
        yield form


def _entries(unit: _Bytes, abbreviations: Mapping[int, list[int]], address: int) -> None:
    while unit.at < len(unit.data):
        number = unit.leb()
        if number == 0:
            continue
        if number not in abbreviations:
            return  # what ptxas makes of an abbreviation that is missing depends on what is in its memory
        for form in abbreviations[number]:
            _skip(unit, form, address)


def _skip(unit: _Bytes, form: int, address: int) -> None:
    """Step over the value of an attribute."""
    if form in _FIXED:
        unit.take(_FIXED[form])
    elif form == _ADDRESS:
        unit.take(address)
    elif form == _STRING:
        while unit.take(1) != b"\0":
            pass
    elif form in (_SIGNED, _UNSIGNED, _REFERENCE):
        unit.leb()
    elif form in (_BLOCK, _EXPRESSION):
        unit.take(unit.leb())
    elif form in (_BLOCK1, _BLOCK2, _BLOCK4):
        unit.take(unit.number({_BLOCK1: 1, _BLOCK2: 2, _BLOCK4: 4}[form]))
    else:
        raise _MalformedError(f"the form {form} of an attribute is unknown")
