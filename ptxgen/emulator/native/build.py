"""Compiling the library: for the wheel, and for a checkout. It needs nothing but Python and a C compiler."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

#: Sources, and where the wheel or the checkout has the compiled file.
SOURCES = Path(__file__).parent / "sources"
PREBUILT = SOURCES.parent / "prebuilt"
#: No contraction: only an fma rounds once. Overflow wraps.
_FLAGS = (
    "-O2", "-ftree-vectorize", "-g0", "-fPIC", "-shared", "-std=gnu11", "-fvisibility=hidden", "-fwrapv",
    "-fno-strict-aliasing", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra",
)  # fmt: skip
#: Compiler flag for x86-64 processors since about 2013, which have a fused multiply-add; others run the NumPy code.
_PROCESSOR = {"x86_64": ("-march=x86-64-v3",)}


def _flags() -> tuple[str, ...]:
    return (*_FLAGS, *_PROCESSOR.get(platform.machine(), ()))


@cache
def name() -> str:
    """The file name of the library: it changes with the sources, the flags and the processor."""
    digest = hashlib.sha256(" ".join((*_flags(), platform.machine())).encode())
    for file in sorted(SOURCES.glob("*.[ch]")):
        digest.update(file.read_bytes())
    return f"ptxgen-lanes-{digest.hexdigest()[:16]}.so"


def compiler() -> str | None:
    """The command of a C compiler, None if there is none."""
    return os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_into(folder: Path) -> bool:
    """Compile the library into a folder; whether that worked."""
    command = compiler()
    if command is None:
        return False
    sources = sorted(map(str, SOURCES.glob("*.c")))
    try:
        done = subprocess.run(
            [command, *_flags(), "-o", str(folder / name()), *sources, "-lm"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
