"""Comparison of descriptors and tensormaps, with the fields that differ, and snapshots of them in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptxgen import descriptors
from ptxgen.descriptors import Descriptor
from ptxgen.descriptors.reading import Reading, diff_text
from ptxgen.testing.snapshots import read_snapshots, write_snapshots


def assert_same_descriptor(actual: Descriptor, expected: Descriptor | int | bytes) -> None:
    """Two descriptors, or a descriptor and its bits, are equal.

        >>> from ptxgen.descriptors import SmemDescriptor
        >>> from ptxgen.testing import assert_same_descriptor
        >>> assert_same_descriptor(SmemDescriptor(start_address=0x400, swizzle="128B"), 0x4000400000000040)

    The AssertionError shows the fields that differ, `-` expected and `+` actual, and explains the actual one.
    """
    __tracebackhide__ = True
    if not isinstance(expected, int | bytes):
        if actual.encode() == expected.encode() and _context(actual) == _context(expected):
            return
        wanted = expected.reading
    else:
        if actual.encode() == expected:
            return
        wanted = type(actual).read(expected, **_context(actual))
    raise AssertionError(f"{diff_text(wanted, actual.reading)}\n\n{actual.explain()}")


def _context(made: Descriptor) -> dict[str, Any]:
    return {name: getattr(made, name) for name in type(made).contexts}


class Snapshots:
    """Descriptors of the tests of one file, kept in `__snapshots__/<name of the file>.json` next to it.

    With `update`, what differs or is missing is written, and nothing fails.
    """

    def __init__(self, test_file: Path, update: bool) -> None:
        self.path = test_file.parent / "__snapshots__" / f"{test_file.stem}.json"
        self.update = update

    def check(self, name: str, made: Descriptor) -> None:
        """A descriptor is that of the snapshot of this name. Raises AssertionError with the fields that differ."""
        __tracebackhide__ = True
        kept = read_snapshots(self.path)
        encoded = made.encode()
        bits = encoded.hex() if isinstance(encoded, bytes) else f"{encoded:#x}"
        now = {"type": type(made).__name__, "bits": bits, **_context(made)}
        if kept.get(name) == now:
            return
        if self.update:
            write_snapshots(self.path, {**kept, name: now})
            return
        if name not in kept:
            raise AssertionError(
                f"{self.path} has no snapshot {name!r}; pytest --update-descriptors writes it\n\n{made.explain()}"
            )
        raise AssertionError(
            f"{name} is not the descriptor of {self.path} (pytest --update-descriptors writes the new one)\n"
            f"{diff_text(_read(kept[name]), made.reading)}\n\n{made.explain()}"
        )


def _read(kept: dict[str, Any]) -> Reading:
    context = {name: value for name, value in kept.items() if name not in ("type", "bits")}
    bits = kept["bits"]
    encoded = int(bits, 16) if bits.startswith("0x") else bytes.fromhex(bits)
    return getattr(descriptors, kept["type"]).read(encoded, **context)
