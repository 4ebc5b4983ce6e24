"""st.async and red.async, st.bulk, memory on the stack, what is said to caches, device registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, errors, launch, poisoned

THREADS = 64
HEAD = """
    .reg .b64 %at, %from, %wide, %address, %other, %policy;
    .reg .u32 %i, %t, %x, %y, %place, %n, %cta, %rank;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %cta, %n, %t;
    mul.wide.u32 %wide, %i, 4;
    add.u64 %at, %out0, %wide;
"""
SCHEDULES = ["eager", "late", "random"]
BARRIER = """.shared .align 8 .b64 bar;
setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [bar], 1;
    @%p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {bytes};
    @%p mbarrier.arrive.shared.b64 _, [bar];"""
WAIT = "again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra again;"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("vector", [1, 2, 4])
def test_stores_to_a_peer(vector: int, generic: bool, schedule: Any) -> None:
    """Both CTAs of a cluster store to the other's memory, and wait for what comes by their own mbarrier."""
    names = [f"%v{i}" for i in range(vector)]
    moves = "".join(f"mad.lo.u32 {name}, %i, 10, {k};" for k, name in enumerate(names))
    value = names[0] if vector == 1 else "{" + ", ".join(names) + "}"
    vec, size = (f".v{vector}" if vector > 1 else ""), 4 * vector
    to_generic = "cvt.u64.u32 {0}, %place; cvta.shared::cluster.u64 {0}, {0};"
    space = "" if generic else ".shared::cluster"
    target = ("[%address]", "[%other]") if generic else ("[%place]", "[%y]")
    back = "".join(f"ld.shared.u32 %x, [%place+{4 * k}]; st.global.u32 [%from+{4 * k}], %x;" for k in range(vector))
    body = f"""{HEAD} .reg .b32 {", ".join(names)}; .shared .align 16 .b8 buffer[{size * THREADS}];
        {BARRIER.format(bytes=size * THREADS)} {MEET}
        mov.u32 %rank, %cluster_ctarank;
        xor.b32 %rank, %rank, 1;
        {moves}
        mov.u32 %place, bar;
        mapa.shared::cluster.u32 %y, %place, %rank;
        mov.u32 %place, buffer;
        mad.lo.u32 %place, %t, {size}, %place;
        mapa.shared::cluster.u32 %place, %place, %rank; {to_generic.format("%address")}
        mov.u32 %x, %place;
        mov.u32 %place, %y;
        {to_generic.format("%other")} mov.u32 %place, %x;
        st.async{space}.mbarrier::complete_tx::bytes{vec}.b32 {target[0]}, {value}, {target[1]};
        {WAIT} mov.u32 %place, buffer;
        sub.u32 %x, {THREADS - 1}, %t;
        mad.lo.u32 %place, %x, {size}, %place;
        mad.wide.u32 %from, %i, {size}, %out0;
        {back} {MEET} ret;
        """
    report, (found,) = launch(
        body, [poisoned(2 * THREADS * vector)], block=THREADS, grid=2, cluster=2, schedule=schedule, seed=4
    )
    assert report.status == "ok", report.summary()
    senders = [(1 - cta) * THREADS + THREADS - 1 - t for cta in range(2) for t in range(THREADS)]
    expected = [10 * sender + k for sender in senders for k in range(vector)]
    assert found.tolist() == expected


def test_reading_before_the_mbarrier_says_so() -> None:
    body = f"""{HEAD} .shared .align 16 .b8 buffer[{4 * THREADS}];
{BARRIER.format(bytes=4 * THREADS)} bar.sync 0;
        mov.u32 %place, buffer;
        mad.lo.u32 %place, %t, 4, %place;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%place], %i, [bar];
        {{}}\nld.shared.u32 %x, [buffer];
        {{}} ret;
        """
    late = body.format("", WAIT)
    report, _ = launch(late, [poisoned(THREADS)], block=THREADS, schedule="late")
    assert "shared-race" in codes(report), report.summary()
    clean, _ = launch(body.format(WAIT, ""), [poisoned(THREADS)], block=THREADS, schedule="late")
    assert clean.status == "ok", clean.summary()


def test_an_mbarrier_of_another_cta() -> None:
    body = f"""{HEAD} .shared .align 16 .b8 buffer[256];
{BARRIER.format(bytes=4)} {MEET} mov.u32 %place, buffer;
        mapa.shared::cluster.u32 %place, %place, 1;
        mov.u32 %y, bar;
        mapa.shared::cluster.u32 %y, %y, 0;
        @%p st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%place], %i, [%y];
        {MEET} ret;
        """
    report, _ = launch(body, [poisoned(1)], block=32, grid=2, cluster=2)
    assert codes(report)[0] == "async-store-cta"


REDUCTIONS = {
    ("add", "u32"): lambda a, b: (a + b) % 2**32, ("min", "s32"): min, ("max", "u32"): max,
    ("inc", "u32"): lambda a, b: 0 if a >= b else a + 1, ("and", "b32"): lambda a, b: a & b,
    ("xor", "b32"): lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("op", "type"), REDUCTIONS)
def test_reductions_in_a_peers_memory(op: str, type: str, schedule: Any) -> None:
    body = f"""{HEAD} .shared .align 16 .b8 buffer[16];
{BARRIER.format(bytes=4 * THREADS)} mov.u32 %x, 29;
        @%p st.shared.v4.u32 [buffer], {{%x, %x, %x, %x}}; {MEET}
        mov.u32 %rank, %cluster_ctarank;
        xor.b32 %rank, %rank, 1;
        mov.u32 %place, bar;
        mapa.shared::cluster.u32 %y, %place, %rank;
        mov.u32 %place, buffer;
        and.b32 %x, %t, 3;
        mad.lo.u32 %place, %x, 4, %place;
        mapa.shared::cluster.u32 %place, %place, %rank;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{type} [%place], %i, [%y];
        {WAIT} setp.lt.u32 %p, %t, 4;
        mov.u32 %place, buffer;
        mad.lo.u32 %place, %t, 4, %place;
        @%p ld.shared.u32 %x, [%place];
        @%p st.global.u32 [%at], %x;
        {MEET} ret;
        """
    report, (found,) = launch(
        body, [poisoned(2 * THREADS)], block=THREADS, grid=2, cluster=2, schedule=schedule, seed=4
    )
    assert report.status == "ok", report.summary()
    for cta in range(2):
        for word in range(4):
            value = 29
            values = [(1 - cta) * THREADS + i for i in range(word, THREADS, 4)]
            for each in values:
                value = REDUCTIONS[op, type](value, each)
            if op != "inc" or schedule != "random":  # of inc alone the order matters
                assert found[cta * THREADS + word] == value


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_and_reductions_in_global_memory(schedule: Any) -> None:
    """They happen at some time, all of them before the launch ends."""
    body = f"""{HEAD} st.async.release.gpu.global.u32 [%at], %i;
red.async.release.gpu.global.add.u32 [%out1], %i;
        st.async.mmio.release.sys.u32 [%at+{8 * THREADS}], %t;
        red.async.mmio.release.sys.max.u32 [%out1+4], %i;
        ret;
        """
    out = [poisoned(4 * THREADS), np.zeros(2, np.uint32)]
    report, (found, total) = launch(body, out, block=THREADS, grid=2, schedule=schedule, seed=4)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [*range(2 * THREADS), *range(THREADS), *range(THREADS)]
    assert total.tolist() == [sum(range(2 * THREADS)), 2 * THREADS - 1]
    outside = f"{HEAD} mov.u64 %from, 64; st.async.release.gpu.global.u32 [%from], %i; ret;"
    late, _ = launch(outside, [poisoned(1)], schedule="late")
    assert codes(late) == ["out-of-bounds"]


def test_device_registers() -> None:
    body = f"""{HEAD} ld.mmio.relaxed.sys.global.u32 %x, [%in0];
add.u32 %x, %x, %i;
        st.mmio.relaxed.sys.global.u32 [%at], %x;
        ret;
        """
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[np.array([7], np.uint32)])
    assert report.status == "ok", report.summary()
    assert found.tolist() == [7 + i for i in range(THREADS)]


# st.bulk.


@pytest.mark.parametrize(("space", "size"), [(".shared::cta", 0), ("", 8), (".shared::cta", 40), ("", 256)])
def test_bulk_stores_of_zeros(space: str, size: int) -> None:
    to_generic = "cvta.shared.u64 %address, %address;" if not space else ""
    for given in (str(size), "%other", "%n"):
        body = f"""{HEAD} .shared .align 8 .b8 buffer[256];
mov.u32 %place, buffer;
mad.lo.u32 %place, %t, 4, %place;
            mov.u32 %x, 0x12345678;
            st.shared.u32 [%place], %x;
            bar.sync 0;
            mov.u64 %address, buffer;
            {to_generic}
            mov.u64 %other, {size};
            mov.u32 %n, {size};
            setp.eq.u32 %p, %t, 0;
            @%p st.bulk.weak{space} [%address], {given}, 0;
            bar.sync 0;
            ld.shared.u32 %x, [%place];
            st.global.u32 [%at], %x;
            ret;
            """
        report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, version="9.0")
        assert report.status == "ok", report.summary()
        assert found.tolist() == [0 if 4 * i < size else 0x12345678 for i in range(THREADS)]


@pytest.mark.parametrize(
    ("text", "code"),
    [("mov.u64 %other, 12; mov.u64 %at, buffer; st.bulk.shared::cta [%at], %other, 0;", "bulk-size"),
     ("mov.u64 %at, buffer; st.bulk.shared::cta [%at+4], 8, 0;", "misaligned"),
     ("mov.u64 %at, buffer; st.bulk.shared::cta [%at+248], 16, 0;", "out-of-bounds"),
     ("st.bulk [%out0], 16, 0;", "not-shared"), ("mov.u64 %at, buffer; st.bulk.shared::cta [%at+248], 8, 0;", None)],
)  # fmt: skip
def test_illegal_bulk_stores(text: str, code: str | None) -> None:
    report, _ = launch(f"{HEAD} .shared .align 8 .b8 buffer[256]; {text} ret;", [poisoned(4)], block=1)
    assert codes(report) == ([code] if code else []), report.summary()


def test_a_bulk_store_races_like_a_store() -> None:
    body = f"""{HEAD} .shared .align 8 .b8 buffer[256];
setp.eq.u32 %p, %t, 0;
        mov.u64 %at, buffer; @%p st.bulk.shared::cta [%at], 256, 0;
        {{}} ld.shared.u32 %x, [buffer+128];
        ret;
        """
    assert not launch(body.format("bar.sync 0;"), [poisoned(1)], block=THREADS)[0].findings
    assert codes(launch(body.format(""), [poisoned(1)], block=THREADS)[0]) == ["shared-race"]


# The stack.


def test_memory_on_the_stack() -> None:
    """Of another size in each lane, aligned; restored and taken again, and gone after the function."""
    body = f"""{HEAD} .reg .b64 %a, %b, %saved, %size;
add.u32 %x, %t, 1;
mul.wide.u32 %size, %x, 4;
        stacksave.u64 %saved; alloca.u64 %a, %size, 64; alloca.u64 %b, 12;
        st.local.u32 [%a], %i;
        mad.wide.u32 %address, %t, 4, %a;
        st.local.u32 [%address], %i;
        st.local.u32 [%b+8], %t;
        and.b64 %address, %a, 63;
        cvt.u32.u64 %y, %address;
        and.b64 %address, %b, 7;
        cvt.u32.u64 %x, %address;
        add.u32 %y, %y, %x;
        ld.local.u32 %x, [%b+8];
        mad.lo.u32 %y, %y, 1000, %x;
        stackrestore.u64 %saved;
        alloca.u64 %b, 16, 64;
        sub.u64 %b, %b, %a;
        cvt.u32.u64 %x, %b;
        mad.lo.u32 %y, %x, 1000, %y;
        st.global.u32 [%at], %y;
        ret;
        """
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS)
    assert report.status == "ok", report.summary()
    assert found.tolist() == list(range(THREADS))


def test_stack_faults() -> None:
    take = "stacksave.u64 %from; alloca.u64 %address, 16;"
    for text, code in (
        (f"{take} stackrestore.u64 %from;\nst.local.u32 [%address], %x;", "out-of-bounds"),
        (f"{take} st.local.u32 [%address+16], %x;", "out-of-bounds"),
        (f"{take} add.u64 %from, %from, 64; stackrestore.u64 %from;", "bad-stack-pointer"),
        ("alloca.u64 %address, 600000;", "stack-overflow"),
        (f"{take} st.local.u32 [%address+12], %x; stackrestore.u64 %from;", None),
    ):
        report, _ = launch(f"{HEAD} {text} ret;", [poisoned(1)], block=1)
        assert errors(report) == ([code] if code else []), report.summary()


# Caches.


def test_a_discarded_line_is_indeterminate() -> None:
    body = f"{HEAD} setp.eq.u32 %p, %t, 0; @%p discard.global.L2 [%out0+128], 128; bar.sync 0; ret;"
    data = np.arange(96, dtype=np.uint32)
    report, (found,) = launch(body, [data.copy()], block=THREADS)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [*range(32), *[0xCDCDCDCD] * 32, *range(64, 96)]
    for place, code in (("%out0+64", "misaligned"), ("%out0+384", "out-of-bounds")):
        report, _ = launch(f"{HEAD} discard.L2 [{place}], 128; ret;", [data.copy()], block=1)
        assert codes(report) == [code], report.summary()
    shared = "mov.u64 %address, buffer; cvta.shared.u64 %address, %address; discard.L2 [%address], 128;"
    report, _ = launch(f"{HEAD} .shared .align 128 .b8 buffer[128]; {shared} ret;", [data.copy()], block=1)
    assert codes(report) == ["not-global"]


#: Bits that ptxas 13.5 makes of constants for sm_90a.
POLICIES = [
    ("fractional.L2::evict_first.b64 %policy, 1.0", 0x12F0_0000_0000_0000),
    ("fractional.L2::evict_last.b64 %policy", 0x14F0_0000_0000_0000),
    ("fractional.L2::evict_normal.b64 %policy, 1.0", 0x16F0_0000_0000_0000),
    ("fractional.L2::evict_last.L2::evict_unchanged.b64 %policy, 0.5", 0x1470_0000_0000_0000),
    ("fractional.L2::evict_last.L2::evict_first.b64 %policy, 0.25", 0x1530_0000_0000_0000),
    ("fractional.L2::evict_first.L2::evict_unchanged.b64 %policy, 0.0625", 0x1200_0000_0000_0000),
    ("fractional.L2::evict_first.b64 %policy, 0.3", 0x1240_0000_0000_0000),
    ("cvt.L2.b64 %policy, %other", 0x123456789),
    # 1 MiB from 0x100000001000 are 0x100 blocks of 2^13, counted up to 127; of 2^20 bytes it begins in block 0.
    ("range.global.L2::evict_last.L2::evict_first.b64 %policy, [%address], 0x3000, 0x100000", 0x1D10_0040_0000_0000),
]


@pytest.mark.parametrize(("text", "bits"), POLICIES)
def test_policies(text: str, bits: int) -> None:
    body = f"""{HEAD} mov.u64 %other, 0x123456789;
mov.u64 %address, 0x1000;
createpolicy.{text};
        st.global.u64 [%out0], %policy;
        ld.global.L2::cache_hint.u64 %address, [%out0], %policy;
        ret;
        """
    report, (found,) = launch(body, [poisoned(1, np.uint64)], block=1)
    assert report.status == "ok", report.summary()
    assert hex(int(found[0])) == hex(bits)
