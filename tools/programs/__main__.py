"""The command `python -m tools.programs`."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

import tools.programs
from tools import executing
from tools.programs.examine import Crash, examine_all


def main() -> int:
    """Run programs; print the crashes, each place in the code once; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.programs",
        description=tools.programs.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    executing.add_options(parser)
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    places: dict[str, Crash] = {}
    seeds = range(options.seed, options.seed + options.count)
    chunks = [seeds[start : start + 100] for start in range(0, len(seeds), 100)]
    with executing.executor(parser, options) as executor:
        for done in executor.map(examine_all, chunks, what="chunks of 100 programs"):
            if done.error is not None:  # a worker that died
                outcomes["crash"] += 1
                print(done.problem, flush=True)
            for outcome, crash in done.value or ():
                outcomes[outcome] += 1
                if crash is not None:
                    place = re.findall(r'File "(.*?)", line (\d+)', crash.trace)[-1]
                    if str(place) not in places:
                        places[str(place)] = crash
                        print(f"program {crash.seed} crashes:\n{crash.trace}\n{crash.text}", flush=True)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()))
    return 1 if outcomes["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
