"""The command `python -m tools.programs`."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from functools import partial

import tools.programs
from tools import executing
from tools.certify.cases import declared
from tools.programs.examine import Crash, examine_all
from tools.programs.operands import examine as examine_operands


def main() -> int:
    """Run programs; print the crashes, each place in the code once; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.programs",
        description=tools.programs.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--operands", action="store_true", help="spell every operand of every declaration in every way")
    parser.add_argument("--judge", action="store_true", help="with --operands: compare with ptxas too (an hour)")
    parser.add_argument("--family", action="append", default=[], help="with --operands: these declarations alone")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    executing.add_options(parser)
    options = parser.parse_args()
    if options.operands:
        return _operands(parser, options)
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


def _operands(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Try the spellings of operands; print disagreements and crashes, and exit with 1 if there are any."""
    keys = [form.form.key for form in declared(options.family)]
    lines = legal = wrong = 0
    with executing.executor(parser, options) as executor:
        for done in executor.map(partial(examine_operands, judge=options.judge), keys, what="declarations"):
            if done.value is None:
                wrong += 1
                print(done.problem, flush=True)
                continue
            lines, legal = lines + done.value.lines, legal + done.value.legal
            wrong += len(done.value.disagreements) + len(done.value.crashes)
            for text in done.value.disagreements:
                print(text, flush=True)
            for line, trace in done.value.crashes:
                print(f"{line} crashes:\n{trace}", flush=True)
    print(f"{lines:,} lines, {legal:,} legal, {wrong:,} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
