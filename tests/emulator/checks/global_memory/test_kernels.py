"""Kernels as people write them, each with the synchronization that it needs, and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: `out0` has 1024 words: `mine` is this thread's of the grid; counters and flags are from %flag on; thread 0 is %first.
HEAD = """
    .shared .align 128 .b8 tile[256];
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 last;
    .reg .pred %p, %q, %first, %w; .reg .u32 %t, %c, %n, %g, %i, %x, %y, %s, %z; .reg .b64 %mine, %at, %flag, %done;
    .reg .b16 %h;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %z, %nctaid.x;
    mad.lo.u32 %g, %c, %n, %t;
    mul.wide.u32 %mine, %g, 4;
    add.u64 %mine, %mine, %out0;
    add.u64 %flag, %out0, 3840;
    add.u64 %done, %out0, 3844;
    setp.eq.u32 %first, %t, 0;
    mad.lo.u32 %x, %g, 7, 5;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 4, %s;
"""
BULK = """
    st.shared.u32 [%s], %x;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out0+256], [tile], 256;
    @%first cp.async.bulk.commit_group;
"""
WAIT, READ = "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"
BAR, RACE = "bar.sync 0;", "global-race"
#: name -> (body with ORDER, what is right there, what is wrong, what is told, grid, block)
KERNELS: dict[str, tuple[str, str, str, str, int, int]] = {
    # `__threadfence()` before the counter, and after it.
    "last block": ("""
        st.global.u32 [%mine], %x;
        ORDER bar.sync 0;
        @%first atom.relaxed.gpu.global.inc.u32 %y, [%flag], 1000;
        @%first st.shared.u32 [last], %y;
        bar.sync 0;
        ld.shared.u32 %y, [last];
        add.u32 %y, %y, 1;
        setp.ne.u32 %p, %y, %z;
        @%p bra end;
        membar.gl;
        mul.wide.u32 %at, %t, 4;
        add.u64 %at, %at, %out0;
        mov.u32 %i, 0;
        sum:
        ld.global.u32 %y, [%at];
        add.u64 %at, %at, 256;
        add.u32 %i, %i, 1;
        setp.lt.u32 %p, %i, %z;
        @%p bra sum;
        @%first st.global.u32 [%flag], 0; end:""", "membar.gl;", "", "missing-fence", 4, 64),
    # A producer with two buffers must wait until the one that it fills again is free.
    "double buffer": ("""
        mov.u32 %i, 0;
        setp.ne.u32 %p, %c, 0;
        @%p bra take;
        make:
        and.b32 %y, %i, 1;
        mad.lo.u32 %y, %y, 64, %t;
        mul.wide.u32 %at, %y, 4;
        add.u64 %at, %at, %out0;
        ORDER mad.lo.u32 %x, %i, 77, %t;
        st.global.u32 [%at], %x;
        bar.sync 0;
        add.u32 %i, %i, 1;
        @%first st.release.gpu.global.u32 [%flag], %i;
        setp.lt.u32 %p, %i, 5;
        @%p bra make;
        bra end;
        take:
        @!%first bra have;
        w:
        ld.acquire.gpu.global.u32 %y, [%flag];
        setp.le.u32 %p, %y, %i;
        @%p bra w;
        have:
        bar.sync 0;
        and.b32 %y, %i, 1;
        mad.lo.u32 %y, %y, 64, %t;
        mul.wide.u32 %at, %y, 4;
        add.u64 %at, %at, %out0;
        ld.global.u32 %y, [%at];
        bar.sync 0;
        add.u32 %i, %i, 1;
        @%first st.release.gpu.global.u32 [%done], %i;
        setp.lt.u32 %p, %i, 5;
        @%p bra take;
        end:""",
        """@!%first bra free;
f:
ld.acquire.gpu.global.u32 %y, [%done];
add.u32 %y, %y, 2;
setp.le.u32 %p, %y, %i;
        @%p bra f;
        free:
        bar.sync 0;
        """, "bar.sync 0;", RACE, 2, 64),
    "histogram": ("""
        and.b32 %y, %x, 15;
        mul.wide.u32 %at, %y, 4;
        add.u64 %at, %at, %out0;
        ORDER""",
        "red.global.add.u32 [%at], 1;",
        "ld.global.u32 %y, [%at]; add.u32 %y, %y, 1; st.global.u32 [%at], %y;", RACE, 2, 64),
    "grid barrier": ("""
        st.global.u32 [%mine], %x;
        bar.sync 0;
        ORDER
        add.u32 %y, %g, %n;
        mul.lo.u32 %i, %n, %z;
        rem.u32 %y, %y, %i;
        mul.wide.u32 %at, %y, 4;
        add.u64 %at, %at, %out0;
        ld.global.u32 %y, [%at];""",
        """@!%first bra met;
atom.acq_rel.gpu.global.add.u32 %y, [%flag], 1;
        w:
        ld.acquire.gpu.global.u32 %y, [%flag];
        setp.lt.u32 %p, %y, %z;
        @%p bra w;
        met:
        bar.sync 0;
        """,
        "", RACE, 3, 64),
    "stencil": ("""
        mov.u32 %i, 0;
        turn:
        ld.global.u32 %y, [%mine];
        ld.global.u32 %x, [%mine+4];
        add.u32 %x, %x, %y;
        add.u32 %x, %x, 3;
        bar.sync 0;
        st.global.u32 [%mine], %x;
        ORDER add.u32 %i, %i, 1;
        setp.lt.u32 %p, %i, 3;
        @%p bra turn;
        """,
        BAR, "", RACE, 1, 64),
    "sums read plainly": ("""
        and.b32 %y, %t, 7;
        mul.wide.u32 %at, %y, 4;
        add.u64 %at, %at, %out0;
        red.global.add.u32 [%at], %x;
        ORDER
        ld.global.u32 %y, [%at];""", BAR, "", RACE, 1, 64),
    "vectors that overlap": ("""
        setp.ge.u32 %p, %t, 32;
        and.b32 %y, %t, 31;
        mul.wide.u32 %at, %y, 16;
        add.u64 %at, %at, %out0;
        @%p bra other;
        st.global.v4.u32 [%at], {%x, %x, %t, %x};
        bra met;
        other:
        ORDER cvt.u16.u32 %h, %x;
        st.global.u8 [%at+9], %h;
        met:""", "add.u64 %at, %at, 1024;", "", RACE, 1, 64),
    "bulk store, then another CTA": (f"""
        setp.ne.u32 %q, %c, 0;
        @%q bra take;
        {BULK} ORDER @%first st.release.gpu.global.u32 [%flag], 1;
        bra end;
        take:
        ld.acquire.gpu.global.u32 %y, [%flag];
        setp.eq.u32 %p, %y, 0;
        @%p bra take;
        mul.wide.u32 %at, %t, 4;
        add.u64 %at, %at, %out0;
        ld.global.u32 %y, [%at+256];
        end:""",
        WAIT, READ, RACE, 2, 64),
    "bulk store, then the same thread": (
        BULK + "ORDER @%first ld.global.u32 %y, [%out0+260];", WAIT, READ, RACE, 1, 64
    ),
    "red.async": ("""
        @%first mbarrier.init.shared::cta.b64 [bar], 1;
        @%first st.shared.u32 [last], 0;
        @%first fence.mbarrier_init.release.cluster;
        bar.sync 0;
        mapa.shared::cluster.u32 %y, last, 0;
        mapa.shared::cluster.u32 %s, bar, 0;
        @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%y], 1, [%s];
        ORDER ld.shared.u32 %y, [last];
        st.global.u32 [%mine], %y;
        """,
        "w: mbarrier.try_wait.parity.shared::cta.b64 %w, [bar], 0; @!%w bra w;", "", "shared-race", 1, 64),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("body", "right", "wrong", "code", "grid", "block"), KERNELS.values(), ids=KERNELS)
def test_kernels(body: str, right: str, wrong: str, code: str, grid: int, block: int, schedule: Any) -> None:
    for order, expected in ((right, set()), (wrong, {code})):
        text = HEAD + body.replace("ORDER", order) + "\nret;"
        report, _ = launch(text, [np.zeros(1024, np.uint32)], grid=grid, block=block, schedule=schedule)
        found = {each.code for each in report.findings if each.severity == "error"}
        assert found == expected, report.summary()
