"""Compute the approximate functions for all their inputs, and compare with an H200's hashes: `make functions`.

python -m tools.interpolator [--jobs N] [--chunks N] [FUNCTION ...]

All inputs of all functions take some three hours of a core. A hash that differs names its chunk of 2**20 inputs.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tools import executing
from tools.interpolator.parts import Part, wrong
from tools.interpolator.recorded import CHUNKS, FUNCTIONS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.interpolator", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="all by default")
    parser.add_argument("--chunks", type=int, default=CHUNKS, help="how many chunks of each, spread evenly")
    executing.add_options(parser)
    options = parser.parse_args()
    unknown = [name for name in options.functions if name not in FUNCTIONS]
    if unknown:
        parser.error(f"no such function: {', '.join(unknown)}; there are {', '.join(FUNCTIONS)}")
    chosen = options.functions or list(FUNCTIONS)
    chunks = np.linspace(0, CHUNKS, options.chunks, endpoint=False).astype(int).tolist()
    parts = [Part(name, tuple(chunks[at : at + 64])) for name in chosen for at in range(0, len(chunks), 64)]
    differing: dict[str, list[str]] = {name: [] for name in chosen}
    began = time.monotonic()
    with executing.executor(parser, options) as executor:
        for outcome in executor.map(wrong, parts, what="parts"):
            if outcome.error is not None:
                print(f"FAIL {outcome.problem}", flush=True)
                differing[outcome.item.function].append(str(outcome.item))
            else:
                differing[outcome.item.function] += outcome.result()
    for name, found in differing.items():
        print(f"{name:28} {'equal' if not found else f'differs in {len(found)}: ' + ', '.join(found[:8])}")
    equal = sum(not found for found in differing.values())
    print(f"{equal} of {len(chosen)} equal, {len(chunks)} chunks each, {time.monotonic() - began:.0f} s")
    return 0 if equal == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
