"""The two sides of the protocol agree."""

from __future__ import annotations

import re

from ptxgen.driver import protocol
from ptxgen.driver.build import NATIVE
from ptxgen.driver.protocol import Kind, Message

HEADER = (NATIVE / "standin.h").read_text()


def numbers(name: str) -> dict[str, int]:
    """The members of an enum of the header."""
    body = re.search(rf"enum {name} {{(.*?)}}", HEADER, re.DOTALL)
    assert body is not None
    return {word: int(number) for word, number in re.findall(r"(\w+) = (\d+)", body[1])}


def test_messages() -> None:
    assert numbers("Message") == {each.name: each.value for each in Message}


def test_kinds() -> None:
    assert numbers("Kind") == {f"{each.name}_MEMORY": each.value for each in Kind}


def test_sizes() -> None:
    # Of the structs of standin.h and module.c, as a C compiler lays them out on x86-64 and aarch64.
    assert (protocol.MACHINE.size, protocol.RANGE.size, protocol.LAUNCH.size) == (32, 24, 52)
    assert protocol.TENSORMAP.size == 8 + 88 + 40 + 16 + 40 + 16
    attributes = re.search(r"FUNCTION_ATTRIBUTES = (\d+)", HEADER)
    assert attributes is not None
    assert int(attributes[1]) == protocol.FUNCTION_ATTRIBUTES
