"""Units and numbers of Nsight Compute: scaled ones to base units, and what CSV pages print to numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
#: Seconds as ncu spells them, by version, in ns.
_TIMES = {
    "ns": 1.0,
    "nsecond": 1.0,
    "us": 1e3,
    "usecond": 1e3,
    "ms": 1e6,
    "msecond": 1e6,
    "s": 1e9,
    "second": 1e9,
}
_SCALED = re.compile(r"([KMGTP]?)(byte|hz|hertz|cycle|inst|sector|thread|block|warp|request)s?$")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a base unit: ns, hz, byte, cycle, %, byte/s, ... `resolution`: how far printing may put it off."""

    value: float
    unit: str
    resolution: float = 0.0


@cache
def base_unit(unit: str) -> tuple[float, str]:
    """(factor, base unit): "us" is (1000, "ns"), "Gbyte/s" (1e9, "byte/s"), "cycle/nsecond" (1e9, "hz")."""
    above, slash, below = unit.partition("/")
    if not slash:
        return _part(above)
    factor, above = _part(above)
    if below in _TIMES:  # rates are per second
        rate = factor * 1e9 / _TIMES[below]
        return rate, "hz" if above == "cycle" else f"{above}/s"
    # ncu prints 8190 %/byte as 8.19 %/Kbyte: the prefix is the number's.
    prefix, below = _part(below)
    return factor * prefix, f"{above}/{below}"


def _part(unit: str) -> tuple[float, str]:
    if unit in _TIMES:
        return _TIMES[unit], "ns"
    found = _SCALED.match(unit)
    if found is None:
        return 1.0, unit
    return _SCALES[found[1]], "hz" if found[2] == "hertz" else found[2]


# Numbers on CSV pages.

_PLAIN = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][+-]?\d+)?$")
#: Digits with separators: a number of some locale.
_NUMERIC = re.compile(r"[+-]?\d[\d.,'’\u00a0\u202f ]*\d$")
_THREE_DECIMALS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}$")


class LocaleError(ValueError):
    """Numbers that are not written as ncu writes them in English: a decimal comma, or points between thousands."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as printed; `resolution` is half a unit of its last digit, 0 for an integer."""

    value: int | float
    resolution: float


def parse_number(text: str) -> Number | None:
    """A number of a CSV page: digits, commas between thousands, a decimal point. None for other text."""
    if text in ("nan", "-nan"):
        return Number(float("nan"), 0.0)
    if text in ("inf", "-inf"):
        return Number(float(text), 0.0)
    if not _PLAIN.match(text):
        return None
    digits = text.replace(",", "")
    if "e" in digits.lower():
        return Number(float(digits), 0.0)
    _, point, decimals = digits.partition(".")
    return Number(float(digits), 0.5 * 10.0 ** -len(decimals)) if point else Number(int(digits), 0.0)


def check_locale(numbers: Iterable[tuple[int, str]]) -> None:
    """Raise LocaleError unless all numbers, given as (line, text), are written in English.

    "1.234" alone could be either: it is refused unless another number shows a decimal point.
    """
    unsure: tuple[int, str] | None = None
    sure = False
    for line, text in numbers:
        if not any(mark in text for mark in ".,'’\u00a0\u202f "):
            continue
        if _PLAIN.match(text):
            if _THREE_DECIMALS.match(text):
                unsure = unsure or (line, text)
            elif "." in text:
                sure = True
        elif _NUMERIC.match(text):
            raise LocaleError(f"line {line} has the number {text!r}, of a locale with {_separators(text)}")
    if unsure is not None and not sure:
        line, text = unsure
        raise LocaleError(
            f"line {line} has the number {text!r}, which may be one with a decimal point or with points "
            "between thousands, and no other number resolves it"
        )


def _separators(text: str) -> str:
    if re.search(r",\d+$", text) and not re.search(r",\d{3}$", text):
        return "a decimal comma"
    if "." in text and "," in text and text.rindex(",") > text.rindex("."):
        return "a decimal comma"
    if text.count(".") > 1:
        return "points between thousands"
    return "other separators between thousands"
