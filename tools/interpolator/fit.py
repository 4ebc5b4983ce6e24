"""Find the interpolator's coefficients in outputs of a GPU: `python -m tools.interpolator.fit FOLDER`.

FOLDER has the files that tools/interpolator/dump.cu writes. Least squares over the 2**16 or 2**17 outputs of a segment
give c1 and c2 to far less than their last place; c0 is the integer with which every output of the segment is right.
A segment for which none exists ends the search: nothing is approximated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic import functions, special
from ptxgen.emulator.arithmetic.interpolator import BINADES, LAYOUTS, SQUARED, Integers, Layout, truncated_square
from tools.interpolator.outputs import Outputs

TABLE = Path(__file__).parents[2] / "ptxgen/emulator/arithmetic/interpolator.csv"
ONE = 0x3F800000
BINADE = 1 << 23


@dataclass(frozen=True)
class Segment:
    """What V must be: at least `low`, and less than `high`, at each offset x."""

    x: Integers
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def solve(layout: Layout, segment: Segment, step: int = 1) -> tuple[int, int, int]:
    """The coefficients with which V / 2**fraction lies between the bounds everywhere; c2 is a multiple of `step`."""
    x = segment.x.astype(np.float64)
    square = truncated_square(segment.x << (SQUARED - layout.rest)).astype(np.float64)
    scale = 2.0**layout.fraction
    low, high = segment.low * scale, segment.high * scale
    origin = low[0]
    weight = 1 / (high - low)
    columns = np.stack([np.ones_like(x), x / x.max(), square / square.max()], 1)
    estimate, *_ = np.linalg.lstsq(columns * weight[:, None], ((low + high) / 2 - origin) * weight, rcond=None)
    c1, c2 = estimate[1] / x.max(), estimate[2] / square.max()
    for first, second in _nearest(c1, c2, step):
        rest = first * x + second * square + layout.bias
        unit = 1 << layout.shift
        least = int(np.ceil((low - rest).max() / unit))
        most = int(np.ceil((high - rest).min() / unit)) - 1
        if least <= most:
            if least != most:
                print(f"  {layout.name}: c0 from {least} to {most}")
            return least, first, second
    raise SystemExit(f"{layout.name}: no coefficients near {c1:.4f}, {c2:.4f}")


def _nearest(c1: float, c2: float, step: int) -> Iterator[tuple[int, int]]:
    """Integers near the estimates, nearest first."""
    first, second = round(c1), step * round(c2 / step)
    for a in (0, 1, -1, 2, -2):
        for b in (0, step, -step, 2 * step, -2 * step):
            yield first + a, second + b


def bounds(words: NDArray[np.uint32], scale: float = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The values that are cut off to these .f32, multiplied by `scale`."""
    low = words.view(np.float32).astype(np.float64) * scale
    return low, (words + np.uint32(1)).view(np.float32).astype(np.float64) * scale


def mantissas(layout: Layout, outputs: Outputs, function: str, scale: float) -> Iterator[Segment]:
    """Segments of a function of the mantissa alone, over one or two binades."""
    count = layout.segments << layout.rest
    words = np.concatenate([outputs.range(function, ONE + at, BINADE) for at in range(0, count, BINADE)])
    low, high = bounds(words, scale)
    if layout.name == "lg2":  # of 38 bits of V 36 are left
        high = np.maximum(high, low + 2.0**-36)
    offset = np.arange(1 << layout.rest)
    for index in range(layout.segments):
        at = (index << layout.rest) + offset
        if index == 0:
            at = at[1:]  # 1.0 has results of its own
        yield Segment(at & ((1 << layout.rest) - 1), low[at], high[at])


def quarters(layout: Layout, outputs: Outputs) -> Iterator[Segment]:
    """Segments of the sine: fractions of a quarter turn."""
    fractions, words = [], []
    for function, cosine in (("sin.approx.ftz.f32", False), ("cos.approx.ftz.f32", True)):
        for start in (ONE - BINADE, ONE):
            angle = np.arange(start, start + BINADE, dtype=np.uint32).view(np.float32)
            fraction, _ = special.quarter(functions.turns(angle), cosine)
            fractions.append(fraction)
            words.append(outputs.range(function, start, BINADE) & np.uint32(0x7FFFFFFF))
    every, first = np.unique(np.concatenate(fractions), return_index=True)
    low, high = bounds(np.concatenate(words)[first])
    high = np.maximum(high, low + 2.0**-layout.fraction)
    for index in range(layout.segments):
        here = (every >> layout.rest) == index
        yield Segment(every[here] & ((1 << layout.rest) - 1), low[here], high[here])


def binades(layout: Layout, outputs: Outputs) -> Iterator[Segment]:
    """Segments of tanh: the lowest bits of arguments do not count."""
    offset = np.arange(1 << layout.rest)
    for exponent, bits in BINADES.items():
        words = outputs.range("tanh.approx.f32", ONE + (exponent << 23), BINADE)
        low, high = bounds(words[:: 1 << (23 - bits - layout.rest)])
        for index in range(1 << bits):
            at = (index << layout.rest) + offset
            yield Segment(offset, low[at], high[at])


def segments(layout: Layout, outputs: Outputs) -> Iterator[Segment]:
    match layout.name:
        case "sin":
            return quarters(layout, outputs)
        case "tanh":
            return binades(layout, outputs)
        case name:
            scale = 0.5 if name == "ex2" else 1.0  # arguments from 1 to 2
            return mantissas(layout, outputs, f"{name}.approx.ftz.f32", scale)


#: c2 is a multiple of these.
STEPS = {"rsqrt": 4, "sqrt": 2, "lg2": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--function", action="append", choices=list(LAYOUTS))
    options = parser.parse_args()
    outputs = Outputs(options.folder)
    rows = ["function,segment,c0,c1,c2"]
    for name in options.function or LAYOUTS:
        layout = LAYOUTS[name]
        found = [solve(layout, segment, STEPS.get(name, 1)) for segment in segments(layout, outputs)]
        rows += [f"{name},{index},{c0},{c1},{c2}" for index, (c0, c1, c2) in enumerate(found)]
        print(f"{name}: {len(found)} segments")
    if not options.function:
        TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
