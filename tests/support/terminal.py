"""The command in a terminal of its own, as a person has it: what it prints there, and how fast Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from dataclasses import dataclass

from tests.support.paths import ROOT


@dataclass(frozen=True)
class Session:
    """What a command printed, its exit code, and how many seconds Ctrl-C took to end it."""

    output: str
    code: int
    seconds: float


def in_terminal(*words: str, interrupt: float | None = None, limit: float = 120.0, **more: str) -> Session:
    """Run `ptxgen WORDS` in a terminal; `interrupt` is when Ctrl-C is typed, in seconds, and `more` the environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **more}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ptxgen", *words],
        stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(slave), os.O_RDWR)),  # its controlling terminal
    )  # fmt: skip
    os.close(slave)
    began = typed = time.monotonic()
    output = b""
    try:
        while time.monotonic() - began < limit:
            if select.select([master], [], [], 0.02)[0]:
                try:
                    more_output = os.read(master, 65536)
                except OSError:  # no one has the terminal open any more
                    break
                output += more_output
            if interrupt is not None and time.monotonic() - began > interrupt:
                os.write(master, b"\x03")
                typed, interrupt = time.monotonic(), None
        code = process.wait(timeout=5)
        return Session(output.decode(errors="replace"), code, time.monotonic() - typed)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        os.close(master)
