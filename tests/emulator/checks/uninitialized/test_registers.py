"""Reads of registers to which nothing has been written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.load.register_use import Use, never_sure
from tests.support.harness import codes, launch, poisoned

HEAD = """
    .reg .b64 %at, %wide, %a, %never; .reg .u32 %i, %x, %y, %z; .reg .pred %p, %q; .reg .f32 %f, %g;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %wide, %i, 4;
    add.u64 %at, %out0, %wide;
    setp.lt.u32 %p, %i, 16;
"""

#: Half of the lanes have %x.
SOME = "@%p mov.u32 %x, 5; "
#: The even ones have it, or the odd ones.
EVEN = "and.b32 %y, %i, 1; setp.eq.u32 %q, %y, 0; @%q mov.u32 %x, 5; "
ODD = EVEN.replace("@%q", "@!%q")
LEFT = "; the uninitialized value is only copied to memory"
USED = "; results depend on it: a rerun with different bytes there changed them"

CASES = [
    ("an address", "@%p mov.u64 %a, %at;\nst.global.u32 [%a], %i;", "error", "%a", ""),
    ("an address that all have", "mov.u64 %a, 0; @%p mov.u64 %a, %at; @%p st.global.u32 [%a], %i;", None, "", ""),
    ("an address that those have who use it", "@%p mov.u64 %a, %at;\n@%p st.global.u32 [%a], %i;", None, "", ""),
    ("a guard", "@%p setp.eq.u32 %q, %i, 3;\n@%q st.global.u32 [%at], %i;", "error", "%q", ""),
    ("a guard of a branch", "@%p setp.eq.u32 %q, %i, 3;\n@!%q bra end; mov.u32 %x, 1; end:", "error", "%q", ""),
    ("a stored value", "@%p mov.u32 %x, 5;\nst.global.u32 [%at], %x;", "advice", "%x", LEFT),
    ("a stored value that is overwritten",
     "@%p mov.u32 %x, 5;\nst.global.u32 [%at], %x;\nst.global.u32 [%at], %i;", None, "", ""),
    ("a stored value in a launch that leaves nothing", "@%p mov.u32 %x, 0;\n@%p st.global.u32 [%at], %x;\n"
     ".shared .b32 s;\n@!%p st.shared.u32 [s], %x;", "advice", "%x", ""),
    ("an added value", "@!%p mov.u32 %x, 5;\natom.global.add.u32 %y, [%out0], %x;", "error", "%x", USED),
    ("both ways", "@%p mov.u32 %x, 5; @!%p mov.u32 %x, 6;\nst.global.u32 [%at], %x;", None, "", ""),
    ("both branches", "@%p bra one; mov.u32 %x, 5; bra end; one: mov.u32 %x, 6; end:\nst.global.u32 [%at], %x;", None,
     "", ""),
    ("one branch", "@%p bra end; mov.u32 %x, 5; end:\nst.global.u32 [%at], %x;", "advice", "%x", LEFT),
    ("a loop's second round", "mov.u32 %y, 0; again: setp.eq.u32 %q, %y, 0; @%q bra first; st.global.u32 [%at], %x; "
     "first: mov.u32 %x, %y; add.u32 %y, %y, 1; setp.lt.u32 %q, %y, 3; @%q bra again;", None, "", ""),
    ("a loop's first round", "mov.u32 %y, 0; again:\nst.global.u32 [%at], %x; mov.u32 %x, %y; add.u32 %y, %y, 1; "
     "setp.lt.u32 %q, %y, 3; @%q bra again;", None, "", ""),
    ("never written, in a launch that leaves nothing", "mov.u32 %y, 2;\nadd.u32 %x, %z, %y;", None, "", ""),
    ("never written, and dropped", "add.u32 %x, %z, 2; and.b32 %x, %x, 0; add.u32 %x, %x, 7; st.global.u32 [%at], %x;",
     None, "", ""),
    ("never written, and used", "add.u32 %x, %z, 2; st.global.u32 [%at], %x;", "error", "%z", USED),
    ("half of a vector", "@%p mov.u32 %x, 5; mov.u32 %y, 7;\n@!%p st.global.v2.u32 [%out0], {%y, %x};", "advice",
     "%x", LEFT),
    ("what is passed on", SOME + "shfl.sync.bfly.b32 %y, %x, 1, 31, 0xffffffff; @%p st.global.u32 [%at], %y;", None,
     "", ""),
    ("what is passed on and left", SOME + "\nshfl.sync.bfly.b32 %y, %x, 16, 31, 0xffffffff; st.global.u32 [%at], %y;",
     "advice", "%x", LEFT),
    ("a value that is equal to another only by chance",
     "mov.u32 %z, 5; " + SOME + "\nsetp.eq.u32 %q, %x, %z; @%q st.global.u32 [%at], 1;", "error", "%x", USED),
    ("a value that is equal to a constant only by chance",
     SOME + "\nsetp.ne.s32 %q, 5, %x; @!%q st.global.u32 [%at], 1;", "error", "%x", USED),
    ("a comparison that another one overrules",
     SOME + "setp.eq.u32 %q, %x, 5; and.pred %q, %q, %p; @%q st.global.u32 [%at], 1;", None, "", ""),
    ("a sum", SOME + "\nadd.u32 %y, %x, 1; st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a sum of lanes", SOME + "\nshfl.sync.bfly.b32 %y, %x, 16, 31, 0xffffffff; add.u32 %y, %x, %y; "
     "st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a maximum of what odd lanes lack", EVEN + "\nshfl.sync.bfly.b32 %y, %x, 1, 31, 0xffffffff; max.s32 %y, %x, %y; "
     "@%q st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a minimum of what even lanes lack", ODD + "\nshfl.sync.bfly.b32 %y, %x, 1, 31, 0xffffffff; min.u32 %y, %x, %y; "
     "@!%q st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a sum of lanes that is infinite", SOME + "\nmov.b32 %f, %x; mul.f32 %f, %f, 0f7E000000; mov.b32 %y, %f; "
     "shfl.sync.bfly.b32 %z, %y, 1, 31, 0xffffffff; mov.b32 %g, %z; mul.f32 %f, %f, %f; mul.f32 %g, %g, %g; "
     "add.f32 %f, %f, %g; st.global.f32 [%at], %f;", "error", "%x", USED),
    ("lanes that differ", SOME + "\nshfl.sync.bfly.b32 %y, %x, 1, 31, 0xffffffff; setp.eq.u32 %q, %x, %y; "
     "selp.b32 %y, 1, 2, %q; st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a small sum of numbers", SOME + "\ncvt.rn.f32.u32 %f, %i; mov.b32 %g, %x; add.f32 %f, %f, %g; "
     "st.global.f32 [%at], %f;", "error", "%x", USED),
    ("a maximum", SOME + "\nmov.b32 %f, %x; max.f32 %f, %f, 0f3F800000; st.global.f32 [%at], %f;", "error", "%x", USED),
    ("a minimum", SOME + "\nmov.b32 %f, %x; min.f32 %f, %f, 0f3F800000; st.global.f32 [%at], %f;", "error", "%x", USED),
    ("a minimum of absolute values", SOME + "\nmov.b32 %f, %x; abs.f32 %f, %f; min.f32 %f, %f, 0f3F800000; "
     "st.global.f32 [%at], %f;", "error", "%x", USED),
    ("an unsigned minimum", SOME + "\nmin.u32 %y, %x, 10; st.global.u32 [%at], %y;", "error", "%x", USED),
    ("an unsigned maximum", SOME + "\nmax.u32 %y, %x, 10; st.global.u32 [%at], %y;", "error", "%x", USED),
    ("a comparison", SOME + "\nsetp.gt.u32 %q, %x, 0x80000000; selp.b32 %y, 1, 2, %q; st.global.u32 [%at], %y;",
     "error", "%x", USED),
    ("a branch by a comparison", SOME + "\nsetp.gt.u32 %q, %x, 0x80000000; @%q st.global.u32 [%at], %i;",
     "error", "%x", USED),
    ("a selection that drops it", SOME + "selp.b32 %y, %x, 3, %p; st.global.u32 [%at], %y;", None, "", ""),
    ("a selection by it", "@%p setp.eq.u32 %q, %i, 3;\nselp.b32 %y, 1, 2, %q; st.global.u32 [%at], %y;", "error", "%q",
     USED),
    ("how often a loop goes round", "@%p mov.u32 %x, 9; again:\nsub.u32 %x, %x, 0x40000000; add.u32 %y, %i, 1; "
     "setp.gt.s32 %q, %x, 0; @%q bra again; st.global.u32 [%at], %i;", "error", "%x", USED),
    ("the second of two", SOME + "@%p mov.u32 %y, 3; selp.b32 %x, %x, 3, %p;\nadd.u32 %y, %y, %x; "
     "st.global.u32 [%at], %y;", "error", "%y", USED),
]  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "text", "severity", "register", "more"), CASES, ids=[case[0] for case in CASES])
def test_reads_before_writes(
    name: str, text: str, severity: str | None, register: str, more: str, schedule: Any
) -> None:
    body = f"{HEAD} {text} ret;"
    report, _ = launch(body, [np.zeros(32, np.uint32)], schedule=schedule)
    found = [each for each in report.findings if each.code == "uninitialized-register"]
    assert len(found) == (severity is not None), report.summary()
    for each in found:
        assert each.severity == severity
        assert each.summary.endswith(f"reads uninitialized register {register}")
        assert more in each.message
        assert each.accesses[0].name == register
        assert register in each.instruction
    assert report.ok == (severity != "error"), report.summary()
    assert "uninitialized-register" not in codes(launch(body, [np.zeros(32, np.uint32)], checks=False)[0])


def test_a_launch_that_fails_tells_all() -> None:
    """Such a read may be why."""
    body = f"{HEAD} {SOME} add.u32 %y, %x, 1; trap; st.global.u32 [%at], %y; ret;"
    report, _ = launch(body, [poisoned(32)])
    assert (report.status, codes(report)) == ("fault", ["trap", "uninitialized-register"]), report.summary()


def test_a_launch_that_leaves_poison_in_poison() -> None:
    """Memory is as before, but a rerun changes it."""
    report, _ = launch(f"{HEAD} {SOME} xor.b32 %y, %x, 0; @!%p st.global.u32 [%at], %y; ret;", [poisoned(32)])
    (found,) = report.findings
    assert found.summary.endswith("reads uninitialized register %x")
    assert LEFT in found.message


def test_registers_that_matter_only_together() -> None:
    """The sum is 20 or more while any of the ten is other than zero or one."""
    sets = "".join(f"@%p mov.u32 %v{i}, 1; " for i in range(10))
    sums = "".join(f"min.u32 %y, %v{i}, 3; add.u32 %z, %z, %y; " for i in range(10))
    body = f"""{HEAD} .reg .u32 %v<10>;
{sets} mov.u32 %z, 0;
{sums} setp.ge.u32 %q, %z, 4;
selp.b32 %y, 1, 2, %q;
        st.global.u32 [%at], %y;
        ret;
        """
    report, _ = launch(body, [np.zeros(32, np.uint32)])
    found = {each.accesses[0].name for each in report.findings}
    assert found == {f"%v{i}" for i in range(10)}, report.summary()
    assert {each.severity for each in report.findings} == {"error"}


def test_each_of_many_registers_is_judged_by_itself() -> None:
    """Twelve are read, of which one matters."""
    sets = "".join(f"@%p mov.u32 %v{i}, 1; " for i in range(12))
    reads = "".join(f"add.u32 %y, %v{i}, 1; " for i in range(12) if i != 2)
    body = f"{HEAD} .reg .u32 %v<12>; {sets} {reads} add.u32 %y, %v2, 1; st.global.u32 [%at], %y; ret;"
    report, _ = launch(body, [np.zeros(32, np.uint32)])
    assert [each.accesses[0].name for each in report.findings] == ["%v2"], report.summary()


def test_accumulators_of_a_warpgroup() -> None:
    """scale-d tells whether the product reads them; A in registers is read in any case."""
    head = """.reg .b32 %d<4>, %a<4>, %z;
.reg .pred %p; .reg .b64 %desc;
mov.u64 %desc, 64;
        mov.u32 %z, %ctaid.x;
        setp.ne.u32 %p, %z, FLAG;
        """
    body = """wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, A, %desc, %p, 1, 1, B;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        .reg .b64 %to; .reg .u32 %t;
        mov.u32 %t, %tid.x;
        mul.wide.u32 %to, %t, 16;
        add.u64 %to, %to, %out0;
        st.global.v4.b32 [%to], {%d0, %d1, %d2, %d3};
        ret;
        """
    stores = """.shared .align 1024 .b32 s[2048];
.reg .u32 %k, %at;
mov.u32 %k, %tid.x;
mov.u32 %z, s;
        mad.lo.u32 %at, %k, 4, %z;
        STORES fence.proxy.async;
        bar.sync 0;
        """
    stores = stores.replace("STORES", "".join(f"st.shared.u32 [%at + {512 * i}], 0x3C003C00;" for i in range(16)))
    a = "".join(f"mov.u32 %a{i}, 0; " for i in range(4))
    for flag, source, sets, expected in (
        (0, "%desc", "", []),
        (1, "%desc", "", ["%d0", "%d1", "%d2", "%d3"]),
        (0, "{%a0, %a1, %a2, %a3}", a, []),
        (0, "{%a0, %a1, %a2, %a3}", a.replace("mov.u32 %a2, 0;", ""), ["%a2"]),
    ):
        text = head.replace("FLAG", str(flag)) + sets + stores
        text += body.replace("A,", f"{source},").replace("B;", "0, 0;" if source == "%desc" else "0;")
        report, _ = launch(text, [poisoned(512)], block=128, target="sm_90a", kernel_target="sm_90a")
        found = [each for each in report.findings if each.code == "uninitialized-register"]
        assert sorted(each.accesses[0].name for each in found) == expected, report.summary()
        assert all(each.severity == "error" for each in found)


def test_ctas_that_come_later_begin_anew() -> None:
    """A slot's next CTA does not inherit what the one before it wrote."""
    body = f"""{HEAD} mov.u32 %y, %ctaid.x;
setp.eq.u32 %q, %y, 0;
@%q mov.u64 %a, %at;
setp.eq.u32 %p, %y, 1;
        @%p st.global.u32 [%a], %i;
        ret;
        """
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
