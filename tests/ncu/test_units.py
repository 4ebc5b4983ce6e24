"""Units to base units, printed numbers, and numbers of other locales."""

from __future__ import annotations

import math

import pytest

from ptxgen.ncu.units import LocaleError, base_unit, check_locale, parse_number


@pytest.mark.parametrize(
    ("unit", "factor", "name"),
    [
        ("us", 1e3, "ns"),
        ("usecond", 1e3, "ns"),
        ("nsecond", 1, "ns"),
        ("ns", 1, "ns"),
        ("second", 1e9, "ns"),
        ("Ghz", 1e9, "hz"),
        ("hz", 1, "hz"),
        ("cycle/nsecond", 1e9, "hz"),
        ("cycle/second", 1, "hz"),
        ("Kbyte", 1e3, "byte"),
        ("Tbyte/s", 1e12, "byte/s"),
        ("byte/second", 1, "byte/s"),
        ("sector/ns", 1e9, "sector/s"),
        ("sectors", 1, "sector"),
        ("Kbyte/cycle", 1e3, "byte/cycle"),
        ("%/Kbyte", 1e3, "%/byte"),
        ("Kbyte/block", 1e3, "byte/block"),
        ("register/thread", 1, "register/thread"),
        ("%", 1, "%"),
        ("", 1, ""),
        ("SM", 1, "SM"),
        ("branches", 1, "branches"),
    ],
)
def test_base_units(unit: str, factor: float, name: str) -> None:
    assert base_unit(unit) == (pytest.approx(factor), name)


@pytest.mark.parametrize(
    ("text", "value", "resolution"),
    [
        ("1056", 1056, 0),
        ("1,056", 1056, 0),
        ("20,384,096,024.01", 20384096024.01, 0.005),
        ("174.656000", 174.656, 0.5e-6),
        ("-3.5", -3.5, 0.05),
        ("0", 0, 0),
        ("1.5e+09", 1.5e9, 0),
    ],
)
def test_numbers(text: str, value: float, resolution: float) -> None:
    found = parse_number(text)
    assert found is not None
    assert found.value == value
    assert found.resolution == pytest.approx(resolution)


@pytest.mark.parametrize("text", ["PolicySpread", "No-CC", "all", "1,05", "(256, 1, 1)", "1.2.3", "0x10", ""])
def test_text_is_no_number(text: str) -> None:
    assert parse_number(text) is None


def test_nan_is_a_number() -> None:
    found = parse_number("nan")
    assert found is not None
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (["42,66"], "a decimal comma"),
        (["1.234,56"], "a decimal comma"),
        (["1.234.567"], "points between thousands"),
        (["1'234"], "other separators between thousands"),
        (["1 234"], "other separators between thousands"),
        (["1\u202f234,5"], "a decimal comma"),
        (["12,34,567"], "other separators between thousands"),
        (["7", "1.234"], "no other number resolves it"),
    ],
)
def test_other_locales_are_refused(numbers: list[str], said: str) -> None:
    with pytest.raises(LocaleError, match=said):
        check_locale(enumerate(numbers, 1))


@pytest.mark.parametrize("numbers", [["1,234", "0.5"], ["1.234", "42.66"], ["1234", "0", "nan"], ["0.123"], ["text"]])
def test_english_numbers_pass(numbers: list[str]) -> None:
    check_locale(enumerate(numbers, 1))
