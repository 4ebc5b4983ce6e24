"""The executor: values, order, and what it says of items that fail; crashes, Ctrl-C, progress, Dask."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxgen import progress
from ptxgen.executor import Executor, ExecutorError, WorkError
from ptxgen.progress import Progress, duration
from tests.support.paths import ROOT
from tests.support.work import go_wrong, late_square, square, wait_for_ever, wait_in, whoami

#: What goes wrong, and how the outcome says so.
WRONG = {
    "exception": "exception: ValueError: no such tile",
    "demanding": "demanding: DemandingError: two words",
    "exit": "exit: SystemExit: 3",
    "memory": "memory: MemoryError",
}
#: What ends a process.
DEADLY = {
    "segfault": "segfault: its worker process died: SIGSEGV, Segmentation fault",
    "killed": "killed: its worker process died: SIGKILL, Killed; the system may have run out of memory",
    "status": "status: its worker process ended with exit code 7",
}


def test_values_in_order() -> None:
    with Executor(2) as executor:
        assert executor.workers == 2
        outcomes = list(executor.map(late_square, range(6)))
        assert [(each.item, each.name, each.result()) for each in outcomes] == [(n, str(n), n * n) for n in range(6)]
        completed = [each.result() for each in executor.map(late_square, range(6), ordered=False)]
        assert sorted(completed) == [0, 1, 4, 9, 16, 25]
        assert completed[-1] == 0
        assert list(executor.map(square, [])) == []


def test_processes_are_others_and_stay() -> None:
    with Executor(2) as executor:
        first = {each.result() for each in executor.map(whoami, range(8))}
        again = {each.result() for each in executor.map(whoami, range(8))}
    assert os.getpid() not in first
    assert len(first | again) == 2
    with Executor(0) as executor:
        assert [each.result() for each in executor.map(whoami, range(2))] == [os.getpid()] * 2
    assert all(ended(pid) for pid in first)


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("jobs", [0, 2])
def test_exceptions_are_of_their_item(jobs: int) -> None:
    items = ["first", *WRONG, "last"]
    if jobs == 0:
        items.remove("exit")  # which ends this process, as it should
    with Executor(jobs) as executor:
        outcomes = list(executor.map(go_wrong, items))
    assert [each.problem for each in outcomes] == [WRONG.get(item, "") for item in items]
    assert outcomes[0].result() == "first done"
    assert outcomes[-1].result() == "last done"
    with pytest.raises(ValueError, match="no such tile") as caught:
        outcomes[1].result()
    if jobs:
        assert "in go_wrong" in "".join(caught.value.__notes__)


def test_what_cannot_be_pickled() -> None:
    def local(number: int) -> int:
        return number

    with Executor(1) as executor:
        (outcome,) = executor.map(go_wrong, ["unpicklable"])
        assert "pickle" in outcome.problem
        (outcome,) = executor.map(local, [1])
        assert "pickle" in outcome.problem
        (outcome,) = executor.map(square, [3])
        assert outcome.result() == 9


@pytest.mark.parametrize("how", DEADLY)
def test_a_crash_is_of_its_item(how: str) -> None:
    """It does not end the others, neither those that run then nor those that come after."""
    items = ["a", "b", how, "c", how, "d"]
    with Executor(2) as executor:
        outcomes = list(executor.map(go_wrong, items))
        assert [each.problem for each in outcomes] == [DEADLY.get(item, "") for item in items]
        assert [each.value for each in outcomes if not each.problem] == ["a done", "b done", "c done", "d done"]
        with pytest.raises(WorkError, match="its worker process"):
            outcomes[2].result()


def test_a_worker_that_dies_idle_is_replaced() -> None:
    with Executor(1) as executor:
        [outcome] = executor.map(whoami, [0])
        os.kill(outcome.result(), signal.SIGKILL)
        time.sleep(0.2)
        [again] = executor.map(whoami, [0])
        assert again.result() != outcome.result()


def test_who_stops_listening_stops_the_work(tmp_path: Path) -> None:
    with Executor(2) as executor:
        outcomes = executor.map(wait_in, [tmp_path])
        waiting = iter(outcomes)
        began = time.monotonic()
        with contextlib.suppress(StopIteration), alarm(1.5):
            next(waiting)
        assert [each.name.split("-")[0] for each in tmp_path.iterdir()] == ["ended"]
        assert time.monotonic() - began < 5
        [outcome] = executor.map(square, [5])
        assert outcome.result() == 25


class AlarmError(Exception):
    pass


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise in the main thread after so many seconds."""

    def ring(*_: Any) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.suppress(AlarmError):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


SCRIPT = """
import sys
from pathlib import Path
from ptxgen.executor import Executor
from tests.support import work

with Executor(2) as executor:
    for _ in executor.map(getattr(work, sys.argv[1]), [Path(sys.argv[2])] * 4, what="waits"):
        pass
"""


def begun(folder: Path, count: int) -> list[int]:
    """The processes that have begun an item, when there are so many."""
    until = time.monotonic() + 30
    while len(found := [int(each.name.split("-")[1]) for each in folder.glob("begun-*")]) < count:
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


@pytest.mark.parametrize("function", [wait_in, wait_for_ever])
@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c(tmp_path: Path, function: Callable[..., None], terminal: bool) -> None:
    """It ends within half a second, and so do its workers and their children; on a terminal all get the signal."""
    command = [sys.executable, "-c", SCRIPT, function.__name__, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        workers = begun(tmp_path, 2)
        began = time.monotonic()
        (os.killpg if terminal else os.kill)(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        took = time.monotonic() - began
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.count(b"Traceback") == 1, errors.decode()
    assert took < 1.0  # half a second on an idle machine
    assert all(ended(worker) for worker in workers)
    assert len(list(tmp_path.glob("ended-*"))) == (2 if function is wait_in else 0)


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, "wait_for_ever", str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    workers = begun(tmp_path, 2)
    process.kill()
    process.wait()
    until = time.monotonic() + 10
    while not all(map(ended, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress("mutants", 4, effort=10) as shown:
        for effort, seconds in ((1, 3), (4, 9), (4, 1), (1, 300)):
            now[0] += seconds
            shown.advance(effort)
    lines = ["2 of 4 mutants, 12 s, about 12 s left", "4 of 4 mutants, 313 s"]
    assert capsys.readouterr().err.splitlines() == lines
    with Progress("", 1) as shown:
        now[0] += 60
        shown.advance()
    assert capsys.readouterr().err == ""
    assert [duration(each) for each in (0.4, 119, 120, 3599, 11100)] == [
        "0 s",
        "119 s",
        "2 min",
        "1 h 0 min",
        "3 h 5 min",
    ]


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with Executor(0) as executor:
        for _ in executor.map(late_square, range(1, 4), what="squares"):
            time.sleep(0.15)
    assert "squares" in screen.getvalue()
    assert "2/3" in screen.getvalue()
    assert " left" in screen.getvalue()


def test_bad_workers() -> None:
    with pytest.raises(ExecutorError, match="the number of processes must be 0 or more, not -1"):
        Executor(-1)


def test_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match=r"Dask is not installed .* pip install 'ptxgen\[dask\]'"):
        Executor(dask="tcp://127.0.0.1:1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two local workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (the extra dask)")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        yield made


def test_dask(cluster: Any) -> None:
    items = [*range(20)]
    with Executor(dask=cluster.scheduler_address) as executor:
        assert executor.workers == 2
        assert [each.result() for each in executor.map(late_square, items)] == [n * n for n in items]
        pids = {each.result() for each in executor.map(whoami, items)}
        assert len(pids) == 2
        assert os.getpid() not in pids
        wrong = ["fine", "exception", "demanding", "exit", "memory", "last"]
        outcomes = list(executor.map(go_wrong, wrong))
        assert [each.problem for each in outcomes] == [WRONG.get(item, "") for item in wrong]


def test_dask_survives_a_crash(cluster: Any) -> None:
    items = ["a", "b", "killed", "c", "d"]
    with Executor(dask=cluster.scheduler_address) as executor:
        outcomes = list(executor.map(go_wrong, items))
    assert [each.value for each in outcomes if not each.problem] == ["a done", "b done", "c done", "d done"]
    assert outcomes[2].problem.startswith("killed: its worker process died: Attempted to run task")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "carrier://pigeon:1", ""])
def test_no_dask_scheduler(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed (the extra dask)")
    monkeypatch.setattr(importlib.import_module("ptxgen.executor"), "_ANSWER", 1)
    with pytest.raises(ExecutorError, match=f"no Dask scheduler answers at {address!r}: "):
        Executor(dask=address)
