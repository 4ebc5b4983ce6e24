"""`ptxgen check --watch`: it checks a file again when it changes, and ends by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.command_line import Cli

TEXT = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


def test_a_file_is_checked_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(TEXT)
    command = [sys.executable, "-m", "ptxgen", "check", "--watch", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None

        def until(words: str) -> None:
            while words not in (line := process.stdout.readline()):  # type: ignore[union-attr]
                assert line, "it ended"

        try:
            until(f"{path}: legal for sm_90")
            path.write_text(TEXT.replace("ret", "retch"))
            until(f"{path}: 1 error")
            path.unlink()
            until("cannot read")
            path.write_text(TEXT + "// again\n")
            until(f"{path}: legal for sm_90")
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
            # Half a second, on a machine that has one to spare.
            assert time.monotonic() - began < 0.5 + os.getloadavg()[0]
        finally:
            process.kill()


def test_what_cannot_be_watched(cli: Cli) -> None:
    outcome = cli("check", "-", "--watch")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--watch is for a file and its words, not for standard input" in outcome.err
    assert "not for --json" in cli("check", "k.ptx", "--watch", "--json").err
