"""Weak loads before an atomic operation at their address that decides again, and twins in which the value matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, errors, launch

#: Each of 64 threads of two CTAs has a vertex from 0 to 3 at %at, of four words at `out0`; `out1` counts.
HEAD = """
    .shared .align 4 .b32 marks[4];
    .reg .b32 %t, %cta, %v, %bit, %old, %k, %c, %one;
    .reg .b64 %at, %mine;
    .reg .pred %p, %q, %r;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %t, %cta, 64, %t;
    and.b32 %v, %t, 3;
    mul.wide.u32 %at, %v, 4;
    add.u64 %at, %at, %out0;
    mul.wide.u32 %mine, %t, 4;
    add.u64 %mine, %mine, %out2;
    mov.u32 %c, 0;
    mov.u32 %one, 1;
"""
COUNT = "red.global.add.u32 [%out1], 1;"
#: What a thread does, and how often `out1` is counted.
RIGHT: dict[str, tuple[str, int]] = {
    "exch": (
        f"ld.global.u32 %k, [%at]; @P bra OVER; atom.global.exch.b32 %old, [%at], 1; @Q bra OVER; {COUNT} OVER:",
        4,
    ),
    "cas": (
        f"ld.global.u32 %k, [%at]; @P bra OVER; atom.global.cas.b32 %old, [%at], 0, 7; @Q bra OVER; {COUNT} OVER:",
        4,
    ),
    "or of bits": (
        "ld.global.u32 %k, [%at]; and.b32 %k, %k, 2; @P bra OVER; atom.global.or.b32 %old, [%at], 2;"
        f" and.b32 %old, %old, 2; @Q bra OVER; {COUNT} OVER:",
        4,
    ),
    "red.max": (
        "ld.global.u32 %k, [%at]; setp.le.u32 %p, %t, %k; @%p bra OVER; red.global.max.u32 [%at], %t; OVER:",
        0,
    ),
    "predicated red.min": ("ld.global.u32 %k, [%at]; setp.lt.s32 %p, -5, %k; @%p red.global.min.s32 [%at], -5;", 0),
    "predicated exch": (
        "ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, 0; @%p atom.global.exch.b32 %old, [%at], 1;"
        f" setp.eq.and.u32 %q, %old, 0, %p; @%q {COUNT}",
        4,
    ),
    "won": (
        "ld.global.u32 %k, [%at]; mov.pred %r, 0; @P bra OVER; atom.global.exch.b32 %old, [%at], 1;"
        f" setp.eq.u32 %r, %old, 0; OVER: @!%r bra END; {COUNT} END:",
        4,
    ),
    "returns early": (
        "ld.global.u32 %k, [%at]; setp.ne.u32 %p, %k, 0; @%p ret; mov.u32 %c, %t; LOOP: add.u32 %c, %c, 1;"
        " setp.lt.u32 %r, %c, 128; @%r bra LOOP; red.global.or.b32 [%at], 1;",
        0,
    ),
    "address computed again": (
        "mul.wide.u32 %a1, %v, 4; add.u64 %a2, %a1, %out0; ld.u32 %k, [%a2]; @P bra OVER; cvt.s64.s32 %a3, %v;"
        f" shl.b64 %a4, %a3, 2; add.s64 %a5, %out0, %a4; atom.exch.b32 %old, [%a5], 1; @Q bra OVER; {COUNT} OVER:",
        4,
    ),
    "test and test and set": (
        "and.b32 %v, %t, 31; setp.ne.u32 %p, %v, 0; @%p bra END; SPIN: ld.global.u32 %k, [%out0]; @P bra SPIN;"
        " atom.acquire.gpu.global.cas.b32 %old, [%out0], 0, 1; @Q bra SPIN; ld.global.u32 %c, [%out1];"
        " add.u32 %c, %c, 1; st.global.u32 [%out1], %c; atom.release.gpu.global.exch.b32 %old, [%out0], 0; END:",
        4,
    ),
    "hash table": (
        "mov.u32 %c, %v; PROBE: and.b32 %c, %c, 3; mul.wide.u32 %at, %c, 4; add.u64 %at, %at, %out0;"
        " add.u32 %v, %v, 0; ld.global.u32 %k, [%at]; setp.ne.u32 %p, %k, 0; @%p bra SEEN;"
        " atom.global.cas.b32 %k, [%at], 0, %one; SEEN: setp.eq.u32 %q, %k, 0; @%q bra END; setp.eq.u32 %q, %k, 1;"
        " @%q bra END; add.u32 %c, %c, 1; bra PROBE; END:",
        0,
    ),
    "bounded": (
        "ld.global.u32 %k, [%out0]; setp.ge.u32 %p, %k, 9; @%p bra OVER; atom.global.add.u32 %old, [%out0], 1;"
        f" setp.ge.u32 %q, %old, 9; @%q bra OVER; {COUNT} OVER:",
        9,
    ),
}
#: The twins: the atomic operation does not decide on all that the value decides.
WRONG = {
    "stored": "ld.global.u32 %k, [%at]; st.global.u32 [%mine], %k; @P bra OVER; red.global.or.b32 [%at], 1; OVER:",
    "stored later": "ld.global.u32 %k, [%at]; @P bra OVER; red.global.or.b32 [%at], 1; OVER:"
    " st.global.u32 [%mine], %k;",
    "counted where it is set": f"ld.global.u32 %k, [%at]; @P bra SEEN; red.global.or.b32 [%at], 1; bra OVER;"
    f" SEEN: {COUNT} OVER:",
    "counted where another was first": "ld.global.u32 %k, [%at]; @P bra OVER; atom.global.exch.b32 %old, [%at], 1;"
    f" @Q bra LOST; st.global.u32 [%mine], 1; bra OVER; LOST: {COUNT} OVER:",
    "counted before": f"ld.global.u32 %k, [%at]; @P bra OVER; {COUNT} red.global.or.b32 [%at], 1; OVER:",
    "result unused": f"ld.global.u32 %k, [%at]; @P bra OVER; atom.global.exch.b32 %old, [%at], 1; {COUNT} OVER:",
    "leaves a number": "ld.global.u32 %k, [%at]; @P bra OVER; mov.u32 %c, 1; red.global.or.b32 [%at], 1;"
    " OVER: st.global.u32 [%mine], %c;",
    "add": "ld.global.u32 %k, [%at]; setp.gt.u32 %p, %k, 5; @%p bra OVER; red.global.add.u32 [%at], 1; OVER:",
    "takes from another": "ld.global.u32 %k, [%at]; @P bra OVER; add.u32 %c, %t, 1;"
    " atom.global.exch.b32 %old, [%at], %c; OVER:",
    "another address": "ld.global.u32 %k, [%at]; @P bra OVER; red.global.or.b32 [%at+16], 1; OVER:"
    " red.global.or.b32 [%at], 1;",
    "adds what it loads": "ld.global.u32 %k, [%at]; add.u32 %k, %k, 1; red.global.add.u32 [%at], %k;",
}


def run(use: str, schedule: Any, *, shared: bool = False) -> tuple[LaunchReport, list[Any]]:
    text = use.replace("@P", "setp.ne.u32 %p, %k, 0; @%p").replace("@Q", "setp.ne.u32 %q, %old, 0; @%q")
    extra = ".reg .b64 %a<6>;"
    if shared:
        text = text.replace(".global", ".shared").replace("red.shared.add.u32 [%out1]", "red.global.add.u32 [%out1]")
        text = text.replace("st.shared.u32 [%mine]", "st.global.u32 [%mine]").replace("[%at", "[%there")
        extra += """ .reg .b32 %there; mov.u32 %there, marks; shl.b32 %c, %v, 2; add.u32 %there, %there, %c;
            setp.lt.u32 %p, %t, 4; @%p st.shared.u32 [%there], 0; mov.u32 %c, 0; bar.sync 0;"""
    outputs = [np.zeros(8, np.uint32), np.zeros(1, np.uint32), np.zeros(128, np.uint32)]
    body = (HEAD + extra + text + " ret;").replace("; ", ";\n").replace(": ", ":\n")
    return launch(body, outputs, grid=1 if shared else 2, block=64, schedule=schedule)


@pytest.mark.parametrize("schedule", ["eager", "random"])
@pytest.mark.parametrize(("use", "count"), RIGHT.values(), ids=RIGHT)
def test_an_atomic_operation_decides_again(use: str, count: int, schedule: Any) -> None:
    report, (_, counted, _) = run(use, schedule)
    assert (report.status, set(codes(report))) == ("ok", {"global-race"}), report.summary()
    assert all("only" in each.message and "ld.relaxed" in each.fix for each in report.findings)
    assert counted[0] == count


@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG)
def test_the_value_matters(use: str) -> None:
    report, _ = run(use, "late")
    assert "global-race" in errors(report), report.summary()


@pytest.mark.parametrize("use", ["exch", "red.max", "or of bits"])
def test_shared_memory(use: str) -> None:
    report, (_, counted, _) = run(RIGHT[use][0], "eager", shared=True)
    assert (report.status, set(codes(report))) == ("ok", {"shared-race"}), report.summary()
    assert counted[0] == RIGHT[use][1]


@pytest.mark.parametrize("use", ["stored later", "counted where it is set", "result unused", "add"])
def test_shared_memory_where_the_value_matters(use: str) -> None:
    report, _ = run(WRONG[use], "eager", shared=True)
    assert "shared-race" in errors(report), report.summary()
