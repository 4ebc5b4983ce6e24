"""Races in global memory that time hides: CTAs one after the other, readers behind readers, plain beside strong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .reg .pred %p, %q; .reg .u32 %t, %c, %x, %y; .reg .b64 %at, %flag, %other; .reg .f32 %f;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    add.u64 %flag, %out0, 512;
    add.u64 %other, %out0, 516;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %out0;
    mad.lo.u32 %x, %c, 100, %t;
"""
ARRAY = np.zeros(256, np.uint32)
SIGNAL = "red.release.gpu.global.add.u32 [%flag], 1;"


def run(body: str, **options: Any) -> Any:
    return launch(HEAD + body + "\nret;", [ARRAY], **{"block": 32, **options})[0]


def waits(count: int, name: str = "w", flag: str = "%flag") -> str:
    """Goes round until so many have signalled."""
    return f"{name}: ld.acquire.gpu.global.u32 %y, [{flag}]; setp.lt.u32 %p, %y, {count}; @%p bra {name};"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("block", [32, 64])
def test_ctas_that_never_run_at_the_same_time(slots: int, block: int, schedule: Any) -> None:
    """That one has ended before the other begins orders nothing; a flag does."""
    last = "ld.global.u32 %y, [%at]; st.global.u32 [%at], %x;"
    options: Any = {"grid": 4, "multiprocessors": slots, "schedule": schedule, "block": block}
    racing = run("bar.sync 0;" + last + "bar.sync 0;", **options)
    assert set(codes(racing)) == {"global-race"}, racing.summary()
    assert all("of different CTAs" in each.rule for each in racing.findings)
    turn = "setp.ne.u32 %q, %t, 0; @%q bra go; WAIT go: bar.sync 0;" + last + f"bar.sync 0; @!%q {SIGNAL}"
    clean = run(turn.replace("WAIT", waits(0).replace("%y, 0;", "%y, %c;")), **options)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_knowing_a_cta_is_not_knowing_the_one_before_it(schedule: Any) -> None:
    """CTA 2 comes where CTA 0 or 1 was, and synchronizes with CTA 3; neither knows what 0 has stored."""
    body = """
        setp.ge.u32 %p, %c, 2;
        @%p bra late;
        setp.ne.u32 %p, %c, 0;
        @%p bra end;
        st.global.u32 [%at], 5;
        bra end;
        late:
        setp.ne.u32 %p, %c, 2;
        @%p bra take;
        SIGNAL bra end;
        take:
        WAIT ld.global.u32 %y, [%at];
        end:
    """.replace("SIGNAL", "@!%p " + SIGNAL)
    found = run(body.replace("WAIT", waits(32)), grid=4, multiprocessors=2, schedule=schedule)
    assert codes(found) == ["global-race"], found.summary()


#: CTAs 0 to 2 load a word, some of them tell CTA 3, and it stores there.
READERS = """
    setp.ne.u32 %q, %t, 0;
    @%q bra end;
    setp.eq.u32 %p, %c, 3;
    @%p bra store;
    LOAD
    setp.eq.u32 %p, %c, SILENT;
    @%p bra end;
    SIGNAL bra end;
    store: WAIT st.global.u32 [%out0], 9; end:
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("silent", [0, 1, 2, 7])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("load", ["ld.global.u32 %y, [%out0];", "ld.global.u8 %y, [%out0+1];"])
def test_a_reader_behind_another(load: str, together: bool, silent: int, schedule: Any) -> None:
    """Who overwrites must have waited for all of two that read, not for the last one alone."""
    told, other = (3, 7) if silent == 7 else (2, (silent + 1) % 3)  # the other one does not load
    loads = f"setp.ne.u32 %p, %c, {other}; @%p {load}"
    if not together:
        loads = " ".join(f"setp.eq.u32 %p, %c, {cta}; @%p {load}" for cta in range(3) if cta != other)
    body = READERS.replace("LOAD", loads).replace("SILENT", str(silent)).replace("SIGNAL", SIGNAL)
    report = run(body.replace("WAIT", waits(told)), grid=4, schedule=schedule)
    assert set(codes(report)) == (set() if silent == 7 else {"global-race"}), report.summary()


#: name -> what warp 1 does, what warp 0 does then
STRONG = {
    "a load of a sum": ("red.relaxed.gpu.global.add.u32 [%out0], 3;", "ld.global.u32 %y, [%out0];"),
    "a store over a sum": ("red.relaxed.gpu.global.add.u32 [%out0], 3;", "st.global.u32 [%out0], 77;"),
    "a load of a volatile store": ("st.volatile.global.u32 [%out0], 3;", "ld.global.u32 %y, [%out0];"),
    "a vector over half of it": ("atom.global.add.u32 %y, [%out0+4], 3;", "ld.global.v2.u32 {%x, %y}, [%out0];"),
    "a sum over a store": ("st.global.u32 [%out0], 5;", "red.relaxed.gpu.global.add.u32 [%out0], 3;"),
    "a volatile load of a store": ("st.global.u32 [%out0], 5;", "ld.volatile.global.u32 %y, [%out0];"),
    "a sum of floats": ("red.global.add.f32 [%out0], %f;", "ld.global.u32 %y, [%out0];"),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("first", "then"), STRONG.values(), ids=STRONG)
def test_plain_beside_strong(first: str, then: str, schedule: Any) -> None:
    def body(order: str) -> str:
        return (
            "mov.f32 %f, 0f3F800000; setp.lt.u32 %p, %t, 32; and.b32 %y, %t, 31; setp.ne.u32 %q, %y, 0; "
            f"@%q bra met; @%p bra met; {first} met: {order} @%q bra end; @!%p bra end; {then} end:"
        )

    racing = run(body(""), block=64, schedule=schedule)
    assert set(codes(racing)) == {"global-race"}, racing.summary()
    clean = run(body("bar.sync 0;"), block=64, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "body",
    [
        # Who has seen a value by a strong load may load or store the word plainly (8.9.5): a counter that is reset.
        "setp.ne.u32 %q, %t, 0; @%q bra end; atom.relaxed.gpu.global.add.u32 %y, [%flag], 1;"
        "setp.ne.u32 %p, %y, 3; @%p bra end; st.global.u32 [%flag], 0; ld.global.u32 %y, [%flag]; end:",
        "setp.ne.u32 %q, %t, 0; @%q bra end; red.relaxed.gpu.global.add.u32 [%flag], 1;"
        + waits(4).replace("acquire", "relaxed")
        + "ld.global.u32 %y, [%flag]; end:",
        # One of the CTA has seen it, and the barrier tells the others.
        "setp.ne.u32 %q, %t, 0; @%q bra met; red.relaxed.gpu.global.add.u32 [%flag], 1;"
        + waits(4).replace("acquire", "relaxed")
        + "met: bar.sync 0; ld.global.u32 %y, [%flag];",
        # Strong accesses of all kinds.
        "st.relaxed.gpu.global.u32 [%out0], %t; atom.global.exch.b32 %y, [%out0], %t;"
        "ld.volatile.global.u32 %y, [%out0]; red.global.max.u32 [%out0], 9; st.volatile.global.u32 [%out0], %c;",
        # Bytes beside an atomic operation.
        "setp.ne.u32 %q, %t, 0; @%q bra end; red.global.add.u32 [%out0], 1; add.u32 %y, %c, 4; cvt.u64.u32 %at, %y;"
        "add.u64 %at, %at, %out0; st.global.u8 [%at], %c; end:",
    ],
)
def test_plain_beside_strong_in_order(body: str, schedule: Any) -> None:
    report = run(body, grid=4, block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
