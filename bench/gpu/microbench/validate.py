"""Predicts the recorded launches (bench/data/h200-launches.json) and compares.

    python -m bench.gpu.microbench.validate --part held-out --out held-out.jsonl [--seconds 600]

A hash of the launch alone says whether it is seen, so that constants may be explained by it, or held out. The later
ones (bench/data/h200-later-launches.json) were drawn after the model had been made, and only judge.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.gpu.arms import Spec
from ptxgen.gemm.prediction.timed import predict_gemm

_DATA = Path(__file__).parents[2] / "data"
RECORD, LATER = _DATA / "h200-launches.json", _DATA / "h200-later-launches.json"


def held_out(launch: Mapping[str, Any]) -> bool:
    """Whether a launch is held out: half of them, by a hash of what was launched."""
    named = {key: value for key, value in launch.items() if key not in ("cycles", "ns")}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).digest()[0] % 2 == 0


def recorded(part: str) -> list[dict[str, Any]]:
    """The GEMMs of a part, in an order that has nothing to do with their size."""
    launches = json.loads((LATER if part == "later" else RECORD).read_text())["launches"]
    chosen = [each for each in launches if "m" in each]
    if part != "later":
        chosen = [each for each in chosen if held_out(each) == (part == "held-out")]
    return sorted(chosen, key=lambda each: hashlib.md5(json.dumps(each).encode()).digest())


def compared(launch: Mapping[str, Any]) -> dict[str, Any]:
    """A launch with its predicted cycles at the clock that it had, or why there are none."""
    began = time.monotonic()
    plan = Spec.named(launch["spec"]).plan()
    clock = round(launch["cycles"] / launch["ns"] * 1e3)
    try:
        found = predict_gemm(plan, launch["m"], launch["n"], launch["k"], "h200", clock=clock)
    except ValueError as error:
        return {**launch, "error": str(error)[:300]}
    seconds = round(time.monotonic() - began, 1)
    return {**launch, "predicted": round(found.cycles), "bound_by": found.bound_by, "seconds": seconds}


def summary(rows: list[dict[str, Any]]) -> str:
    """Mean absolute error, median error with its sign, and the share within 10 %."""
    errors = [each["predicted"] / each["cycles"] - 1 for each in rows if "predicted" in each]
    if not errors:
        return "no launches"
    near = sum(abs(each) <= 0.1 for each in errors) / len(errors)
    failed = len(rows) - len(errors)
    return (
        f"{len(errors)} launches: mean error {statistics.fmean(map(abs, errors)):.1%}, median "
        f"{statistics.median(errors):+.1%}, {near:.0%} within 10 %, {failed} without a prediction"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("seen", "held-out", "later"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    options = parser.parse_args()
    began, rows = time.monotonic(), list[dict[str, Any]]()
    for launch in recorded(options.part):
        if time.monotonic() - began > options.seconds:
            break
        rows.append(compared(launch))
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(f"{rows[-1].get('predicted', 0) / launch['cycles'] - 1:+7.1%}", launch, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
