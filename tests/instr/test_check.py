"""`check` on single lines: each row is a line and the code of its first error, None where it is legal.

What is legal here assembles, and what is an error does not (`test_rows_agree_with_ptxas`).
"""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from ptxgen import PtxSyntaxError, check
from ptxgen.instr.logic import shl
from ptxgen.instr.model import check as checking
from ptxgen.instr.model.form import REGISTRY, Rule
from ptxgen.toolchain import AssemblerError, assemble_many
from tests.support.instr_tables import FAMILIES, LINE, diagnose, module, rows

ROWS: list[tuple[str, str | None]] = [
    # Register types: same width, integers and floats apart, untyped registers for both (9.4.2).
    ("add.u32 %r1, %u2, 1;", None),
    ("add.s32 %u1, %u2, %r3;", None),
    ("add.f32 %f1, %r2, %f3;", None),
    ("and.b32 %f1, %f2, %r3;", None),
    ("add.u32 %f1, %r2, 1;", "operand-type"),
    ("add.f32 %u1, %f2, %f3;", "operand-type"),
    ("add.u32 %r1, %rd2, 1;", "operand-type"),
    ("add.u32 %p1, %r2, 1;", "operand-type"),
    # ld, st and cvt take wider registers (9.4.1).
    ("ld.global.u8 %r1, [%rd1];", None),
    ("ld.global.f32 %rd1, [%rd1];", None),
    ("ld.global.b16 %f1, [%rd1];", None),
    ("ld.global.f32 %fd1, [%rd1];", "operand-type"),
    ("ld.global.u16 %f1, [%rd1];", "operand-type"),
    ("ld.global.u64 %r1, [%rd1];", "operand-type"),
    ("cvt.u16.u32 %r1, %r2;", None),
    ("cvt.rn.bf16.f32 %h1, %f1;", None),
    ("cvt.rn.bf16.f32 %r1, %f1;", "operand-type"),
    # What belongs to a call.
    ("{ .param .b32 taken; st.param.b32 [taken], %r1; }", None),
    ("{ .param .b32 taken; @%p1 st.param.b32 [taken], %r1; }", "guard"),
    # Constants.
    ("add.u32 %r1, %r2, -5;", None),
    ("add.u32 %r1, %r2, 5000000000;", None),
    ("add.u32 %r1, %r2, (1 << 4) | 2;", None),
    ("add.u32 %r1, %r2, WARP_SZ;", None),
    ("add.u32 %r1, %r2, 1.0;", "operand-type"),
    ("add.f32 %f1, %f2, 1.0;", None),
    ("add.f32 %f1, %f2, 0d3FF0000000000000;", None),
    ("add.f32 %f1, %f2, 1;", "operand-type"),
    ("add.f32 %f1, %f2, -1.5;", None),
    ("mov.b32 %r1, 0f3F800000;", None),
    ("mov.b32 %r1, 1.0;", "operand-type"),
    ("mov.b64 %rd1, 1.0;", None),
    ("mov.u32 %r1, 0f3F800000;", "operand-type"),
    ("add.u16x2 %r1, %r2, 1;", "operand-kind"),
    # Of what ptxas overlooks: too many, in a name, and on other instructions than those that overlook it.
    ("ldmatrix.sync.aligned.m8n8.x1.row.row.row.shared.b16 {%r1}, [%r4];", "unknown-modifier"),
    ("add.b2.f32 %f1, %f2, %f3;", "unknown-modifier"),
    ("mul.b2.f32 %f1, %f2, %f3;", "unknown-modifier"),
    ("mul.b2.lo.u32 %r1, %r2, %r3;", "unknown-modifier"),
    ("not.texref.b32 %r1, %r2;", "unknown-modifier"),
    ("add.rank.box_dim.u32 %r1, %r2, %r3;", "unknown-modifier"),
    ("fence.proxy.alias.global;", "unknown-modifier"),
    ("bar.rank.cta.sync 0;", "unknown-modifier"),
    (
        "mma.sync.aligned.m16n8k8.row.u4.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r1}, {%r1, %r2};",
        "unknown-modifier",
    ),
    # A first result and a sink that the instruction does not have.
    ("and.b32 %r1|%p1, %r2, %r3;", "operand-count"),
    ("and.b32 _|_, %r2, %r3;", "operand-count"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}|_, [%r4];", "operand-count"),
    ("bar.sync 15;", None),
    ("bar.sync 16;", "immediate-range"),
    ("bar.sync 0, 64;", None),
    ("bar.sync 0, 33;", "immediate-range"),
    ("mbarrier.init.shared.b64 [smem], 0;", "immediate-range"),
    ("mov.pred %p1, 1.0;", "operand-type"),
    # Names.
    ("mov.u32 %r1, %r139;", None),
    ("mov.u32 %r1, %r0139;", None),
    ("mov.u32 %r1, %r140;", "undeclared-name"),
    ("mov.u32 %r1, %nothing;", "undeclared-name"),
    ("add.u32 _, %r1, 1;", "operand-kind"),
    ("bra here;", None),
    ("bra there;", "undeclared-name"),
    ("bra helper;", "operand-kind"),
    # Special registers: where, and as what.
    ("mov.u32 %r1, %tid.x;", None),
    ("mov.u16 %h1, %ctaid.z;", None),
    ("mov.u32 %r1, %gridid;", None),
    ("mov.u64 %rd1, %clock64;", None),
    ("cvt.u64.u32 %rd1, %laneid;", None),
    ("mov.u16 %h1, %laneid;", "operand-type"),
    ("mov.u32 %r1, %clock64;", "operand-type"),
    ("mov.f32 %f1, %tid.x;", "operand-type"),
    ("cvt.rn.f32.u32 %f1, %tid.x;", "operand-kind"),
    ("add.u32 %r1, %tid.x, 1;", "operand-kind"),
    ("mov.u32 %tid.x, %r1;", "operand-kind"),
    ("mov.u32 %r1, %tid;", "vector-length"),
    ("mov.pred %p1, %is_explicit_cluster;", None),
    # Addresses of variables and functions.
    ("mov.u32 %r1, smem;", None),
    ("mov.u64 %rd1, array+16;", None),
    ("mov.u64 %rd1, helper;", None),
    ("mov.u64 %rd1, pointer;", None),
    ("mov.u32 %r1, array;", "operand-type"),
    ("mov.f64 %fd1, array;", "operand-type"),
    ("mov.u64 %rd1, here;", "operand-kind"),
    ("cvta.global.u64 %rd1, array;", None),
    ("cvta.global.u64 %rd1, smem;", "state-space"),
    # Addresses in brackets.
    ("ld.shared.u32 %r1, [smem+8];", None),
    ("ld.shared.u32 %r1, [%r1+-4];", None),
    ("ld.u32 %r1, [local];", None),
    ("ld.param.u32 %r1, [size];", None),
    ("ld.local.u32 %r1, [16];", None),
    ("ld.shared.u32 %r1, [array];", "state-space"),
    ("ld.u32 %r1, [table];", "state-space"),
    ("st.param.u32 [size], %r1;", "state-space"),
    ("st.param.u32 [%rd1], %r1;", "operand-kind"),
    ("ld.global.u32 %r1, [%r1];", "operand-type"),
    ("ld.global.u32 %r1, [%f1];", "operand-type"),
    ("ld.global.u32 %r1, [16];", "operand-kind"),
    ("ld.global.u32 %r1, [here];", "operand-kind"),
    ("ld.global.u32 %r1, [nothing];", "undeclared-name"),
    ("ld.global.u32 %r1, %rd1;", "operand-count"),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%rd1];", "operand-type"),
    # Vectors.
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", None),
    ("ld.global.v2.u32 {_, %r2}, [%rd1];", None),
    ("ld.global.v2.u32 {%f1, %r2}, [%rd1];", None),
    ("ld.global.b32 {%r1}, [%rd1];", None),
    ("ld.global.v4.f32 %v4, [%rd1];", None),
    ("mov.f32 %f1, %v4.w;", None),
    ("ld.global.v2.b32 %v4, [%rd1];", "vector-length"),
    ("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];", "vector-length"),
    ("ld.global.v2.u32 {%f1, %f2}, [%rd1];", "operand-type"),
    ("ld.global.v2.u32 {%f1, %u2}, [%rd1];", "operand-type"),
    ("ld.global.v2.u32 {_, _}, [%rd1];", "operand-kind"),
    ("ld.global.u32 _, [%rd1];", "operand-kind"),
    ("ld.global.v2.b8 {%h1, %r1}, [%rd1];", "operand-type"),
    ("mov.b64 {%r1, _}, %rd1;", None),
    ("mov.b64 %rd1, {%r1, %tid.x};", None),
    ("mov.b32 %r1, {%h1, 1};", None),
    ("mov.b32 %r1, {%p1, %p2};", "operand-type"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {_, %r1}, [%r2];", "operand-kind"),
    # Predicates, guards, pairs.
    ("@%p1 add.u32 %r1, %r2, 1;", None),
    ("@!%p1 bra here;", None),
    ("@%r1 add.u32 %r1, %r2, 1;", "operand-type"),
    ("@%nothing add.u32 %r1, %r2, 1;", "undeclared-name"),
    ("setp.eq.u32 %p1|_, %r1, 2;", None),
    ("setp.eq.u32 _, %r1, 2;", None),
    ("setp.eq.and.u32 %p1, %r1, 2, !%p2;", None),
    ("setp.eq.u32 %r1, %r1, 2;", "operand-type"),
    ("elect.sync _|%p1, %r1;", None),
    ("elect.sync %r1, %r1;", "operand-count"),
    ("elect.sync %r1|_, %r1;", "operand-kind"),
    # Modifiers.
    ("ld.u32.global %r1, [%rd1];", None),
    ("add.f32.ftz.rn %f1, %f2, %f3;", None),
    ("mul.u32 %r1, %r2, %r3;", "missing-modifier"),
    ("mul.u32.lo %r1, %r2, %r3;", "modifier-order"),
    ("cvt.rn.bf16.f32.relu %h1, %f1;", None),
    ("cvt.rn.relu.f32.bf16 %h1, %f1;", "unknown-modifier"),
    ("cp.async.bulk.tensor.shared::cta.1d.global.mbarrier::complete_tx::bytes [smem], [%rd1, {%r1}], [smem];", None),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.mbarrier::complete_tx::bytes [smem], [%rd1, {%r1}], [smem];",
        "unknown-modifier",
    ),
    ("add.u33 %r1, %r2, %r3;", "unknown-modifier"),
    ("testp.finite.normal.f32 %p1, %f1;", "unknown-modifier"),
    ("tensormap.replace.tile.rank.box_dim.global.b1024.b32 [%rd1], 1;", "unknown-modifier"),
    ("add.box_dim.u33 %r1, %r2, %r3;", "unknown-modifier"),
    ("tcgen05.box_dim.wait::ld.sync.aligned;", "unknown-modifier"),
    ("add.u32.u32 %r1, %r2, %r3;", "repeated-modifier"),
    ("cvt.u32.f32 %r1, %f1;", "cvt.rounding"),
    ("cvt.sat.u64.u32 %rd1, %r1;", "cvt.sat"),
    ("cvt.rn.ftz.f64.u32 %fd1, %r1;", "cvt.ftz"),
    ("add.ftz.f64 %fd1, %fd2, %fd3;", "add.f32-only"),
    ("min.relu.u32 %r1, %r2, %r3;", "min.relu"),
    ("max.NaN.xorsign.abs.f32 %f1, %f2, %f3;", None),
    ("max.xorsign.f32 %f1, %f2, %f3;", "max.xorsign"),
    ("setp.lo.s32 %p1, %r1, %r2;", "setp.compare"),
    ("ld.shared.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [smem];", "ld.width"),
    ("mbarrier.arrive.release.b64 %rd1, [smem];", "arrive.semantics"),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [smem], 48;", "alloc.columns"),
    ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 16 + 2;", "dealloc.columns"),
    ("add.u32 %r1, %r2;", "operand-count"),
    ("frobnicate.u32 %r1;", "unknown-instruction"),
    ("add.u32 %r1, %r2, %r3, %r4;", "operand-count"),
]

#: Lines that are legal or not according to target and version.
GATES: list[tuple[str, str, str, str | None]] = [
    ("fence.proxy.async;", "sm_90", "8.0", None),
    ("fence.proxy.async;", "sm_89", "8.0", "target"),
    ("fence.proxy.async;", "sm_90", "7.8", "ptx-version"),
    ("tcgen05.wait::ld.sync.aligned;", "sm_100a", "8.6", None),
    ("tcgen05.wait::ld.sync.aligned;", "sm_100f", "8.8", None),
    ("tcgen05.wait::ld.sync.aligned;", "sm_100", "8.6", "target"),
    ("tcgen05.wait::ld.sync.aligned;", "sm_120a", "8.8", "target"),
    ("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", "sm_100", "8.8", None),
    ("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", "sm_90", "8.8", "target"),
    ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", "sm_90", "8.8", "target"),
    ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];", "sm_90", "8.8", None),
    ("cvt.f32.bf16 %f1, %h1;", "sm_80", "7.1", None),
    ("cvt.f32.bf16 %f1, %h1;", "sm_80", "7.0", "ptx-version"),
    ("cvt.ftz.f32.bf16 %f1, %h1;", "sm_89", "8.0", "target"),
    ("mbarrier.test_wait.relaxed.cta.b64 %p1, [%rd1], %rd2;", "sm_90", "8.6", None),
    ("mbarrier.test_wait.relaxed.cta.b64 %p1, [%rd1], %rd2;", "sm_90", "8.3", "ptx-version"),
    ("cvt.f32.bf16 %f1, %h1;", "sm_75", "7.1", "target"),
    ("cvt.f64.bf16 %fd1, %h1;", "sm_90", "7.8", None),
    ("cvt.f64.bf16 %fd1, %h1;", "sm_89", "7.8", "target"),
    ("mbarrier.arrive.shared.b64 %rd1, [smem];", "sm_80", "7.0", None),
    ("mbarrier.arrive.shared.b64 %rd1, [smem], 2;", "sm_80", "8.0", "target"),
    ("mbarrier.arrive.shared.b64 %rd1, [smem], 2;", "sm_90", "7.8", None),
    ("vote.any.pred %p1, %p2;", "sm_75", "6.3", None),
    ("vote.any.pred %p1, %p2;", "sm_75", "6.4", "removed"),
]

MULTICAST = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
WARNINGS = [
    ("ld.shared.u32 %r1, [%h1];", "address-width"),
    ("mbarrier.expect_tx.shared.b64 [smem], 1048576;", "immediate-range"),
    ("cvt.rn.relu.relu.bf16.f32 %h1, %f1;", "repeated-modifier"),
    ("elect.sync.sync _|%p1, %r1;", "repeated-modifier"),
    ("add.box_dim.u32 %r1, %r2, %r3;", "overlooked-modifier"),
    ("tcgen05.wait::ld.sync.aligned.acc::f32;", "overlooked-modifier"),
    ("ld.normal.shared.u32 %r1, [smem];", "overlooked-modifier"),
    ("ldmatrix.sync.aligned.m8n8.x1.row.shared.b16 {%r1}, [%r4];", "overlooked-modifier"),
    ("tcgen05.st.sync.aligned.32x32b.x1.col.b32 [%r1], {%r2};", "overlooked-modifier"),
    ("add.texref.f32 %f1, %f2, %f3;", "overlooked-modifier"),
    ("cvt.rn.pred.bf16.f32 %h1, %f1;", "overlooked-modifier"),
    ("mul.lo.b2.u32 %r1, %r2, %r3;", "overlooked-modifier"),
    ("bar.sync.b2 0;", "overlooked-modifier"),
    ("fence.sc.async.cta;", "overlooked-modifier"),
    ("fence.proxy.alias.sync_restrict::shared::cta;", "overlooked-modifier"),
    (
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16.u4 {%r1, %r2}, {%r1, %r2}, {%r1}, {%r1, %r2};",
        "overlooked-modifier",
    ),
    ("and.b32 %r1|_, %r2, %r3;", "overlooked-result"),
    ("ld.global.u32 %r1|_, [%rd1];", "overlooked-result"),
    ("cvt.rn.bf16.f32 %h1|_, %f1;", "overlooked-result"),
    (f"{MULTICAST} [smem], 3;", "old-ptxas"),
]


@pytest.mark.parametrize(("line", "code"), ROWS, ids=[row[0] for row in ROWS])
def test_row(line: str, code: str | None) -> None:
    found = diagnose(line)
    assert [each.code for each in found if each.severity == "error"][:1] == ([code] if code else [])
    assert code is None or len(found) == 1, "one fault, one message"


@pytest.mark.parametrize(("line", "target", "version", "code"), GATES)
def test_target_and_version(line: str, target: str, version: str, code: str | None) -> None:
    found = [each.code for each in diagnose(line, target, version) if each.severity == "error"]
    assert found == ([code] if code else [])


@pytest.mark.parametrize(("line", "code"), WARNINGS)
def test_warnings_leave_the_text_legal(line: str, code: str) -> None:
    assert [(each.code, each.severity) for each in diagnose(line)] == [(code, "warning")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("wgmma.fence.sync;", "missing modifier: wgmma.fence requires .aligned; ptxas takes it without"),
        ("wgmma.wait_group.sync 1;", "missing modifier: wgmma.wait_group requires .aligned; ptxas takes it without"),
        ("wgmma.commit_group.sync.row;", None),
    ],
)
def test_what_the_manual_requires_of_wgmma_and_ptxas_does_not(line: str, message: str | None) -> None:
    (found,) = diagnose(line, "sm_90a", "8.0")
    assert found.severity == ("warning" if message else "error")
    assert message is None or message in str(found)


def test_what_older_releases_of_ptxas_refuse() -> None:
    (found,) = diagnose(f"{MULTICAST} [smem], 3;", "sm_100a", "9.3")
    assert "ptxas before 13.4 refuses a constant mask; a register works with every ptxas" in found.message
    assert not diagnose(f"{MULTICAST} [smem], 3;", "sm_100a", "9.4")
    assert not diagnose(f"{MULTICAST} [smem], %h1;", "sm_100a", "8.6")


#: Where we refuse what ptxas takes; see tools/certify/irreconcilable.py for the reasons.
STRICTER: set[str] = set()


def test_rows_agree_with_ptxas() -> None:
    rows = [(line, "sm_100a", "9.0", code) for line, code in ROWS if line not in STRICTER] + GATES
    rows += [(line, "sm_100a", "9.0", None) for line, _ in WARNINGS]
    answers = assemble_many([module(line, target, version) for line, target, version, _ in rows], options=["-O0"])
    wrong = [
        f"{line} ({target}, {version}): we say {code}, ptxas {answer}"
        for (line, target, version, code), answer in zip(rows, answers, strict=True)
        if isinstance(answer, AssemblerError) != (code is not None)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_rule_that_reads_modifiers_has_a_row() -> None:
    fired = {code for _, code in ROWS if code} | {code for *_, code in GATES if code}
    fired |= {row.verdict for family in FAMILIES for row in rows(family)}
    names = {code.rpartition(".")[2] for code in fired}
    rules = {rule.code.rpartition(".")[2] for forms in REGISTRY.values() for form in forms for rule in form.form.rules}
    assert rules - names <= {
        "gather",
        "scatter",
        "own-cta",
    }  # tested in test_form


def test_every_code_of_the_core_has_a_row() -> None:
    """The codes that operands and recognition can give, read from their sources."""
    import inspect

    from ptxgen.instr.model import form, recognize, symbols
    from ptxgen.instr.model.operands import compound, specification

    sources = [inspect.getsource(module) for module in (form, specification, compound, recognize, symbols)]
    codes = {code for source in sources for code in re.findall(r'Problem\(\s*"([a-z-]+)"', source)}
    rows = {code for _, code in ROWS} | {code for *_, code in GATES} | {code for _, code in WARNINGS}
    assert codes <= rows
    assert {"undeclared-name", "vector-length", "target"} <= codes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add.u32 %r1, %rd2, 1;", "operand type mismatch: a must be of type .u32, but %rd2 is declared .b64"),
        ("add.u32 %r1, %none, 1;", "undeclared name: %none is not declared; declare it, for example .reg .u32 %none;"),
        ("bar.sync 16;", "constant out of range: name must be 0 to 15, not 16"),
        ("bar.sync 0, 33;", "constant out of range: threads must be 0 or more in steps of 32, not 33"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 12;", "constant out of range: size must be 4, 8 or 16, not 12"),
        ("cp.async.cg.shared.global [%r1], [%rd1], 8;", "constant out of range: size must be 16, not 8"),
        ("ld.shared.u32 %r1, [array];", "state space mismatch: the address a must be in .shared, but array is .global"),
        (
            "ld.global.u32 %r1, [%r1];",
            "operand type mismatch: the address a is .global, so 64 bits wide, but %r1 is declared .b32",
        ),
        ("ld.global.v2.u32 {%r1}, [%rd1];", "vector length mismatch: d must have 2 elements, not 1"),
        ("mov.u32 %r1, %tid;", "vector length mismatch: a must be one register; %tid is a vector of 4, write %tid.x"),
        ("mov.u32 %r1, %clock64;", "operand type mismatch: %clock64 is read as a 64-bit integer, not as .u32"),
        ("@%r1 ret;", "operand type mismatch: the guard must be a .pred register, but %r1 is .b32"),
        (
            "setp.lo.s32 %p1, %r1, %r2;",
            "illegal instruction: setp of .s32 requires .eq .ne .lt .le .gt .ge, not .lo;"
            " the nearest legal form is setp.lt.s32",
        ),
    ],
)
def test_message_has_rule_value_and_remedy(line: str, message: str) -> None:
    assert [each.message for each in diagnose(line)] == [message]


def test_position_and_text_of_a_diagnostic() -> None:
    (found,) = check(module("    add.u33 %r1, %r2, %r3;"))
    assert (found.line, found.column, found.end_column) == (LINE, 8, 12)
    assert str(found).startswith(f"{LINE}:8: error: illegal modifier: .u33 of add must be .u32, .s32, .u64, ")
    assert str(found).endswith("; the nearest legal form is add.u32 [unknown-modifier]")
    assert found.nearest == "add.u32"


def test_diagnostics_do_not_depend_on_which_family_was_imported_first() -> None:
    text = module("    add.u33 %r1, %r2, %r3;")
    source = f"import ptxgen.instr.integer, ptxgen; print(ptxgen.check({text!r})[0])"
    made = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == str(check(text)[0])


#: A line with what is at fault between « and »; without them it is the whole statement.
PLACES = [
    "add.u32 %r1, %r1, «%rd2»;",
    "«@!%r1» add.u32 %r1, %r1, 1;",
    "add.u32 %r1, %r1,«%none»;",
    "add«.u33» %r1, %r2, %r3;",
    "cvt«.rn».u32.f32 %r1, %f1;",
    "setp«.lo».s32 %p1, %r1, %r2;",
    "add.rn«.ftz».f64 %fd1, %fd1, %fd1;",
    "bar.sync «16»;",
    "bar.sync 0, «33»;",
    "ld.shared.u32 %r1, «[array]»;",
    "ld.global.u32 %r1, «[%r1]»;",
    "ld.global.v2.u32 «{%r1}», [%rd1];",
    "ld.global.v2.u32 {%r1, «%none»}, [%rd1];",
    "setp.lt.s32 %p1|«%r3», %r1, %r2;",
    "mov.u32 %r1, «%clock64»;",
    "cp.async.cg.shared.global [%r1], [%rd1], «8»;",
    "tcgen05.ld.sync.aligned.32x32b«.x3».b32 {%r1, %r2, %r3}, [%r1];",
    "add.u32 %r1, %r1;",
    "frobnicate.u32 %r1;",
]


@pytest.mark.parametrize("marked", PLACES)
def test_a_diagnostic_points_at_what_is_at_fault(marked: str) -> None:
    line = marked.replace("«", "").replace("»", "")
    found = diagnose(line)[0]
    begin, _, rest = marked.partition("«")
    wanted = (line, 1) if not rest else (rest.partition("»")[0], len(begin) + 1)
    assert (line[found.column - 1 : found.end_column - 1], found.column) == wanted


def test_an_operand_on_another_line_leaves_the_statement() -> None:
    (found,) = diagnose("add.u32 %r1,\n    %r1, %rd2;")
    assert (found.column, found.end_column) == (1, 13)


def test_legal_lines_are_remembered_by_what_their_operands_are_not_by_their_names() -> None:
    """The second line repeats the first but for a register's type, in the same module."""
    found = check(
        module("add.u32 %r1, %r2, 1;\nadd.u32 %r1, %rd2, 1;\nadd.u32 %r3, %u2, 1;\nbar.sync 0;\nbar.sync 16;")
    )
    assert [(each.line - LINE, each.code) for each in found] == [(1, "operand-type"), (4, "immediate-range")]
    parts = "vadd2.u32.u32.u32 %r1, %r2, %r3, "
    found = check(module(f"{parts}%r4;\n{parts}%v2.x;"))
    assert [(each.line - LINE, each.code) for each in found] == [(1, "operand-kind")]


def test_rules_that_read_names_are_asked_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(made: shl) -> str | None:
        return "d must not be a" if made.d == made.a else None

    rules = (Rule("shl.differ", differ, reads_operands=True, reads_names=True),)
    monkeypatch.setattr(shl, "form", replace(shl.form, rules=rules))
    # What other tests have found legal by the real rules.
    monkeypatch.setattr(checking, "_remembered", lambda context: set())
    found = check(module("shl.b32 %r1, %r2, 1;\nshl.b32 %r1, %r1, 1;\nshl.b32 %r3, %r2, 1;"))
    assert [(each.line - LINE, each.code) for each in found] == [(1, "shl.differ")]


def test_return_values_are_written_and_parameters_are_not() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    body = "{ .reg .b32 %r1; st.param.b32 [result], %r1; st.param.b32 [given], %r1; ret; }"
    found = check(f"{head}.func (.param .b32 result) f(.param .b32 given) {body}")
    assert [each.message for each in found] == ["state space mismatch: the argument given cannot be written"]


def test_remembering_keeps_scopes_and_guards_apart() -> None:
    inner = "{ .reg .f32 %r1; add.u32 %r1, %r1, 1; }"
    found = check(module(f"add.u32 %r1, %r1, 1;\n{inner}\n@%r1 add.u32 %r1, %r1, 1;\nadd.u32 %r1, %r1, 1;"))
    assert [(each.line - LINE, each.code) for each in found] == [
        (1, "operand-type"),
        (1, "operand-type"),
        (2, "operand-type"),
    ]


@pytest.mark.parametrize(
    ("version", "target", "code", "line"),
    [
        ("8.6", "sm_90a", None, 0),
        ("7.8", "sm_90a", "target", 2),
        ("8.6", "sm_100f", "target", 2),
        ("8.8", "sm_100f", None, 0),
        ("8.6", "sm_80a", "target", 2),
        ("8.6", "compute_90", None, 0),
    ],
)
def test_header(version: str, target: str, code: str | None, line: int) -> None:
    found = check(f".version {version}\n.target {target}\n.entry k() {{ ret; }}\n")
    assert [(each.code, each.line) for each in found] == ([(code, line)] if code else [])


def test_target_argument_replaces_the_directive() -> None:
    text = module("tcgen05.wait::ld.sync.aligned;", "sm_90a", "9.0")
    assert [each.code for each in check(text)] == ["target"]
    assert check(text, "sm_100a") == []
    assert [each.message for each in check(text, "gfx942")] == [
        "unsupported target: 'gfx942' is not a target; write it like sm_90a, sm_100a or sm_120f"
    ]


def test_text_that_does_not_parse_raises() -> None:
    with pytest.raises(PtxSyntaxError):
        check(module("add.u32 %r1, %r2"))


def test_what_was_legal_elsewhere_is_still_checked_here() -> None:
    """Legal instructions are remembered from module to module: of a target, a version and an entry's directives."""
    text = ".version {}\n.target {}\n.entry k() {} {{ .reg .b64 %rd; .reg .b32 %r; {} ret; }}"
    fence, read = "fence.acq_rel.cluster;", "mov.u32 %r, %perctamemorysize;"
    for version, target, directive, line, code in [
        ("9.0", "sm_90", "", fence, ""),
        ("9.0", "sm_80", "", fence, "target"),
        ("7.7", "sm_80", "", "fence.acq_rel.gpu;", ""),
        ("9.4", "sm_100a", ".minperctamemory 16", read, ""),
        ("9.4", "sm_100a", "", read, "directive-missing"),
        ("9.4", "sm_100a", ".minperctamemory 16", read, ""),
        ("9.0", "sm_90", "", fence, ""),
    ]:
        found = {each.code for each in check(text.format(version, target, directive, line)) if each.severity == "error"}
        assert found == ({code} if code else set()), (version, target, line)


def test_a_later_version_than_ptxas_has_is_an_error() -> None:
    (found,) = check(".version 12.0\n.target sm_90a\n.entry k() { ret; }\n")
    assert (found.severity, found.code, found.line) == ("error", "ptx-version", 1)
    assert "later than 9.5, the newest of ptxgen and ptxas 13.5" in found.message


@pytest.mark.parametrize("constant", ["0f7FFFFFFF", "0fFFC00000", "0f7F800000", "0f80000000"])
@pytest.mark.parametrize(
    "line",
    ["selp.f32 %f1, C, %f2, %p1;", "fma.rn.f32 %f1, %f2, C, %f3;", "mov.f32 %f1, C;", "st.global.f32 [%rd1], C;",
     "setp.lt.f32 %p1, %f2, C;", "max.f32 %f1, %f2, C;", "ex2.approx.f32 %f1, C;", "cvt.rzi.s32.f32 %r1, C;"],
)  # fmt: skip
def test_special_numbers_are_constants_like_others(line: str, constant: str) -> None:
    """Also one that is not equal to itself."""
    assert diagnose(line.replace("C", constant)) == []
