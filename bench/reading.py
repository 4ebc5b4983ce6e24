"""How fast PTX is read: `parse` and `check` on a file of several megabytes from nvcc, beside pyptx's parser.

`make reading` needs nvcc 13; it installs pyptx, the nearest Python peer, into the environment of development.
The file is read in pieces of a quarter, a half and the whole too: the rate must not fall with the size.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ptxgen

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


def main() -> None:
    """Print the table."""
    for target in ("sm_90a", "sm_100a"):
        text = compile_source(target)
        assert str(ptxgen.parse(text)) == text
        errors = [each for each in ptxgen.check(text) if each.severity == "error"]
        assert not errors, errors[:3]
        print(f"{target}: {len(text) / 1e6:.2f} MB, {text.count(chr(10)):,} lines")
        for share in (0.25, 0.5, 1.0):
            piece = text if share == 1 else part(text, share)
            size = len(piece) / 1e6
            module = ptxgen.parse(piece)
            parse = size / best(lambda piece=piece: ptxgen.parse(piece))
            check = size / best(lambda module=module: ptxgen.check(module))
            printed = size / best(lambda module=module: str(module))
            print(f"  {size:5.2f} MB: parse {parse:5.1f} MB/s, check {check:5.1f} MB/s, print {printed:5.1f} MB/s")
        try:
            from pyptx.parser import parse as peer  # type: ignore[import-not-found]
        except ImportError:
            print("  pyptx is not installed")
            continue
        ours = best(lambda text=text: ptxgen.parse(text))
        try:
            theirs = best(lambda text=text: peer(text), 1)
        except Exception as error:  # what a peer raises is its own affair
            print(f"  pyptx does not read it: {type(error).__name__}: {str(error)[:80]}")
        else:
            rate = len(text) / 1e6 / theirs
            print(f"  pyptx's parser: {rate:.2f} MB/s, so ptxgen's is {theirs / ours:.0f} times as fast")


if __name__ == "__main__":
    main()
