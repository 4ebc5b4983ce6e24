"""Programs and runs that are killed or interrupted: one sentence, no process and no file is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.driver.programs import require_compiler
from tests.driver.test_c_programs import runs

#: Says its number and that of a child, and launches a kernel that does not end; or sleeps.
PROGRAM = """
import ctypes, os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
child = subprocess.Popen(["sleep", "600"])
cuda = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_void_p
module, kernel, context = pointer(), pointer(), pointer()
text = b'''.version 8.0
.target sm_80
.address_size 64
.global .u64 count;
.visible .entry endless() { .reg .u64 %n; L: add.u64 %n, %n, 1; st.global.u64 [count], %n; bra L; }
.visible .entry empty() { ret; }
'''
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
for name in (b"empty", sys.argv[1].encode()):
    print(os.getpid(), child.pid, flush=True)
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name) == 0
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None) == cuda.cuCtxSynchronize() == 0
time.sleep(600)
"""


@dataclass
class Running:
    """A run of the program: the processes, the folder of temporary files, and the report that it will write."""

    exec: subprocess.Popen[str]
    program: int
    child: int
    temporary: Path
    report: Path

    def ends(self, code: int) -> str:
        """What the run says as it ends with a code, with nothing left behind."""
        _, said = self.exec.communicate(timeout=60)
        assert self.exec.returncode == code, said
        assert "Traceback" not in said, said
        end = time.monotonic() + 5
        while os.listdir(self.temporary) and time.monotonic() < end:
            time.sleep(0.01)
        assert os.listdir(self.temporary) == []
        assert not runs(self.program)
        assert not runs(self.child)
        return said


@pytest.fixture
def running(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The program while a kernel runs that does not end, or while it sleeps after an empty one."""
    require_compiler()
    kernel: str = getattr(request, "param", "endless")
    script, report = tmp_path / "program.py", tmp_path / "report.json"
    script.write_text(PROGRAM)
    # A folder with a long name is not used: a socket in it would have no address.
    temporary = tmp_path_factory.mktemp("t")
    code = "import signal; signal.signal(2, signal.default_int_handler); from ptxgen.cli.main import main; main()"
    made = subprocess.Popen(
        [sys.executable, "-c", code, "exec", "--json", str(report), "--", sys.executable, str(script), kernel],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert made.stdout is not None
    made.stdout.readline()
    program, child = map(int, made.stdout.readline().split())
    time.sleep(0.5)  # the second launch begins
    yield Running(made, program, child, temporary, report)
    for process in (made.pid, program, child):
        if runs(process):
            os.kill(process, signal.SIGKILL)


def test_a_program_that_is_killed(running: Running) -> None:
    os.kill(running.program, signal.SIGKILL)
    said = running.ends(128 + signal.SIGKILL)
    assert said.splitlines()[0] == "ptxgen exec: the program was ended by SIGKILL while endless ran"
    assert [each["kernel"] for each in json.loads(running.report.read_text())["launches"]][:1] == ["empty"]


def test_ctrl_c_of_a_terminal(running: Running) -> None:
    """A terminal sends it to all processes of the foreground."""
    os.killpg(running.exec.pid, signal.SIGINT)
    said = running.ends(128 + signal.SIGINT)
    assert said.splitlines()[0] == "ptxgen exec: interrupted while endless ran"
    assert [each["kernel"] for each in json.loads(running.report.read_text())["launches"]][:1] == ["empty"]


@pytest.mark.parametrize("running", ["endless", "empty"], indirect=True)
def test_a_run_that_is_killed(running: Running) -> None:
    os.kill(running.exec.pid, signal.SIGKILL)
    said = running.ends(-signal.SIGKILL)
    assert said.splitlines()[-1] == "ptxgen exec: the emulator was killed; the program has been ended"


@pytest.mark.parametrize("length", [60, 79, 80, 107, 150, 240])
def test_temporary_folders_with_long_names(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    """A socket has an address of 107 bytes at most; the folder of the run is elsewhere where that is too few."""
    require_compiler()
    folder = str(tmp_path_factory.mktemp("t"))
    folder += "/" + "ü" * ((length - len(folder) - 1) // 2)
    folder += "x" * (length - len(os.fsencode(folder)))
    os.mkdir(folder)
    done = subprocess.run(
        [sys.executable, "-m", "ptxgen", "exec", "--", sys.executable, "-c", "print('ran')"],
        env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert os.listdir(folder) == []
