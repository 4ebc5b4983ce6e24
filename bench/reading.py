"""How fast PTX is read: `parse` and `check` on a file of several megabytes from nvcc, beside pyptx's parser.

`make reading` needs nvcc 13; it installs pyptx, the nearest Python peer, into the environment of development.
The file is read in pieces of a quarter, a half and the whole too: the rate must not fall with the size.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ptxgen
from tools import measurements

SOURCE = Path(__file__).with_name("sort_scan_reduce.cu")


def best(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def compile_source(target: str) -> str:
    """PTX of the CUDA source for one target."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc is not on the PATH; this benchmark compiles CUDA's own headers with it")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        subprocess.run([nvcc, "-ptx", f"-arch={target}", "-o", str(made), str(SOURCE)], check=True)
        return made.read_text()


def part(text: str, share: float) -> str:
    """The module with the first functions alone, about that share of the text."""
    module = ptxgen.parse(text)
    kept, size = [], 0
    for item in module.items:
        kept.append(item)
        size += len(str(item))
        if size >= share * len(text):
            break
    return str(module.replace(items=tuple(kept)))


@dataclass(frozen=True)
class Rates:
    """MB/s of the whole file for one target; `peer` is pyptx's, or why it has none."""

    target: str
    size: float
    parse: float
    check: float
    peer: str


def measure(target: str) -> Rates:
    """Measure one target, and print each piece."""
    text = compile_source(target)
    assert str(ptxgen.parse(text)) == text
    errors = [each for each in ptxgen.check(text) if each.severity == "error"]
    assert not errors, errors[:3]
    print(f"{target}: {len(text) / 1e6:.2f} MB, {text.count(chr(10)):,} lines")
    parse = check = 0.0
    for share in (0.25, 0.5, 1.0):
        piece = text if share == 1 else part(text, share)
        size = len(piece) / 1e6
        module = ptxgen.parse(piece)
        parse = size / best(lambda piece=piece: ptxgen.parse(piece))
        check = size / best(lambda module=module: ptxgen.check(module))
        printed = size / best(lambda module=module: str(module))
        print(f"  {size:5.2f} MB: parse {parse:5.1f} MB/s, check {check:5.1f} MB/s, print {printed:5.1f} MB/s")
    peer = _peer(text)
    print(f"  pyptx's parser: {peer}")
    return Rates(target, len(text) / 1e6, parse, check, peer)


def _peer(text: str) -> str:
    try:
        from pyptx.parser import parse  # type: ignore[import-not-found]
    except ImportError:
        return "not installed"
    try:
        return f"{len(text) / 1e6 / best(lambda: parse(text), 1):.2f} MB/s"
    except Exception:  # what a peer raises is its own affair
        return "does not read it"


def main() -> None:
    """Print the figures; with --record, write them down."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the section of docs/measurements.md")
    options = parser.parse_args()
    found = [measure(target) for target in ("sm_90a", "sm_100a")]
    if options.record:
        lines = [
            f"By `python -m bench.reading --record` ({datetime.date.today().isoformat()}, CPU time): a file of "
            f"{found[0].size:.1f} MB that nvcc makes of CUDA's",
            "own sort, scan and reduction for sm_90a, and one for sm_100a. The rate does not fall with the size.",
            "",
            "| what | " + " | ".join(each.target for each in found) + " | goal |",
            "|---|---:|---:|---:|",
            "| `parse` | " + " | ".join(f"{each.parse:.1f} MB/s" for each in found) + " | 5 MB/s |",
            "| `check` | " + " | ".join(f"{each.check:.1f} MB/s" for each in found) + " | 1 MB/s |",
            "| pyptx's parser, same file, same run | "
            + " | ".join(each.peer for each in found)
            + " | a fifth of ours |",
        ]
        measurements.record("reading", "\n".join(lines))


if __name__ == "__main__":
    main()
