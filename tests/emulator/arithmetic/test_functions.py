"""The approximate functions against an H200: hashes of its outputs, and all words of the 16-bit forms.

`make functions` computes all inputs; here are a strided set and a chunk of each, 2**20 inputs apiece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.arithmetic import functions, special
from ptxgen.emulator.arithmetic.formats import FORMATS
from ptxgen.emulator.arithmetic.interpolator import LAYOUTS, SQUARED, coefficients, rows, truncated_square
from tools.interpolator.recorded import FUNCTIONS, Inputset, digest, load

#: Leading bits of inputs that fill a segment of each table: 0.25 to 2, both signs.
_CHUNKS = (0x3F9, 0x3E8, 0x3F4, 0x400, 0xBF6, 0x3FB)
_SLOW = "rsqrt.approx.f64"


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name != _SLOW])
def test_all_exponents(function: str) -> None:
    place = list(FUNCTIONS).index(function) * 7 % 64
    assert digest(function, Inputset(64 * place, strided=True)) == load()[f"{function} strided"][place]


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if not name.endswith(".low")])
def test_a_chunk(function: str) -> None:
    chunk = _CHUNKS[list(FUNCTIONS).index(function) % len(_CHUNKS)]
    assert digest(function, Inputset(chunk)) == load()[f"{function} chunks"][chunk]


HALVES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("ex2.approx.f16", special.power, "f16"),
    ("ex2.approx.ftz.bf16", special.power, "bf16"),
    ("tanh.approx.f16", special.hyperbolic_tangent, "f16"),
    ("tanh.approx.bf16", special.hyperbolic_tangent, "bf16"),
]


@pytest.mark.parametrize(("name", "function", "format"), HALVES, ids=lambda each: each if isinstance(each, str) else "")
def test_all_words_of_halves(name: str, function: Callable[[Any], Any], format: str) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    found = functions.of_half(function, words, FORMATS[format])
    assert np.array_equal(found, load()[f"{name} words"])


def test_one_bit_changes_the_hash() -> None:
    """A hash of 2**20 outputs tells when one bit of one of them is another."""
    inputs, name = Inputset(0x3F9), "rcp.approx.ftz.f32"
    original = FUNCTIONS[name]

    def changed(n: Any) -> Any:
        return original(n) ^ (n == 0x3F912345).astype(np.uint32) << np.uint32(3)

    FUNCTIONS["changed"] = changed
    try:
        assert digest("changed", inputs) != load()[f"{name} chunks"][0x3F9]
    finally:
        del FUNCTIONS["changed"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_sums_are_exact(name: str) -> None:
    """V by integers, and by the .f64 sums that the emulator makes of them."""
    layout, rng = LAYOUTS[name], np.random.default_rng(5)
    assert len(coefficients()[name]) == layout.segments
    index = rng.integers(0, layout.segments, 5000)
    x = rng.integers(0, 1 << layout.rest, 5000)
    c0, c1, c2 = coefficients()[name][index].T
    expected = (c0 << layout.shift) + c1 * x + c2 * truncated_square(x << (SQUARED - layout.rest)) + layout.bias
    assert np.array_equal(rows(name, scale=2.0**layout.fraction).segment(index, x), expected)
    assert int(np.abs(expected).max()) < 1 << 46


def test_truncated_square() -> None:
    """It is at most 8.5 units of 2**19 below the square, and never above it."""
    x = np.arange(1 << SQUARED)
    missing = x * x / 2.0**19 - truncated_square(x)
    assert missing.min() >= 0
    assert 8 < missing.max() <= 8.51


@pytest.mark.parametrize("name", ["reciprocal", "root", "reciprocal_root", "power", "logarithm", "sine"])
def test_scalars(name: str) -> None:
    """Constants are arrays without dimensions."""
    function = getattr(functions, name)
    several = function(np.array([1.7, 1.7], np.float32), False)
    one = function(np.array(1.7, np.float32), False)
    assert np.shape(one) == ()
    assert one == several[0]
