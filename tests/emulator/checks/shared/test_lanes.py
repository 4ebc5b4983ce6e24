"""The lanes of a warp must synchronize before one of them touches in shared memory what another has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, launch, poisoned

SCHEDULES = ["eager", "late", "random"]
#: The words of the room are zeroed and then known to all. %own is the word of a thread, %next that of its neighbor.
START = """\
    .shared .align 128 .b8 room[1024];
    .shared .align 8 .b64 bar;
    .reg .b32 %t, %x, %y, %own, %next, %n;
    .reg .b64 %in, %at;
    .reg .pred %p, %first, %zeros, %done;
    mov.u64 %in, %out0;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    shl.b32 %x, %t, 2;
    mov.u32 %own, room;
    add.u32 %own, %own, %x;
    xor.b32 %y, %t, 1;
    shl.b32 %x, %y, 2;
    mov.u32 %next, room;
    add.u32 %next, %next, %x;
    cvt.u64.u32 %at, %t;
    shl.b64 %at, %at, 4;
    add.u64 %at, %at, %in;
    mov.u32 %x, 0;
    setp.lt.u32 %zeros, %t, 32;
    @%zeros st.shared.b32 [%own], %x;
    @%zeros st.shared.b32 [%own+128], %x;
    @%zeros st.shared.b32 [%own+256], %x;
    @%zeros st.shared.b32 [%own+384], %x;
    @%first mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async;
    bar.sync 0;
"""
CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;"
FILL = "@%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [room], [%in], 128, [bar];"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%in], [room], 128; cp.async.bulk.commit_group;"


def wait(guard: str = "") -> str:
    skip = f"@!%{guard} bra OVER;" if guard else ""
    return f"{skip} WAIT: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %done, [bar], 0; @!%done bra WAIT; OVER:"


#: %x becomes the byte of a thread.
BYTE = "mov.u32 %y, room; add.u32 %x, %y, %t;"


#: Two accesses with BETWEEN them, and what the first of the findings says where nothing is there.
CONFLICTS = {
    "load after store": (
        "st.shared.b32 [%own], %t; BETWEEN ld.shared.b32 %y, [%next];",
        "lane 0, CTA 0) reads room",
    ),
    "store after load": (
        "ld.shared.b32 %y, [%next]; BETWEEN st.shared.b32 [%own], %n;",
        "lane 0, CTA 0) overwrites room",
    ),
    "store after load by all": (
        "ld.shared.b32 %y, [room+64]; BETWEEN @%first st.shared.b32 [room+64], %n;",
        "warp 0, CTA 0) of the same warp reads",
    ),
    "store after store": (
        "@%first st.shared.b32 [room], %n; BETWEEN setp.eq.u32 %p, %t, 7; @%p st.shared.b32 [room], %t;",
        "lane 7, CTA 0) overwrites room",
    ),
    "wide": (
        "@%first st.shared.v4.b32 [room+16], {%n, %n, %n, %n}; BETWEEN ld.shared.b32 %y, [%own];",
        "lane 4, CTA 0) reads room",
    ),
    "bytes": (
        f"{BYTE} st.shared.b8 [%x], %t; BETWEEN ld.shared.b8 %y, [%x+1];",
        "lane 0, CTA 0) reads room",
    ),
    "bytes after words": (
        f"{BYTE} st.shared.b32 [%own], %n; BETWEEN st.shared.b8 [%x], %t;",
        "lane 1, CTA 0) overwrites room",
    ),
    "halves": (
        f"{BYTE} add.u32 %x, %x, %t; ld.shared.b16 %y, [%x+2]; BETWEEN st.shared.v2.b8 [%x], {{%t, %n}};",
        "lane 1, CTA 0) overwrites room",
    ),
    "ldmatrix": (
        "shl.b32 %x, %t, 4; mov.u32 %y, room; add.u32 %x, %x, %y; st.shared.b32 [%own], %n; BETWEEN "
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%y, %n, %t, %x}, [%x];",
        "lane 0, CTA 0) reads room",
    ),
    "bulk store": (
        "st.shared.b32 [%own], %t; fence.proxy.async; BETWEEN @%first bra GO; bra GONE; "
        f"GO: {STORE} cp.async.bulk.wait_group 0; GONE: ",
        "lane 0, CTA 0) reads room",
    ),
    "bulk copy": (
        f"{FILL} ld.shared.b32 %y, [%own]; BETWEEN @%first {COPY} {wait()}",
        "lane 0, CTA 0) overwrites room",
    ),
    "bulk store and wait by a lane": (
        f"@!%first bra GONE; {STORE} cp.async.bulk.wait_group.read 0; GONE: BETWEEN st.shared.b32 [%own], %n;",
        "overwrites room (0x400) while cp.async.bulk.global of line",
    ),
    "bulk store by a lane and wait by all": (
        f"@!%first bra GONE; {STORE} GONE: cp.async.bulk.wait_group.read 0; BETWEEN st.shared.b32 [%own], %n;",
        "overwrites room (0x400) while cp.async.bulk.global of line",
    ),
    "copy, and wait by a lane": (
        f"{FILL} @%first {COPY} {wait('first')} BETWEEN ld.shared.b32 %y, [%own];",
        "reads room (0x400) while cp.async.bulk of line",
    ),
    "cp.async and wait by each": (
        "cp.async.ca.shared.global [%own], [%at], 4; cp.async.wait_all; BETWEEN ld.shared.b32 %y, [%next];",
        "lane 0, CTA 0) reads room",
    ),
}


def run(body: str, schedule: Any = "eager", warps: int = 1) -> LaunchReport:
    fill = np.random.default_rng(5).integers(0, 2**32, 4096, dtype=np.uint32)
    text = START + "mov.u32 %n, 1000; add.u32 %n, %n, %t;\n" + body.replace("; ", ";\n") + "\nret;"
    return launch(text, [fill], block=32 * warps, kernel_target="sm_90a", schedule=schedule)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("between", ["", "elect.sync %x|%p, -1;", "shfl.sync.bfly.b32 %x, %t, 1, 31, -1;"])
@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts(name: str, between: str, schedule: Any) -> None:
    """Instructions that wait for all lanes without ordering memory do not help."""
    body, said = CONFLICTS[name]
    if "%x" in body:
        between = between.replace("%x", "%y")
    report = run(body.replace("BETWEEN", between), schedule)
    assert codes(report) == ["shared-race"], report.summary()
    assert said in report.findings[0].message, report.summary()
    assert report.findings[0].accesses[0].warp == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "between", ["bar.warp.sync -1;", "bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;"]
)
@pytest.mark.parametrize("name", CONFLICTS)
def test_synchronized(name: str, between: str, schedule: Any) -> None:
    report = run(CONFLICTS[name][0].replace("BETWEEN", between), schedule)
    assert codes(report) == [], report.summary()


CLEAN = {
    "own words": "st.shared.b32 [%own], %t; ld.shared.b32 %x, [%own]; st.shared.b32 [%own], %n;",
    "all load one word": "ld.shared.b32 %x, [room]; ld.shared.b32 %y, [room]; st.shared.b32 [%own+128], %x;",
    "one instruction stores to one word": "mov.u32 %x, 5; st.shared.b32 [room], %x; ld.shared.b32 %x, [room];",
    "the same again": "mov.u32 %x, 5; @%first st.shared.b32 [room], %x; @!%first st.shared.b32 [room], %x;",
    "neighboring bytes": "and.b32 %x, %t, 3; mov.u32 %y, room; add.u32 %x, %x, %y; st.shared.b8 [%x], %x;",
    "own bytes": f"{BYTE} st.shared.b8 [%x], %t; ld.shared.b8 %y, [%x]; st.shared.b8 [%x], %n; st.shared.b8 [%x], %y;",
    "bytes before words": f"ld.shared.b32 %n, [%own]; {BYTE} ld.shared.b8 %y, [%x]; st.shared.b32 [%own+128], %y;",
    "strong accesses": "st.volatile.shared.b32 [%own], %t; ld.volatile.shared.b32 %x, [%next];",
    "atomics": "atom.shared.add.u32 %x, [room], 1; ld.volatile.shared.b32 %y, [room];",
    "a collective load": (
        "shl.b32 %x, %t, 4; mov.u32 %y, room; add.u32 %x, %x, %y; "
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%y, %n, %t, %n}, [%x]; "
        "st.shared.b32 [%own], %y;"
    ),
    "an mbarrier": (
        f"@!%first bra GONE; st.shared.b32 [room], %n; mbarrier.arrive.shared.b64 _, [bar]; GONE: {wait()} "
        "ld.shared.b32 %x, [room];"
    ),
    "all wait for a copy": f"{FILL} @%first {COPY} {wait()} ld.shared.b32 %y, [%next];",
    "a lane waits, then all": (
        f"{FILL} @%first {COPY} {wait('first')} @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; "
        f"@%first {COPY} AGAIN: mbarrier.try_wait.parity.shared.b64 %done, [bar], 1; @!%done bra AGAIN; "
        "ld.shared.b32 %y, [%own];"
    ),
    "the lane that waits goes on": f"{FILL} @%first {COPY} {wait('first')} @%first ld.shared.b32 %y, [room+64];",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, schedule: Any) -> None:
    report = run(CLEAN[name], schedule)
    assert codes(report) == [], report.summary()


def test_many_warps_at_once() -> None:
    """Each has its own intervals, and the finding stands for all."""
    body = CONFLICTS["load after store"][0]
    assert codes(run(body.replace("BETWEEN", ""), warps=3)) == ["shared-race"]
    assert codes(run(body.replace("BETWEEN", "bar.warp.sync -1;"), warps=3)) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_race_names_the_bytes_that_both_access(schedule: Any) -> None:
    """Not the variable before it in the same granule of shadow memory."""
    body = """
        .shared .align 16 .b32 lock;
        .shared .align 4 .b32 row[3];
        .reg .b32 %t, %x; .reg .pred %p;
        mov.u32 %t, %tid.x;
        setp.ge.u32 %p, %t, 32;
        mov.u32 %x, 5;
        @%p bra OTHER;
        setp.ne.u32 %p, %t, 0;
        @!%p st.shared.u32 [lock], %x;
        @!%p st.shared.u32 [row+4], %x;
        bra END;
    OTHER:
        ld.shared.u32 %x, [row+4];
    END:
        ret;
    """
    report, _ = launch(body, [np.zeros(4, np.uint32)], block=64, schedule=schedule)
    race = next(each for each in report.findings if each.code == "shared-race")
    assert "row[1]" in race.message, race.message
    assert "lock" not in race.message, race.message


#: What cooperative groups do for a tile of two warps: one lane of each arrives, and its lanes get the result.
HANDED_OVER = """
    .shared .b32 count, data[2];
    .reg .b32 %t, %lane, %warp, %found, %x, %at;
    .reg .b64 %to;
    .reg .pred %first, %last, %done, %p;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    setp.eq.u32 %first, %lane, 0;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [count], 0;
    bar.sync 0;
    shl.b32 %at, %warp, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    mov.u32 %found, 0;
    @%first st.shared.u32 [%at], %t;
    bar.warp.sync -1;
    @!%first bra JOIN;
    atom.acq_rel.cta.shared.add.u32 %found, [count], 1;
JOIN:
    {between}
    setp.ne.u32 %last, %found, 1;
    @%last bra END;
    and.b32 %x, %lane, 1;
    shl.b32 %x, %x, 2;
    mov.u32 %at, data;
    add.u32 %x, %x, %at;
    ld.shared.u32 %x, [%x];
    mul.wide.u32 %to, %lane, 4;
    add.u64 %to, %to, %out0;
    st.global.u32 [%to], %x;
END:
    ret;
"""
SHUFFLE = "shfl.sync.idx.b32 %found, %found, 0, 31, -1;"
VOTE = "setp.eq.u32 %done, %found, 1; vote.sync.any.pred %done, %done, -1; selp.u32 %found, 1, 0, %done;"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("between", [SHUFFLE, VOTE], ids=["shuffle", "vote"])
def test_the_result_of_an_acquire_handed_over(between: str, schedule: Any) -> None:
    """NVIDIA's cooperative groups rely on it: advice, which says so."""
    report, (out,) = launch(HANDED_OVER.format(between=between), [poisoned(32)], block=64, schedule=schedule)
    assert (report.status, set(codes(report))) == ("ok", {"shared-race"}), report.summary()
    assert all(each.severity == "advice" and "cooperative groups" in each.message for each in report.findings)
    assert (out == np.resize([0, 32], 32)).all()
    report, _ = launch(HANDED_OVER.format(between=between + "bar.warp.sync -1;"), [poisoned(32)], block=64)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


#: One lane waits for the flag of another warp, then all lanes load.
ALONE = """
    .shared .b32 flag, data;
    .reg .b32 %t, %x;
    .reg .b64 %to;
    .reg .pred %first, %other, %done;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.ge.u32 %other, %t, 32;
    @%first st.shared.u32 [flag], 0;
    bar.sync 0;
    @%other bra OTHER;
    @!%first bra JOIN;
AGAIN:
    ld.acquire.cta.shared.u32 %x, [flag];
    setp.eq.u32 %done, %x, 1;
    @!%done bra AGAIN;
JOIN:
    {between}
    ld.shared.u32 %x, [data];
    mul.wide.u32 %to, %t, 4;
    add.u64 %to, %to, %out0;
    st.global.u32 [%to], %x;
    ret;
OTHER:
    setp.eq.u32 %first, %t, 32;
    @%first st.shared.u32 [data], 5;
    @%first st.release.cta.shared.u32 [flag], 1;
    ret;
"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("between", "wanted"),
    [("", "error"), ("bar.warp.sync -1;", None), ("shfl.sync.idx.b32 %x, %x, 0, 31, -1;", "advice")],
    ids=["nothing", "bar.warp.sync", "shuffle"],
)
def test_an_acquire_of_one_lane(between: str, wanted: str | None, schedule: Any) -> None:
    report, _ = launch(ALONE.format(between=between), [poisoned(32)], block=64, schedule=schedule)
    found = {each.severity for each in report.findings if each.code == "shared-race"}
    assert found == ({wanted} if wanted is not None else set()), report.summary()
