"""Run one external tool: its output as text, and one sentence on how it ended if not by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What a tool printed and how it ended; `failure` is empty when it exited by itself."""

    output: str
    errors: str
    status: int
    failure: str


def run_tool(command: Sequence[str], folder: Path | None, timeout: float | None) -> Outcome:
    """Run `command` in `folder`; `timeout` is in seconds, None waits for ever."""
    name = Path(command[0]).name
    # nvcc and ptxas fail where TMPDIR is read-only; tempfile finds another folder.
    variables = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        failure = f"{name} did not finish within {timeout:g} seconds and was stopped"
        return Outcome(_text(expired.stdout), _text(expired.stderr), -1, failure)
    except OSError as error:
        return Outcome("", "", -1, f"{name} could not be started: {error}")
    failure = ""
    if done.returncode < 0:
        failure = f"{name} crashed: signal {_signal_name(-done.returncode)}"
    return Outcome(_text(done.stdout), _text(done.stderr), done.returncode, failure)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", errors="replace")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
