"""cp.async: sizes, zeros behind what is read, groups, and what the checks say of copies that nobody waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch, poisoned

THREADS = 80
HEAD = """
    .reg .b64 %at, %from, %wide, %address;
    .reg .u32 %i, %t, %x, %y, %place, %n;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    mov.u32 %i, %t;
    mul.wide.u32 %wide, %i, 4;
"""
SCHEDULES = ["eager", "late", "random"]


def buffer(size: int) -> str:
    """Shared memory for `size` bytes a thread, and each thread's place and source."""
    return f""".shared .align 16 .b8 buffer[{size * THREADS}];
        mov.u32 %place, buffer;
        mad.lo.u32 %place, %t, {size}, %place;
        mad.wide.u32 %from, %t, {size}, %in0;
        mad.wide.u32 %at, %t, {size}, %out0;"""


def back(size: int) -> str:
    """Shared memory to the output, by words."""
    return "".join(f"ld.shared.u32 %x, [%place+{i}]; st.global.u32 [%at+{i}], %x;" for i in range(0, size, 4))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("cop", "size", "given"),
    [("ca", 4, None), ("ca", 8, None), ("ca", 16, None), ("cg", 16, None), ("ca", 4, "src"), ("ca", 8, "src"),
     ("cg", 16, "src"), ("ca", 16, "ignore"), ("ca", 4, "ignore"), ("ca", 16, 0), ("cg", 16, 5), ("ca", 8, 8)],
)  # fmt: skip
def test_copies(cop: str, size: int, given: Any, schedule: Any) -> None:
    """What is not read becomes zero, and its address may be anything where nothing is read."""
    data = np.random.default_rng(size).integers(0, 256, size * THREADS, dtype=np.uint8)
    read = [size if given in (None, "ignore") else i % (size + 1) if given == "src" else given for i in range(THREADS)]
    setup, operand = "", ""
    if given == "src":
        setup, operand = f"rem.u32 %n, %t, {size + 1}; setp.eq.u32 %p, %n, 0; @%p mov.u64 %from, 16;", ", %n"
    elif given == "ignore":
        setup, operand = "and.b32 %n, %t, 3; setp.eq.u32 %p, %n, 1; @%p mov.u64 %from, 0x123450;", ", %p"
        read = [0 if i % 4 == 1 else size for i in range(THREADS)]
    elif given is not None:
        operand = f", {given}"
    body = f"""{HEAD} {buffer(size)} {setup}
        cp.async.{cop}.shared.global [%place], [%from], {size}{operand};
        cp.async.wait_all;
        {back(size)} ret;
        """
    report, (found,) = launch(
        body, [poisoned(size * THREADS, np.uint8)], block=THREADS, inputs=[data], schedule=schedule, seed=3
    )
    assert report.status == "ok", report.summary()
    expected = data.reshape(THREADS, size).copy()
    for row, count in zip(expected, read, strict=True):
        row[count:] = 0
    assert (found == expected.reshape(-1)).all()


PIPELINE = f"""{HEAD} .shared .align 16 .b8 stage0[{4 * THREADS}]; .shared .align 16 .b8 stage1[{4 * THREADS}];
    .reg .u32 %s<2>;
    mov.u32 %s0, stage0;
    mov.u32 %s1, stage1;
    mad.lo.u32 %s0, %t, 4, %s0;
    mad.lo.u32 %s1, %t, 4, %s1;
    add.u64 %from, %in0, %wide;
    add.u64 %at, %out0, %wide;
    cp.async.ca.shared.global [%s0], [%from], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%s1], [%from+{4 * THREADS}], 4;
    cp.async.commit_group;
    cp.async.wait_group {{first}};
    ld.shared.u32 %x, [%s0];
    st.global.u32 [%at], %x;
    cp.async.wait_group {{second}};
    ld.shared.u32 %x, [%s1];
    st.global.u32 [%at+{4 * THREADS}], %x;
    ret;
    """


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("first", "second", "right"), [(1, 0, True), (0, 0, True), (1, 1, False), (2, 0, False)])
def test_groups(first: int, second: int, right: bool, schedule: Any) -> None:
    """wait_group N leaves the N latest groups on their way; what is read too early is a race, whenever it comes."""
    data = np.random.default_rng(1).integers(0, 2**32, 2 * THREADS, dtype=np.uint32)
    report, (found,) = launch(
        PIPELINE.format(first=first, second=second),
        [poisoned(2 * THREADS)],
        block=THREADS,
        inputs=[data],
        schedule=schedule,
    )
    if right:
        assert report.status == "ok", report.summary()
        assert (found == data).all()
    else:
        assert codes(report) == ["shared-race"]
        assert "cp.async" in report.findings[0].message
        assert "ld.shared" in report.findings[0].instruction


def test_late_copies_come_when_they_are_waited_for() -> None:
    """As late as legal: a load before the wait finds what was there."""
    data = np.arange(2 * THREADS, dtype=np.uint32)
    _, (found,) = launch(
        PIPELINE.format(first=2, second=0),
        [poisoned(2 * THREADS)],
        block=THREADS,
        inputs=[data],
        schedule="late",
        checks=False,
    )
    assert (found[:THREADS] == 0xCDCDCDCD).all()
    assert (found[THREADS:] == data[THREADS:]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("barrier", [True, False])
def test_other_warps_need_a_barrier(barrier: bool, schedule: Any) -> None:
    """A thread waits for its own copies only; those of others are known behind a barrier."""
    data = np.random.default_rng(1).integers(0, 2**32, THREADS, dtype=np.uint32)
    body = f"""{HEAD} {buffer(4)} cp.async.ca.shared.global [%place], [%from], 4;
cp.async.wait_all;
        {"bar.sync 0;" if barrier else ""} mov.u32 %place, buffer; sub.u32 %x, {THREADS - 1}, %t;
        mad.lo.u32 %place, %x, 4, %place;
        ld.shared.u32 %x, [%place];
        st.global.u32 [%at], %x;
        ret;
        """
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[data], schedule=schedule)
    if barrier:
        assert report.status == "ok", report.summary()
        assert (found == data[::-1]).all()
    else:
        assert set(codes(report)) == {"shared-race"}


def test_a_barrier_without_a_wait() -> None:
    """Advance on another thread's copy: the barrier orders nothing that its thread has not waited for."""
    body = f"""{HEAD} {buffer(4)} cp.async.ca.shared.global [%place], [%from], 4;
cp.async.commit_group;
bar.sync 0;
        mov.u32 %place, buffer;
        sub.u32 %x, {THREADS - 1}, %t;
        mad.lo.u32 %place, %x, 4, %place;
        ld.shared.u32 %x, [%place];
        ret;
        """
    report, _ = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[np.zeros(THREADS, np.uint32)])
    assert set(codes(report)) == {"shared-race"}
    messages = " ".join(each.message for each in report.findings)
    assert "cp.async" in messages
    assert "That warp has not waited for the copy" in messages, report.summary()


def test_copies_that_meet_in_a_unit_do_not_race() -> None:
    """Warps copy 4 bytes each of the same 16; overwriting one's own copy before waiting for it is a race."""
    body = f"""{HEAD} {buffer(4)} rem.u32 %x, %t, 20; div.u32 %y, %t, 20; mad.lo.u32 %x, %x, 4, %y;
        mov.u32 %place, buffer;
        mad.lo.u32 %place, %x, 4, %place;
        cp.async.ca.shared.global [%place], [%from], 4;
        {{}} cp.async.wait_all;
        ret;
        """
    data = [np.zeros(THREADS, np.uint32)]
    clean, _ = launch(body.format(""), [poisoned(THREADS)], block=THREADS, inputs=data)
    assert not clean.findings
    racing, _ = launch(body.format("st.shared.u32 [%place], 1;"), [poisoned(THREADS)], block=THREADS, inputs=data)
    assert codes(racing) == ["shared-race"]
    awaited = body.format("cp.async.wait_all; st.shared.u32 [%place], 1;")
    assert not launch(awaited, [poisoned(THREADS)], block=THREADS, inputs=data)[0].findings


def test_lanes_count_their_own_groups() -> None:
    """Half of the lanes have committed a group more: one pending group is a different one for each half."""
    body = f"""{HEAD} {buffer(8)} setp.lt.u32 %p, %t, 16;
        @!%p bra both;
        cp.async.ca.shared.global [%place], [%from], 4;
        cp.async.commit_group;
        both:
        cp.async.ca.shared.global [%place+4], [%from+4], 4;
        cp.async.commit_group;
        cp.async.wait_group 1;
        mov.u32 %x, 0;
        @%p ld.shared.u32 %x, [%place];
        st.global.u32 [%at], %x;
        cp.async.wait_group 0;
        ld.shared.u32 %x, [%place+4];
        st.global.u32 [%at+4], %x;
        ret;
        """
    data = np.random.default_rng(2).integers(1, 2**32, 64, dtype=np.uint32)
    for schedule in SCHEDULES:
        report, (found,) = launch(body, [poisoned(64)], block=32, inputs=[data], schedule=schedule, seed=1)
        assert report.status == "ok", report.summary()
        expected = data.copy()
        expected[32::2] = 0
        assert (found == expected).all()


FAULTS = [
    ("cp.async.ca.shared.global [%place+2], [%from], 4;", "misaligned"),
    ("cp.async.ca.shared.global [%place], [%from+2], 4;", "misaligned"),
    ("cp.async.cg.shared.global [%place], [%from+8], 16;", "misaligned"),
    ("cp.async.ca.shared.global [%place+65536], [%from], 4;", "out-of-bounds"),
    ("cp.async.ca.shared.global [%place], [%from+320], 4;", "out-of-bounds"),
    ("mov.u32 %n, 5; cp.async.ca.shared.global [%place], [%from], 4, %n;", "copy-size"),
    ("cp.async.cg.shared.global [%place], [%from+304], 16;", None),
    ("mov.u32 %n, 4; cp.async.cg.shared.global [%place], [%from+320], 16, %n;", "out-of-bounds"),
    ("mov.u32 %n, 0; cp.async.cg.shared.global [%place], [%from+320], 16, %n;", None),
]


@pytest.mark.parametrize(("text", "code"), FAULTS)
def test_faults(text: str, code: str | None) -> None:
    body = f"{HEAD} {buffer(4)}\n{text} cp.async.wait_all; ret;"
    report, _ = launch(body, [poisoned(1)], block=1, inputs=[np.zeros(320, np.uint8)])
    assert codes(report) == ([code] if code else []), report.summary()


# Completion on an mbarrier.

ARRIVAL = f"""{HEAD} .reg .b64 %state;
.shared .align 16 .b8 buffer[{4 * THREADS}];
.shared .align 8 .b64 bar;
    mov.u32 %place, buffer;
    mad.lo.u32 %place, %t, 4, %place;
    add.u64 %from, %in0, %wide;
    add.u64 %at, %out0, %wide;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [bar], {{count}};
    bar.sync 0;
    cp.async.ca.shared.global [%place], [%from], 4;
    {{arrive}}
    again:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra again;
    sub.u32 %x, {THREADS - 1}, %t;
    mov.u32 %place, buffer;
    mad.lo.u32 %place, %x, 4, %place;
    ld.shared.u32 %x, [%place];
    st.global.u32 [%at], %x;
    ret;
    """
ASYNC = "cp.async.mbarrier.arrive{}.shared.b64 [bar];"
PLAIN = "mbarrier.arrive.shared.b64 %state, [bar];"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("arrive", "count"), [(ASYNC.format(".noinc"), THREADS), (ASYNC.format("") + PLAIN, THREADS)], ids=["noinc", "inc"]
)
def test_arrival_on_an_mbarrier(arrive: str, count: int, schedule: Any) -> None:
    """The phase ends when the copies are there; every thread that waits for it may read those of all."""
    data = np.random.default_rng(1).integers(0, 2**32, THREADS, dtype=np.uint32)
    body = ARRIVAL.format(arrive=arrive, count=count)
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[data], schedule=schedule, seed=2)
    assert report.status == "ok", report.summary()
    assert (found == data[::-1]).all()


def test_a_plain_arrival_does_not_wait_for_copies() -> None:
    body = ARRIVAL.format(arrive=PLAIN, count=THREADS)
    data = [np.zeros(THREADS, np.uint32)]
    report, _ = launch(body, [poisoned(THREADS)], block=THREADS, inputs=data)
    assert set(codes(report)) == {"shared-race"}


def test_arrivals_that_the_count_has_no_room_for() -> None:
    """Without .noinc the arrivals cancel out, so that the phase waits for ever; with it some count in the next."""
    data = [np.zeros(THREADS, np.uint32)]
    waits, _ = launch(ARRIVAL.format(arrive=ASYNC.format(""), count=1), [poisoned(THREADS)], block=THREADS, inputs=data)
    assert waits.status == "deadlock"
    many, _ = launch(
        ARRIVAL.format(arrive=ASYNC.format(".noinc"), count=THREADS - 3),
        [poisoned(THREADS)],
        block=THREADS,
        inputs=data,
    )
    assert codes(many)[0] == "mbarrier-split"


#: Mbarriers of one warp each, and stages of 512 bytes; `copy(n)` fills one, `wait(n)` waits for its copies.
STAGES = """
    .shared .align 8 .b64 bars[4];
    .shared .align 16 .b8 stages[2048];
    .reg .b32 %bar, %stage; .reg .b64 %source;
    mov.u32 %bar, bars;
    and.b32 %n, %t, 31;
    mov.u32 %stage, stages;
    mad.lo.u32 %stage, %n, 16, %stage;
    mad.wide.u32 %source, %n, 16, %in0;
    mad.wide.u32 %at, %n, 4, %out0;
    setp.ne.u32 %p, %t, 0;
    @%p bra.uni made;
    mbarrier.init.shared.b64 [%bar], 32;
    mbarrier.init.shared.b64 [%bar+8], 32;
    mbarrier.init.shared.b64 [%bar+16], 32;
    mbarrier.init.shared.b64 [%bar+24], 32;
    made:
    bar.sync 0;
    setp.ge.u32 %p, %t, 32;
"""


def copy(n: int, bar: int, between: str = "") -> str:
    return f"""cp.async.cg.shared.global [%stage+{512 * n}], [%source+{512 * bar}], 16; {between}
        cp.async.mbarrier.arrive.noinc.shared.b64 [%bar+{8 * bar}];"""


def wait(bar: int) -> str:
    return f"w{bar}: mbarrier.try_wait.parity.shared.b64 %p, [%bar+{8 * bar}], 0; @!%p bra w{bar};"


@pytest.mark.parametrize("seed", range(12))
def test_arrivals_of_stages_come_in_any_order(seed: int) -> None:
    """An arrival for later copies, which counts for earlier ones too, may come before theirs does."""
    data = np.random.default_rng(1).integers(0, 2**32, 512, dtype=np.uint32)
    sums = "".join(f"{wait(n)} ld.shared.u32 %y, [%stage+{512 * n}]; add.u32 %x, %x, %y;" for n in range(4))
    pause = "mov.u32 %y, 0; pause: add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 400; @%p bra pause;"
    fill = "".join(copy(n, n, pause if n == 0 else "") for n in range(4))
    body = f"{HEAD} {STAGES} @%p bra take; {fill} ret; take: mov.u32 %x, 0; {sums} st.global.u32 [%at], %x; ret;"
    report, (found,) = launch(
        body, [poisoned(32, np.uint32)], block=64, inputs=[data.view(np.uint8)], schedule="random", seed=seed
    )
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert np.array_equal(found, data.reshape(4, 32, 4)[:, :, 0].sum(axis=0, dtype=np.uint32))


def test_an_arrival_tells_nothing_of_a_later_copy_to_the_same_place() -> None:
    data = np.random.default_rng(2).integers(0, 2**32, 512, dtype=np.uint32)
    body = f"""{HEAD} {STAGES} {copy(0, 0)} {copy(1, 1)} {wait(0)} {copy(0, 2)} {wait(1)} AWAITED
        ld.shared.u32 %x, [%stage];
        st.global.u32 [%at], %x;
        ret;
        """
    for awaited, expected in (("", ["shared-race"]), (wait(2), [])):
        report, _ = launch(
            body.replace("AWAITED", awaited),
            [poisoned(32, np.uint32)],
            block=32,
            inputs=[data.view(np.uint8)],
            schedule="late",
        )
        assert codes(report) == expected, report.summary()
