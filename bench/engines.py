"""Launches that stand for what users run, with machine code and without: `python -m bench.engines [--only PART]`.

CPU time of one process, the best of runs in turn, in warp-instructions a second. `--json` prints the seconds alone, so
that two checkouts can be compared; one without `ptxgen.emulator.native` gives the same figure twice.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import time
from collections.abc import Callable

import numpy as np

import ptxgen
from bench.speed import LOOP, TICKETS
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tools.recorded import case as cases

#: A launch: it returns how many warp-instructions it executed.
Launch = Callable[[], int]
_HEAD = ".version 8.6\n.target sm_100a\n.address_size 64\n"

#: Lanes go round as often as their number says: Collatz's sequence from there.
DIVERGENT = (
    _HEAD
    + """.visible .entry collatz(.param .u64 out)
{
    .reg .pred %p, %odd;
    .reg .b32 %n, %steps, %t, %half;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    add.u32 %n, %t, 1;
    mov.u32 %steps, 0;
again:
    setp.le.u32 %p, %n, 1;
    @%p bra done;
    and.b32 %half, %n, 1;
    setp.ne.u32 %odd, %half, 0;
    shr.u32 %half, %n, 1;
    mad.lo.u32 %n, %n, 3, 1;
    @!%odd mov.u32 %n, %half;
    add.u32 %steps, %steps, 1;
    bra again;
done:
    mad.wide.u32 %out, %t, 4, %out;
    st.global.u32 [%out], %steps;
    ret;
}
"""
)

#: y[i] = a * x[i] + y[i], one element a thread.
SAXPY = (
    _HEAD
    + """.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a)
{
    .reg .b32 %i, %b, %n;
    .reg .f32 %a, %u, %v;
    .reg .b64 %x, %y;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f32 %a, [a];
    mov.u32 %i, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %b, %n, %i;
    mad.wide.u32 %x, %i, 4, %x;
    mad.wide.u32 %y, %i, 4, %y;
    ld.global.f32 %u, [%x];
    ld.global.f32 %v, [%y];
    fma.rn.f32 %v, %a, %u, %v;
    st.global.f32 [%y], %v;
    ret;
}
"""
)


#: All lanes of a CTA arrive on one mbarrier and wait for their phase, 100 times.
ARRIVALS = (
    _HEAD
    + """.visible .entry arrivals()
{
    .reg .pred %p;
    .reg .b32 %t, %i;
    .reg .b64 %state;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    mov.u32 %i, %ntid.x;
    setp.ne.u32 %p, %t, 0;
    @%p bra go;
    mbarrier.init.shared.b64 [bar], %i;
go:
    bar.sync 0;
    mov.u32 %i, 0;
again:
    mbarrier.arrive.shared.b64 %state, [bar];
wait:
    mbarrier.try_wait.shared.b64 %p, [bar], %state;
    @!%p bra wait;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 100;
    @%p bra again;
    ret;
}
"""
)

#: Each lane of a CTA copies its 16 bytes to shared memory by a bulk copy of its own, 20 times.
LANE_COPIES = (
    _HEAD
    + """.visible .entry copies(.param .u64 x)
{
    .reg .pred %p;
    .reg .b32 %t, %i, %at, %n;
    .reg .b64 %x;
    .shared .align 8 .b64 bar;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %x, [x];
    mov.u32 %t, %tid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %t, 16, %at;
    mad.wide.u32 %x, %t, 16, %x;
    setp.ne.u32 %p, %t, 0;
    @%p bra go;
    mbarrier.init.shared.b64 [bar], %n;
    fence.mbarrier_init.release.cluster;
go:
    bar.sync 0;
    mov.u32 %i, 0;
again:
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%at], [%x], 16, [bar];
    and.b32 %t, %i, 1;
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], %t;
    @!%p bra wait;
    bar.sync 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 20;
    @%p bra again;
    ret;
}
"""
)


def arithmetic(warps: int, turns: int) -> Launch:
    """Integer sums and products in so many warps, up to 8 to a CTA."""
    kernel = ptxgen.Kernel.from_ptx(LOOP.replace("%r0, 200", f"%r0, {turns}"))
    grid = max(warps // 8, 1)
    return lambda: _ran(ptxgen.Emulator("sm_100a").launch(kernel, grid, 32 * warps // grid, []))


def divergent(threads: int) -> Launch:
    kernel = ptxgen.Kernel.from_ptx(DIVERGENT)

    def run() -> int:
        device = ptxgen.Emulator("sm_100a")
        return _ran(device.launch(kernel, 1, threads, [device.empty((threads,), np.uint32)]))

    return run


def saxpy(ctas: int, launches: int) -> Launch:
    kernel = ptxgen.Kernel.from_ptx(SAXPY)

    def run() -> int:
        device = ptxgen.Emulator("sm_100a")
        x, y = (device.array(np.ones(128 * ctas, np.float32)) for _ in range(2))
        return sum(_ran(device.launch(kernel, ctas, 128, [x, y, np.float32(2)])) for _ in range(launches))

    return run


def arrivals(threads: int) -> Launch:
    kernel = ptxgen.Kernel.from_ptx(ARRIVALS)
    return lambda: _ran(ptxgen.Emulator("sm_100a").launch(kernel, 1, threads, []))


def lane_copies(threads: int) -> Launch:
    kernel = ptxgen.Kernel.from_ptx(LANE_COPIES)

    def run() -> int:
        device = ptxgen.Emulator("sm_100a")
        return _ran(device.launch(kernel, 1, threads, [device.array(np.zeros(4 * threads, np.uint32))]))

    return run


def tickets(ctas: int) -> Launch:
    kernel = ptxgen.Kernel.from_ptx(TICKETS)

    def run() -> int:
        device = ptxgen.Emulator("sm_100a")
        counter, left = device.array(np.zeros(1, np.uint32)), device.array(np.zeros(ctas, np.uint32))
        return _ran(device.launch(kernel, ctas, 128, [counter, left]))

    return run


def gemm(rung: str, size: int, *, checks: bool) -> Launch:
    job = GemmJob(find(rung).plan(), size, size, size // 2)
    _ = job.reference.inputs  # made once, and not measured
    return lambda: job.run(ptxgen.Emulator("sm_100a", checks=checks)).launch.instructions


def recorded(name: str, *, first: bool) -> Launch:
    """A kernel of `tests/data`: its first launch with the translation of its text, or a later one."""
    case = cases.load(name)
    _ = case.inputs
    kept = ptxgen.Kernel.from_ptx(case.text, case.launch["entry"])
    texts = iter(range(1 << 30))

    def run() -> int:
        kernel = kept
        if first:
            kernel = ptxgen.Kernel.from_ptx(f"{case.text}// {next(texts)}\n", case.launch["entry"])
        with contextlib.redirect_stdout(io.StringIO()):
            device = ptxgen.Emulator(case.target, multiprocessors=case.launch.get("multiprocessors"))
            report, _ = case.launch_on(device, kernel)
        return report.instructions

    return run


def _ran(report: ptxgen.LaunchReport) -> int:
    assert report.status == "ok", report.summary()
    return report.instructions


PARTS: dict[str, Callable[[], Launch]] = {
    "arithmetic, one CTA of 4 warps": lambda: arithmetic(4, 400),
    "arithmetic, 64 warps": lambda: arithmetic(64, 200),
    "divergent loop, 256 threads": lambda: divergent(256),
    "blackwell/naive 128x128x64": lambda: gemm("blackwell/naive", 128, checks=True),
    "the same without checks": lambda: gemm("blackwell/naive", 128, checks=False),
    "saxpy, 512 CTAs": lambda: saxpy(512, 1),
    "saxpy, 100 launches of one CTA": lambda: saxpy(1, 100),
    "tickets, 256 CTAs": lambda: tickets(256),
    "100 arrivals and waits of 128 lanes": lambda: arrivals(128),
    "20 bulk copies by each of 128 lanes": lambda: lane_copies(128),
    "attention (TileLang), later launches": lambda: recorded("tl01_100_attention", first=False),
    "layer norm (Triton), first launch": lambda: recorded("t36_100_layernorm", first=True),
    "layer norm (Triton), later launches": lambda: recorded("t36_100_layernorm", first=False),
    "softmax (Triton), first launch": lambda: recorded("t36_100_softmax", first=True),
    "softmax (Triton), later launches": lambda: recorded("t36_100_softmax", first=False),
    "scan, sort, argmax (Triton), later launches": lambda: recorded("t36_100_scan_sort_argmax", first=False),
    "block scan (nvcc), later launches": lambda: recorded("n30_100_block_scan", first=False),
    "radix sort (CUB), later launches": lambda: recorded("cub_sort", first=False),
}


def seconds(launch: Launch, turns: int) -> tuple[int, float, float]:
    """Warp-instructions, and CPU seconds without and with machine code, the best of turns."""
    best = {"0": math.inf, "wait": math.inf}
    count = 0
    for native in best:  # what is made once
        os.environ["PTXGEN_NATIVE"] = native
        for _ in range(4):
            count = launch()
    for _ in range(turns):
        for native in best:
            os.environ["PTXGEN_NATIVE"] = native
            began = time.process_time()
            launch()
            best[native] = min(best[native], time.process_time() - began)
    return count, best["0"], best["wait"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    parser.add_argument("--only", default="", help="launches whose names contain this")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ratios: list[float] = []
    for name, make in PARTS.items():
        if options.only not in name:
            continue
        count, without, machine = seconds(make(), options.turns)
        if options.json:
            print(json.dumps([name, count, without, machine]), flush=True)
            continue
        ratios.append(without / machine)
        rates = f"{count / without / 1e6:.3f} | {count / machine / 1e6:.3f} | {without / machine:.2f}"
        print(f"| {name} | {count:,} | {rates} |", flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)} launches: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
