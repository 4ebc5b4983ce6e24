"""The command `python -m tools.corpus`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tools.corpus
from tools.corpus.compile import NvccError, compile_ptx, find_nvcc, headers
from tools.corpus.judge import judge
from tools.corpus.sources import ROOT, Source, sources


def compiled(chosen: Sequence[Source], jobs: int, folder: Path) -> Iterator[tuple[Source, str | NvccError]]:
    """Each source with its PTX, `jobs` at a time."""

    def one(source: Source) -> str | NvccError:
        try:
            return compile_ptx(source, folder)
        except NvccError as error:
            return error

    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(chosen, pool.map(one, chosen), strict=True)


def main() -> int:
    """Print a line for each source and all errors; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=tools.corpus.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="sources whose names begin so (cooperation, wrappers_tcgen05); all by default"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "corpus", help="where the PTX is kept")
    arguments = parser.parse_args()
    if find_nvcc() is None:
        parser.error("nvcc 13 or newer is neither on the PATH nor in /usr/local/cuda")
    chosen = [
        source
        for source in sources(headers())
        if not arguments.names or any(source.name.startswith(name) for name in arguments.names)
    ]
    errors = 0
    size, parsing, checking = 0, 0.0, 0.0
    undeclared: Counter[str] = Counter()
    print(f"{'source':<44}{'bytes':>12}{'parse MB/s':>12}{'check MB/s':>12}{'errors':>8}{'undeclared':>12}")
    for source, made in compiled(chosen, arguments.jobs, arguments.folder):
        if isinstance(made, NvccError):
            errors += 1
            print(f"{source.name}: nvcc: {made}")
            continue
        verdict = judge(made)
        size += verdict.size
        parsing += verdict.parse_seconds
        checking += verdict.check_seconds
        undeclared += verdict.undeclared
        errors += len(verdict.errors)
        rates = [f"{verdict.size / 1e6 / max(s, 1e-9):.1f}" for s in (verdict.parse_seconds, verdict.check_seconds)]
        print(
            f"{source.name:<44}{verdict.size:>12,}{rates[0]:>12}{rates[1]:>12}{len(verdict.errors):>8}"
            f"{verdict.undeclared.total():>12}",
            flush=True,
        )
        for error in verdict.errors:
            print(f"    {error}")
    print(
        f"{len(chosen)} sources, {size:,} bytes, parsed at {size / 1e6 / max(parsing, 1e-9):.1f} MB/s, "
        f"checked at {size / 1e6 / max(checking, 1e-9):.1f} MB/s, {errors} errors"
    )
    if undeclared:
        print("undeclared:", ", ".join(f"{opcode} {count}" for opcode, count in undeclared.most_common()))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
