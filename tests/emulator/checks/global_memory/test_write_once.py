"""Plain loads of hash probes before an atom.cas that alone changes the word, and twins where a stale value matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, errors, launch

#: Each of 64 threads of two CTAs inserts %key, one of 1 to 8, into 16 words at `out0`; 0 is an empty word.
HEAD = """
    .shared .align 4 .b32 table[16];
    .reg .b32 %t, %cta, %key, %s, %k, %old, %zero, %value;
    .reg .b64 %at, %mine, %a;
    .reg .pred %p, %q, %r, %x;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %t, %cta, 64, %t;
    mul.lo.u32 %s, %t, 5;
    shr.u32 %key, %s, 2;
    and.b32 %key, %key, 7;
    add.u32 %key, %key, 1;
    shl.b32 %s, %key, 1;
    and.b32 %s, %s, 15;
    mov.u32 %zero, 0;
    mul.wide.u32 %mine, %t, 4;
    add.u64 %mine, %mine, %out1;
"""
AT = "mul.wide.u32 %at, %s, 4; add.u64 %at, %at, %out0;"
NEXT = "add.u32 %s, %s, 1; and.b32 %s, %s, 15;"
SWAP = "atom.global.cas.b32 %old, [%at], %zero, %key;"
DONE = "setp.eq.u32 %p, %old, 0; @%p bra END; setp.eq.u32 %p, %old, %key; @%p bra END;"
#: Each thread then stores where its key is.
STORE = " st.global.u32 [%mine], %s; ret;"
RIGHT = {
    "returns at its key": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; {SWAP} {DONE} NEXT: {NEXT} bra PROBE; END:",
    "rotated, address computed again": f"cvt.u64.u32 %a, %s; {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key;"
    f" @%p bra END; LOOP: setp.ne.u32 %p, %k, 0; @%p bra NEXT; shl.b64 %at, %a, 2; add.u64 %at, %out0, %at; {SWAP}"
    " setp.eq.u32 %p, %old, 0; setp.eq.u32 %q, %old, %key; or.pred %r, %p, %q; @%r bra END;"
    f" NEXT: {NEXT} cvt.u64.u32 %a, %s; {AT} ld.global.u32 %k, [%at]; setp.ne.u32 %p, %k, %key; @%p bra LOOP; END:",
    "predicated": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END; setp.eq.u32 %q, %k, 0;"
    f" mov.u32 %old, %t; @%q atom.global.cas.b32 %old, [%at], 0, %key; @!%q bra NEXT; {DONE.replace('%p', '%r')}"
    f" NEXT: {NEXT} bra PROBE; END:".replace("@!%q bra NEXT; ", ""),
    "expects what it loaded": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; {SWAP.replace('%zero', '0')} {DONE} NEXT: {NEXT} bra PROBE; END:",
    "not, and": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.ne.u32 %p, %k, %key; not.pred %q, %p; @%q bra END;"
    f" setp.eq.and.u32 %r, %k, 0, %p; @!%r bra NEXT; {SWAP} {DONE} NEXT: {NEXT} bra PROBE; END:",
}
WRONG = {
    "plain store": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END; setp.ne.u32 %p, %k, 0;"
    f" @%p bra NEXT; st.global.u32 [%at], %key; bra END; NEXT: {NEXT} bra PROBE; END:",
    "searched while others insert": "and.b32 %value, %t, 32; setp.eq.u32 %x, %value, 0;"
    f" PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END; setp.ne.u32 %p, %k, 0; @%p bra NEXT;"
    f" @%x bra MISSING; {SWAP} {DONE} NEXT: {NEXT} bra PROBE; MISSING: st.global.u32 [%mine], 1; END:",
    "counts before": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; red.global.add.u32 [%out1], 1; {SWAP} {DONE} NEXT: {NEXT} bra PROBE; END:",
    "guarded count before": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.eq.u32 %p, %k, 0; @%p red.global.add.u32 [%out1], 1; @!%p bra NEXT; {SWAP} {DONE} NEXT: {NEXT} bra PROBE;"
    " END:",
    "uses it afterwards": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; {SWAP} st.global.u32 [%mine], %k; {DONE} NEXT: {NEXT} bra PROBE; END:",
    "leaves without a swap": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; setp.gt.u32 %x, %t, 40; @%x bra END; {SWAP} {DONE} NEXT: {NEXT} bra PROBE;"
    " END:",
    "swaps another word": f"PROBE: {AT} ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; {SWAP.replace('[%at]', '[%at+64]')} {DONE} NEXT: {NEXT} bra PROBE; END:"
    " atom.global.cas.b32 %old, [%out0+8], 0, %key;",
    "others exchange": "and.b32 %value, %t, 32; setp.ne.u32 %x, %value, 0;"
    f" PROBE: {AT} @%x bra OTHERS; ld.global.u32 %k, [%at]; setp.eq.u32 %p, %k, %key; @%p bra END;"
    f" setp.ne.u32 %p, %k, 0; @%p bra NEXT; {SWAP} {DONE} NEXT: {NEXT} bra PROBE;"
    " OTHERS: atom.global.exch.b32 %old, [%at], 9; END:",
}


def run(use: str, schedule: Any, *, shared: bool = False) -> tuple[LaunchReport, list[Any]]:
    text, extra = use, ""
    if shared:
        at = "mov.u32 %there, table; mad.lo.u32 %there, %s, 4, %there;"
        text = text.replace(AT, at).replace("ld.global", "ld.shared").replace("atom.global", "atom.shared")
        text = text.replace("st.global.u32 [%at]", "st.shared.u32 [%at]").replace("[%at", "[%there")
        extra = """.reg .b32 %there; mov.u32 %there, table; mad.lo.u32 %there, %t, 4, %there; setp.lt.u32 %p, %t, 16;
            @%p st.shared.u32 [%there], 0; bar.sync 0;"""
    outputs = [np.zeros(40, np.uint32), np.zeros(128, np.uint32)]
    body = (HEAD + extra + text + STORE).replace("; ", ";\n").replace(": ", ":\n")
    return launch(body, outputs, grid=1 if shared else 2, block=64, schedule=schedule)


@pytest.mark.parametrize("schedule", ["eager", "random"])
@pytest.mark.parametrize("use", RIGHT.values(), ids=RIGHT)
def test_a_swap_decides_again(use: str, schedule: Any) -> None:
    report, (table, found) = run(use, schedule)
    assert (report.status, set(codes(report))) == ("ok", {"global-race"}), report.summary()
    assert all("only" in each.message and "ld.relaxed" in each.fix for each in report.findings)
    assert sorted(table[table != 0]) == list(range(1, 9))
    assert np.array_equal(table[found], ((np.arange(128) * 5 >> 2) & 7) + 1)


@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG)
def test_a_stale_value_matters(use: str) -> None:
    reports = [run(use, schedule)[0] for schedule in ("late", "random")]
    assert any("global-race" in errors(each) for each in reports), reports[0].summary()


def test_shared_memory() -> None:
    report, _ = run(RIGHT["returns at its key"], "eager", shared=True)
    assert (report.status, set(codes(report))) == ("ok", {"shared-race"}), report.summary()
    report, _ = run(WRONG["uses it afterwards"], "eager", shared=True)
    assert "shared-race" in errors(report), report.summary()


#: atomicCAS as a function, as builds without inlining have it.
FUNCTION = """
.func (.param .b32 result) swap(.param .b64 address, .param .b32 expected, .param .b32 value)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<4>;
    ld.param.b64 %rd1, [address];
    ld.param.b32 %r1, [expected];
    ld.param.b32 %r2, [value];
    atom.cas.b32 %r3, [%rd1], %r1, %r2;
    st.param.b32 [result], %r3;
    ret;
}
"""
CALL = """{ .param .b64 a0; .param .b32 a1; .param .b32 a2; .param .b32 r0; st.param.b64 [a0], %at;
    st.param.b32 [a1], EXPECTED; st.param.b32 [a2], %key;
    call.uni (r0), swap, (a0, a1, a2); ld.param.b32 %old, [r0]; }"""


@pytest.mark.parametrize(("expected", "harmless"), [("0", True), ("%zero", True), ("%s", False)])
def test_a_function_swaps(expected: str, harmless: bool) -> None:
    text = RIGHT["returns at its key"].replace(SWAP, CALL.replace("EXPECTED", expected))
    body = (HEAD + text + STORE).replace("; ", ";\n").replace(": ", ":\n")
    outputs = [np.zeros(40, np.uint32), np.zeros(128, np.uint32)]
    report, _ = launch(body, outputs, grid=2, block=64, items=FUNCTION)
    assert ("global-race" not in errors(report)) == harmless, report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("bad", ["atom.global.exch.b32 %old, [%at], 9;", "red.global.add.u32 [%at], 16;"])
def test_a_later_atomic_operation_that_is_no_swap(bad: str, schedule: Any) -> None:
    """The swaps of others come in between: they race with the loads too, which stays advice."""
    probe = WRONG["others exchange"].replace(
        "and.b32 %value, %t, 32; setp.ne.u32 %x, %value, 0;", "setp.ge.u32 %x, %t, 64;"
    )
    report, _ = run(probe.replace("atom.global.exch.b32 %old, [%at], 9;", bad), schedule)
    assert set(errors(report)) == {"global-race"}, report.summary()
