"""Other ways to `ptxgen exec`: from Python, from pytest, and as a GitHub Action."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptxgen
from tests.driver.programs import compile_c
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    return compile_c("registered.c", folder / "registered", folder)


def test_from_python(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = ptxgen.exec([program], target="sm_90a", environment={"GREETING": "hello"})
    assert results.exit_code == 0
    assert [(each.kernel, each.status) for each in results.launches] == [("increase", "ok")]
    assert capfd.readouterr().out == "PASS\n"


def test_the_option_of_pytest(program: Path, tmp_path: Path) -> None:
    (tmp_path / "test_gpu.py").write_text(
        "import subprocess\n"
        f"def test_it():\n    assert subprocess.run([{str(program)!r}]).returncode == 0\n"
        "def test_that():\n    assert False\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gpu.py", "--ptxgen-exec=sm_90a"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
    assert "increase: 1 launch" in done.stderr


def test_the_steps_of_the_action(program: Path, tmp_path: Path) -> None:
    """The second step with the variables that the action gives it; the first installs from an index."""
    text = (ROOT / "action/action.yml").read_text()
    variables = re.findall(r"^        (PTXGEN_\w+): \$\{\{ inputs\.(\w+) \}\}$", text, re.MULTILINE)
    defaults = dict(re.findall(r"^  (\w+):\n    description: .*\n    default: \"?([^\"\n]*)\"?$", text, re.MULTILINE))
    inputs = {**defaults, "run": f"{program}; echo done", "target": "sm_90a", "python": sys.executable}
    given = {name: inputs[name_of_input] for name, name_of_input in variables}
    assert {"PTXGEN_RUN", "PTXGEN_TARGET", "PTXGEN_SCHEDULE", "PTXGEN_TIMEOUT", "PTXGEN_REPORT"} <= given.keys()
    command = ["bash", str(ROOT / "action/run.sh")]
    environment = {**os.environ, **given, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "PASS\ndone\n"), done.stderr
    assert len(json.loads((tmp_path / "ptxgen-exec.json").read_text())["launches"]) == 1
    assert subprocess.run(["bash", "-n", str(ROOT / "action/install.sh")]).returncode == 0
