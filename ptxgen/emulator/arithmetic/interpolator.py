"""The unit behind MUFU: a table, a quadratic per segment, a truncated square.

A function's argument is reduced to a fraction of some bits. Its leading bits select a segment, the rest is x, and

    V = (c0 << shift) + c1 * x + c2 * square(x) + bias

with the integers c0, c1 and c2 of the segment. V is the value in fixed point; what does not fit in the result is cut
off. Coefficients, shifts and biases are those of an H200: they reproduce each of its outputs (measured, H200, driver
580.159.04, 2026-11-27). docs/hardware.md describes the tables, tools/interpolator finds them in outputs of a GPU.

Here V is a sum of .f64, exact because it has at most 46 bits.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]

#: Bits of the operand of the squarer.
SQUARED = 17


@dataclass(frozen=True)
class Layout:
    """The fixed-point format of one function's table."""

    name: str
    #: Bits of the fraction that select the segment. tanh has one number for each exponent of its argument: BINADES.
    index: int
    #: Bits of x, the rest of the fraction.
    rest: int
    #: Bits of V below the binary point.
    fraction: int
    #: Bits by which c0 is shifted to the left.
    shift: int
    #: Rounding constant, added to the last place of V.
    bias: int = 0

    @property
    def segments(self) -> int:
        return sum(1 << bits for bits in BINADES.values()) if self.name == "tanh" else 1 << self.index


#: The segments of tanh: the exponent of its argument, and how many bits of the mantissa select the segment.
BINADES = {-8: 0, -7: 0, -6: 0, -5: 1, -4: 1, -3: 2, -2: 2, -1: 2, 0: 3, 1: 4, 2: 3}

LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("rcp", index=7, rest=16, fraction=39, shift=13, bias=0x47E7),
        Layout("rsqrt", index=7, rest=17, fraction=40, shift=14, bias=0x7FFF),
        Layout("sqrt", index=7, rest=17, fraction=40, shift=15, bias=0xFFFF),
        Layout("ex2", index=6, rest=17, fraction=38, shift=13, bias=0x77E2),
        Layout("lg2", index=6, rest=17, fraction=38, shift=12, bias=0x3345),
        Layout("sin", index=6, rest=17, fraction=37, shift=11),
        Layout("tanh", index=0, rest=17, fraction=39, shift=13),
    )
}


def truncated_square(x: Any) -> Any:
    """x * x in units of 2**19, of whose partial products the low bits are missing."""
    x = np.asarray(x, np.int64)
    total = np.zeros_like(x)
    for bit in range(SQUARED):
        total += np.where(x >> bit & 1, x >> (SQUARED + 1 - bit), 0)
    return total >> 1


@cache
def squares(rest: int) -> Doubles:
    """The truncated square of each x of `rest` bits."""
    return truncated_square(np.arange(1 << rest) << (SQUARED - rest)).astype(np.float64)


@cache
def coefficients() -> dict[str, Integers]:
    """c0, c1 and c2 of each function, as rows of an array by segment."""
    found: dict[str, list[tuple[int, int, int]]] = {name: [] for name in LAYOUTS}
    for name, c0, c1, c2 in _rows():
        found[name].append((c0, c1, c2))
    return {name: np.array(rows, np.int64) for name, rows in found.items()}


def _rows() -> Iterator[tuple[str, int, int, int]]:
    text = files("ptxgen.emulator.arithmetic").joinpath("interpolator.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        yield row["function"], int(row["c0"]), int(row["c1"]), int(row["c2"])


@dataclass(frozen=True)
class Rows:
    """Segments in the order of the leading bits of a word, so that a shift finds them.

    Each coefficient is multiplied by the scale of its row: a power of two for the exponent of the result, and its sign.
    """

    c0: Doubles
    c1: Doubles
    c2: Doubles
    #: Bits of x.
    rest: int

    def at(self, words: Integers) -> Any:
        """V of words whose leading bits are an index of a row, and whose last bits are x."""
        return self.segment(words >> self.rest, words & ((1 << self.rest) - 1))

    def segment(self, index: Integers, x: Integers) -> Any:
        """V of the offset x in the segments of some rows."""
        total = self.c1.take(index)
        total *= x.astype(np.float64)
        total += self.c0.take(index)
        bent = self.c2.take(index)
        bent *= squares(self.rest).take(x)
        total += bent
        return total


def rows(name: str, segments: Integers | None = None, scale: Any = 1.0) -> Rows:
    """Rows of a function's segments, by default each once; V counts units of 1 / scale."""
    layout = LAYOUTS[name]
    c0, c1, c2 = (coefficients()[name] if segments is None else coefficients()[name][segments]).T
    unit = np.asarray(scale, np.float64) * 2.0**-layout.fraction
    return Rows(((c0 << layout.shift) + layout.bias) * unit, c1 * unit, c2 * unit, layout.rest)
