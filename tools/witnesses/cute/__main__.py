"""Compile the witnesses in CuTe DSL again and record them in tests/data/witnesses: see README.md in the folder above.

python -m tools.witnesses.cute [NAME-PART ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ..__main__ import FOLDER, write
from ..launch import reference_entry

_TARGET = "CUTE_DSL_ARCH"  # where the DSL looks, once for a process


def record(target: str, parts: list[str]) -> None:
    """Compile and record those for a target whose names have one of the parts."""
    from . import blackwell, hopper, rows
    from .compiler import compile_witness

    for witness in (*blackwell.WITNESSES, *hopper.WITNESSES, *rows.WITNESSES):
        name = witness.recorded_name
        if witness.target == target and any(part in name for part in parts or [""]):
            text, launch = compile_witness(witness)
            write(FOLDER, name, text, launch, reference_entry(witness.reference))
            print(name, len(text), flush=True)


def main(parts: list[str]) -> int:
    """Record for both targets, in a process for each."""
    if _TARGET in os.environ:
        record(os.environ[_TARGET], parts)
        return 0
    command = [sys.executable, "-m", __package__, *parts]
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder) / "libcute_dsl_runtime.so"
        source = Path(__file__).with_name("launches.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", runtime, source], check=True)
        return max(
            subprocess.run(
                command, env={**os.environ, _TARGET: target, "CUTE_DSL_LIBS": str(runtime)}, check=False
            ).returncode
            for target in ("sm_90a", "sm_100a")
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
