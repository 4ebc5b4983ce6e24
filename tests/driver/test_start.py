"""How a program starts: before the emulator is imported, which takes as long as most programs do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ptxgen.driver import Options
from ptxgen.driver.run import program_environment

_CODE = """
import subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        heavy = ["numpy", "ptxgen.emulator", "ptxgen.device", "ptxgen.reports.convert"]
        print([name for name in heavy if name in sys.modules], flush=True)
        super().__init__(*arguments, **options)

subprocess.Popen = Popen
from ptxgen.cli.main import execute
sys.exit(execute(["exec", *sys.argv[1:], "true"]))
"""


@pytest.mark.parametrize(
    "options",
    [[], ["--json", "-"], ["--format", "sarif"], ["--kernel", "x", "--timeout", "60"], ["--target", "sm_90a"]],
)
def test_the_program_starts_before_the_emulator_is_imported(options: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _CODE, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[]"


def test_all_that_was_said_arrives(tmp_path: Path) -> None:
    """The process ends without freeing the emulator: what it has written must have left it before."""
    command = [sys.executable, "-m", "ptxgen", "exec", "--json", "-", "--", "sh", "-c", "exit 7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 7
    assert json.loads(done.stdout)["exit_code"] == 7
    assert done.stderr == "ptxgen exec: no kernel was launched\n"


def test_variables_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    monkeypatch.setenv("CUPY_ACCELERATORS", "cub")
    monkeypatch.setenv("CUTE_DSL_KEEP", "ir")
    made = program_environment(tmp_path, tmp_path / "socket", tmp_path, Options(target="sm_90a"))
    assert made["XLA_FLAGS"].startswith("--xla_dump_to=here --xla_gpu")
    assert made["CUPY_ACCELERATORS"] == ""
    assert made["CUTE_DSL_KEEP"] == "ir"
