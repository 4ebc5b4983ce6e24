"""Compile the sources of `tests/data/handwritten` to PTX with nvcc, where a source or its options are newer.

python -m tools.recorded.handwritten [NAME ...]

A source's first line holds nvcc's options: `// nvcc -arch=sm_90a`. Comments and empty lines are taken out of the PTX.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.corpus.compile import NvccError, find_nvcc
from tools.recorded.files import DATA

FOLDER = DATA / "handwritten"


def compile_source(source: Path) -> str:
    """The PTX of a source, without comments and empty lines. Raises NvccError with what nvcc says."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise NvccError("nvcc 13 or newer is neither on the PATH nor in /usr/local/cuda")
    first = source.read_text(encoding="utf-8").partition("\n")[0]
    if not first.startswith("// nvcc "):
        raise NvccError(f"{source.name}: the first line must be `// nvcc` and its options")
    command = [str(nvcc), "-ptx", "-o", "-", *first.split()[2:], str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NvccError(f"{source.name}: {done.stderr.strip()}")
    text = re.sub(r"[ \t]*//[^\n]*", "", done.stdout)
    return re.sub(r"\n\s*\n+", "\n", text).lstrip()


def main() -> int:
    """Compile the named sources, all by default; exit with 1 if nvcc refuses one."""
    bad = 0
    for source in sorted(FOLDER.glob("*.cu")):
        if sys.argv[1:] and source.stem not in sys.argv[1:]:
            continue
        try:
            source.with_suffix(".ptx").write_text(compile_source(source))
        except NvccError as error:
            print(error)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
