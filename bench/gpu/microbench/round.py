"""One round of measurements for the timing model on the GPU here: constants, and launches that only judge.

    python -m bench.gpu.microbench.round --out FOLDER [--seed 20261130]

- `more.json`: what `bench.gpu.microbench.more` measures.
- `launches`: a fresh draw of GEMMs and attention (`bench.gpu.microbench.launches`), cycles by Nsight Compute.
- `fresh`: compilers' kernels that only judge (`bench.gpu.strangers.fresh`), likewise.
- `seen`: the seen half of the recorded ones again, with the bytes from and to memory and sectors of the L2.

Of the last three there are names (`-names.json`) and the profiler's table (`.csv`), which their modules join.
Each part has its seconds, and ends early where they do not suffice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bench.gpu.microbench.launches import CYCLES, NANOSECONDS
from bench.gpu.strangers.__main__ import RECORD

_NCU = "ncu --clock-control none --cache-control none --profile-from-start off --csv --page raw --print-units base"
_BYTES = "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum"


def _run(name: str, log: Path, command: list[str], seconds: float) -> None:
    """A part, with what it says in the log; one that fails does not end the others."""
    began = time.monotonic()
    with log.open("a", encoding="utf-8") as file:
        try:
            status = str(subprocess.run(command, stdout=file, stderr=file, timeout=seconds, check=False).returncode)
        except (subprocess.TimeoutExpired, OSError) as error:
            status = str(error)[:200]
    print(f"{name}: status {status} after {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20261130)
    options = parser.parse_args()
    out: Path = options.out
    log, python = out / "log.txt", [sys.executable, "-m"]

    def profiled(name: str, module: list[str], metrics: str, seconds: float) -> None:
        files = ["--log-file", str(out / f"{name}.csv"), "--metrics", metrics]
        last = ["--seconds", str(seconds), "--out", str(out / f"{name}-names.json")]
        _run(name, log, [*_NCU.split(), *files, *python, *module, *last], seconds + 45)

    more = ["bench.gpu.microbench.more", "--seconds", "40", "--out", str(out / "more.json")]
    _run("more", log, [*python, *more], 70)
    both = f"{CYCLES},{NANOSECONDS}"
    draw = ["bench.gpu.microbench.launches", "--seed", str(options.seed), "--count", "64", "--attention", "16"]
    profiled("launches", [*draw, "--no-plain"], both, 45)
    fresh = ["bench.gpu.strangers.fresh", "measure"]
    profiled("fresh", fresh, both, 35)
    profiled("seen", [*fresh, "--record", str(RECORD), "--part", "seen"], f"{both},{_BYTES}", 20)


if __name__ == "__main__":
    main()
