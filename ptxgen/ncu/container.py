"""The structure of a .ncu-rep file: blocks of Protocol Buffers messages.

Nsight Compute ships the description of its files (extras/FileFormat/*.proto); the numbers of fields below are from
there. NVIDIA's ncu-report package reads the metrics. It accepts an empty file without a word, does not say which ncu
wrote a report, and gives no cubin: these come from here.

A file: "NVR\\0", then a 32-bit size and the file header, then blocks. A block: a 32-bit size and its header, then
messages (a 32-bit size each) of `PayloadSize` bytes: first `NumSources` sources, then `NumResults` results.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ptxgen.ncu.schema import ReportError

MAGIC = b"NVR\0"
#: BlockHeader.
_NUM_SOURCES, _NUM_RESULTS, _SESSION, _PAYLOAD_SIZE = 1, 2, 3, 5
#: ReportSessionDetails, VersionInfo, ExecutableSettings; the command line of ncu itself stands in reports of 2025.3.
_VERSION_INFO, _PROVIDER, _VERSION = 8, 1, 2
_EXECUTABLE, _PATH, _ARGUMENTS = 9, 1, 3
_COMMAND_LINE = 11
#: SourceData.
_REFERENCE, _BINARY = 1, 4
#: ProfileResult, ProfilerClockStatusMessage.
_MANGLED, _SOURCE, _CLOCKS, _LOCKED = 5, 15, 25, 2

_Field = tuple[int, int | bytes]


@dataclass(frozen=True)
class Container:
    """What a file says beside its metrics. `cubins` are by reference; `results` in the order of the file."""

    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    cubins: Mapping[int, bytes] = field(default_factory=dict)
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One profiled launch: its kernel, the reference of its cubin, whether ncu locked the clocks (None: not said)."""

    mangled: str
    reference: int | None
    locked: bool | None


def read_container(data: bytes, name: str) -> Container:
    """The structure of a file. Raises ReportError where it is none, or cut short."""
    if not data.startswith(MAGIC):
        start = data[:8].hex(" ")
        raise ReportError(f"{name} is no .ncu-rep file: it begins with {start}, not with 'NVR' ({len(data)} bytes)")
    versions: dict[str, str] = {}
    command = ""
    cubins: dict[int, bytes] = {}
    results: list[Result] = []
    try:
        _, position = _sized(data, len(MAGIC))
        while position < len(data):
            raw, position = _sized(data, position)
            header = dict(_fields(raw))
            for number, value in _fields(_bytes(header.get(_SESSION))):
                if number == _VERSION_INFO:
                    info = dict(_fields(_bytes(value)))
                    versions[_text(info.get(_PROVIDER))] = _text(info.get(_VERSION))
                elif number == _EXECUTABLE:
                    settings = dict(_fields(_bytes(value)))
                    command = f"{_text(settings.get(_PATH))} {_text(settings.get(_ARGUMENTS))}".strip() or command
                elif number == _COMMAND_LINE:
                    command = command or _text(_bytes(value)).strip()
            end = position + _int(header.get(_PAYLOAD_SIZE))
            if end > len(data):
                raise _Truncated(end)
            sources, count = _int(header.get(_NUM_SOURCES)), _int(header.get(_NUM_RESULTS))
            index = 0
            while position < end:
                message, position = _sized(data, position)
                if index < sources:
                    source = dict(_fields(message))
                    cubins[_int(source.get(_REFERENCE))] = _bytes(source.get(_BINARY))
                elif index < sources + count:
                    results.append(_result(message))
                index += 1
    except _Truncated as error:
        raise ReportError(
            f"{name} is truncated: it has {len(data)} bytes, and what it announces ends at byte {error.end}"
        ) from None
    except (ValueError, IndexError):
        raise ReportError(f"{name} begins as a .ncu-rep file, but its blocks cannot be read: it is damaged") from None
    return Container(versions, command, cubins, tuple(results))


class _Truncated(Exception):
    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


def _sized(data: bytes, position: int) -> tuple[bytes, int]:
    """A message after its 32-bit size, and the position after it."""
    if position + 4 > len(data):
        raise _Truncated(position + 4)
    (size,) = struct.unpack_from("<I", data, position)
    end = position + 4 + size
    if end > len(data):
        raise _Truncated(end)
    return data[position + 4 : end], end


def _result(message: bytes) -> Result:
    found = dict(_fields(message))
    source = dict(_fields(_bytes(found.get(_SOURCE))))
    clocks = dict(_fields(_bytes(found.get(_CLOCKS)))) if _CLOCKS in found else {}
    locked = bool(_int(clocks[_LOCKED])) if _LOCKED in clocks else None
    return Result(_text(found.get(_MANGLED)), _int(source[_REFERENCE]) if _REFERENCE in source else None, locked)


# Protocol Buffers: (field number, value); a message, text or bytes is bytes, anything else an integer.


def _fields(message: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(message, position)
        elif kind == 2:
            size, position = _varint(message, position)
            value, position = message[position : position + size], position + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, position = int.from_bytes(message[position : position + size], "little"), position + size
        else:
            raise ValueError(f"wire type {kind}")
        if position > len(message) or key < 8:
            raise ValueError("a field ends past its message")
        yield key >> 3, value


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _int(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _text(value: int | bytes | None) -> str:
    return _bytes(value).decode("utf-8", "replace")
