"""Atomic operations and fences on the GPU here: what `atomic_lane`, `atomic_sector` and `fence` should be.

    python -m bench.gpu.microbench.atomics --out atomics.json
    python -m bench.gpu.microbench.atomics --emulate     # do the kernels end?

Nothing has been measured with it yet. Cycles are those of clock64 of one multiprocessor, of one operation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.gpu.microbench import ptx
from bench.gpu.microbench.__main__ import Measurement, Runner

_SMS = 132
#: Where the lanes of a warp are: all at one word, at words of one bank, or at 32 words side by side.
_LANES = {"one word": 0, "one bank": 128, "32 words": 4}


def _text(body: str, step: int, *, shared: bool, threads: int) -> str:
    """`body` 8 times an iteration, at %r30 in shared or %d20 in global memory, `step` bytes from lane to lane."""
    before = f"    and.b32 %r31, %r4, 31;\n    mad.lo.u32 %r30, %r31, {step}, %r6;\n"
    if not shared:
        before = f"    and.b32 %r31, %r4, 31;\n    mul.wide.u32 %d20, %r31, {step};\n    add.u64 %d20, %d20, %d1;\n"
    after = "    setp.eq.u32 %p, %r32, 12345;\n    @%p st.global.u32 [%d1], %r32;\n"
    return ptx.repeated(body, threads=threads, before=before + "    mov.u32 %r32, 0;\n", after=after)


def measurements() -> Iterator[Measurement]:
    for name, step in _LANES.items():
        for warps in (1, 4, 16):
            body = "    atom.shared.add.u32 %r32, [%r30], %r4;\n"
            text = _text(body, step, shared=True, threads=32 * warps)
            yield Measurement(f"atom.shared, {name}, {warps} warps", text, (8, 72), 32 * warps, each=8)
        for operation in ("red", "atom"):
            value = "%r32, " if operation == "atom" else ""
            text = _text(f"    {operation}.global.add.u32 {value}[%d20], %r4;\n", step, shared=False, threads=32)
            for grid in (1, 33, _SMS):
                yield Measurement(f"{operation}.global, {name}, grid {grid}", text, (2, 10), 32, grid, each=8)
    for name, first in (("alone", ""), ("after a store", "    st.global.u32 [%d20], %r4;\n")):
        text = _text(first + "    fence.acq_rel.gpu;\n", 4, shared=False, threads=32)
        for grid in (1, _SMS):
            yield Measurement(f"fence.acq_rel.gpu {name}, grid {grid}", text, (4, 20), 32, grid, each=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--emulate", action="store_true")
    options = parser.parse_args()
    if options.emulate:
        from ptxgen.emulator import Emulator

        runner = Runner(Emulator("sm_90a"), (1 << 22) + 4096)
        matrix = runner.device.array(np.zeros((256, 8192), np.uint16))
        for test in measurements():
            if test.grid == 1:
                print(test.name, runner.launch(test, 2, matrix), flush=True)
        return
    from ptxgen.gpu import Gpu

    runner = Runner(Gpu(), 1 << 23)
    matrix = runner.device.array(np.zeros((2048, 8192), np.uint16))
    found = {each.name: [round(value, 2) for value in runner.cycles(each, matrix)] for each in measurements()}
    print(json.dumps(found, indent=0))
    if options.out:
        options.out.write_text(json.dumps(found, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
