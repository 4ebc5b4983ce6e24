"""The life of allocations in tensor memory. PTX ISA 9.7.16.7.

These bodies run in warp 1 after warp 0 has given back its columns.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import codes, launch, poisoned
from tests.support.tensor_kernel import LD

ALLOC = "mov.u32 %z, {1}; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+{0}], %z;\n"
FREE = "mov.u32 %z, {1}; tcgen05.dealloc.cta_group::1.sync.aligned.b32 {0}, %z;\n"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"


def allocations(body: str, **options: Any) -> Any:
    """One warp runs a body that begins with no columns; %r0.. hold what it reads, in each CTA the same."""
    head = """.shared .align 4 .b32 slot[8]; .reg .b32 %r<16>; .reg .b32 %z, %x; .reg .pred %p, %zero;
    mov.u32 %x, %ctaid.x; setp.eq.u32 %zero, %x, 0;\n"""
    report, (found,) = launch(head + body + "ret;", [poisoned(8)], **options)
    return report, found.tolist()


def read(*slots: int) -> str:
    return "".join(
        f"ld.shared.b32 %r{i}, [slot+{4 * i}]; @%zero st.global.u32 [%out0+{4 * i}], %r{i};\n" for i in slots
    )


def test_allocations_are_disjoint_and_used_again() -> None:
    body = (
        ALLOC.format(0, 128)
        + ALLOC.format(4, 256)
        + ALLOC.format(8, 32)
        + read(0, 1, 2)
        + FREE.format("%r0", 128)
        + ALLOC.format(12, 64)
        + read(3)
        + FREE.format("%r3", 64)
        + FREE.format("%r1", 256)
        + FREE.format("%r2", 32)
        + ALLOC.format(16, 512)
        + read(4)
        + FREE.format("%r4", 512)
    )
    report, found = allocations(body, grid=3, multiprocessors=1)
    assert report.status == "ok", report.summary()
    assert set(codes(report)) == {"tmem-allocation-grows"}  # advice: 256 after 128, and 512 after 64
    taken = [set(range(start, start + size)) for start, size in zip(found[:3], (128, 256, 32), strict=True)]
    assert sum(map(len, taken)) == len(set.union(*taken)) == 416
    assert all(start % size == 0 or start % 32 == 0 for start, size in zip(found[:3], (128, 256, 32), strict=True))
    assert found[4] == 0
    assert set(range(found[3], found[3] + 64)).isdisjoint(taken[1] | taken[2])


LIVES = [
    ("no such number of columns", ALLOC.format(0, 48), ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault",
     "tmem-allocation"),
    ("never given back", ALLOC.format(0, 64), ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "findings",
     "tmem-not-freed"),
    ("given back twice", ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64) + FREE.format("%r0", 64),
     ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault", "tmem-dealloc"),
    ("given back in part", ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 32),
     ALLOC.format(0, 32) + read(0) + FREE.format("%r0", 32), "fault", "tmem-dealloc"),
    ("growing", ALLOC.format(0, 32) + ALLOC.format(4, 64) + read(0, 1) + FREE.format("%r0", 32)
     + FREE.format("%r1", 64), ALLOC.format(0, 64) + ALLOC.format(4, 64) + read(0, 1) + FREE.format("%r0", 64)
     + FREE.format("%r1", 64), "ok", "tmem-allocation-grows"),
    ("given back elsewhere", ALLOC.format(0, 64) + read(0) + "add.u32 %r0, %r0, 32;" + FREE.format("%r0", 64),
     ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault", "tmem-dealloc"),
    ("after relinquishing", RELINQUISH + ALLOC.format(0, 64),
     ALLOC.format(0, 64) + RELINQUISH + read(0) + FREE.format("%r0", 64), "fault", "tmem-relinquished"),
    ("more than there is", ALLOC.format(0, 512) + ALLOC.format(4, 32),
     ALLOC.format(0, 256) + ALLOC.format(4, 32) + read(0, 1) + FREE.format("%r0", 256) + FREE.format("%r1", 32),
     "deadlock", "deadlock"),
    ("the slot is misaligned", ALLOC.format(2, 32), ALLOC.format(4, 32) + read(1) + FREE.format("%r1", 32), "fault",
     "misaligned"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bad", "good", "status", "code"), LIVES, ids=[each[0] for each in LIVES])
def test_life_of_allocations(name: str, bad: str, good: str, status: str, code: str) -> None:
    report, _ = allocations(bad)
    assert (report.status, codes(report)) == (status, [code]), report.summary()
    clean, _ = allocations(good)
    assert clean.status == "ok", clean.summary()
    assert code not in codes(clean)


@pytest.mark.parametrize("instruction", [LD.format("32x32b", "{%r4}"), LD.format("16x64b", "{%r4}")])
def test_columns_that_are_not_allocated(instruction: str) -> None:
    body = ALLOC.format(0, 64) + read(0) + "add.u32 %x, %r0, $AT;\n" + instruction + FREE.format("%r0", 64)
    report, _ = allocations(body.replace("$AT", "64"))
    assert (report.status, codes(report)) == ("fault", ["tmem-out-of-allocation"])
    clean, _ = allocations(body.replace("$AT", "60"))
    assert codes(clean) == ["uninitialized-tensor"]


def test_columns_that_were_given_back() -> None:
    """The fault names who freed them last, of the columns that are reached."""
    twice = ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64)
    other = ALLOC.format(0, 32) + ALLOC.format(4, 32) + read(0, 1) + FREE.format("%r1", 32) + FREE.format("%r0", 32)
    body = ALLOC.format(0, 32) + read(0) + FREE.format("%r0", 32) + twice + other + LD.format("32x32b", "{%r4}")
    report, _ = allocations("mov.u32 %x, 40;\n" + body)
    fault = report.findings[0]
    assert fault.code == "tmem-out-of-allocation"
    assert fault.summary.endswith(
        f"reaches columns 40-40; tcgen05.dealloc (line {fault.line - 2}, warp 0) freed columns 32-63"
    )
    assert fault.rule == "Allocated columns: none"
    never, _ = allocations("mov.u32 %x, 100;\n" + body)
    assert never.findings[0].summary.endswith("reaches columns 100-100")


def test_alloc_waits_until_another_warp_gives_back() -> None:
    body = f"""mov.u32 %x, %tid.x;
setp.ge.u32 %p, %x, 32;
@%p bra second;
        {ALLOC.format(0, 512)} barrier.sync 0;
        mov.u32 %z, 0;
        w:
        add.u32 %z, %z, 1;
        setp.lt.u32 %p, %z, 50;
        @%p bra w;
        {read(0)} {FREE.format("%r0", 512)} bra end;
        second: barrier.sync 0; {ALLOC.format(4, 32)} {read(1)} {FREE.format("%r1", 32)} end: """
    for schedule in ("eager", "late", "random"):
        report, found = allocations(body, block=64, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert found[:2] == [0, 0]


@pytest.mark.parametrize("columns", [32, 96])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_all_columns_for_one(columns: int, schedule: Any) -> None:
    """.exclusive takes all 512, however few it names: each of three CTAs stores to the last ones."""
    exclusive = "tcgen05.alloc.cta_group::1.sync.aligned.exclusive"
    body = (
        ALLOC.format(0, columns).replace("tcgen05.alloc.cta_group::1.sync.aligned", exclusive)
        + read(0)
        + "add.u32 %x, %r0, 504; tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};"
        "tcgen05.wait::st.sync.aligned;" + FREE.format("%r0", columns).replace(".aligned.b32", ".aligned.exclusive.b32")
    )
    assert ".exclusive.b32 %r0" in body
    zeros = "".join(f"mov.b32 %r{i}, 0;" for i in range(1, 9))
    report, found = allocations(zeros + body, version="9.4", grid=3, multiprocessors=1, schedule=schedule)
    assert (report.status, found[0]) == ("ok", 0), report.summary()
    one = allocations(zeros + body.replace(".exclusive", "").replace("96", "128"), version="9.4")[0]
    assert codes(one) == ["tmem-out-of-allocation"]
    waits = ALLOC.format(4, 32).replace("aligned.shared", "aligned.exclusive.shared")
    report, _ = allocations(ALLOC.format(0, 32) + waits, version="9.4", schedule=schedule)
    assert report.status == "deadlock"
    assert "allocated 32 columns at 0" in report.findings[-1].message


def test_one_cta_group_throughout() -> None:
    good = ALLOC.format(0, 64) + RELINQUISH + read(0) + FREE.format("%r0", 64)
    report, _ = allocations(good.replace(RELINQUISH, RELINQUISH.replace("::1", "::2")))
    assert (report.status, codes(report)) == ("fault", ["illegal-ptx"]), report.summary()
    assert "k uses .cta_group::1 in line" in report.findings[0].message
    assert allocations(good)[0].status == "ok"
