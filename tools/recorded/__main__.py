"""Run recorded kernels.

python -m tools.recorded [--folder FOLDER ...] [--schedule eager|late|random|all] [--seed N] [NAME-PART ...]
python -m tools.recorded --device gpu [--folder FOLDER ...] [NAME-PART ...]
"""

from __future__ import annotations

import argparse
import sys
import time

from ptxgen.device import Device
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.gpu import Gpu, GpuNotFoundError
from tools.recorded.case import SCHEDULES, load, names
from tools.recorded.files import FOLDERS


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
    options = parser.parse_args()
    try:
        gpu = Gpu() if options.device == "gpu" else None
    except GpuNotFoundError as missing:
        parser.error(str(missing))
    schedules: list[Schedule] = [each for each in SCHEDULES if options.schedule in (each, "all")]
    chosen = [
        name for name in names(*options.folder) if not options.parts or any(part in name for part in options.parts)
    ]
    runs = bad = 0
    for name in chosen:
        case = load(name)
        if gpu is not None and case.target != gpu.target:
            continue
        devices: dict[str, Device] = {gpu.name: gpu} if gpu is not None else {}
        if gpu is None:
            devices = {schedule: case.emulator(schedule, options.seed) for schedule in schedules}
        for where, device in devices.items():
            began = time.process_time()
            outcome = case.run(device)
            runs += 1
            bad += not outcome.right
            print(
                f"{'ok  ' if outcome.right else 'FAIL'} {name} {where} {time.process_time() - began:.1f} s", flush=True
            )
            if not outcome.right:
                report = outcome.report.summary().replace("\n", "\n    ")[:2000]
                older = map(str, outcome.report.older_values)
                print("    " + report, *outcome.wrong.values(), *older, sep="\n    ", flush=True)
    print(f"{runs - bad} of {runs}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
