"""CTAs that poll memory, with a barrier and a store in the loop, while another's asynchronous work is due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import module
from tools.recorded.case import SCHEDULES, load


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_chain_of_ctas_goes_on(schedule: Any) -> None:
    """Each waits for the one before it, whose products and copies are not done before it is left alone."""
    case = load("t36_90_split")
    outcome = case.run(Emulator(case.target, schedule, max_steps=20_000))
    assert outcome.right, outcome.report.summary()


#: A barrier of all CTAs whose last one resets the counter for the next use, while others may still poll it.
RESET = """
    .reg .b64 %data; .reg .u32 %n, %old, %x; .reg .pred %p, %last;
    ld.param.u64 %data, [data];
    mov.u32 %n, %nctaid.x;
    atom.acq_rel.gpu.global.add.u32 %old, [%data], 1;
    sub.u32 %x, %n, 1;
    setp.eq.u32 %last, %old, %x;
L:  ld.acquire.gpu.global.u32 %x, [%data];
    setp.ne.u32 %p, %x, %n;
    @%p bra L;
    {reset}
    ret;
"""
#: As it should be: the last one to have seen the full counter resets it.
SEEN = """
    atom.acq_rel.gpu.global.add.u32 %old, [%data+4], 1;
    sub.u32 %x, %n, 1;
    setp.eq.u32 %last, %old, %x;
    @%last st.release.gpu.global.u32 [%data], 0;
"""


def test_pollers_are_starved() -> None:
    """With every second seed a thread that polls comes last, so that a counter reset too early is missed."""

    def statuses(reset: str) -> list[str]:
        found = []
        for seed in range(8):
            emulator = Emulator(schedule="random", seed=seed, max_steps=20_000)
            data = emulator.array(np.zeros(2, np.uint32))
            kernel = Kernel.from_ptx(module(RESET.format(reset=reset), ".param .u64 data"))
            found.append(emulator.launch(kernel, 4, 1, [data]).status)
        return found

    assert statuses("@%last st.release.gpu.global.u32 [%data], 0;")[1::2] == ["deadlock"] * 4
    assert statuses(SEEN) == ["ok"] * 8


#: A barrier of three warps in shared memory: the last one to arrive sets the counter to zero, on which the others wait.
ZERO = """
    .shared .align 4 .b32 count; .shared .align 4 .b32 generation;
    .reg .b32 %t, %x, %g, %round; .reg .pred %p, %first;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first st.shared.u32 [count], 0;
    @%first st.shared.u32 [generation], 0;
    bar.sync 0;
    and.b32 %t, %t, 31;
    setp.ne.u32 %p, %t, 0;
    @%p ret;
    mov.u32 %round, 0;
ROUND:
    ld.relaxed.cta.shared.u32 %g, [generation];
    atom.acq_rel.cta.shared.add.u32 %x, [count], 1;
    setp.ne.u32 %p, %x, 2;
    @%p bra POLL;
    st.relaxed.cta.shared.u32 [count], 0;
    red.release.cta.shared.add.u32 [generation], 1;
    bra DONE;
POLL:
    ld.acquire.cta.shared.u32 %x, {wait};
    @%p bra POLL;
DONE:
    add.u32 %round, %round, 1;
    setp.lt.u32 %p, %round, 3;
    @%p bra ROUND;
    ret;
"""


def test_pollers_are_starved_from_their_first_look() -> None:
    """The warp that goes on arrives again, so that the others never find the counter at zero."""

    def statuses(wait: str) -> list[str]:
        kernel = Kernel.from_ptx(module(ZERO.format(wait=wait)))
        return [
            Emulator(schedule="random", seed=seed, max_steps=20_000).launch(kernel, 1, 96, []).status
            for seed in range(8)
        ]

    assert statuses("[count]; setp.ne.u32 %p, %x, 0")[1::2] == ["deadlock"] * 4
    assert statuses("[generation]; setp.eq.u32 %p, %x, %g") == ["ok"] * 8


#: CTA 0 stores data and a flag by one vector store; CTA 1 polls the flag and copies what came with it.
VECTOR = """
    .reg .b64 %data; .reg .u32 %cta, %a, %b, %c, %d; .reg .pred %p, %q;
    ld.param.u64 %data, [data];
    mov.u32 %cta, %ctaid.x;
    setp.eq.u32 %p, %cta, 0;
    @%p bra STORE;
L:  ld.volatile.global.v4.u32 {{%a, %b, %c, %d}}, [%data];
    setp.ne.u32 %p, %d, 1;
    {check}
    @%p bra L;
    st.global.v4.u32 [%data+64], {{%a, %b, %c, %d}};
    ret;
STORE:
    st.volatile.global.v4.u32 [%data], {{5, {flag}, 7, 1}};
    ret;
"""


def vectors(check: str, flag: int, *, seeds: Iterable[int] = range(64), text: str = VECTOR) -> set[tuple[int, ...]]:
    """What CTA 1 has copied, under these seeds."""
    found = set()
    for seed in seeds:
        emulator = Emulator(schedule="random", seed=seed)
        data = emulator.array(np.zeros(32, np.uint32))
        kernel = Kernel.from_ptx(module(text.format(check=check, flag=flag), ".param .u64 data"))
        report = emulator.launch(kernel, 2, 1, [data])
        assert report.status == "ok", report.summary()
        found.add(tuple(data.numpy()[16:20].tolist()))
    return found


def test_vectors_may_be_torn() -> None:
    """16 bytes with one flag are two words of 8; with a flag in each, as in NCCL's LL protocol, all is there."""
    assert vectors("", 6) == {(5, 6, 7, 1), (0, 0, 7, 1)}
    assert vectors("setp.ne.or.u32 %p, %b, 1, %p;", 1) == {(5, 1, 7, 1)}


def test_seeds_that_starve_tear_vectors_at_any_word() -> None:
    """Of 16 bytes either half comes first in one of any two neighboring odd seeds."""
    first = "setp.ne.u32 %p, %b, 6;"
    assert [vectors("", 6, seeds=[seed]) for seed in (1, 3)] == [{(0, 0, 7, 1)}, {(5, 6, 7, 1)}]
    assert [vectors(first, 6, seeds=[seed]) for seed in (1, 3)] == [{(5, 6, 7, 1)}, {(5, 6, 0, 0)}]


#: The same with the 16 bytes as one scalar.
SCALAR = """
    .reg .b128 %whole; .reg .b64 %low, %high;
""" + VECTOR.replace(
    "ld.volatile.global.v4.u32 {{%a, %b, %c, %d}}, [%data];",
    """ld.relaxed.gpu.global.b128 %whole, [%data];
    mov.b128 {{%low, %high}}, %whole;
    mov.b64 {{%a, %b}}, %low;
    mov.b64 {{%c, %d}}, %high;""",
).replace(
    "st.volatile.global.v4.u32 [%data], {{5, {flag}, 7, 1}};",
    """mov.b64 %low, {{5, {flag}}};
    mov.b64 %high, {{7, 1}};
    mov.b128 %whole, {{%low, %high}};
    st.relaxed.gpu.global.b128 [%data], %whole;""",
)


def test_vectors_of_16_bytes_are_whole_within_a_gpu() -> None:
    """CUB's tile states are v2.u64 with one flag."""
    text = VECTOR.replace("volatile.global", "relaxed.gpu.global")
    assert vectors("", 6, text=text) == {(5, 6, 7, 1)}


def test_scalars_of_128_bits_are_never_torn() -> None:
    assert vectors("", 6, text=SCALAR) == {(5, 6, 7, 1)}


#: CUTLASS's Semaphore: all threads wait at a barrier in the loop by which thread 0 waits for the turn of its CTA.
SEMAPHORE = """
    .reg .b64 %data; .reg .u32 %t, %cta, %state, %x; .reg .pred %p, %q, %first;
    ld.param.u64 %data, [data];
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %state, 0;
L:  @!%first bra SKIP;
    ld.acquire.gpu.global.u32 %state, [%data];
SKIP:
    setp.ne.and.u32 %p, %state, %cta, %first;
    barrier.red.or.pred %q, 0, %p;
    @%q bra L;
    ld.global.u32 %x, [%data+4];
    bar.sync 0;
    add.u32 %x, %x, 1;
    @%first st.global.u32 [%data+4], %x;
    bar.sync 0;
    add.u32 %x, %cta, 1;
    @%first st.release.gpu.global.u32 [%data], %x;
    ret;
"""


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), *[("random", seed) for seed in range(6)]])
def test_a_barrier_in_the_loop_is_no_progress(schedule: Any, seed: int) -> None:
    """Else the CTA whose turn it is would not begin while the others poll."""
    emulator = Emulator(schedule=schedule, seed=seed, max_steps=20_000)
    data = emulator.array(np.zeros(2, np.uint32))
    report = emulator.launch(Kernel.from_ptx(module(SEMAPHORE, ".param .u64 data")), 3, 64, [data])
    assert (report.status, report.findings) == ("ok", []), report.summary()
    assert data.numpy().tolist() == [3, 3]


#: Each lane of CTA 1 polls a flag of its own until all are set, and then reads what came with its neighbor's.
FLAGS = """
    .reg .b64 %data, %at; .reg .u32 %lane, %cta, %x; .reg .pred %p, %all;
    ld.param.u64 %data, [data];
    mov.u32 %lane, %laneid;
    mov.u32 %cta, %ctaid.x;
    mul.wide.u32 %at, %lane, 4; add.u64 %at, %at, %data;
    setp.eq.u32 %p, %cta, 0;
    @!%p bra L;
    st.global.u32 [%at+128], %lane;
    st.release.gpu.global.u32 [%at], 1;
    ret;
L:  ld.acquire.gpu.global.u32 %x, [%at];
    setp.ne.u32 %p, %x, 0;
    vote.sync.all.pred %all, %p, 0xffffffff;
    @!%all bra L;
    xor.b32 %lane, %lane, 1;
    mul.wide.u32 %at, %lane, 4; add.u64 %at, %at, %data;
    ld.global.u32 %x, [%at+128];
    ret;
"""


@pytest.mark.parametrize("seed", range(6))
def test_lanes_that_poll_again_catch_up(seed: int) -> None:
    """All lanes have acquired what the last poll of each sees, whichever lane of the warp saw it first."""
    emulator = Emulator(schedule="random", seed=seed)
    data = emulator.array(np.zeros(64, np.uint32))
    report = emulator.launch(Kernel.from_ptx(module(FLAGS, ".param .u64 data")), 2, 32, [data])
    assert (report.status, report.findings) == ("ok", []), report.summary()


@pytest.mark.parametrize("register", ["%clock64", "%globaltimer"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_delay_of_many_cycles_passes(schedule: Any, register: str) -> None:
    """A loop that polls a clock takes few steps, and ends about when it should."""
    delay = 10**9
    body = f"""
    .reg .b64 %data, %began, %now; .reg .pred %p;
    ld.param.u64 %data, [data];
    mov.u64 %began, {register};
L:  mov.u64 %now, {register};
    sub.u64 %now, %now, %began;
    setp.lt.u64 %p, %now, {delay};
    @%p bra L;
    st.global.u64 [%data], %now;
    ret;
"""
    emulator = Emulator(schedule=schedule, max_steps=20_000)
    data = emulator.array(np.zeros(1, np.uint64))
    report = emulator.launch(Kernel.from_ptx(module(body, ".param .u64 data")), 1, 1, [data])
    assert report.status == "ok", report.summary()
    assert delay <= data.numpy()[0] < 1.2 * delay
