"""Run recorded kernels.

python -m tools.recorded [--folder FOLDER ...] [--schedule eager|late|random|all] [--seed N] [NAME-PART ...]
python -m tools.recorded --device gpu [--folder FOLDER ...] [NAME-PART ...]
"""

from __future__ import annotations

import argparse
import sys

from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.executor import Executor
from ptxgen.gpu import GpuNotFoundError
from tools import executing
from tools.recorded.case import SCHEDULES, load, names
from tools.recorded.files import FOLDERS
from tools.recorded.runs import Run, gpu, run


def main() -> int:
    """Run cases in the emulator, or those of its target on a GPU; exit with 1 if one is not right."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.recorded", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="parts of names; all by default")
    parser.add_argument("--folder", nargs="*", default=FOLDERS, choices=FOLDERS, help="all by default")
    parser.add_argument("--schedule", choices=(*SCHEDULES, "all"), default="eager")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("emulator", "gpu"), default="emulator")
    executing.add_options(parser)
    options = parser.parse_args()
    chosen = [
        name for name in names(*options.folder) if not options.parts or any(part in name for part in options.parts)
    ]
    schedules: list[Schedule] = [each for each in SCHEDULES if options.schedule in (each, "all")]
    if options.device == "gpu":
        try:
            runs = [Run(name, None) for name in chosen if load(name).target == gpu().target]
        except GpuNotFoundError as missing:
            parser.error(str(missing))
        executor = Executor(0)
    else:
        runs = [Run(name, schedule, options.seed) for name in chosen for schedule in schedules]
        executor = executing.executor(parser, options)
    bad = 0
    with executor:
        for outcome in executor.map(run, runs, what="runs"):
            if outcome.error is not None:
                print(f"FAIL {outcome.problem}", flush=True)
                bad += 1
                continue
            ran = outcome.result()
            bad += bool(ran.wrong)
            print(f"{'FAIL' if ran.wrong else 'ok  '} {outcome.name} {ran.seconds:.1f} s", flush=True)
            if ran.wrong:
                print("    " + ran.wrong[0], *ran.wrong[1:], sep="\n    ", flush=True)
    print(f"{len(runs) - bad} of {len(runs)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
