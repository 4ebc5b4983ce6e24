"""Runs a command under ncu, the profiler of Nsight Compute."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ptxgen.ncu.schema import ReportError

#: Every section: what summaries and comparisons read.
OPTIONS = ("--set", "full", "--import-source", "yes", "--target-processes", "all", "--force-overwrite")
_PERMISSION = "ERR_NVGPUCTRPERM"


class ProfilerError(ReportError):
    """ncu is missing, or ended without a report."""


def find_ncu() -> str:
    """The path of ncu. Raises ProfilerError where there is none on PATH."""
    found = shutil.which("ncu")
    if found is None:
        raise ProfilerError(
            "profiling needs ncu, and there is none on PATH: install NVIDIA Nsight Compute (the CUDA toolkit has it), "
            "or add its folder to PATH"
        )
    return found


def profile_command(command: Sequence[str], report: Path, options: Sequence[str] = ()) -> list[str]:
    """The command line that profiles `command` into a .ncu-rep file; `options` go to ncu too. Raises ProfilerError."""
    return [find_ncu(), *OPTIONS, *options, "--export", str(report), *command]


def profile(command: Sequence[str], report: Path) -> None:
    """Run a command line of `profile_command`. Raises ProfilerError with ncu's last lines where it makes no report."""
    report.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise ProfilerError(f"cannot start {command[0]}: {(error.strerror or str(error)).lower()}") from None
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if _PERMISSION in done.stdout + done.stderr:
        raise ProfilerError(
            f"ncu may not read the counters of this GPU ({_PERMISSION}): run it as root, or allow all users to profile "
            "(NVreg_RestrictProfilingToAdminUsers=0)"
        )
    if done.returncode != 0 or not report.is_file():
        last = "; ".join(line.strip() for line in said[-3:]) or "it said nothing"
        made = "" if report.is_file() else " and no report"
        raise ProfilerError(f"ncu ended with status {done.returncode}{made}: {last} ({shlex.join(command)})")


def summary_of(report: Path, *options: str) -> str:
    """What `ptxgen ncu REPORT OPTION...` prints. Raises ProfilerError where it fails.

    A process of its own reads the report: on an H200 the library of Nsight Compute 2025.3.1 ended the process that had
    profiled by a segmentation fault, three times of three, and never one that only read; why is not known.
    """
    command = [sys.executable, "-m", "ptxgen", "ncu", str(report), *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"reading it ended with status {done.returncode}"
        raise ProfilerError(f"{said.removeprefix('error: ')} (the profile is in {report})")
    return done.stdout
