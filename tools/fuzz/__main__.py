"""The command `python -m tools.fuzz`."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import tools.fuzz
from tools import measurements
from tools.fuzz.examine import Failure, examine
from tools.fuzz.texts import ROOT, text_of

CHUNK = 1000
#: Seconds without a finished chunk after which the run counts as hanging; a chunk takes a few.
PATIENCE = 300


@dataclass
class Result:
    """What became of a chunk: outcomes by kind of text, and the failures with the number of the text."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    size: int = 0


def chunk(seed: int, start: int, stop: int) -> Result:
    """Examine the texts of these numbers."""
    result = Result()
    for index in range(start, stop):
        kind, text = text_of(seed, index)
        result.size += len(text)
        try:
            result.outcomes[kind, examine(text)] += 1
        except Failure as failure:
            result.outcomes[kind, "failed"] += 1
            result.failures.append((index, str(failure)))
    return result


def run(seed: int, count: int, jobs: int, folder: Path) -> Result:
    """Examine `count` texts over several processes, with progress."""
    whole = Result()
    began, told, done = time.monotonic(), 0.0, 0
    starts = iter(range(0, count, CHUNK))
    with ProcessPoolExecutor(jobs) as pool:
        running: dict[Future[Result], int] = {}

        def begin() -> None:
            start = next(starts, None)
            if start is not None:
                running[pool.submit(chunk, seed, start, min(start + CHUNK, count))] = start

        for _ in range(2 * jobs):
            begin()
        while running:
            finished, _ = wait(running, timeout=PATIENCE, return_when=FIRST_COMPLETED)
            if not finished:
                for process in list(pool._processes.values()):
                    process.kill()
                sys.exit(f"no end within {PATIENCE} seconds of a chunk from {sorted(running.values())} on, seed {seed}")
            for future in finished:
                start = running.pop(future)
                part = future.result()
                done += min(CHUNK, count - start)
                whole.outcomes += part.outcomes
                whole.size += part.size
                whole.failures += part.failures
                for index, message in part.failures:
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / f"{seed}-{index}.ptx").write_text(text_of(seed, index)[1], errors="surrogatepass")
                    print(f"text {index} of seed {seed}: {message}", flush=True)
                begin()
            seconds = time.monotonic() - began
            if seconds - told > 10 or not running:
                told = seconds
                left = seconds / max(done, 1) * (count - done)
                print(f"{done:,} of {count:,} texts, {seconds:.0f} s, {left:.0f} s left", flush=True)
    return whole


def record(seed: int, count: int, jobs: int, seconds: float, result: Result) -> None:
    """Write the result of a run into the documentation."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    kinds = sorted({kind for kind, _ in result.outcomes})
    names = ("refused", "illegal", "legal", "failed")
    rows = [f"| {kind} | " + " | ".join(f"{result.outcomes[kind, name]:,}" for name in names) + " |" for kind in kinds]
    total = [sum(result.outcomes[kind, name] for kind in kinds) for name in names]
    lines = [
        f"{today}: {count:,} texts of seed {seed}, {result.size / 1e6:,.0f} MB, {seconds / 60:.0f} minutes on {jobs} "
        f"processes, {total[3]:,} failures.",
        "",
        "| change | refused | illegal | legal | failed |",
        "|---|---:|---:|---:|---:|",
        *rows,
        "| all | " + " | ".join(f"{each:,}" for each in total) + " |",
    ]
    measurements.record("fuzz", "\n".join(lines))


def main() -> int:
    """Examine the texts; exit with 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=tools.fuzz.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="print the text of this number and examine it alone")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz", help="where failures are written")
    parser.add_argument("--record", action="store_true", help="write the result to docs/measurements.md")
    arguments = parser.parse_args()
    if arguments.only is not None:
        _, text = text_of(arguments.seed, arguments.only)
        print(text)
        print(examine(text))
        return 0
    began = time.monotonic()
    result = run(arguments.seed, arguments.count, arguments.jobs, arguments.folder)
    if arguments.record:
        record(arguments.seed, arguments.count, arguments.jobs, time.monotonic() - began, result)
    outcomes = Counter(name for (_, name), number in result.outcomes.items() for _ in range(number))
    print(", ".join(f"{number:,} {name}" for name, number in outcomes.most_common()))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
