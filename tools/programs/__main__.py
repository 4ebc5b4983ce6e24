"""The command `python -m tools.programs`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

import tools.programs
from tools.programs.examine import Crash, examine


def _chunk(seeds: Iterable[int]) -> list[tuple[str, Crash | None]]:
    return [examine(seed) for seed in seeds]


def main() -> int:
    """Run programs; print the crashes, each place in the code once; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.programs",
        description=tools.programs.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    places: dict[str, Crash] = {}
    began = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    chunks = [seeds[start : start + 100] for start in range(0, len(seeds), 100)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, found in enumerate(pool.map(_chunk, chunks), 1):
            for outcome, crash in found:
                outcomes[outcome] += 1
                if crash is not None:
                    place = re.findall(r'File "(.*?)", line (\d+)', crash.trace)[-1]
                    if str(place) not in places:
                        places[str(place)] = crash
                        print(f"program {crash.seed} crashes:\n{crash.trace}\n{crash.text}", flush=True)
            if sys.stderr.isatty() or number % 10 == 0:
                end = "\r" if sys.stderr.isatty() else "\n"
                print(f"{number * 100}/{len(seeds)}, {time.monotonic() - began:.0f} s", end=end, file=sys.stderr)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()))
    return 1 if outcomes["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
