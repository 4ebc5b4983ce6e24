"""Polls that end before the last signal: each schedule says so, whichever value the poll finds first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bugs.bug import REBUILT, Bug

#: CTAs store and signal, CTA 0 polls and reads what all have stored. (signal, poll of too few, poll of all)
_CTAS = """
    @!%thread0 bra END;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    mad.wide.u32 %rd0, %cta, 4, %data;
    mov.u32 %r5, 1;
    shl.b32 %r5, %r5, %cta;
    st.global.u32 [%rd0], 5;
    SIGNAL
    bra END;
POLL:
    LOAD
-    FEW
+    ALL
    @%p1 bra POLL;
    AFTER
    ld.global.u32 %r1, [%data+4]; // <--
    ld.global.u32 %r2, [%data+8]; // <--
    st.global.v2.u32 [%data+128], {%r1, %r2};
END:
"""
#: The same of three warps and the fourth, in shared memory.
_WARPS = """
    .shared .align 4 .b32 word;
    .shared .align 16 .b32 parts[4];
    mov.b32 %r10, word;
    mov.b32 %r11, parts;
    @%thread0 st.shared.u32 [%r10], FIRST;
    bar.sync 0;
    @!%lane0 bra END;
    setp.eq.u32 %p0, %warp, 3;
    @%p0 bra POLL;
    mad.lo.u32 %r0, %warp, 4, %r11;
    st.shared.u32 [%r0], %thread;
    mov.u32 %r5, 1;
    shl.b32 %r5, %r5, %warp;
    SIGNAL
    bra END;
SLEEP:
    nanosleep.u32 20;
POLL:
    LOAD
-    FEW
+    ALL
    @%p1 bra SLEEP;
    AFTER
    ld.shared.v2.u32 {%r3, %r4}, [%r11]; // <--
    ld.shared.u32 %r5, [%r11+8]; // <--
    add.u32 %r3, %r3, %r4;
    add.u32 %r3, %r3, %r5;
    st.global.u32 [%data], %r3;
END:
"""
_ACQUIRE = "ld.acquire.gpu.global.u32 %r9, [%data+64];"
_SHARED = "ld.acquire.cta.shared.u32 %r9, [%r10];"
#: (kernel, signal, load, too few, all, after, value of the word at first)
CASES = {
    "volatile, add": (
        _CTAS, "membar.gl; atom.global.add.u32 %r0, [%data+64], 1;", "ld.volatile.global.u32 %r9, [%data+64];",
        "setp.lt.u32 %p1, %r9, 1;", "setp.lt.u32 %p1, %r9, 2;", "membar.gl;", 0,
    ),
    "acquire, red.add": (
        _CTAS, "red.release.gpu.global.add.u32 [%data+64], 1;", _ACQUIRE,
        "setp.eq.u32 %p1, %r9, 0;", "setp.ne.u32 %p1, %r9, 2;", "", 0,
    ),
    "acquire, xor of bits": (
        _CTAS, "red.release.gpu.global.xor.b32 [%data+64], %r5;", _ACQUIRE,
        "setp.eq.u32 %p1, %r9, 0;", "setp.ne.u32 %p1, %r9, 6;", "", 0,
    ),
    "64 bits": (
        _CTAS, "red.release.gpu.global.add.u64 [%data+64], 1;", "ld.acquire.gpu.global.u64 %rd5, [%data+64];",
        "setp.eq.u64 %p1, %rd5, 0;", "setp.lt.u64 %p1, %rd5, 2;", "", 0,
    ),
    "relaxed, and a fence": (
        _CTAS, "fence.acq_rel.gpu; red.relaxed.gpu.global.inc.u32 [%data+64], 100;",
        "ld.relaxed.gpu.global.u32 %r9, [%data+64];",
        "setp.ge.u32 %p2, %r9, 1; not.pred %p1, %p2;", "setp.ge.u32 %p2, %r9, 2; not.pred %p1, %p2;",
        "fence.acq_rel.gpu;", 0,
    ),
    "equal values by exch": (
        _CTAS, "atom.release.gpu.global.OP %r0, [%data+64], 1;",
        "atom.acquire.gpu.global.cas.b32 %r9, [%data+64], 77, 77;",
        "setp.ne.u32 %p1, %r9, 1;", "setp.ne.u32 %p1, %r9, 2;", "", 0,
    ),
    "shared, volatile": (
        _WARPS, "membar.cta; atom.shared.add.u32 %r1, [%r10], 1;", "ld.volatile.shared.u32 %r9, [%r10];",
        "setp.lt.u32 %p1, %r9, 2;", "setp.lt.u32 %p1, %r9, 3;", "membar.cta;", 0,
    ),
    "shared, polled by add of 0": (
        _WARPS, "membar.cta; atom.shared.add.u32 %r1, [%r10], 1;", "atom.shared.add.u32 %r9, [%r10], 0;",
        "setp.lt.u32 %p1, %r9, 2;", "setp.lt.u32 %p1, %r9, 3;", "membar.cta;", 0,
    ),
    "shared, bits under a mask": (
        _WARPS, "red.release.cta.shared.or.b32 [%r10], %r5;", _SHARED,
        "and.b32 %r9, %r9, 7; setp.eq.u32 %p1, %r9, 0;", "and.b32 %r9, %r9, 7; setp.ne.u32 %p1, %r9, 7;", "", 0,
    ),
    "shared, counted down": (
        _WARPS, "atom.shared.acq_rel.cta.add.s32 %r1, [%r10], -1;", "ld.acquire.cta.shared.s32 %r9, [%r10];",
        "setp.gt.s32 %p1, %r9, 1;", "setp.gt.s32 %p1, %r9, 0;", "", 3,
    ),
}  # fmt: skip
SCHEDULES: list[tuple[Any, int]] = [("eager", 0), ("late", 0), ("random", 0), ("random", 1)]


def plant(name: str) -> Bug:
    text, signal, load, few, every, after, first = CASES[name]
    signals = [signal.replace("OP", "exch.b32"), signal.replace("OP", "add.u32")]
    given = signal if signals[0] == signals[1] else f"{signals[0]}\n+    {signals[1]}"
    if given != signal:
        text = text.replace("    SIGNAL", "-    SIGNAL")
    for part, into in (
        ("SIGNAL", given), ("LOAD", load), ("FEW", few), ("ALL", every), ("AFTER", after), ("FIRST", str(first)),
    ):  # fmt: skip
        text = text.replace(part, into)
    shared = "word" in text
    return Bug(
        name=name, source=REBUILT, what=name, ptx=text, code="shared-race" if shared else "global-race",
        block=128 if shared else 32, grid=1 if shared else 3,
    )  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", CASES)
def test_a_poll_of_too_few_signals(name: str, schedule: Any, seed: int) -> None:
    bug = plant(name)
    report = bug.run(schedule, right=False, seed=seed)
    assert {each.code for each in report.findings} == {bug.code}, report.summary()
    assert bug.run(schedule, right=True, seed=seed).findings == []


def test_the_race_names_the_poll_and_the_signal() -> None:
    bug = plant("acquire, red.add")
    poll, signal = (
        next(number for number, line in enumerate(bug.text(right=False).splitlines(), 1) if part in line)
        for part in ("ld.acquire", "red.release")
    )
    (found,) = bug.run("late", right=False).findings
    assert f"polls in line {poll} may end before the signal of line {signal}" in found.message
    assert f"wait in line {poll} until all signals have come" in found.message


def test_a_flag_that_goes_on_lets_nobody_pass() -> None:
    """Seeds that starve pollers show a value that is gone before the poll sees it: a stale one would hide that."""
    bug = Bug(
        name="missed", source=REBUILT, what="missed", code="deadlock", block=1, grid=2,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    st.release.gpu.global.u32 [%data], 1; // <--
-    st.release.gpu.global.u32 [%data], 2;
    bra END;
POLL:
    ld.acquire.gpu.global.u32 %r0, [%data];
    setp.ne.u32 %p1, %r0, 1;
    @%p1 bra POLL;
END:
""",
    )  # fmt: skip
    assert bug.run("random", right=False, seed=1).status == "deadlock"
    assert bug.run("random", right=True, seed=1).status == "ok"
