"""Bulk copies of bytes in a row: what they move, when they are done, and what is ordered with what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch, line_of, module, poisoned

SCHEDULES: list[Any] = ["eager", "late", "random"]
SIZE = 2048

#: Shared memory is filled from `fill`; thread 0 does BODY; all wait, then dump shared memory to `out`.
KERNEL = """
    .shared .align 128 .b8 buffer[2048];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .u32 %t, %x, %y, %to, %r, %n; .reg .b64 %in, %out, %at, %fill; .reg .b16 %mask;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    mov.u32 %r, %cluster_ctarank;
    mov.u32 %n, COUNT;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u64 %fill, [fill];
    mul.wide.u32 %at, %r, 2048;
    add.u64 %fill, %fill, %at;
    add.u64 %out, %out, %at;
    mov.u32 %x, 0;
    filling:
    mad.lo.u32 %y, %t, 4, %x;
    cvt.u64.u32 %at, %y;
    add.u64 %at, %at, %fill;
    ld.global.u32 %to, [%at];
    mov.u32 %r, buffer;
    add.u32 %y, %y, %r;
    st.shared.u32 [%y], %to;
    add.u32 %x, %x, 128;
    setp.lt.u32 %q, %x, 2048;
    @%q bra filling;
    mov.u32 %r, %cluster_ctarank;
    @%p mbarrier.init.shared::cta.b64 [bar], 1;
    @%p fence.mbarrier_init.release.cluster;
    @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], EXPECT;
    fence.proxy.async;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p bra after;
    BODY
    after: bar.warp.sync -1;
    WAIT
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %x, 0;
    dump:
    mad.lo.u32 %y, %t, 4, %x;
    cvt.u64.u32 %at, %y;
    add.u64 %at, %at, %out;
    mov.u32 %to, buffer;
    add.u32 %y, %y, %to;
    ld.shared.u32 %to, [%y];
    st.global.u32 [%at], %to;
    add.u32 %x, %x, 128;
    setp.lt.u32 %q, %x, 2048;
    @%q bra dump;
    ret;
"""
WAITING = "w: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0; @!%q bra w;"
GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def run(
    body: str,
    *,
    wait: str = "",
    expect: int = 0,
    count: int = 512,
    ctas: int = 1,
    schedule: Any = "eager",
    data: Any = None,
    checks: bool = True,
    target: str = "sm_100a",
    version: str = "8.8",
) -> tuple[LaunchReport, Any, Any, Any, str]:
    """(report, global memory afterwards, shared memories afterwards, what both held before, text)."""
    emulator = Emulator(target, schedule=schedule, checks=checks)
    generator = np.random.default_rng(1)
    before = generator.integers(0, 256, 4096, dtype=np.uint8) if data is None else data
    fill = generator.integers(0, 256, (ctas, SIZE), dtype=np.uint8)
    array, out, filled = emulator.array(before), emulator.empty((ctas, SIZE), np.uint8), emulator.array(fill)
    text = (
        KERNEL.replace("BODY", body).replace("WAIT", wait).replace("EXPECT", str(expect)).replace("COUNT", str(count))
    )
    text = module(text, ".param .u64 in, .param .u64 out, .param .u64 fill", target=target, version=version)
    report = emulator.launch(Kernel.from_ptx(text), ctas, 32, [array, out, filled], cluster=ctas)
    return report, array.numpy(), out.numpy(), (before, fill), text


LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer+256], [%in+64], %n, [bar];"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", [16, 512, 1792])
def test_loads(count: int, schedule: Any) -> None:
    report, _, shared, (before, fill), _ = run(LOAD, wait=WAITING, expect=count, count=count, schedule=schedule)
    assert report.status == "ok", report.summary()
    fill[0, 256 : 256 + count] = before[64 : 64 + count]
    assert (shared == fill).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_loads_to_several_ctas(schedule: Any) -> None:
    """The mask's CTAs, each at the same place, with the bytes told to its own barrier."""
    body = """
        setp.eq.u32 %q, %r, 2;
        mov.u16 %mask, 0b1011;
        @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [buffer], [%in], 256, [bar], %mask;
    """
    wait = "setp.eq.u32 %q, %r, 2; @%q bra there; " + WAITING + " there:"
    report, _, shared, (before, fill), _ = run(body, wait=wait, expect=256, ctas=4, schedule=schedule)
    assert report.status == "ok", report.summary()
    fill[[0, 1, 3], :256] = before[:256]
    assert (shared == fill).all()


def combined(op: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """PTX ISA table of cp.reduce.async.bulk."""
    if op == "inc":
        return np.where(old >= new, 0, old + 1)
    known = {"copy": lambda a, b: b, "add": np.add, "min": np.minimum, "max": np.maximum, "xor": np.bitwise_xor}
    return known[op](old, new)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("operation", ["copy", "add.u32", "min.s32", "max.u32", "inc.u32", "xor.b32", "add.u64"])
def test_from_one_cta_to_another(operation: str, schedule: Any) -> None:
    """Each CTA sends to the next one, whose barrier hears of it."""
    what = "cp.async.bulk" if operation == "copy" else "cp.reduce.async.bulk"
    how = "" if operation == "copy" else "." + operation
    body = f"""
        add.u32 %r, %r, 1;
        and.b32 %r, %r, 1;
        mov.u32 %x, buffer;
        add.u32 %x, %x, 1024;
        mapa.shared::cluster.u32 %to, %x, %r;
        mov.u32 %y, bar;
        mapa.shared::cluster.u32 %y, %y, %r;
        {what}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{how} [%to], [buffer], 512, [%y];
    """
    report, _, shared, (_, fill), _ = run(body, wait=WAITING, expect=512, ctas=2, schedule=schedule)
    assert report.status == "ok", report.summary()
    op, _, type = operation.partition(".")
    kind = {"u": "u", "s": "i", "b": "u"}[type[0]] + str(int(type[1:]) // 8) if type else "u1"
    expected = fill.copy()
    for to in range(2):
        old, new = fill[to, 1024:1536].view(kind), fill[1 - to, :512].view(kind)
        expected[to, 1024:1536] = combined(op, old, new).astype(kind).view(np.uint8)
    assert (shared == expected).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("mask", [None, 0, 0x0001, 0xA5C3, 0xFFFF])
def test_stores(mask: int | None, schedule: Any) -> None:
    """Of each 16 bytes those whose bit is set; without a mask all."""
    how = "" if mask is None else ".cp_mask"
    set_mask = "" if mask is None else f"mov.u16 %mask, {mask};"
    more = "" if mask is None else ", %mask"
    body = f"{set_mask} cp.async.bulk.global.shared::cta.bulk_group{how} [%in+512], [buffer+64], %n{more}; {GROUP}"
    report, found, _, (before, fill), _ = run(body, count=992, schedule=schedule)
    assert report.status == "ok", report.summary()
    for i in range(992):
        if mask is None or mask >> i % 16 & 1:
            before[512 + i] = fill[0, 64 + i]
    assert (found == before).all()


def test_bytes_outside_are_ignored() -> None:
    """The first 5 and the last 9 bytes lie in no array; what comes of them is undefined."""
    body = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [buffer], [%at], 64, 5, 9, [bar];"
    near = "sub.u64 %at, %in, 0;"
    for place, ends in (("add.u64 %at, %in, 4032;", 4096 - 9), (near, None)):
        data = np.random.default_rng(3).integers(0, 256, ends or 4096, dtype=np.uint8)
        report, _, shared, (before, _), _ = run(place + body, wait=WAITING, expect=64, data=data, version="9.2")
        assert report.status == "ok", report.summary()
        first = 4032 if ends else 0
        assert (shared[0, 5:55] == before[first + 5 : first + 55]).all()
    data = np.zeros(4096 - 10, np.uint8)
    report, *_ = run("add.u64 %at, %in, 4032;" + body, wait=WAITING, expect=64, data=data, version="9.2")
    assert codes(report) == ["out-of-bounds"], report.summary()
    report, *_ = run(body.replace("5, 9", "%n, 9"), wait=WAITING, expect=64, count=16, version="9.2")
    assert codes(report) == ["bulk-ignore"], report.summary()


FAULTS = [
    (LOAD, {"count": 24}, "bulk-size"),
    (LOAD.replace("[buffer+256]", "[buffer+264]"), {}, "misaligned"),
    (LOAD.replace("[%in+64]", "[%in+72]"), {}, "misaligned"),
    (LOAD.replace("[%in+64]", "[%in+4080]"), {}, "out-of-bounds"),
    (LOAD.replace("[%in+64]", "[%in+-16]"), {}, "out-of-bounds"),
    ("mov.u64 %in, 4096; " + LOAD, {}, "out-of-bounds"),
    (LOAD.replace("[buffer+256]", "[buffer+2048]"), {}, "out-of-bounds"),
    (LOAD.replace("[bar]", "[buffer]"), {}, "mbarrier-uninitialized"),
    ("cp.async.bulk.global.shared::cta.bulk_group [%in+8], [buffer], %n;" + GROUP, {}, "misaligned"),
    ("cp.async.bulk.global.shared::cta.bulk_group [%in], [buffer+8], %n;" + GROUP, {}, "misaligned"),
    ("cp.async.bulk.global.shared::cta.bulk_group [%in+4008], [buffer], %n;" + GROUP, {}, "misaligned"),
    ("cp.async.bulk.global.shared::cta.bulk_group [%in+4048], [buffer], %n;" + GROUP, {}, "out-of-bounds"),
]


@pytest.mark.parametrize(("body", "options", "code"), FAULTS)
def test_faults(body: str, options: dict[str, Any], code: str) -> None:
    report, *_, text = run(body, **options)
    assert (report.status, codes(report)) == ("fault", [code]), report.summary()
    assert report.findings[0].line == line_of(text, "cp.async.bulk")


#: A store, then BETWEEN, then a look at what it wrote and a word over its source.
STORED = """
    cp.async.bulk.global.shared::cta.bulk_group [%in], [buffer], 256;
    cp.async.bulk.commit_group;
    BETWEEN
    ld.global.u32 %x, [%in];
    st.shared.u32 [buffer+1024], %x;
    OVER
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reads_are_done_before_writes(schedule: Any) -> None:
    """After wait_group.read the source may change; only wait_group shows what the copy wrote."""
    over = "st.shared.u32 [buffer], 7;"
    body = STORED.replace("BETWEEN", "cp.async.bulk.wait_group.read 0;").replace("OVER", over)
    report, found, shared, (before, fill), _ = run(body, schedule=schedule)
    assert codes(report) == ["global-race"], report.summary()
    assert (found[:256] == fill[0, :256]).all()
    seen = shared[0, 1024:1028]
    assert (seen == (before if schedule == "late" else fill[0])[:4]).all() or schedule == "random"
    body = STORED.replace("BETWEEN", "cp.async.bulk.wait_group 0;").replace("OVER", over)
    report, _, shared, (_, fill), _ = run(body, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert (shared[0, 1024:1028] == fill[0, :4]).all()


ORDER = [
    ("a source overwritten before the wait",
     STORED.replace("BETWEEN", "").replace("OVER", "st.shared.u32 [buffer], 7;").replace("ld.", "ld.volatile."),
     {}, "shared-race", "[buffer], 7"),
    ("a read without the wait", LOAD + "ld.shared.u32 %x, [buffer+256];", {"expect": 512, "wait": WAITING},
     "shared-race", "ld.shared.u32 %x, [buffer+256]"),
    ("two copies to one place", LOAD + LOAD, {"expect": 1024, "wait": WAITING}, "shared-race", LOAD[:40]),
    ("a source without a proxy fence",
     "st.shared.u32 [buffer], 7; cp.async.bulk.global.shared::cta.bulk_group [%in], [buffer], 256;" + GROUP, {},
     "missing-proxy-fence", "cp.async.bulk.global"),
]  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "body", "options", "code", "line"), ORDER, ids=[each[0] for each in ORDER])
def test_order(name: str, body: str, options: dict[str, Any], code: str, line: str, schedule: Any) -> None:
    report, *_, text = run(body, schedule=schedule, **options)
    assert [each.code for each in report.findings if each.severity == "error"] == [code], report.summary()
    assert report.findings[0].line == line_of(text, line)


def test_a_copy_without_bytes() -> None:
    report, _, shared, (_, fill), _ = run(LOAD, wait=WAITING, expect=0, count=0)
    assert report.status == "ok", report.summary()
    assert (shared == fill).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("place", [0, 1])
def test_what_a_warp_does_after_a_copy_is_not_known_to_who_waits_for_it(place: int, schedule: Any) -> None:
    store = "@%p st.shared.u32 [x], 7;"
    body = """.shared .align 16 .b8 data[64];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 x;
        .reg .b32 %t, %y; .reg .pred %p, %q;
        mov.u32 %t, %tid.x;
        setp.eq.u32 %p, %t, 0;
        setp.ge.u32 %q, %t, 32;
        @%p mbarrier.init.shared.b64 [bar], 1;
        fence.mbarrier_init.release.cluster;
        bar.sync 0;
        @%q bra consumer; BEFORE
        @%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
        @%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%in0], 64, [bar]; AFTER
        ret;
        consumer:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
        @!%p bra consumer;
        ld.shared.u32 %y, [x];
        st.global.u32 [%out0], %y;
        ret;
        """
    body = body.replace("BEFORE", store if place == 0 else "").replace("AFTER", store if place == 1 else "")
    report, _ = launch(body, [poisoned(1)], inputs=[np.zeros(64, np.uint8)], block=64, schedule=schedule)
    found = {each.code for each in report.findings if each.severity == "error"}
    assert found <= {"shared-race", "uninitialized-shared"}
    assert ("shared-race" in found) == (place == 1), report.summary()
