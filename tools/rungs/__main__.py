"""The command: `python -m tools.rungs --help`."""

from __future__ import annotations

import argparse
import sys
import time

from ptxgen.gemm import find, kernels
from tools import executing
from tools.rungs.cases import cases, judge


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rungs", description=__doc__)
    parser.add_argument("names", nargs="*", help="kernels or rungs; all by default")
    executing.add_options(parser)
    chosen = parser.parse_args()
    failed = 0
    with executing.executor(parser, chosen) as executor:
        for name in chosen.names or list(kernels()):
            begin = time.perf_counter()
            # By their words: options that a kernel lacks do not make it run twice.
            todo = list({str(case): case for case in cases(find(name))}.values())
            outcomes = list(executor.map(judge, todo, what=f"runs of {name}"))
            wrong = [(each.name, each.problem or each.value) for each in outcomes if each.problem or each.value]
            ran = sum(bool(each.problem) or each.value is not None for each in outcomes)
            print(f"{name}: {ran - len(wrong)} of {ran} runs right, {time.perf_counter() - begin:.0f} s", flush=True)
            for case, outcome in wrong:
                print(f"  {case}\n{outcome}")
            failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
