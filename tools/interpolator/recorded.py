"""Hashes of all outputs of the approximate functions on an H200, and the emulator's outputs in the same order.

Input n of a function of one .f32 is the number with the bits n, of one .f64 the number with the upper word n, of a
packed type the word n. Input n of a division is a pair that `pairs` makes of n. A chunk has the 2**20 inputs that begin
with the same 12 bits; a strided set has those that end with the same 12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic import functions, special
from ptxgen.emulator.arithmetic.formats import FORMATS

Inputs = NDArray[np.uint32]

FILE = Path(__file__).parents[2] / "tests/data/silicon/functions_h200.npz"
#: Chunks, and inputs of each.
CHUNKS, SIZE = 1 << 12, 1 << 20
#: Inputs that are computed at once: few enough for a cache.
BLOCK = 1 << 15

_Single = Callable[[Any, bool], Any]


def mixed(word: Inputs) -> Inputs:
    """A permutation of the words of 32 bits without visible order."""
    word = word ^ word >> np.uint32(16)
    word = word * np.uint32(0x7FEB352D)
    word = word ^ word >> np.uint32(15)
    word = word * np.uint32(0x846CA68B)
    return word ^ word >> np.uint32(16)


def pairs(n: Inputs) -> tuple[Inputs, Inputs]:
    """Two operands: any bits in even chunks, exponents at most 16 apart in odd ones."""
    a, b = mixed(n), mixed(n * np.uint32(0x9E3779B1) + np.uint32(0x7F4A7C15))
    near = ((b >> np.uint32(23)) + (a >> np.uint32(23) & np.uint32(31)) - np.uint32(16)) & np.uint32(255)
    return np.where(n >> np.uint32(20) & np.uint32(1), a & np.uint32(0x807FFFFF) | near << np.uint32(23), a), b


def _of_single(function: _Single, ftz: bool, n: Inputs) -> Inputs:
    return function(n.view(np.float32), ftz).view(np.uint32)


def _of_pair(function: Callable[[Any, Any, bool], Any], ftz: bool, n: Inputs) -> Inputs:
    a, b = pairs(n)
    return function(a.view(np.float32), b.view(np.float32), ftz).view(np.uint32)


def _of_halves(function: Callable[[Any], Any], format: str, n: Inputs) -> Inputs:
    low, high = (functions.of_half(function, n >> shift & np.uint32(0xFFFF), FORMATS[format]) for shift in _SHIFTS)
    return low | high.astype(np.uint32) << np.uint32(16)


_SHIFTS = (np.uint32(0), np.uint32(16))


def _of_double(function: Callable[[Any], Any], low: bool, n: Inputs) -> NDArray[np.uint64]:
    """With any lower word, or with zeros there."""
    words = n.astype(np.uint64) << np.uint64(32)
    return function((words | mixed(n) if low else words).view(np.float64)).view(np.uint64)


def _functions() -> dict[str, Callable[[Inputs], NDArray[Any]]]:
    singles: dict[str, _Single] = {
        "ex2": functions.power,
        "lg2": functions.logarithm,
        "rcp": functions.reciprocal,
        "rsqrt": functions.reciprocal_root,
        "sqrt": functions.root,
        "sin": functions.sine,
        "cos": functions.cosine,
    }
    found: dict[str, Callable[[Inputs], NDArray[Any]]] = {}
    for ftz, infix in ((False, ""), (True, ".ftz")):
        for name, function in singles.items():
            found[f"{name}.approx{infix}.f32"] = partial(_of_single, function, ftz)
        found[f"div.approx{infix}.f32"] = partial(_of_pair, functions.divide_fast, ftz)
        found[f"div.full{infix}.f32"] = partial(_of_pair, functions.divide_full, ftz)
    found["tanh.approx.f32"] = partial(_of_single, functions.hyperbolic_tangent, False)
    for name, function, format in (
        ("ex2.approx.f16", special.power, "f16"),
        ("ex2.approx.ftz.bf16", special.power, "bf16"),
        ("tanh.approx.f16", special.hyperbolic_tangent, "f16"),
        ("tanh.approx.bf16", special.hyperbolic_tangent, "bf16"),
    ):
        found[f"{name}x2"] = partial(_of_halves, function, format)
    for name, function in (("rcp", special.upper_reciprocal), ("rsqrt", special.upper_reciprocal_root)):
        for low, suffix in ((False, ""), (True, ".low")):
            found[f"{name}.approx.ftz.f64{suffix}"] = partial(_of_double, partial(functions.upper_half, function), low)
    found["rsqrt.approx.f64"] = partial(_of_double, functions.reciprocal_root_f64, True)
    return found


#: The emulator's outputs by function, as words: functions of numbers of inputs.
FUNCTIONS = _functions()


@cache
def _weights() -> NDArray[np.uint64]:
    count = np.arange(SIZE, dtype=np.uint64)
    return count * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03) | np.uint64(1)


@dataclass(frozen=True)
class Inputset:
    """2**20 inputs: a chunk, or a strided set."""

    number: int
    strided: bool = False

    def block(self, start: int) -> Inputs:
        count = np.arange(start, start + BLOCK, dtype=np.uint32)
        if self.strided:
            return count << np.uint32(12) | np.uint32(self.number)
        return count | np.uint32(self.number << 20)


def digest(function: str, inputs: Inputset) -> int:
    """The hash of the emulator's outputs: their sum with odd weights, both halves of which are combined."""
    total = np.uint64(0)
    with np.errstate(all="ignore"):
        for start in range(0, SIZE, BLOCK):
            words = FUNCTIONS[function](inputs.block(start)).astype(np.uint64)
            total += (words * _weights()[start : start + BLOCK]).sum(dtype=np.uint64)
    return int(folded(total))


def folded(total: Any) -> Any:
    return (total ^ total >> np.uint64(32)) & np.uint64(0xFFFFFFFF)


@cache
def load() -> dict[str, NDArray[Any]]:
    """What the H200 gave: `FUNCTION chunks` (4096 hashes), `FUNCTION strided` (64), all words of the 16-bit forms."""
    with np.load(FILE) as archive:
        return dict(archive)
