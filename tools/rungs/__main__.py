"""The command: `python -m tools.rungs --help`."""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from pathlib import Path

import numpy as np

from ptxgen.gemm import find, kernels
from tools import executing
from tools.measurements import record
from tools.rungs.cases import judge
from tools.rungs.kept import Kept, all_cases, table

KEPT = Path("build") / "rungs.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rungs", description=__doc__)
    parser.add_argument("names", nargs="*", help="kernels or rungs; all by default")
    executing.add_options(parser)
    parser.add_argument("--resume", action="store_true", help=f"run only what {KEPT} does not have as right")
    parser.add_argument("--record", action="store_true", help="write the table to docs/measurements.md")
    chosen = parser.parse_args()
    kept = Kept(KEPT, resume=chosen.resume)
    names = [find(name).name for name in chosen.names or kernels()]
    with executing.executor(parser, chosen) as executor:
        for name in names:
            begin = time.perf_counter()
            todo = [case for case in all_cases(name) if not kept.known(case)]
            for outcome in executor.map(judge, todo, what=f"runs of {name}"):
                kept.add(outcome.item, outcome.problem or outcome.value)
                if outcome.problem or outcome.value:
                    print(f"  {outcome.item}\n{outcome.problem or outcome.value}", flush=True)
            tally = kept.tally(name)
            seconds = time.perf_counter() - begin
            print(f"{name}: {tally.right} of {tally.right + tally.wrong} runs right, {seconds:.0f} s", flush=True)
    tallies = [kept.tally(name) for name in names]
    if chosen.record:
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
        record("rungs", f"{datetime.date.today().isoformat()}, {versions}.\n\n{table(tallies)}")
    return 1 if any(tally.wrong or tally.left for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
