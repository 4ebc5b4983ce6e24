"""`--arg NAME=struct:...`: a structure that a kernel takes by value, member by member."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptxgen.cli.common.files import reason
from ptxgen.cli.errors import InputError, nearest
from ptxgen.device.arrays import DeviceArrayError, array_dtype
from ptxgen.dtypes import DTYPES
from ptxgen.files import read_file, similar_file

FORM = "struct:[NAME=]TYPE:VALUE,... such as struct:u64:@x,u32:512,f32:1.5, or struct:FILE.json"
Number = int | float


@dataclass(frozen=True)
class Member:
    """A member of a structure: its PTX type, and its values; `array` is the one whose address it holds instead."""

    type: str
    values: tuple[Number, ...] = ()
    array: str = ""


@dataclass(frozen=True)
class StructValue:
    """The members of a structure in order, each aligned to its size as C++ aligns it."""

    members: tuple[Member, ...]

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays whose addresses it holds."""
        return tuple(each.array for each in self.members if each.array)

    def encode(self, addresses: Mapping[str, int]) -> bytes:
        """The bytes, with padding as in C++. Raises InputError for a number that its type does not have."""
        made = bytearray()
        widest = 1
        for each in self.members:
            dtype = np.dtype(np.uint64) if each.array else array_dtype(each.type)
            widest = max(widest, dtype.itemsize)
            made += bytes(-len(made) % dtype.itemsize)
            values = (addresses[each.array],) if each.array else each.values
            try:
                whole = dtype.kind in "iu"
                made += (np.array(values, dtype) if whole else np.array(values).astype(dtype)).tobytes()
            except OverflowError:
                raise InputError(f"{each.values} is out of range of .{each.type}") from None
        return bytes(made + bytes(-len(made) % widest))


def parse_struct(text: str) -> StructValue:
    """What follows `struct:`. Raises InputError."""
    members = list(_from_file(text) if text.endswith(".json") else map(_member, text.split(",")))
    if not members:
        raise InputError(f"a structure is {FORM}")
    return StructValue(tuple(members))


def _member(word: str) -> Member:
    _, named, plain = word.partition("=")  # a name is for the reader
    type, colon, value = (plain if named else word).partition(":")
    if not colon or not value:
        raise InputError(f"{word!r} is no member; a structure is {FORM}")
    return _made(type, value)


def _made(type: str, value: object) -> Member:
    """A member of a type with a number, several, or @ARRAY. Raises InputError."""
    if type not in DTYPES:
        raise InputError(f"there is no type {type!r}{nearest(type, DTYPES)}; a structure is {FORM}")
    try:
        whole = array_dtype(type).kind in "iub"
    except DeviceArrayError as error:
        raise InputError(str(error)) from None
    if isinstance(value, str) and value.startswith("@"):
        if type not in ("u64", "b64", "s64"):
            raise InputError(f"{type}:{value}: an address has 64 bits; write u64:{value}")
        return Member(type, array=value[1:])
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    try:
        numbers = [_number(each, whole=whole) for each in values]
    except (TypeError, ValueError):
        raise InputError(f"{value!r} is no value of .{type}") from None
    return Member(type, tuple(numbers))


def _number(value: object, *, whole: bool) -> Number:
    """Raises TypeError, ValueError."""
    if isinstance(value, str):
        return int(value, 0) if whole else float(value)
    if not isinstance(value, int | float) or (whole and value != int(value)):
        raise TypeError
    return int(value) if whole else float(value)


def _from_file(path: str) -> Iterator[Member]:
    """The members of a JSON file: [TYPE, VALUE] pairs, or {NAME: [TYPE, VALUE]}; a VALUE may be a list. InputError."""
    try:
        found = json.loads(read_file(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}{similar_file(path)}") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from None
    rows = list(found.values()) if isinstance(found, dict) else found
    for row in rows if isinstance(rows, list) else [rows]:
        match row:
            case [str(type), value] | {"type": str(type), "value": value}:
                yield _made(type, value)
            case _:
                raise InputError(f'{path}: a member is ["u32", 512] or {{"type": "u32", "value": 512}}, not {row!r}')
