"""Mbarriers between CTAs of a cluster take the scope .cluster where threads access what they order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import launch

SCHEDULES = ["eager", "late", "random"]
#: Each CTA of a pair has something put into its room by the other, reads it, and lets the other put more there.
KERNEL = """\
    .shared .align 128 .b8 room[256];
    .shared .align 128 .b8 source[256];
    .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
    .reg .b32 %t, %x, %y, %own, %there, %rank, %peer, %full, %empty, %room;
    .reg .pred %one, %done, %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %one, %t, 0;
    mov.u32 %rank, %cluster_ctarank;
    xor.b32 %peer, %rank, 1;
    shl.b32 %x, %t, 2;
    mov.u32 %own, room;
    mapa.shared::cluster.u32 %room, %own, %peer;
    add.u32 %own, %own, %x;
    mapa.shared::cluster.u32 %there, %own, %peer;
    mov.u32 %y, full;
    mapa.shared::cluster.u32 %full, %y, %peer;
    mov.u32 %y, empty;
    mapa.shared::cluster.u32 %empty, %y, %peer;
    mov.u32 %y, source;
    add.u32 %y, %y, %x;
    st.shared.b32 [%y], %t;
    @%one mbarrier.init.shared.b64 [full], 1;
    @%one mbarrier.init.shared.b64 [empty], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    barrier.cluster.arrive; barrier.cluster.wait;
    BODY
    barrier.cluster.arrive; barrier.cluster.wait;
    mad.lo.u32 %x, %rank, 64, %t;
    .reg .b64 %at;
    mad.wide.u32 %at, %x, 4, %out0;
    st.global.b32 [%at], %y;
    ret;
"""
ARRIVES = {"cluster": ".release.cluster", "default": "", "cta": ".release.cta"}
WAITS = {"cluster": ".acquire.cluster", "default": "", "cta": ".acquire.cta"}
PUT = "add.u32 %x, %t, 1000; mad.lo.u32 %x, %rank, 5000, %x; st.shared::cluster.b32 [%there], %x;"
GET = "ld.shared.b32 %y, [%own];"
COPY = (
    "@!%one bra.uni GO; mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; "
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%room], [source], 256, [%full]; GO:"
)
STORES = (
    "@%one mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; mad.lo.u32 %x, %rank, 5000, %t; "
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%there], %x, [%full];"
)


def arrive(bar: str, scope: str) -> str:
    return f"bar.sync 0; @%one mbarrier.arrive{ARRIVES[scope]}.shared::cluster.b64 _, [%{bar}];"


def wait(bar: str, scope: str, phase: int = 0) -> str:
    again = f"W_{bar}_{phase}"
    return (
        f"{again}: mbarrier.try_wait.parity{WAITS[scope]}.shared::cta.b64 %done, [{bar}], {phase}; @!%done bra {again};"
    )


def run(body: str, schedule: Any = "eager") -> tuple[LaunchReport, np.ndarray]:
    report, (found,) = launch(
        KERNEL.replace("BODY", body).replace("; ", ";\n"),
        [np.zeros(128, np.uint32)],
        block=64,
        grid=2,
        cluster=2,
        kernel_target="sm_90a",
        schedule=schedule,
        seed=3,
    )
    return report, found


def told(report: LaunchReport) -> list[tuple[str, str]]:
    return sorted({(finding.code, finding.severity) for finding in report.findings})


def advised(arrival: str, waiting: str) -> list[tuple[str, str]]:
    return [] if arrival == waiting == "cluster" else [("narrow-scope", "advice")]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("by_one", [False, True])
@pytest.mark.parametrize("waiting", WAITS)
@pytest.mark.parametrize("arrival", ARRIVES)
def test_stores_to_a_peer(arrival: str, waiting: str, by_one: bool, schedule: Any) -> None:
    """Without the release of the cluster a store may be on its way when the peer has seen the arrival."""
    waits = wait("full", waiting)
    if by_one:
        waits = f"@!%one bra.uni SKIP; {waits} SKIP: bar.sync 0;"
    report, found = run(f"{PUT} {arrive('full', arrival)} {waits} {GET}", schedule)
    assert told(report) == advised(arrival, waiting), report.summary()
    if report.findings:
        assert ("arrival" if arrival != "cluster" else "wait") in report.findings[0].message
    assert (found.reshape(2, 64) == np.arange(1000, 1064) + np.array([[5000], [0]])).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("waiting", WAITS)
@pytest.mark.parametrize("arrival", ARRIVES)
def test_loads_before_stores_of_a_peer(arrival: str, waiting: str, schedule: Any) -> None:
    body = (
        f"{PUT} {arrive('full', 'cluster')} {wait('full', 'cluster')} {GET} {arrive('empty', arrival)} "
        f"{wait('empty', waiting)} {PUT.replace('1000', '2000')}"
    )
    report, _ = run(body, schedule)
    assert told(report) == advised(arrival, waiting), report.summary()
    assert report.status == "ok"


CLEAN = {
    "a copy": f"{COPY} {wait('full', 'default')} {GET}",
    "asynchronous stores": f"{STORES} {wait('full', 'default')} {GET}",
    "a copy over what was read": (
        f"{COPY} {wait('full', 'default')} {GET} {arrive('empty', 'default')} {wait('empty', 'default')} "
        f"{COPY.replace('GO', 'ON')} {wait('full', 'default', 1)}"
    ),
    "a barrier besides": (
        f"{PUT} {arrive('full', 'default')} {wait('full', 'default')} barrier.cluster.arrive; barrier.cluster.wait; "
        f"{GET}"
    ),
    "its own memory": (
        "st.shared.b32 [%own], %t; bar.sync 0; @%one mbarrier.arrive.shared.b64 _, [full]; "
        f"{wait('full', 'default')} {GET}"
    ),
    "a fence": (
        f"{PUT} bar.sync 0; @!%one bra.uni ON; fence.acq_rel.cluster; "
        f"mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%full]; ON: {wait('full', 'cluster')} {GET}"
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, schedule: Any) -> None:
    report, _ = run(CLEAN[name], schedule)
    assert told(report) == [], report.summary()


#: The same in global memory: each CTA stores to its part, and loads its peer's.
PUT_GLOBAL = "mad.lo.u32 %x, %rank, 64, %t; .reg .b64 %g; mad.wide.u32 %g, %x, 4, %out0; st.global.b32 [%g], %t;"
GET_GLOBAL = "mad.lo.u32 %x, %peer, 64, %t; mad.wide.u32 %g, %x, 4, %out0; ld.global.b32 %y, [%g];"
CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("arrives", ARRIVES)
def test_peers_exchange_through_global_memory(arrives: str, waits: str, schedule: Any) -> None:
    """What a peer has stored there may be on its way, or old in L1: with .cta ptxas orders neither."""
    body = f"{PUT_GLOBAL} {arrive('full', arrives)} {wait('full', waits)} {GET_GLOBAL} {CLUSTER}"
    report, _ = run(body, schedule)
    expected = [] if (arrives, waits) == ("cluster", "cluster") else [("narrow-scope", "error")]
    assert [(each.code, each.severity) for each in report.findings] == expected, report.summary()
    side = "arrival" if arrives != "cluster" else "wait"
    assert all(f"its {side} (if it is relaxed, " in each.message for each in report.findings), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cluster_barrier_orders_global_memory(schedule: Any) -> None:
    """Whatever mbarriers of a narrow scope there were before."""
    body = f"{arrive('full', 'cta')} {wait('full', 'cta')} {PUT_GLOBAL} {CLUSTER} {GET_GLOBAL} {CLUSTER}"
    report, _ = run(body, schedule)
    assert not report.findings, report.summary()
