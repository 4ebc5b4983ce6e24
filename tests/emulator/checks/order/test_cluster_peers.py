"""What a CTA must know of its peer: that it has arrived at the cluster's barrier, and shown its mbarriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, launch

SCHEDULES = ["eager", "late", "random"]
ARRIVE, WAIT = "barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"

#: The second CTA copies 128 bytes to the first and completes on its mbarrier, which FENCE shows to copies.
SENT = """
    .shared .align 128 .b8 room[256];
    .shared .align 8 .b64 bar;
    .reg .b32 %t, %x, %to, %at, %rank;
    .reg .pred %first, %made, %sends, %waits, %done;
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0;
    setp.eq.and.u32 %made, %rank, 0, %first;
    setp.eq.and.u32 %sends, %rank, 1, %first;
    setp.eq.u32 %waits, %rank, 0;
    shl.b32 %x, %t, 2;
    mov.u32 %at, room;
    add.u32 %x, %x, %at;
    st.shared.b32 [%x], %t;
    fence.proxy.async.shared::cta;
    @%made mbarrier.init.shared.b64 [bar], 1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    {fence}
    {between}
    @%made mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    mov.u32 %at, bar;
    mapa.shared::cluster.u32 %at, %at, 0;
    mov.u32 %to, room;
    mapa.shared::cluster.u32 %to, %to, 0;
    @%sends cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%to+128], [room], 128, [%at];
    @!%waits bra OVER;
WAITS:
    mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;
    @!%done bra WAITS;
OVER:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;"""


def sent(between: str, schedule: Any, fence: str = "@%made fence.mbarrier_init.release.cluster;") -> LaunchReport:
    body = SENT.format(fence=fence, between=between)
    return launch(body, grid=2, cluster=2, kernel_target="sm_90a", schedule=schedule)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fence_of_a_peers_mbarrier(schedule: Any) -> None:
    """Its fence must be known to come first: the barrier before it tells of the init alone."""
    relaxed = "barrier.cluster.arrive.relaxed.aligned;" + WAIT
    report = sent(relaxed, schedule)
    assert codes(report) == [], report.summary()
    report = sent("", schedule)
    assert codes(report) == ["mbarrier-init-proxy"], report.summary()
    assert "ordered before the copy" in report.findings[0].message
    report = sent(relaxed, schedule, fence="")
    assert codes(report) == ["mbarrier-init-proxy"], report.summary()
    assert "ordered before the copy" not in report.findings[0].message


TWICE = "{first} {between} {second} barrier.cluster.wait.aligned; ret;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", ["", ".relaxed"])
def test_arriving_again(how: str, schedule: Any) -> None:
    """A thread may arrive again once it knows that all have arrived, and not before, whatever the timing."""
    arrive = f"barrier.cluster.arrive{how}.aligned;"

    def found(between: str) -> list[str]:
        body = TWICE.format(first=arrive, between=between, second=arrive)
        return codes(launch(body, grid=2, cluster=2, block=64, kernel_target="sm_90a", schedule=schedule)[0])

    assert found(WAIT) == []
    assert found("") == ["cluster-barrier-order"]
    assert found("bar.sync 0;") == ["cluster-barrier-order"]


#: Every CTA writes its own stage; after the cluster's barrier the first one multicasts into both, or reads the peer's.
RELAXED = """
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    .reg .b32 %t, %rank, %x;
    .reg .b16 %mask;
    .reg .pred %first, %sends, %done;
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0;
    setp.eq.and.u32 %sends, %rank, 0, %first;
    @%first st.shared.u32 [stage], 1;
    @%first mbarrier.init.shared.b64 [full], 1;
    @%first fence.mbarrier_init.release.cluster;
    @%first fence.proxy.async.shared::cta;
    barrier.cluster.arrive{how}.aligned;
    barrier.cluster.wait.aligned;
    {then}
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;"""
MULTICAST = """
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    mov.b16 %mask, 3;
    @%sends cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [stage], [%out0], 256, [full], %mask;
WAITS:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAITS;"""
READ = "mov.u32 %x, stage; mapa.shared::cluster.u32 %x, %x, 1; @%sends ld.shared::cluster.u32 %t, [%x];"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_relaxed_arrivals_before_what_overwrites(schedule: Any) -> None:
    """Overwriting what a CTA wrote to its own memory before is advice, whoever does; reading it from a peer is not."""

    def found(how: str, then: str) -> LaunchReport:
        body = RELAXED.format(how=how, then=then)
        memory = np.zeros(64, np.uint32)
        return launch(body, [memory], grid=2, cluster=2, kernel_target="sm_90a", schedule=schedule)[0]

    report = found(".relaxed", MULTICAST)
    assert (report.status, codes(report)) == ("ok", ["missing-fence"]), report.summary()
    assert {each.rank for each in report.findings[0].accesses} == {0, 1}
    report = found(".relaxed", READ)
    assert (report.status, codes(report)) == ("findings", ["shared-race"]), report.summary()
    for then in (MULTICAST, READ):
        assert codes(found("", then)) == []
