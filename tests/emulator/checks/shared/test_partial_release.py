"""A lane that arrives on an mbarrier, or fences, does so for what it knows, not for what other lanes have stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, launch

SCHEDULES = ["eager", "late", "random"]
#: Warp 0 makes what warp 1 uses. %own is the word of a lane; all lanes arrive on `all`, one alone on `bar`.
KERNEL = """\
    .shared .align 128 .b8 room[256];
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 all;
    .reg .b32 %t, %x, %y, %own, %n;
    .reg .b64 %in, %at;
    .reg .pred %p, %one, %maker, %done;
    mov.u64 %in, %out0;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    setp.lt.u32 %maker, %t, 32;
    and.b32 %t, %t, 31;
    setp.eq.u32 %one, %t, LANE;
    shl.b32 %x, %t, 2;
    mov.u32 %own, room;
    add.u32 %own, %own, %x;
    add.u32 %n, %t, 1000;
    cvt.u64.u32 %at, %x;
    add.u64 %at, %at, %in;
    mov.u32 %x, 0;
    @%maker st.shared.b32 [%own], %x;
    @%maker st.shared.b32 [%own+128], %x;
    @%p mbarrier.init.shared.b64 [bar], 1;
    @%p mbarrier.init.shared.b64 [all], 32;
    fence.proxy.async;
    bar.sync 0;
    @!%maker bra USE;
    MAKE
    bra END;
USE:
    USED
END:
    bar.sync 0;
    ret;
"""
STORE, SYNC = "st.shared.b32 [%own], %n;", "bar.warp.sync -1;"
ARRIVE, ALL = "@%one mbarrier.arrive.shared.b64 _, [bar];", "mbarrier.arrive.shared.b64 _, [all];"
FENCE = "fence.proxy.async.shared::cta;"
LONE_FENCE = f"@!%one bra.uni SKIP; {FENCE} SKIP:"


def wait(bar: str = "bar", sem: str = ".acquire.cta") -> str:
    again = f"W_{bar}"
    return f"{again}: mbarrier.try_wait.parity{sem}.shared::cta.b64 %done, [{bar}], 0; @!%done bra {again};"


LOAD = f"{wait()} ld.shared.b32 %x, [%own];"
COPY = (
    "@!%one bra.uni GONE; cp.async.bulk.global.shared::cta.bulk_group [%in], [room], 128; "
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; GONE:"
)

#: (what warp 0 does, what warp 1 does, code, what the message says). Where SYNC is left out the code is reported.
BROKEN = {
    "load": (f"{STORE} SYNC {ARRIVE}", LOAD, "shared-race", "reads room"),
    "store": (f"{STORE} SYNC {ARRIVE}", f"{wait()} st.shared.b32 [%own], %t;", "shared-race", "overwrites room"),
    "wide load": (
        f"{STORE} SYNC {ARRIVE}", f"{wait()} ld.shared.v2.b32 {{%x, %y}}, [room];", "shared-race", ", lane ",
    ),
    "bytes": (
        f"mov.u32 %x, room; add.u32 %x, %x, %t; st.shared.b8 [%x], %n; SYNC {ARRIVE}", LOAD, "shared-race", ", lane ",
    ),
    "cp.async": (
        f"cp.async.ca.shared.global [%own], [%at], 4; cp.async.wait_all; SYNC {ARRIVE}", LOAD, "shared-race", ", lane ",
    ),
    "more stages": (
        f"{STORE} SYNC {ARRIVE} st.shared.b32 [%own+128], %n; bar.warp.sync -1; {ALL}", LOAD, "shared-race", ", lane ",
    ),
    "copy": (f"{STORE} {FENCE} SYNC {ARRIVE}", f"{wait()} {COPY}", "shared-race", "cp.async.bulk.global"),
    "relaxed": (
        f"{STORE} SYNC @!%one bra.uni SKIP; fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared.b64 _, [bar]; SKIP:",
        f"{wait('bar', '.relaxed.cta')} fence.acq_rel.cta; ld.shared.b32 %x, [%own];", "shared-race", ", lane ",
    ),
    "fence, then all": (
        f"{STORE} SYNC {LONE_FENCE} {ALL}", f"{wait('all')} {COPY}", "missing-proxy-fence", "cp.async.bulk.global",
    ),
    "fence, then a copy": (
        f"{STORE} SYNC {LONE_FENCE} bar.warp.sync -1; {COPY}", "", "missing-proxy-fence", "cp.async.bulk.global",
    ),
    "fence, then a barrier": (
        f"{STORE} SYNC {LONE_FENCE} bar.sync 1, 64;", f"bar.sync 1, 64; {COPY}", "missing-proxy-fence", ", lane ",
    ),
}  # fmt: skip


def run(make: str, use: str, schedule: Any = "eager", lane: int = 0) -> LaunchReport:
    text = KERNEL.replace("MAKE", make).replace("USED", use).replace("LANE", str(lane)).replace("; ", ";\n")
    data = [np.arange(64, dtype=np.uint32)]
    return launch(text, data, block=64, kernel_target="sm_90a", schedule=schedule, seed=7)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("between", ["", "elect.sync %x|%p, -1;", "shfl.sync.bfly.b32 %y, %t, 1, 31, -1;"])
@pytest.mark.parametrize("name", BROKEN)
def test_other_lanes_are_not_waited_for(name: str, between: str, schedule: Any) -> None:
    """Neither an election nor a shuffle orders memory accesses."""
    make, use, code, said = BROKEN[name]
    report = run(make.replace("SYNC", between), use, schedule, lane=5 if not between else 0)
    assert codes(report) == [code], report.summary()
    assert said in report.findings[0].message, report.summary()
    found, other = report.findings[0].accesses
    assert (other.role, other.warp, found.address) == ("writer", 0, other.address)
    assert other.lanes is not None
    assert "other lanes of that warp" in report.findings[0].rule


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("between", ["bar.warp.sync -1;", "bar.sync 2, 32;", "barrier.cluster.arrive.aligned;"])
@pytest.mark.parametrize("name", BROKEN)
def test_lanes_that_meet(name: str, between: str, schedule: Any) -> None:
    make, use, _, _ = BROKEN[name]
    if "cluster" in between:
        between, use = (
            between + " barrier.cluster.wait.aligned;",
            f"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; {use}",
        )
    report = run(make.replace("SYNC", between), use, schedule)
    assert codes(report) == [], report.summary()


CLEAN = {
    "all arrive": (f"{STORE} {ALL}", f"{wait('all')} ld.shared.b32 %x, [%own];"),
    "all arrive first": (
        f"{STORE} {ALL} {ARRIVE}", f"{wait('all')} {wait()} ld.shared.b32 %x, [%own];",
    ),
    "its own store": (f"@%one {STORE} {ARRIVE}", f"{wait()} ld.shared.b32 %x, [room];"),
    "what it does not tell of": (
        f"st.shared.b32 [%own+128], %n; @%one {STORE} {ARRIVE}", f"{wait()} ld.shared.b32 %x, [%own];",
    ),
    "all fence": (f"{STORE} {FENCE} {ALL}", f"{wait('all')} {COPY}"),
    "who copies fences": (f"{STORE} {LONE_FENCE} {ALL}", f"{wait('all')} {FENCE} {COPY}"),
    "a barrier later": (
        f"{STORE} {ARRIVE} bar.sync 1, 64;", f"{wait()} bar.sync 1, 64; ld.shared.b32 %x, [%own];",
    ),
    "what is there already": (f"ld.shared.b32 %x, [%own]; {ARRIVE}", f"{wait()} ld.shared.b32 %x, [%own];"),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, schedule: Any) -> None:
    report = run(*CLEAN[name], schedule)
    assert codes(report) == [], report.summary()
