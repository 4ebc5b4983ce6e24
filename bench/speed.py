"""How fast the daily work is: `make bench` prints a table. Best of several runs, one process, CPU time."""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import time
from collections.abc import Callable

import ptxgen
from ptxgen.descriptors import SmemDescriptor, TensorMap
from ptxgen.descriptors.instruction import read_instruction
from ptxgen.gemm import find
from ptxgen.gemm.job import run_gemm
from ptxgen.pictures import draw, svg, text
from tools import measurements
from tools.recorded.files import compiled

PTX = compiled()

#: 64 additions and multiplications a turn, 200 turns.
LOOP = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry loop()
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    mov.u32 %r0, 0;
    mov.u32 %r1, %tid.x;
$again:
    BODY
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p, %r0, 200;
    @%p bra $again;
    ret;
}
""".replace("BODY", "\n    ".join(["add.u32 %r2, %r1, %r0;", "mad.lo.u32 %r1, %r2, 3, %r1;"] * 32))


#: 100 instructions a thread: two loads, arithmetic, an exchange through shared memory with a barrier, two stores.
SMALL = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry small(.param .u64 x, .param .u64 y, .param .f32 a)
{
    .reg .b32 %i, %b, %n, %t, %s;
    .reg .f32 %a, %u, %v;
    .reg .b64 %x, %y;
    .shared .align 4 .b32 tile[256];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f32 %a, [a];
    mov.u32 %i, %tid.x;
    shl.b32 %s, %i, 2;
    mov.u32 %t, tile;
    add.u32 %s, %s, %t;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %b, %n, %i;
    mad.wide.u32 %x, %i, 4, %x;
    mad.wide.u32 %y, %i, 4, %y;
    ld.global.f32 %u, [%x];
    ld.global.f32 %v, [%y];
    BODY
    st.shared.b32 [%s], %t;
    bar.sync 0;
    ld.shared.b32 %t, [%s];
    st.global.f32 [%y], %v;
    st.global.b32 [%x], %t;
    ret;
}
""".replace(
    "BODY",
    "\n    ".join(
        ["fma.rn.f32 %v, %v, %a, %u;", "xor.b32 %t, %t, 5;", "add.u32 %t, %t, %i;"] * 26
        + ["add.u32 %t, %t, 1;", "add.u32 %t, %t, %b;"]
    ),
)


#: Each CTA leaves its number, then draws a ticket: who has the last one adds up what all have left.
TICKETS = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry tickets(.param .u64 counter, .param .u64 left)
{
    .reg .pred %p;
    .reg .b32 %t, %c, %last, %ticket, %sum, %x;
    .reg .b64 %counter, %left, %place;
    ld.param.u64 %counter, [counter];
    ld.param.u64 %left, [left];
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mov.u32 %last, %nctaid.x;
    sub.u32 %last, %last, 1;
    setp.ne.u32 %p, %t, 0;
    @%p bra end;
    mad.wide.u32 %place, %c, 4, %left;
    st.global.u32 [%place], %c;
    fence.acq_rel.gpu;
    atom.relaxed.gpu.global.add.u32 %ticket, [%counter], 1;
    fence.acq_rel.gpu;
    setp.ne.u32 %p, %ticket, %last;
    @%p bra end;
    mov.u32 %sum, 0;
again:
    ld.global.u32 %x, [%left];
    add.u32 %sum, %sum, %x;
    add.u64 %left, %left, 4;
    setp.ne.u32 %p, %last, 0;
    sub.u32 %last, %last, 1;
    @%p bra again;
    st.global.u32 [%counter], %sum;
end:
    ret;
}
"""


def best(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def best_of(work: Callable[[], object], calls: int = 2000) -> float:
    """CPU microseconds of one of many calls, in the fastest run."""
    return 1e6 / calls * best(lambda: [work() for _ in range(calls)])


def main() -> None:
    """Print the table; with --record, write its part on values down."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the section of docs/measurements.md")
    options = parser.parse_args()
    found = values()
    for what, figure in found:
        row(what, figure)
    if options.record:
        lines = [
            f"By `python -m bench.speed --record` ({datetime.date.today().isoformat()}): CPU time, the fastest of "
            "several runs.",
            "",
            "| what | figure |",
            "|---|---:|",
            *(f"| {what} | {figure} |" for what, figure in found),
        ]
        measurements.record("values", "\n".join(lines))
    bodies = [path.read_text() for path in PTX]
    size = sum(map(len, bodies)) / 1e6
    row("parse", f"{size / best(lambda: [ptxgen.parse(body) for body in bodies]):.1f} MB/s")
    modules = [ptxgen.parse(body) for body in bodies]
    row("check", f"{size / best(lambda: [ptxgen.check(module) for module in modules]):.2f} MB/s")
    entry = find("blackwell/swizzled")
    row("render blackwell/swizzled", f"{1e3 * best(lambda: entry.plan().text):.1f} ms")
    plan = entry.plan()
    for schedule in ("eager", "late", "random"):

        def run(schedule: str = schedule) -> None:
            device = ptxgen.Emulator("sm_100a", schedule=schedule)  # type: ignore[arg-type]
            assert run_gemm(device, plan, 512, 512, 512).ok

        row(f"run 512×512×512, {schedule}", f"{best(run, 3):.2f} s")
    kernel = ptxgen.Kernel.from_ptx(LOOP)
    for warps in (8, 64, 512):

        def arithmetic(warps: int = warps) -> None:
            ptxgen.Emulator("sm_100a").launch(kernel, warps // 8, 256, [])

        rate = warps * 32 * 200 * 67 / best(arithmetic, 3)
        row(f"arithmetic, {warps} warps", f"{rate / 1e6:.0f} M thread-instructions/s")


def values() -> list[tuple[str, str]]:
    """Descriptors, tensormaps and pictures: what, and its figure."""
    arguments = ("bf16", 1 << 40, [4096, 4096, 64, 8], [8192, 1 << 25, 1 << 31], [64, 8, 8, 2])

    def make() -> bytes:
        return TensorMap.tiled(*arguments, swizzle="128B").encode()

    def matrix() -> str:
        return SmemDescriptor.decode(0x4000404000010000).explain()

    encoded = make()
    command = [sys.executable, "-c", "from ptxgen.cli.main import main; main()", "layout", "operand"]
    began = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    ended = os.times()
    seconds = ended.children_user + ended.children_system - began.children_user - began.children_system
    return [
        ("encode a tensormap", f"{best_of(make):.1f} µs"),
        ("decode and explain a tensormap", f"{best_of(lambda: TensorMap.decode(encoded).explain()):.0f} µs"),
        ("decode and explain a matrix descriptor", f"{best_of(matrix):.0f} µs"),
        ("explain an instruction descriptor", f"{best_of(lambda: read_instruction(0x08200490).text()):.0f} µs"),
        ("picture of 64×64, SVG and text", f"{1e3 * best(_picture):.0f} ms"),
        ("ptxgen layout operand, start-up too", f"{seconds:.2f} s"),
    ]


def _picture() -> None:
    picture = draw("operand", ["rows=64", "k=64"])
    svg(picture)
    text(picture)


def row(what: str, figure: str) -> None:
    """One line of the table."""
    print(f"{what:<34}{figure:>34}")


if __name__ == "__main__":
    main()
