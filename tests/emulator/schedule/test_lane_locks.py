"""A lock that the lanes of a warp take in turn, and a barrier of the CTA after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import launch, poisoned

#: Each thread counts itself in shared memory under a spin lock; then all store the count.
COUNT = """\
    .shared .b32 lock;
    .shared .b32 count;
    .reg .b32 %t, %old, %x;
    .reg .b64 %at;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [lock], 0;
    @%p st.shared.u32 [count], 0;
    bar.sync 0;
    again:
    atom.shared.exch.b32 %old, [lock], 1;
    setp.ne.u32 %p, %old, 0;
    @%p bra again;
    fence.acq_rel.cta;
    ld.shared.u32 %x, [count];
    add.u32 %x, %x, 1;
    st.shared.u32 [count], %x;
    fence.acq_rel.cta;
    atom.shared.exch.b32 %old, [lock], 0;
    {barrier}
    ld.shared.u32 %x, [count];
    mad.wide.u32 %at, %t, 4, %out0;
    st.global.u32 [%at], %x;
    ret;"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), ("random", 0), ("random", 1)])
@pytest.mark.parametrize(("barrier", "threads"), [("bar.sync 0;", 32), ("barrier.cta.sync.aligned 0;", 64)])
def test_the_warp_is_whole_again_at_the_barrier(barrier: str, threads: int, schedule: Any, seed: int) -> None:
    """Lanes give the lock back before they wait there for the others."""
    report, (counts,) = launch(
        COUNT.format(barrier=barrier), [poisoned(threads, np.uint32)], block=threads, schedule=schedule, seed=seed
    )
    assert not report.findings, report.summary()
    assert (counts == threads).all()
