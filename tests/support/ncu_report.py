"""Writes .ncu-rep files, after the description of the format that Nsight Compute ships (extras/FileFormat/*.proto).

NVIDIA's ncu-report package and ncu itself read what this writes; `ptxgen.ncu` shares no code with it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = int | float | str
#: What a report says of itself.
VERSION = "2025.3.1.0 (build 0) (synthetic)"
_PROCESS = 4711


@dataclass(frozen=True)
class WrittenMetric:
    """A value in ncu's base unit (ns, byte, hz, percent), and values of instances by key."""

    value: Value
    instances: Mapping[int | str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenRule:
    """`kind` as the format numbers it: 1 ok, 2 warning, 3 error, 4 optimization. `speedup`: (2 global, percent)."""

    identifier: str
    section: str
    message: str
    kind: int = 4
    speedup: tuple[int, float] | None = None


@dataclass(frozen=True)
class WrittenLaunch:
    """A launch. `sections`: (identifier, name, ((label, metric), ...)) in the order of the details page."""

    name: str
    metrics: Mapping[str, Value | WrittenMetric]
    mangled: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    cubin: bytes = b""
    rules: Sequence[WrittenRule] = ()
    sections: Sequence[tuple[str, str, Sequence[tuple[str, str]]]] = ()
    locked: bool | None = None


def write_report(launches: Sequence[WrittenLaunch], *, version: str = VERSION, command: str = "/bin/app") -> bytes:
    """The bytes of a .ncu-rep file."""
    process = _number(1, _PROCESS) + _text(2, "127.0.0.1") + _text(3, command)
    about = _message(8, _text(1, "Nsight Compute Target") + _text(2, version))
    about += _message(8, _text(1, "Display Driver Version") + _text(2, "580.1"))
    about += _message(9, _text(1, command))
    blocks = [_block(_message(3, about), [], process)]
    references: dict[bytes, int] = {}
    for each in launches:
        if each.cubin and each.cubin not in references:
            references[each.cubin] = len(references) + 1
            source = _number(1, references[each.cubin]) + _data(4, each.cubin) + _number(5, 9) + _number(6, 9 << 16)
            blocks.append(_block(_number(1, 1), [source], process))
    names = list(dict.fromkeys(name for each in launches for name in each.metrics))
    strings = b"".join(_text(1, name) for name in names)
    results = [
        _result(each, {name: number for number, name in enumerate(names)}, references.get(each.cubin, 0), index)
        for index, each in enumerate(launches)
    ]
    blocks.append(_block(_number(2, len(results)) + _message(4, strings), results, process))
    return b"NVR\0" + _sized(_number(1, 7)) + b"".join(blocks)


def _block(header: bytes, messages: Sequence[bytes], process: bytes) -> bytes:
    payload = b"".join(map(_sized, messages))
    return _sized(header + _number(5, len(payload)) + _message(6, process)) + payload


def _result(launch: WrittenLaunch, names: Mapping[str, int], reference: int, index: int) -> bytes:
    mangled = launch.mangled or launch.name
    made = _number(1, 1) + _number(2, 100 + index) + _number(3, 1) + _number(4, 1 + index)
    made += _text(5, mangled) + _text(6, mangled) + _text(7, launch.name) + _number(8, 3)
    made += _sizes(9, (0, 0, 0)) + _sizes(10, launch.grid) + _sizes(11, launch.block)
    for name, metric in launch.metrics.items():
        given = metric if isinstance(metric, WrittenMetric) else WrittenMetric(metric)
        entry = _number(1, names[name]) + _message(2, _value(given.value))
        for key, value in given.instances.items():
            entry += _message(3, _message(1, _value(key)) + _message(2, _value(value)))
        made += _message(13, entry)
    made += _message(15, _number(1, reference))
    for identifier, display, rows in launch.sections:
        header = _number(1, 1) + b"".join(_message(2, _text(1, name) + _text(2, label)) for label, name in rows)
        order = 10 * (1 + [each[0] for each in launch.sections].index(identifier))
        made += _message(17, _text(1, identifier) + _text(2, display) + _number(3, order) + _message(4, header))
    for rule in launch.rules:
        item = _message(1, _text(1, rule.message) + _number(2, rule.kind) + _number(3, 0))
        if rule.speedup is not None:
            kind, percent = rule.speedup
            item += _message(10, _number(1, kind) + _double(2, percent))
        about = _text(1, rule.identifier) + _text(2, rule.identifier)
        made += _message(19, about + _message(3, _message(1, item)) + _text(4, rule.section))
    if launch.locked is not None:
        made += _message(25, _number(1, 1) + _number(2, int(launch.locked)))
    return made


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return _text(1, value)
    return _double(3, value) if isinstance(value, float) else _number(5, value)


def _sizes(number: int, sizes: tuple[int, int, int]) -> bytes:
    return _message(number, b"".join(_number(axis + 1, size) for axis, size in enumerate(sizes)))


def _varint(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _data(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


_message = _data


def _text(number: int, value: str) -> bytes:
    return _data(number, value.encode())


def _sized(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message
