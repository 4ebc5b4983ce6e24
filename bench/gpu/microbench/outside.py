"""Copies of boxes with rows outside of the tensor: cycles of each, in rings of `microbench.ptx.tma_ring`.

    python -m bench.gpu.microbench.outside --out FILE.json

bench/data/h200-edges.json has what an H200 took.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np

from bench.gpu.microbench import ptx
from ptxgen.descriptors import TensorMap
from ptxgen.device import Device, Kernel

_PITCH, _ROWS, _LAUNCHES = 8192, 4096, 5
#: Where boxes begin that lie entirely outside.
_AWAY = 4096


def shapes() -> Iterator[tuple[int, int, int, int]]:
    """CTAs, rows of a box, copies in flight, and rows inside of the tensor."""
    for grid in (1, 132):
        for rows, depths in ((64, (3, 8)), (128, (1, 3, 8)), (256, (3,))):
            for depth in depths:
                if grid == 1 or (rows, depth) == (128, 3):
                    for inside in sorted({0, 8, rows // 4, rows // 2, rows * 3 // 4, rows}):
                        yield grid, rows, depth, inside


def cycles(device: Device, grid: int, rows: int, depth: int, inside: int) -> float:
    """Cycles of one copy, the mean over the CTAs, all of which load the same boxes."""
    text = ptx.tma_ring()
    if not inside:
        text = text.replace("rem.u32 %r16, %r16, 1024;", f"rem.u32 %r16, %r16, 1024;\n    add.u32 %r16, %r16, {_AWAY};")
    kernel, out = Kernel.from_ptx(text), device.empty((grid,), np.uint64)
    matrix = device.array(np.zeros((_ROWS, _PITCH), np.uint16))
    box = TensorMap.tiled("bf16", matrix, (_PITCH, inside or 8), (_PITCH * 2,), (64, rows), swizzle="128b")
    times = []
    for n in (24, 88):
        arguments = [out, out, n, depth, rows * 128, rows if grid == 1 else 0, box]
        found = []
        for _ in range(_LAUNCHES):
            report = device.launch(kernel, grid, 32, arguments, shared_bytes=200 * 1024)
            if not report.ok:
                raise RuntimeError(report.summary())
            found.append(float(out.numpy().mean()))
        times.append(float(np.median(found[1:])))
    return (times[1] - times[0]) / 64


def main() -> None:
    from ptxgen.gpu import Gpu

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options, gpu = parser.parse_args(), Gpu()
    found = {}
    for grid, rows, depth, inside in shapes():
        name = f"tma L2 grid {grid} rows {rows} depth {depth} inside {inside}"
        found[name] = round(cycles(gpu, grid, rows, depth, inside), 2)
        print(name, found[name], flush=True)
    record = {"device": gpu.name, "cuda": gpu.version, "date": date.today().isoformat(), "cycles": found}
    options.out.write_text(json.dumps(record, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
