"""Completion in a bash of its own, which splits words at `=` before it asks."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxgen.cli.common.bash import behind, joined
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


class Bash:
    """A bash that a person types into."""

    def __init__(self, home: Path) -> None:
        program = home / "ptxgen"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ptxgen "$@"\n')
        program.chmod(0o755)
        script = self._script()
        (home / "complete.sh").write_text(script)
        more = {"PATH": f"{home}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "TERM": "dumb", "INPUTRC": os.devnull}
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=home,
            env={**os.environ, **more}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.type("stty cols 200; bind 'set bell-style none'; source complete.sh; echo rea''dy\n", "ready")

    @staticmethod
    def _script() -> str:
        return subprocess.run(
            [sys.executable, "-m", "ptxgen", "--show-completion", "bash"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def type(self, keys: str, expected: str, limit: float = 30.0) -> str:
        """What the terminal shows behind some keys, up to what is expected."""
        os.write(self._master, keys.encode())
        shown, end = "", time.monotonic() + limit
        while re.search(expected, shown) is None and time.monotonic() < end:
            if select.select([self._master], [], [], 0.1)[0]:
                shown += os.read(self._master, 65536).decode()
        return shown

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Bash]:
    made = Bash(tmp_path)
    yield made
    made.close()


def test_values_of_an_option_are_completed(bash: Bash) -> None:
    expected = r"--set epilogue=tma "
    assert re.search(expected, bash.type("ptxgen run blackwell/clc --set epilogue=t\t", expected))
    expected = r"\n1 +2 +3 +4[\s\S]*--set clc_stages=$"  # the list, and the line as it was
    assert re.search(expected, bash.type("--set clc_stages=\t\t", expected))
    expected = "--dtype=e4m3 "
    assert re.search(expected, bash.type("\x15ptxgen run --dtype=e4\t", expected))


def test_no_space_comes_between_an_option_and_its_value(bash: Bash) -> None:
    expected = "--set stages=6"
    assert re.search(expected, bash.type("ptxgen run blackwell/clc --set st\t6", expected))


@pytest.mark.parametrize(
    ("given", "words", "kept"),
    [
        (["ptxgen", "run", "--set", "stages", "=", "4"], ["ptxgen", "run", "--set", "stages=4"], "stages="),
        (["ptxgen", "run", "--set", "stages", "="], ["ptxgen", "run", "--set", "stages="], "stages="),
        (["ptxgen", "run", "--set", "stages", "=", ""], ["ptxgen", "run", "--set", "stages=", ""], ""),
        (["ptxgen", "run", "--set", "=", "k", "=", "1"], ["ptxgen", "run", "--set=k=1"], "--set=k="),
        (["ptxgen", "explain", "a", "::", "b"], ["ptxgen", "explain", "a::b"], "a::"),
        (["ptxgen", ""], ["ptxgen", ""], ""),
        (["ptxgen", "run", "", "k"], ["ptxgen", "run", "k"], ""),
    ],
)
def test_words_are_joined_as_they_were_typed(given: list[str], words: list[str], kept: str) -> None:
    assert joined(given) == (words, kept)


def test_bash_takes_what_is_behind_the_sign() -> None:
    assert behind("stages=", "stages=4") == "4"
    assert behind("--set=stages=", "stages=4") == "4"
    assert behind("--dtype=", "e4m3") == "e4m3"
    assert behind("", "stages=4") == "stages=4"
