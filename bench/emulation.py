"""How fast the emulator is: `python -m bench.emulation` prints a table, `--record` writes docs/measurements.md.

CPU time of one process, best of several runs. A thread-instruction is one instruction of one thread.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import math
import platform
from typing import Any

import numpy as np

import ptxgen
from bench.speed import LOOP, SMALL, TICKETS, best
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tools import measurements
from tools.recorded import case as cases

#: Ratios of checks on to off that are not measured again.
_SURE = 2.5
#: Instructions of a turn of the loop.
_TURN = 67


def alike(warps: int, turns: int = 200, *, launches: int = 1) -> float:
    """CPU seconds of so many launches of the arithmetic loop in so many warps, of 8 to a CTA."""
    kernel = ptxgen.Kernel.from_ptx(LOOP.replace("%r0, 200", f"%r0, {turns}"))
    grid = max(warps // 8, 1)
    block = 32 * warps // grid

    def run() -> None:
        for _ in range(launches):
            report = ptxgen.Emulator("sm_100a").launch(kernel, grid, block, [])
            assert report.status == "ok", report.summary()

    return best(run, 3)


def later(ctas: int, threads: int, *, checks: bool = True) -> float:
    """CPU seconds of a later launch of a kernel of 100 instructions."""
    kernel, device = ptxgen.Kernel.from_ptx(SMALL), ptxgen.Emulator("sm_100a", checks=checks)
    args = [*(device.array(np.ones(ctas * threads, np.float32)) for _ in range(2)), np.float32(2)]

    def run() -> None:
        report = device.launch(kernel, ctas, threads, args)
        assert report.status == "ok", report.summary()

    for _ in range(10):
        run()
    return best(run, 50)


def gemm(size: int, *, checks: bool = True) -> float:
    """CPU seconds of blackwell/swizzled of this size, with the comparison."""
    job = GemmJob(find("blackwell/swizzled").plan(), size, size, size)
    _ = job.reference.inputs  # made once, and not measured

    def run() -> None:
        result = job.run(ptxgen.Emulator("sm_100a", checks=checks))
        assert result.ok, result.summary()

    return best(run, 2)


def tickets(ctas: int, *, checks: bool = True) -> float:
    """CPU seconds of a grid whose CTAs run one after the other and all increment one counter."""
    kernel = ptxgen.Kernel.from_ptx(TICKETS)

    def run() -> None:
        device = ptxgen.Emulator("sm_100a", checks=checks)
        counter, left = device.array(np.zeros(1, np.uint32)), device.array(np.zeros(ctas, np.uint32))
        report = device.launch(kernel, ctas, 128, [counter, left])
        assert (report.status, report.findings) == ("ok", []), report.summary()
        assert counter.numpy()[0] == ctas * (ctas - 1) // 2

    return best(run, 2)


def recorded(name: str) -> float:
    """How many times as long the first launch of a recorded kernel of `tests/data` takes with checks as without.

    Short kernels vary: where the first runs come near the goal, more follow.
    """
    case = cases.load(name)
    _ = case.inputs  # made once, and not measured

    def seconds(checks: bool) -> float:
        kernel = ptxgen.Kernel.from_ptx(case.text, case.launch["entry"])
        _ = kernel.diagnostics  # parsing and ptxgen.check are not measured either
        how: Any = {"checks": checks, "multiprocessors": case.launch.get("multiprocessors")}
        gc.collect()  # else it would come in the same of the two each time
        return best(lambda: case.launch_on(ptxgen.Emulator(case.target, **how), kernel), 1)

    slow = fast = math.inf
    for turn in range(12):  # in turn, so that a busy machine slows both
        slow, fast = min(slow, seconds(True)), min(fast, seconds(False))
        if turn and slow < _SURE * fast:
            break
    return slow / fast


def rows() -> list[tuple[str, str, str]]:
    """What, its figure, and what the goal is."""
    made = []
    for warps in (8, 64, 256, 1024):
        rate = warps * 32 * 200 * _TURN / alike(warps) / 1e6
        made.append(
            (f"arithmetic, {warps} warps alike", f"{rate:.0f} M thread-instructions/s", "100 M from 64 warps on")
        )
    rate = 4 * 32 * 200 * _TURN / alike(4) / 1e6
    made.append(("arithmetic, one CTA of 4 warps", f"{rate:.1f} M thread-instructions/s", "15 M"))
    # As many instructions in ten launches as in one: the fastest of short runs would be luckier than that of long ones.
    short, long = alike(64, 500, launches=10), alike(64, 5000)
    made.append(("10 times the instructions, 64 warps", f"{10 * long / short:.1f} times the time", "linear"))
    small, large = alike(256), alike(1024)
    made.append(("4 times the warps, 256 to 1024", f"{large / small:.1f} times the time", "linear or better"))
    plain, checked = gemm(512, checks=False), gemm(512)
    made.append(("blackwell/swizzled 512³, checks on", f"{checked:.2f} s", "3 s"))
    made.append(("checks on to checks off, there", f"{checked / plain:.2f} times", "3 times"))
    made.append(("8 times the work, 256³ to 512³", f"{checked / gemm(256):.1f} times the time", "linear or better"))
    for ctas, threads in ((1, 128), (148, 256)):
        what = f"later launch of 100 instructions, {ctas} CTA{'s' * (ctas > 1)} of {threads} threads"
        plain, checked = later(ctas, threads, checks=False) * 1e3, later(ctas, threads) * 1e3
        made.append((f"{what}, checks on and off", f"{checked:.2f}, {plain:.2f} ms", "0.3 ms" if ctas == 1 else ""))
    few, many = tickets(1024), tickets(4096)
    made.append(("4 times the CTAs, 1,024 to 4,096, at one counter", f"{many / few:.1f} times the time", "linear"))
    ratio = many / tickets(4096, checks=False)
    made.append(("checks on to checks off, there", f"{ratio:.1f} times", "3 times"))
    ratios = sorted((recorded(name), name) for name in cases.names())
    middle = ratios[len(ratios) // 2][0]
    above = [f"{name} {ratio:.1f}" for ratio, name in reversed(ratios) if ratio > 3]
    made.append(
        (
            f"checks on to checks off, first launch of {len(ratios)} recorded kernels",
            f"median {middle:.2f} times",
            "3 times",
        )
    )
    made.append(("those of them above 3 times", ", ".join(above) or "none", "none"))
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.emulation", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the section of docs/measurements.md")
    options = parser.parse_args()
    found = rows()
    for what, figure, goal in found:
        print(f"{what:<52}{figure:>34}" + (f"   goal: {goal}" if goal else ""))
    if options.record:
        date, versions = (
            datetime.date.today().isoformat(),
            f"Python {platform.python_version()}, NumPy {np.__version__}",
        )
        lines = [
            f"By `python -m bench.emulation --record` ({date}, {versions}, one core of a",
            "machine that does other work too): CPU time, the best of several runs.",
            "",
            "| what | figure | goal |",
            "|---|---:|---:|",
            *(f"| {what} | {figure} | {goal} |".replace("  ", " ") for what, figure, goal in found),
        ]
        measurements.record("emulation", "\n".join(lines))


if __name__ == "__main__":
    main()
