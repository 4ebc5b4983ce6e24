"""Launches that processes share: results and findings of one process, whatever CTAs have to do with each other."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Kernel, LaunchReport
from ptxgen.device import Accept
from ptxgen.driver.memory import SharedMemory
from ptxgen.emulator.schedule import processes
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob

#: 70 CTAs of 64 threads on 4 multiprocessors: 18 waves.
CTAS, THREADS, SLOTS = 70, 64, 4
#: y[i] = 3 x[i] + 1 in steps of one CTA each. What BODY does comes before, AFTER after it.
TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .b32 %t, %b, %n, %i, %v, %w;
    .reg .b64 %x, %y, %at, %c;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %b, %n, %t;
    mul.wide.u32 %at, %i, 4;
    add.u64 %x, %x, %at;
    add.u64 %y, %y, %at;
    BODY
    ld.global.u32 %v, [%x];
    mad.lo.u32 %v, %v, 3, 1;
    st.global.u32 [%y], %v;
    AFTER
    ret;
}
"""
#: Lines that make the text long enough for processes.
LONG = "xor.b32 %w, %i, %b;\n    " * 60


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts each divided launch had."""
    made: list[int] = []
    whole = processes.put_together

    def counted(parts: Sequence[processes.Part], memory: Any) -> None:
        made.append(len(parts))
        whole(parts, memory)

    monkeypatch.setattr(processes, "put_together", counted)
    return made


def text_of(body: str = "", after: str = "") -> str:
    return TEXT.replace("BODY", LONG + body).replace("AFTER", after)


def run(
    jobs: int, body: str = "", after: str = "", schedule: Any = "eager", memory: Any = None, **options: Any
) -> tuple[LaunchReport, bytes]:
    """The report, and all of memory after the launch."""
    emulator = Emulator("sm_90a", schedule, multiprocessors=SLOTS, jobs=jobs, **options)
    if memory is not None:
        emulator.memory = memory
    values = np.random.default_rng(3).integers(0, 1 << 32, CTAS * THREADS, np.uint32)
    x, y = emulator.array(values), emulator.empty(values.shape, np.uint32)
    report = emulator.launch(Kernel.from_ptx(text_of(body, after)), CTAS, THREADS, [x, y])
    if report.ok and not body and not after:
        assert np.array_equal(y.numpy(), 3 * values + 1)
    return report, emulator.memory.written().tobytes()


def facts(report: LaunchReport) -> tuple[object, ...]:
    """What must not depend on the number of processes."""
    shown = re.sub(r"[\d.]+ m?s\b", "", report.summary())
    return report.status, shown, report.findings, report.instructions, report.used_accepts, report.unused_accepts


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("jobs", [2, 3, 99])
def test_ctas_apart(jobs: int, schedule: str, checks: bool, divided: list[int]) -> None:
    whole, before = run(1, schedule=schedule, checks=checks)
    report, after = run(jobs, schedule=schedule, checks=checks)
    assert whole.ok
    assert divided == [min(jobs, 18)]
    assert (facts(report), after) == (facts(whole), before)


def test_bytes_of_one_word(divided: list[int]) -> None:
    """CTAs write neighboring bytes: nothing of the others is overwritten."""
    body = """
    ld.param.u64 %c, [y];
    cvt.u64.u32 %at, %b;
    add.u64 %c, %c, %at;
    setp.eq.u32 %p, %t, 0;
    @%p st.global.u8 [%c], %b;
    ret;"""
    (report, after), (whole, before) = run(2, body), run(1, body)
    assert divided == [2]
    assert (report.status, whole.status, after) == ("ok", "ok", before)


#: Instructions by which CTAs have to do with each other, or may, and the status of the launch.
TOGETHER = {
    "all read what one writes": ("ld.param.u64 %c, [y]; ld.global.u32 %w, [%c];", ""),
    "each reads what the next writes": ("", "@%p ret; ld.global.u32 %w, [%y+256];"),
    "all write one word": ("", "ld.param.u64 %c, [x]; st.global.u32 [%c], %b;"),
    "one writes out of bounds": ("mov.u64 %c, 0; setp.eq.u32 %p, %b, 41; @%p st.global.u32 [%c], %b;", ""),
    "advice": ("mov.u32 %w, %tid.x;", "st.local.u32 [%c], %w;"),
    "uninitialized": ("", "cvt.u32.u64 %w, %c; st.global.u32 [%y], %w;"),
    "add": ("ld.param.u64 %c, [x];", "atom.global.add.u32 %w, [%c], 1;"),
    "generic red": ("ld.param.u64 %c, [x];", "red.add.u32 [%c], 1;"),
    "volatile": ("", "ld.volatile.u32 %w, [%x];"),
    "where it runs": ("", "mov.u32 %w, %smid; st.global.u32 [%y], %w;"),
    "when": ("", "mov.u32 %w, %clock; add.u32 %w, %w, %w;"),
}


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("which", TOGETHER)
def test_ctas_that_have_to_do_with_each_other(which: str, schedule: str, divided: list[int]) -> None:
    """Nothing is divided, and what is found is what one process finds, in its order."""
    (report, after), (whole, before) = (run(jobs, *TOGETHER[which], schedule=schedule) for jobs in (2, 1))
    assert divided == []
    assert (facts(report), after) == (facts(whole), before)


def test_what_has_not_been_divided_once_is_not_tried_again(divided: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    whole = processes.run_parts
    monkeypatch.setattr(processes, "run_parts", lambda *given: (tried.append(1), whole(*given))[1])
    kernel = Kernel.from_ptx(text_of(*TOGETHER["all write one word"]) + "// a text of its own")
    emulator = Emulator("sm_90a", multiprocessors=SLOTS, jobs=2)
    x, y = (emulator.array(np.arange(CTAS * THREADS, dtype=np.uint32)) for _ in range(2))
    for _ in range(3):
        emulator.launch(kernel, CTAS, THREADS, [x, y])
    assert tried == [1]


@pytest.mark.parametrize(
    ("options", "grid"), [({"schedule": "random"}, CTAS), ({}, SLOTS), ({"jobs": 1}, CTAS)], ids=["random", "wave", "1"]
)
def test_what_runs_in_one_process(options: dict[str, Any], grid: int, divided: list[int]) -> None:
    emulator = Emulator("sm_90a", multiprocessors=SLOTS, **{"jobs": 2, **options})
    x = emulator.array(np.zeros(CTAS * THREADS, np.uint32))
    assert emulator.launch(Kernel.from_ptx(text_of()), grid, THREADS, [x, x]).ok
    assert divided == []


def test_limits_are_those_of_the_launch() -> None:
    for steps in (17, 18, 30):
        assert facts(run(2, max_steps=steps)[0]) == facts(run(1, max_steps=steps)[0])


def test_accepted_findings() -> None:
    body, after = TOGETHER["uninitialized"]
    stored = Accept("uninitialized-register", "cvt.u32.u64 %w, %c;", "reviewed")
    accept = [Accept("global-race", "ret;", "reviewed"), stored]
    for given in (("", ""), (body, after)):
        (report, _), (whole, _) = (run(jobs, *given, accept=accept) for jobs in (2, 1))
        assert facts(report) == facts(whole)
    assert report.unused_accepts == accept[:1]


def test_progress(divided: list[int]) -> None:
    seen: list[tuple[int, int]] = []
    run(2, progress=lambda *counts: seen.append(counts))
    assert divided == [2]
    assert seen[-1] == (CTAS, CTAS)
    assert seen == sorted(seen)


def test_an_exception_ends_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Exception):
        pass

    begun: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: (begun.append(fork()), begun[-1])[1])

    def stop(done: int, ctas: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        run(2, progress=stop)
    assert len(begun) == 2
    for each in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)


def test_a_process_that_is_killed(monkeypatch: pytest.MonkeyPatch, divided: list[int]) -> None:
    """The launch runs in one."""
    monkeypatch.setattr(processes.Part, "of", lambda *given: os.kill(os.getpid(), 9))
    report, after = run(2)
    assert divided == []
    assert report.ok
    assert after == run(1)[1]


def test_processes_that_are_stuck(monkeypatch: pytest.MonkeyPatch, divided: list[int]) -> None:
    """The launch runs in one."""
    monkeypatch.setattr(processes, "_LOOK", 0.05)
    monkeypatch.setattr(processes, "_SILENT", 0.5)
    monkeypatch.setattr(processes.Part, "of", lambda *given: signal.pause())
    report, after = run(2)
    assert divided == []
    assert report.ok
    assert after == run(1)[1]


def test_memory_that_a_program_shares(divided: list[int]) -> None:
    """What a process writes before all have ended stays its own."""
    reports = []
    for jobs in (1, 2):
        memory = SharedMemory(1 << 24)
        given = [("", ""), TOGETHER["all write one word"], ("", "")]
        reports.append(
            [(facts(report), after) for report, after in (run(jobs, *each, memory=memory) for each in given)]
        )
        memory.close()
    assert reports[0] == reports[1]
    assert divided == [2, 2]


@pytest.mark.parametrize("name", ["blackwell/naive", "blackwell/pair", "hopper/specialized"])
def test_gemms(name: str, divided: list[int]) -> None:
    """Tensor copies, clusters and tensor memory; tails in M and N."""
    shape = (260, 250, 8) if name == "blackwell/naive" else (700, 300, 72)
    job = GemmJob(find(name).plan(), *shape, seed=4)
    devices = [Emulator(job.plan.target, multiprocessors=4, jobs=jobs) for jobs in (1, 2)]
    results = [job.run(device) for device in devices]
    assert [each.ok for each in results] == [True, True]
    assert divided == [2]
    one, other = (device.memory.written() for device in devices)
    assert np.array_equal(one, other)
