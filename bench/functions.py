"""How fast approximate functions are: `python -m bench.functions`, `--record` writes docs/measurements.md.

Beside each function, bit for bit an H200's, the plain one of NumPy: .f64 rounded to .f32, with zeros for subnormal
numbers and one NaN, as the emulator had it until 2026-11-26. CPU time of one process, the best of several runs of both
in turn.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen.emulator.arithmetic import functions
from ptxgen.emulator.arithmetic.single import Singles, canonical, flush
from tools import measurements

#: Threads of 4 and of 64 warps.
LANES = (128, 2048)
_ROUNDS, _CALLS = 40, 20
_PER_TURN = np.float32(1 / (2 * np.pi))


def _plain(function: Callable[..., Any]) -> Callable[..., Singles]:
    def compute(*values: Singles) -> Singles:
        result = np.asarray(function(*(np.asarray(flush(value), np.float64) for value in values))).astype(np.float32)
        return canonical(flush(result))

    return compute


def _sine(a: Any) -> Any:
    turns = a * _PER_TURN
    part = turns - np.rint(turns)
    mirrored = np.where(np.abs(part) > 0.25, np.copysign(0.5, part) - part, part)
    return np.where(turns == 0, turns, np.sin(mirrored * (2 * np.pi)))


def _cosine(a: Any) -> Any:
    turns = a * _PER_TURN
    return np.sin((0.25 - np.abs(turns - np.rint(turns))) * (2 * np.pi))


def _divided(a: Any, b: Any) -> Any:
    return a / b


#: By instruction: the emulator's function, NumPy's, and whether operands may be negative.
FUNCTIONS: dict[str, tuple[Callable[..., Singles], Callable[..., Any], bool]] = {
    "rcp.approx.ftz.f32": (functions.reciprocal, lambda a: 1 / a, True),
    "sqrt.approx.ftz.f32": (functions.root, np.sqrt, False),
    "rsqrt.approx.ftz.f32": (functions.reciprocal_root, lambda a: 1 / np.sqrt(a), False),
    "lg2.approx.ftz.f32": (functions.logarithm, np.log2, False),
    "ex2.approx.ftz.f32": (functions.power, np.exp2, True),
    "tanh.approx.f32": (functions.hyperbolic_tangent, np.tanh, True),
    "sin.approx.ftz.f32": (functions.sine, _sine, True),
    "cos.approx.ftz.f32": (functions.cosine, _cosine, True),
    "div.approx.ftz.f32": (functions.divide_fast, _divided, True),
    "div.full.ftz.f32": (functions.divide_full, _divided, True),
}


def seconds(ours: Callable[[], object], plain: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of a call of each, measured in turn."""
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for which, run in enumerate((ours, plain)):
            began = time.process_time()
            for _ in range(_CALLS):
                run()
            best[which] = min(best[which], (time.process_time() - began) / _CALLS)
    return best[0], best[1]


def measured(name: str, lanes: int) -> tuple[float, float]:
    """CPU seconds of one instruction of so many lanes: ours and NumPy's."""
    ours, function, signed = FUNCTIONS[name]
    rng, plain = np.random.default_rng(0), _plain(function)
    values = [rng.uniform(0.1, 8, (lanes // 32, 32)).astype(np.float32) for _ in range(2 if "div" in name else 1)]
    if signed:
        values = [np.where(rng.random(each.shape) < 0.5, -each, each) for each in values]
    with np.errstate(all="ignore"):
        return seconds(lambda: ours(*values, True), lambda: plain(*values))


def main() -> None:
    """Print the table; --record writes docs/measurements.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures into docs/measurements.md")
    arguments = parser.parse_args()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [
        f"By `python -m bench.functions --record` ({today}, NumPy {np.__version__}, one core of a machine that does",
        "other work too): CPU time of one instruction, µs, bit for bit as an H200 and as NumPy's .f64 rounded to .f32",
        "(the emulator until 2026-11-26), measured in turn. At most 3 times NumPy's is the goal for 64 warps alike.",
        "",
        "| instruction | 4 warps | NumPy | times | 64 warps | NumPy | times |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in FUNCTIONS:
        cells = [name]
        for lanes in LANES:
            ours, plain = measured(name, lanes)
            cells += [f"{ours * 1e6:.1f}", f"{plain * 1e6:.1f}", f"{ours / plain:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    text = "\n".join(lines)
    print(text)
    if arguments.record:
        measurements.record("functions", text)


if __name__ == "__main__":
    main()
