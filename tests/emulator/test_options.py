"""The options of `Emulator`: its docstring has every one, in a group, with its default."""

from __future__ import annotations

import inspect
import re

import pytest

from ptxgen import Emulator

GROUPS = re.findall(r"(?m)^    (\w[^:\n]*):\n\n((?:    - .*\n|      .*\n)+)", Emulator.__doc__ or "")
OPTIONS = {
    name: text for _, lines in GROUPS for name, text in re.findall(r"(?m)^    - `(\w+)` (\(.*(?:\n      .*)*)", lines)
}
PARAMETERS = dict(inspect.signature(Emulator).parameters)


def test_every_option_is_in_one_group() -> None:
    assert len(GROUPS) > 4
    assert sorted(OPTIONS) == sorted(PARAMETERS)
    assert all(len(re.findall("- `", lines)) <= 4 for _, lines in GROUPS)


@pytest.mark.parametrize("name", PARAMETERS)
def test_an_option_says_its_default(name: str) -> None:
    default = PARAMETERS[name].default
    said = OPTIONS[name].replace('"', "'")
    spellings = {
        "target": "(sm_100a", "multiprocessors": "(those of the target)", "memory_bytes": "(EMULATED_MEMORY, in bytes)",
        "max_steps": f"({default:,}, in" if isinstance(default, int) else "", "accept": "(none)", "observers": "(none)",
    }  # fmt: skip
    assert said.startswith((spellings.get(name, f"({default!r}"), f"({default!r}"))


@pytest.mark.parametrize(
    "unit", [("memory_bytes", "bytes"), ("timeout", "seconds"), ("advice", "factor"), ("max_steps", "blocks")]
)
def test_numbers_have_units(unit: tuple[str, str]) -> None:
    name, word = unit
    assert word in OPTIONS[name]
