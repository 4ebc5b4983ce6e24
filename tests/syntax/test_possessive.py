"""The patterns of the lexer and the parsers mean the same in every CPython from 3.11.0 on.

In 3.11.2 `(?:...)*+` and `(?:...)?+` go wrong where a pass fails halfway: `(?:a[0-9]++)?+` takes the a of "ab".
"""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import ptxgen.syntax

PATTERNS = {
    f"{module.name}.{name}": value.pattern
    for module in pkgutil.iter_modules(ptxgen.syntax.__path__)
    for name, value in vars(importlib.import_module(f"ptxgen.syntax.{module.name}")).items()
    if isinstance(value, re.Pattern)
}
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+")


def test_a_possessive_group_is_found() -> None:
    assert _POSSESSIVE_GROUP.search(r"x(?:y|(?:a[0-9]++)?+)")
    assert not _POSSESSIVE_GROUP.search(r"x(?:y|(?>(?:a\)++)?))")


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_has_a_possessive_group(name: str) -> None:
    found = _POSSESSIVE_GROUP.search(PATTERNS[name])
    assert found is None, PATTERNS[name][: found.end()]
