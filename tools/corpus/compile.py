"""PTX from nvcc, kept by a hash of the source, the options and the version of nvcc."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tools.corpus.sources import Source

OLDEST = (13, 0)
USUAL_PLACE = "/usr/local/cuda/bin/nvcc"


class NvccError(RuntimeError):
    """nvcc refuses a source; the message is what it says."""


@cache
def find_nvcc() -> Path | None:
    """nvcc 13 or newer, on the PATH or where CUDA is usually installed; None if there is none."""
    found = shutil.which("nvcc") or shutil.which(USUAL_PLACE)
    return Path(found) if found is not None and nvcc_version(Path(found)) >= OLDEST else None


@cache
def nvcc_version(nvcc: Path) -> tuple[int, int]:
    """(major, minor) of a compiler."""
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"release (\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@cache
def headers() -> Path:
    """The folder of CUDA's headers, as nvcc says; it may be a script far from them."""
    nvcc = find_nvcc()
    assert nvcc is not None
    command = [nvcc, "--dryrun", "-ptx", "-x", "cu", "-o", os.devnull, os.devnull]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    match = re.search(r'INCLUDES="-I([^"]+)"', said.stdout + said.stderr)
    if match is None:
        raise NvccError("nvcc --dryrun does not name its include folder")
    return Path(match[1])


def compile_ptx(source: Source, folder: Path) -> str:
    """The PTX of a source; from the folder where it is there."""
    nvcc = find_nvcc()
    assert nvcc is not None
    version = ".".join(map(str, nvcc_version(nvcc)))
    options = ["-ptx", "-w", "--extended-lambda", f"-arch={source.target}", *source.options]
    text = source.text()
    made = folder / f"{source.name}-{hashlib.sha256(repr((version, options, text)).encode()).hexdigest()[:16]}.ptx"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        written = made.with_suffix(f".{os.getpid()}.cu")
        unfinished = made.with_suffix(f".{os.getpid()}.ptx")
        written.write_text(text)
        command = [nvcc, *options, "-o", unfinished, written]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        written.unlink()
        if done.returncode != 0:
            unfinished.unlink(missing_ok=True)
            raise NvccError(f"{source.name}: {(done.stderr or done.stdout).strip()}")
        unfinished.replace(made)
    return made.read_text()
