"""The limits of a launch: steps, seconds, memory; and lanes that starve others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import LaunchError
from ptxgen.emulator import Emulator
from ptxgen.emulator.schedule.watchdog import Progress
from tests.support.harness import codes, module

SCHEDULES = ["eager", "late", "random"]
#: Counts to a number.
COUNT = """
    .reg .u32 %x; .reg .pred %p;
    mov.u32 %x, 0;
L:  add.u32 %x, %x, 1;
    setp.lt.u32 %p, %x, {};
    @%p bra L;
    ret;
"""


def counting(rounds: int) -> Kernel:
    return Kernel.from_ptx(module(COUNT.format(rounds)))


def test_steps() -> None:
    report = Emulator(max_steps=1000).launch(counting(2000), 1, 32, [])
    assert (report.status, codes(report)) == ("incomplete", ["step-limit"]), report.summary()
    assert "step limit (1000)" in report.findings[0].message
    assert Emulator(max_steps=1000).launch(counting(500), 1, 32, []).status == "ok"


def test_seconds() -> None:
    report = Emulator(timeout=0.2).launch(counting(2**31), 1, 32, [])
    assert (report.status, codes(report)) == ("incomplete", ["time-limit"]), report.summary()
    assert "steps/s" in report.findings[0].message
    assert report.seconds < 20
    assert Emulator(timeout=60).launch(counting(20), 1, 32, []).status == "ok"


def test_heartbeat() -> None:
    seen: list[Progress] = []
    report = Emulator(timeout=2.5, heartbeat=seen.append).launch(counting(2**31), 3, 32, [])
    assert codes(report) == ["time-limit"]
    assert seen
    assert (seen[0].done, seen[0].ctas) == (0, 3)
    assert seen[0].steps_per_second > 0


@pytest.mark.parametrize("timeout", [0, -1, "1"])
def test_timeouts_that_are_none(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0"):
        Emulator(timeout=timeout)


def test_shared_memory_is_refused_before_it_is_made() -> None:
    with pytest.raises(LaunchError, match=r"the CTA needs 1099511628800 bytes of shared memory"):
        Emulator().launch(counting(1), 1, 32, [], shared_bytes=1 << 40)


def test_local_memory() -> None:
    large = Kernel.from_ptx(module(".local .b8 big[2147483647]; ret;"))
    with pytest.raises(LaunchError, match="a thread has at most 524288"):
        Emulator().launch(large, 1, 32, [])
    many = Kernel.from_ptx(module(".local .b8 big[524288]; ret;"))
    with pytest.raises(LaunchError, match=r"32768 resident threads with 524288 bytes of local memory each"):
        Emulator().launch(many, 32, 1024, [])


def test_global_memory_has_a_size() -> None:
    large = Kernel.from_ptx(module("ret;", items=".global .b8 big[1099511627776];"))
    with pytest.raises(LaunchError, match="1099511627776 bytes of global memory do not fit"):
        Emulator().launch(large, 1, 32, [])
    emulator = Emulator(memory_bytes=1 << 20)
    with pytest.raises(LaunchError, match="of 1048576 bytes are used"):
        emulator.empty(1 << 20, np.uint8)
    assert emulator.empty(1 << 19, np.uint8).nbytes == 1 << 19
    with pytest.raises(LaunchError, match="do not fit"):
        emulator.empty(1 << 19, np.uint8)


#: Each lane takes a lock, adds one, and gives it back; a round that finds it taken notes that in local memory.
LOCK = """
    .local .u32 rounds;
    .reg .b64 %data; .reg .u32 %x, %n; .reg .pred %p;
    ld.param.u64 %data, [data];
    mov.u32 %n, 0;
AGAIN:
    add.u32 %n, %n, 1;
    st.local.u32 [rounds], %n;
    atom.acquire.gpu.global.cas.b32 %x, [%data], 0, 1;
    setp.ne.u32 %p, %x, 0;
    @%p bra AGAIN;
    ld.relaxed.gpu.global.u32 %x, [%data+4];
    add.u32 %x, %x, 1;
    st.relaxed.gpu.global.u32 [%data+4], %x;
    st.release.gpu.global.u32 [%data], 0;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_lock_between_lanes(schedule: Any) -> None:
    """What a lane writes to its local memory is no progress: the lane that has the lock gets its turn."""
    emulator = Emulator(schedule=schedule, max_steps=100_000)
    data = emulator.array(np.zeros(2, np.uint32))
    report = emulator.launch(Kernel.from_ptx(module(LOCK, ".param .u64 data")), 1, 64, [data])
    assert report.status == "ok", report.summary()
    assert data.numpy().tolist() == [0, 64]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_loop_over_local_memory_is_no_livelock(schedule: Any) -> None:
    """Its counter is in local memory alone, so that its registers are the same each round."""
    body = """
        .local .u32 count; .reg .u32 %x; .reg .pred %p;
        st.local.u32 [count], 0;
    L:  ld.local.u32 %x, [count]; add.u32 %x, %x, 1; st.local.u32 [count], %x;
        setp.lt.u32 %p, %x, 3000; mov.u32 %x, 0; @%p bra L; ret;
    """
    assert Emulator(schedule=schedule).launch(Kernel.from_ptx(module(body)), 1, 32, []).status == "ok"


#: All CTAs count themselves, and wait until all have.
MEET = """
    .reg .b64 %data; .reg .u32 %x, %n; .reg .pred %p;
    ld.param.u64 %data, [data];
    mov.u32 %n, %nctaid.x;
    red.release.gpu.global.add.u32 [%data], 1;
L:  ld.acquire.gpu.global.u32 %x, [%data];
    setp.lt.u32 %p, %x, %n;
    @%p bra L;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ctas_that_are_not_resident(schedule: Any) -> None:
    """The deadlock says how many CTAs have never started; a cooperative launch of more than fit is refused."""
    kernel = Kernel.from_ptx(module(MEET, ".param .u64 data"))
    emulator = Emulator(schedule=schedule, multiprocessors=2)
    report = emulator.launch(kernel, 5, 1, [emulator.array(np.zeros(1, np.uint32))])
    assert (report.status, codes(report)) == ("deadlock", ["deadlock"]), report.summary()
    assert "3 of 5 CTAs never started: 2 are resident at a time" in report.findings[0].message
    assert "cooperative=True" in report.findings[0].fix
    whole = emulator.launch(kernel, 5, 1, [emulator.array(np.zeros(1, np.uint32))], cooperative=True)
    assert whole.status == "ok", whole.summary()
    with pytest.raises(LaunchError, match="a cooperative launch needs all 65 CTAs resident together"):
        emulator.launch(kernel, 65, 1, [emulator.array(np.zeros(1, np.uint32))], cooperative=True)


def test_arrays_of_a_module_that_do_not_fit_take_no_memory() -> None:
    """All are added up before any is allocated."""
    emulator = Emulator(memory_bytes=1 << 20)
    text = module("ret;", items=".global .b8 first[600000]; .global .b8 second[600000];")
    with pytest.raises(LaunchError, match="1200000 bytes of global memory do not fit"):
        emulator.launch(Kernel.from_ptx(text), 1, 32, [])
    assert emulator.empty(900_000, np.uint8).nbytes == 900_000
