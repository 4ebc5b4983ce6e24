"""What is made of registers that nothing has written is followed until it goes elsewhere: only then is a rerun made."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import uninitialized
from ptxgen.emulator.checks.uninitialized import rerun
from ptxgen.emulator.checks.uninitialized.suspects import Suspects
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from tests.support.harness import launch, module, poisoned

HEAD = """
    .reg .b64 %at, %wide, %w<3>; .reg .b32 %i, %x, %y, %z, %r<10>; .reg .b16 %h<3>; .reg .pred %p, %q, %s;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %wide, %i, 4;
    add.u64 %at, %out0, %wide;
    setp.lt.u32 %p, %i, 16;
    @%p mov.b32 %x, 5;
"""


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rerun of launches since."""
    found: list[Any] = []
    inner = rerun.Rerun.verdicts

    def verdicts(self: Any, sources: Any) -> Any:
        found.append(sources)
        return inner(self, sources)

    monkeypatch.setattr(rerun.Rerun, "verdicts", verdicts)
    return found


BUTTERFLY = "shfl.sync.bfly.b32 %y, %x, {}, 31, -1; add.u32 %x, %x, %y; "
STAYS = {
    "nothing is made of it": "add.u32 %y, %x, 1; st.global.u32 [%at], %i;",
    "its lanes store nothing": "add.u32 %y, %x, 1; @%p st.global.u32 [%at], %y;",
    "lanes are reduced that have it": "".join(BUTTERFLY.format(1 << n) for n in range(4))
    + "@%p st.global.u32 [%at], %x;",
    "it is overwritten": "add.u32 %y, %x, 1; mov.b32 %y, %i; st.global.u32 [%at], %y;",
    "a load overwrites it": "add.u32 %y, %x, 1; ld.global.u32 %y, [%at]; st.global.u32 [%at], %y;",
    "bytes are left out": "prmt.b32 %y, %i, %x, 0x1010; st.global.u32 [%at], %y;",
    "bytes are left out later": "prmt.b32 %y, %i, %x, 0x7610; prmt.b32 %y, %y, %i, 0x5410; st.global.u32 [%at], %y;",
    "a half of a vector is left out": "mov.b64 %w0, {%i, %x}; add.f32x2 %w0, %w0, %w0; mov.b64 {%y, _}, %w0; "
    "st.global.u32 [%at], %y;",
    "a quarter is left out": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b64 %w0, {%h0, %h1, %h0, %h2}; "
    "mov.b64 {%h0, _, %h1, _}, %w0; mov.b32 %y, {%h0, %h1}; st.global.u32 [%at], %y;",
    "a half of a half is left out": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b32 %y, {%h0, %h1}; "
    "mov.b64 %w0, {%i, %y}; mov.b64 {_, _, %h0, _}, %w0; mov.b32 %y, {%h0, %h0}; st.global.u32 [%at], %y;",
    "a branch by something else": "setp.eq.u32 %q, %x, 3; @%p bra over; mov.u32 %y, %x; over: st.global.u32 [%at], %i;",
}
LEAVES = {
    "st.global": "add.u32 %y, %x, 1; st.global.u32 [%at], %y;",
    "st.shared": ".shared .b32 s[32]; mov.b32 %z, s; mad.lo.u32 %z, %i, 4, %z; st.shared.u32 [%z], %x; "
    "st.global.u32 [%at], %i;",
    "atom": "add.u32 %y, %x, 1; red.global.add.u32 [%out0], %y;",
    "an address": "and.b32 %y, %x, 4; cvt.u64.u32 %w0, %y; add.u64 %w0, %w0, %out0; st.global.u32 [%w0], 1;",
    "a guard": "setp.eq.u32 %q, %x, 3; @%q st.global.u32 [%at], %i; st.global.u32 [%out0], 1;",
    "a branch": "setp.eq.u32 %q, %x, 3; @%q bra over; mov.b32 %y, 1; over: st.global.u32 [%at], %i;",
    "a vote": "setp.eq.u32 %q, %x, 3; vote.sync.any.pred %s, %q, -1; st.global.u32 [%at], %i;",
    "a reduction": "redux.sync.add.u32 %y, %x, -1; st.global.u32 [%at], %i;",
    "the lane of a shuffle": "shfl.sync.idx.b32 %y, %i, %x, 31, -1; st.global.u32 [%at], %i;",
    "a carry": "add.cc.u32 %y, %x, 1; addc.u32 %z, 0, 0; st.global.u32 [%at], %z;",
    "a byte of a permutation": "prmt.b32 %y, %i, %x, 0x3250; st.global.u32 [%at], %y;",
    "the control of a permutation": "prmt.b32 %y, %i, %i, %x; st.global.u32 [%at], %y;",
    "a half of a vector": "mov.b64 %w0, {%i, %x}; add.f32x2 %w0, %w0, %w0; mov.b64 {_, %y}, %w0; "
    "st.global.u32 [%at], %y;",
    "a quarter": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b64 %w0, {%h0, %h0, %h2, %h0}; "
    "mov.b64 {_, _, %h1, _}, %w0; mov.b32 %y, {%h0, %h1}; st.global.u32 [%at], %y;",
    "a quarter of a half": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b64 %w0, {%h0, %h1, %h0, %h0}; "
    "mov.b64 {%y, _}, %w0; st.global.u32 [%at], %y;",
    "a half of a half": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b32 %y, {%h0, %h1}; mov.b64 %w0, {%i, %y}; "
    "mov.b64 {_, _, _, %h0}, %w0; mov.b32 %y, {%h0, %h0}; st.global.u32 [%at], %y;",
    "a byte of a half": "prmt.b32 %y, %i, %x, 0x3240; mov.b64 %w0, {%y, %i}; mov.b64 {%h0, _, _, _}, %w0; "
    "mov.b32 %y, {%h0, %h0}; st.global.u32 [%at], %y;",
    "a half of 128 bits": ".reg .b128 %v; cvt.u64.u32 %w0, %i; cvt.u64.u32 %w1, %x; mov.b128 %v, {%w0, %w1}; "
    "mov.b128 {_, %w2}, %v; st.global.u64 [%out0], %w2;",
    "a wider register": "cvt.u16.u32 %h0, %i; mov.b32 {%h1, %h2}, %x; mov.b64 %w0, {%h0, %h1, %h0, %h0}; "
    "st.global.u32 [%at], %w0;",
    "a shuffle": "shfl.sync.bfly.b32 %y, %x, 16, 31, -1; @%p st.global.u32 [%at], %y;",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays_needs_no_trial(text: str, tried: list[Any]) -> None:
    report, _ = launch(f"{HEAD} {text} ret;", [np.zeros(32, np.uint32)])
    assert (report.status, report.findings, tried) == ("ok", [], [])


@pytest.mark.parametrize("text", LEAVES.values(), ids=LEAVES)
def test_what_leaves_is_tried(text: str, tried: list[Any]) -> None:
    launch(f"{HEAD} {text} ret;", [np.zeros(32, np.uint32)])
    assert len(tried) == 1


def test_a_later_cta_begins_with_nothing(tried: list[Any]) -> None:
    """What the first CTA has written in %x, its successor has not."""
    body = f"{HEAD} mov.u32 %y, %ctaid.x; setp.eq.u32 %q, %y, 0; setp.ne.u32 %s, %y, 0; "
    body += "add.u32 %z, %x, 1; @%q mov.b32 %x, 1; @%q mov.b32 %z, 1; {} st.global.u32 [%at], %z; ret;"
    launch(body.format("@%q"), [np.zeros(32, np.uint32)], grid=2, multiprocessors=1)
    assert not tried
    launch(body.format("@%s"), [np.zeros(32, np.uint32)], grid=2, multiprocessors=1)
    assert len(tried) == 1


def test_functions_that_call_themselves_are_tried(tried: list[Any]) -> None:
    """Their registers are kept elsewhere while they do."""
    items = """.func (.reg .b32 %d) again(.reg .b32 %n) { .reg .pred %p;
.reg .b32 %m;
setp.eq.u32 %p, %n, 0;
        mov.b32 %d, 1;
        @%p ret;
        sub.u32 %m, %n, 1;
        call (%m), again, (%m);
        add.u32 %d, %m, 1;
        ret;
        }"""
    text = "add.u32 %y, %x, 1; mov.b32 %z, 3; call (%z), again, (%z); st.global.u32 [%at], %z;"
    report, _ = launch(f"{HEAD} {text} ret;", [np.zeros(32, np.uint32)], items=items)
    assert (report.status, len(tried)) == ("ok", 1), report.summary()


#: An instruction of each kind, on 32-bit registers D, A, B and C, or on what they are turned into.
OPERATIONS = """
    abs.s32 D, A;
    add.u32 D, A, B;
    and.b32 D, A, B;
    bfe.u32 D, A, 3, 7;
    bfi.b32 D, A, B, 3, 7;
    bfind.u32 D, A;
    bmsk.clamp.b32 D, 3, A; brev.b32 D, A; clz.b32 D, A; cnot.b32 D, A; copysign.f32 D, A, B; cos.approx.f32 D, A;
    cvt.rn.f32.u32 D, A;
    div.u32 D, A, B;
    dp2a.lo.u32.u32 D, A, B, C;
    dp4a.u32.u32 D, A, B, C;
    ex2.approx.f32 D, A;
    fma.rn.f32 D, A, B, C; fns.b32 D, A, 3, 1; lg2.approx.f32 D, A; lop3.b32 D, A, B, C, 0x1B; mad.lo.u32 D, A, B, C;
    mad24.lo.u32 D, A, B, C;
    max.u32 D, A, B;
    min.s32 D, A, B;
    mov.b32 D, A;
    mul.lo.u32 D, A, B;
    mul24.lo.u32 D, A, B;
    neg.s32 D, A; not.b32 D, A; or.b32 D, A, B; popc.b32 D, A; prmt.b32 D, A, B, 0x6F14; prmt.b32 D, A, B, C;
    prmt.b32 D, A, B, 0x3210; rcp.approx.f32 D, A; rem.u32 D, A, B; rsqrt.approx.f32 D, A; sad.u32 D, A, B, C;
    selp.b32 D, A, B, %p;
    setp.lt.u32 %q, A, B\tselp.b32 D, B, C, %q;
    set.lt.u32.u32 D, A, B;
    shf.l.wrap.b32 D, A, B, 5;
    shl.b32 D, A, 3; shr.u32 D, A, B; sin.approx.f32 D, A; slct.u32.s32 D, A, B, C; sqrt.approx.f32 D, A;
    sub.u32 D, A, B; szext.wrap.u32 D, A, 5; tanh.approx.f32 D, A; testp.finite.f32 %q, A\tselp.b32 D, 1, 2, %q;
    xor.b32 D, A, B;
    mov.b64 %w0, {A, B}\tmov.b64 {D, %z}, %w0;
    mov.b32 {%h0, %h1}, A\tmov.b32 D, {%h1, %h0};
    mov.b64 %w0, {A, B}\tmov.b64 %w1, {B, C}\tfma.rn.f32x2 %w0, %w0, %w1, %w1\tmov.b64 {D, %z}, %w0;
    mov.b64 %w0, {A, B}\tadd.f32x2 %w0, %w0, %w0\tmov.b64 {%z, D}, %w0; mov.b32 {%h0, %h1}, A\tmov.b32 {%h1, %h2},
    B\tmov.b64 %w0, {%h0, %h1, %h1, %h2}\tmov.b64 {%h2, %h1, %h0, _}, %w0\tmov.b32 D, {%h1, %h0};
    shfl.sync.bfly.b32 D, A, 3, 31, -1;
    shfl.sync.up.b32 D, A, 9, 0, -1;
    @%p mov.b32 D, A;
    mul.wide.u16 D, %h0, %h1
""".replace("\n", " ").split(";")


#: Families of lanewise instructions that are not tried: addresses, policies, queries, and what compilers do not emit.
UNTRIED = {"address", "cache", "cluster", "fabric", "mbarrier", "sparse", "surface", "texture", "video"}


def test_every_kind_of_instruction_is_there() -> None:
    opcodes = {part.split()[0].partition(".")[0] for each in OPERATIONS for part in each.split("\t")}
    load_all()
    forms = [form.form for forms in REGISTRY.values() for form in forms if form.form.traits.traits.lanewise]
    lanewise = {form.opcode.partition(".")[0] for form in forms if form.key.partition(".")[0] not in UNTRIED}
    assert lanewise - {"clmad"} == opcodes - {"@%p", "shfl"}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", range(150))
def test_what_is_not_tried_is_dropped(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random arithmetic on registers, some of which nothing has written in some lanes: whatever it is that is stored,
    rerun find it dropped if it seems to stay.
    """
    rng = random.Random(seed)
    d, lines = "", ["mov.b32 %h0, 3;".replace("b32", "b16"), "mov.b16 %h1, 5;"]
    lines += [f"mad.lo.u32 %r{n}, %i, {rng.randrange(1 << 32)}, {rng.randrange(1 << 32)};" for n in range(6)]
    for _ in range(rng.randrange(3)):
        bound = rng.randrange(33)
        lines.append(f"setp.lt.u32 %s, %i, {bound}; @%s mov.b32 %r{rng.randrange(6, 10)}, {rng.randrange(1 << 32)};")
    for _ in range(rng.randrange(2, 9)):
        operation = rng.choice(OPERATIONS).strip().replace("\t", ";")
        d, *sources = (f"%r{rng.randrange(10)}" for _ in range(4))
        words = {"D": d, **dict(zip("ABC", sources, strict=True))}
        for name, register in words.items():
            for before in (" ", "{"):
                operation = operation.replace(f"{before}{name}", f"{before}{register}")
        lines.append(operation + ";")
    lines.append(f"setp.lt.u32 %s, %i, {rng.randrange(33)}; {rng.choice(['@%s', '@!%s'])} st.global.u32 [%at], {d};")
    seen: dict[str, Any] = {}
    settled = Suspects.settled

    def watched(self: Suspects, verdicts: Any, *, failed: bool) -> Any:
        seen.update(matter=self.registers_may_matter, sources=self.sources, verdicts=dict(verdicts))
        return settled(self, verdicts, failed=failed)

    monkeypatch.setattr(Suspects, "settled", watched)
    body = HEAD + "\n".join(lines) + " st.global.u32 [%out0+128], 1; ret;"
    report, (first,) = launch(body, [poisoned(40)])
    assert report.status in ("ok", "findings"), report.summary()
    if not seen["sources"] or seen["matter"]:
        return
    for byte in (0x00, 0x31, 0x7B, 0xFF):
        monkeypatch.setattr("ptxgen.emulator.state.machine.POISON_BYTE", byte)
        _, (again,) = launch(body, [poisoned(40)])
        assert (first == again).all(), body


def test_of_many_reads_one_of_each_source_is_kept() -> None:
    findings = Findings()
    suspects = findings.suspects
    statement = Kernel.from_ptx(module("ret;")).entry
    for number in range(300):
        found = uninitialized.UNINITIALIZED_LOCAL.finding(statement, summary=f"{number}", rule="", fix="")
        suspects.report("local", found, plain=False)
    last = uninitialized.UNINITIALIZED_REGISTER.finding(statement, summary="the last", rule="", fix="")
    suspects.report(7, last, plain=False)
    findings.settle({"local": "dropped", 7: "used"}, failed=False)
    (kept,) = findings.list()
    assert (kept.severity, "the last. " in kept.message) == ("error", True)
