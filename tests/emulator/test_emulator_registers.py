"""Reads of registers to which nothing has been written."""

from __future__ import annotations

import numpy as np
import pytest
from harness import codes, launch, poisoned

from ptxgen.emulator.checks.registers import Use, never_sure

HEAD = """
    .reg .b64 %at, %wide, %a, %never; .reg .u32 %i, %x, %y, %z; .reg .pred %p, %q;
    mov.u32 %i, %tid.x; mul.wide.u32 %wide, %i, 4; add.u64 %at, %out0, %wide; setp.lt.u32 %p, %i, 16;
"""

CASES = [
    ("an address", "@%p mov.u64 %a, %at;\nst.global.u32 [%a], %i;", "error", "%a"),
    ("an address that all have", "mov.u64 %a, 0; @%p mov.u64 %a, %at; @%p st.global.u32 [%a], %i;", None, ""),
    ("an address that those have who use it", "@%p mov.u64 %a, %at;\n@%p st.global.u32 [%a], %i;", None, ""),
    ("a guard", "@%p setp.eq.u32 %q, %i, 3;\n@%q st.global.u32 [%at], %i;", "error", "%q"),
    ("a guard of a branch", "@%p setp.eq.u32 %q, %i, 3;\n@!%q bra end; mov.u32 %x, 1; end:", "error", "%q"),
    ("a stored value", "@%p mov.u32 %x, 5;\nst.global.u32 [%at], %x;", "advice", "%x"),
    ("an added value", "@!%p mov.u32 %x, 5;\natom.global.add.u32 %y, [%out0], %x;", "advice", "%x"),
    ("both ways", "@%p mov.u32 %x, 5; @!%p mov.u32 %x, 6;\nst.global.u32 [%at], %x;", None, ""),
    ("both branches", "@%p bra one; mov.u32 %x, 5; bra end; one: mov.u32 %x, 6; end:\nst.global.u32 [%at], %x;", None,
     ""),
    ("one branch", "@%p bra end; mov.u32 %x, 5; end:\nst.global.u32 [%at], %x;", "advice", "%x"),
    ("a loop's second round", "mov.u32 %y, 0; again: setp.eq.u32 %q, %y, 0; @%q bra first; st.global.u32 [%at], %x; "
     "first: mov.u32 %x, %y; add.u32 %y, %y, 1; setp.lt.u32 %q, %y, 3; @%q bra again;", None, ""),
    ("a loop's first round", "mov.u32 %y, 0; again:\nst.global.u32 [%at], %x; mov.u32 %x, %y; add.u32 %y, %y, 1; "
     "setp.lt.u32 %q, %y, 3; @%q bra again;", "advice", "%x"),
    ("never written", "mov.u32 %y, 2;\nadd.u32 %x, %z, %y;", "advice", "%z"),
    ("half of a vector", "@%p mov.u32 %x, 5;\nst.global.v2.u32 [%out0], {%i, %x};", "advice", "%x"),
    ("what is passed on", "@%p mov.u32 %x, 5; shfl.sync.bfly.b32 %y, %x, 1, 31, 0xffffffff; "
     "@%p st.global.u32 [%at], %y;", None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "severity", "register"), CASES, ids=[case[0] for case in CASES])
def test_reads_before_writes(name: str, text: str, severity: str | None, register: str) -> None:
    body = f"{HEAD} {text} ret;"
    report, _ = launch(body, [np.zeros(32, np.uint32)])
    found = [each for each in report.findings if each.code == "uninitialized-register"]
    assert len(found) == (severity is not None), report.summary()
    for each in found:
        assert each.severity == severity
        assert each.message == f"reads {register}, to which nothing has been written"
        assert register in each.instruction
    if severity != "error":
        assert report.status == "ok", report.summary()
    assert "uninitialized-register" not in codes(launch(body, [np.zeros(32, np.uint32)], checks=False)[0])


def test_ctas_that_come_later_begin_anew() -> None:
    """A slot's next CTA does not inherit what the one before it wrote."""
    body = f"""{HEAD} mov.u32 %y, %ctaid.x; setp.eq.u32 %q, %y, 0; @%q mov.u64 %a, %at; setp.eq.u32 %p, %y, 1;
        @%p st.global.u32 [%a], %i; ret;"""
    report, _ = launch(body, [poisoned(32)], grid=2, multiprocessors=1)
    assert "uninitialized-register" in codes(report)


def test_parameters_of_functions_are_written() -> None:
    items = ".func (.reg .u32 %r) same(.reg .u32 %v) { .reg .u32 %w; mov.u32 %w, %v; mov.u32 %r, %w; ret; }"
    body = f"{HEAD} call (%x), same, (%i); st.global.u32 [%at], %x; ret;"
    report, _ = launch(body, [poisoned(32)], items=items)
    assert not report.findings, report.summary()


def test_what_the_text_shows() -> None:
    """Registers 1 to 4: written before; in one of two branches; only under a guard; later in a loop."""

    def use(reads: set[int], writes: set[int], guarded: bool = False) -> Use:
        return Use(frozenset(reads), frozenset(writes), frozenset(), guarded, False)

    blocks = [[use(set(), {1})], [use({1}, {2})], [use(set(), {3}, True)], [use({2, 3}, set()), use({4}, {4})], []]
    successors = [[1, 2], [3], [3], [3, 4], []]
    assert never_sure(blocks, successors, {0: frozenset()}) == {2, 3, 4}
    assert never_sure(blocks, successors, {0: frozenset({4})}) == {2, 3}
