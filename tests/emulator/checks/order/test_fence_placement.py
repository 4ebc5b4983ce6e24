"""fence.proxy.async after the arrival that hands the data over: it comes before the copy only by luck."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

#: Warp 0 stores to shared memory and arrives; warp 1 waits and copies that to global memory.
HANDED_OVER = """\
    .shared .align 16 .b8 tile[512];
    .shared .align 8 .b64 full;
    .reg .b32 %t, %lane, %at;
    .reg .pred %p, %first, %done;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [full], 32;
    bar.sync 0;
    setp.eq.u32 %first, %lane, 0;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %lane, 16, %at;
    setp.ge.u32 %p, %t, 32;
    @%p bra copy;
    {earlier} st.shared.v4.b32 [%at], {{1, 2, 3, 4}};
    {before} {arrive} {after}
    bra end;
    copy:
    {wait}
    @!%first bra end;
    cp.async.bulk.global.shared::cta.bulk_group [%out0], [tile], 512;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    end:
    ret;"""
FENCE = "fence.proxy.async.shared::cta;"
HANDOVERS = {
    "barrier": ("barrier.cta.arrive 1, 64;", "barrier.cta.sync 1, 64;"),
    "mbarrier": (
        "mbarrier.arrive.shared.b64 _, [full];",
        "again: mbarrier.try_wait.parity.shared.b64 %done, [full], 0; @!%done bra again;",
    ),
}


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), *(("random", seed) for seed in range(3))])
@pytest.mark.parametrize("handover", HANDOVERS)
def test_the_fence_precedes_the_arrival(handover: str, schedule: Any, seed: int) -> None:
    arrive, wait = HANDOVERS[handover]
    for earlier, before, after, wanted in (
        ("", FENCE, "", []),
        ("", FENCE, FENCE, []),
        ("", "", FENCE, ["missing-proxy-fence"]),
        (FENCE, "", FENCE, ["missing-proxy-fence"]),
    ):
        body = HANDED_OVER.format(earlier=earlier, before=before, arrive=arrive, after=after, wait=wait)
        report, _ = launch(
            body, [np.zeros(128, np.uint32)], block=64, kernel_target="sm_90a", schedule=schedule, seed=seed
        )
        assert codes(report) == wanted, report.summary()
        assert all("fence.proxy.async follows" in each.rule or "No fence" in each.rule for each in report.findings)


def test_the_message_says_where_the_fence_is() -> None:
    """With `eager` the fence after the arrival on the mbarrier is executed before the copy."""
    arrive, wait = HANDOVERS["mbarrier"]
    rules = []
    for after in ("", FENCE):
        body = HANDED_OVER.format(earlier="", before="", arrive=arrive, after=after, wait=wait)
        report, _ = launch(body, [np.zeros(128, np.uint32)], block=64, kernel_target="sm_90a", schedule="eager")
        rules += [each.rule for each in report.findings]
    assert rules == [
        "No fence.proxy.async comes between them",
        "The fence.proxy.async follows the arrival that orders them, and may come after the read",
    ]
