"""How long `ptxgen sass diff` takes for kernels of 5,000 instructions: cold, and once it is cached.

python -m bench.sass --record
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ptxgen.sass import load
from ptxgen.toolchain import assemble, find_ptxas, ptxas_version
from tools.measurements import record

#: Loops that make about 5,000 instructions.
_BODIES, _REPEATS = 44, 3


def kernel(constant: int) -> str:
    """PTX of a kernel with 44 loops, each of loads, arithmetic and a branch; `constant` changes one of them."""
    bodies = "\n".join(_body(number, constant if number == 20 else 3) for number in range(_BODIES))
    return f"""\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry big(.param .u64 pointer)
{{
    .reg .b64 %address;
    .reg .b32 %n, %i, %x<64>;
    .reg .f32 %f<64>;
    .reg .pred %p;
    ld.param.u64 %address, [pointer];
    ld.volatile.global.u32 %n, [%address];
{bodies}
    ret;
}}
"""


def _body(number: int, constant: int) -> str:
    lines = [f"    mov.u32 %i, 0;\nL{number}:"]
    for each in range(32):
        lines.append(f"    ld.volatile.global.f32 %f{each}, [%address+{256 * number + 4 * each}];")
    for each in range(48):
        a, b, c = each % 32, (each * 7 + 5) % 32, (each * 3 + constant) % 32
        lines.append(f"    fma.rn.f32 %f{a}, %f{b}, %f{c}, %f{a};")
    for each in range(32):
        lines.append(f"    st.volatile.global.f32 [%address+{8192 + 256 * number + 4 * each}], %f{each};")
    lines.append(f"    add.u32 %i, %i, 1;\n    setp.lt.u32 %p, %i, %n;\n    @%p bra L{number};")
    return "\n".join(lines)


@dataclass(frozen=True)
class Run:
    """Seconds of one command: on the clock, and of CPU, nvdisasm included."""

    wall: float
    cpu: float


def run(a: Path, b: Path, cache: Path) -> Run:
    """One `ptxgen sass diff`, a new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, "-m", "ptxgen", "sass", "diff", str(a), str(b)]
    done = subprocess.run(
        command, env={**os.environ, "PTXGEN_CACHE": str(cache)}, capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 1:
        raise RuntimeError(f"the two kernels must differ: {done.stdout[-300:]}{done.stderr[-300:]}")
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Print the figures, and write them with --record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write them into docs/measurements.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, constant in (("a", 3), ("b", 4)):
            (folder / f"{file}.cubin").write_bytes(assemble(kernel(constant), options=("-lineinfo",)).data)
        count = len(load(folder / "a.cubin", cache=False).kernel().instructions)
        a, b = folder / "a.cubin", folder / "b.cubin"
        cold = [run(a, b, folder / f"cache{number}") for number in range(_REPEATS)]
        cached = [run(a, b, folder / "cache0") for _ in range(_REPEATS)]
    text = "\n".join(report(count, cold, cached))
    print(text)
    if arguments.record:
        record("sass-speed", text)
    return 0


def report(count: int, cold: list[Run], cached: list[Run]) -> list[str]:
    """The figures as Markdown."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = [
        f"| {what} | {min(each.wall for each in runs):.2f} s | {min(each.cpu for each in runs):.2f} s | {goal} s |"
        for what, runs, goal in (("cold", cold, 2.5), ("the comparison cached", cached, 0.3))
    ]
    return [
        f"By `python -m bench.sass --record` ({today}, ptxas {ptxas_version(find_ptxas())}): two kernels of {count:,}",
        "instructions that differ in one loop, the best of three runs, a new process each.",
        "",
        "| `ptxgen sass diff a.cubin b.cubin` | time | CPU time | goal |",
        "|---|---:|---:|---:|",
        *rows,
    ]


if __name__ == "__main__":
    sys.exit(main())
