"""Measures what the first microbenchmarks left out, on the GPU here.

    python -m bench.gpu.microbench.more --out FILE.json [--seconds 60] [--only EXPRESSION]
    python -m bench.gpu.microbench.more --emulate      # do the kernels end?

Instructions on registers (`instructions`), atomic operations and fences (`atomics`), rings of clusters (`clusters`),
and memory (`memory`). Cycles as those of `python -m bench.gpu.microbench`.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np

from bench.gpu.microbench import atomics, clusters, instructions, memory
from bench.gpu.microbench.__main__ import _ROWS, Measurement, Runner


def measurements() -> Iterator[Measurement]:
    yield from atomics.measurements()
    yield from clusters.measurements()
    yield from memory.measurements()
    yield from instructions.measurements()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", help="measurements whose name this expression finds")
    parser.add_argument("--emulate", action="store_true")
    options = parser.parse_args()
    chosen = [each for each in measurements() if re.search(options.only, each.name)]
    if options.emulate:
        _emulate(chosen)
        return
    from bench.gpu.microbench.built import BuiltGpu

    began = time.monotonic()
    gpu = BuiltGpu(each.text for each in chosen)
    print(f"{len(chosen)} measurements, assembled after {time.monotonic() - began:.1f} s", flush=True)
    runner = Runner(gpu, 1 << 26)
    matrix = gpu.array(np.zeros((_ROWS, 8192), np.uint16))
    found: dict[str, list[float] | str] = {}
    for test in chosen:
        if time.monotonic() - began > options.seconds:
            found[test.name] = "not reached"
            continue
        try:
            found[test.name] = [round(each, 2) for each in runner.cycles(test, matrix)]
        except Exception as error:
            found[test.name] = str(error)[:200]
        print(test.name, found[test.name], flush=True)
    if re.search(options.only, "L2 after"):
        for name, cycles in memory.after(runner):
            found[name] = [round(cycles, 1)]
            print(name, found[name], flush=True)
    record = {"device": gpu.name, "cuda": gpu.version, "date": date.today().isoformat(), "cycles": found}
    if options.out:
        options.out.write_text(json.dumps(record, indent=0), encoding="utf-8")


def _emulate(chosen: list[Measurement]) -> None:
    from ptxgen.emulator import Emulator

    seen = set[str]()
    for test in chosen:
        if test.text in seen or test.grid > 2 * test.cluster:
            continue
        seen.add(test.text)
        emulator = Emulator("sm_90a")
        runner = Runner(emulator, (1 << 22) + 4096)
        matrix = emulator.array(np.zeros((2048 + 512, 8192), np.uint16))
        print(test.name, runner.launch(test, max(3, test.depth % 16), matrix), flush=True)


if __name__ == "__main__":
    main()
