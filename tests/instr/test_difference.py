"""What is said of illegal opcodes: their difference from the nearest legal form, as an expert would name it."""

import pytest

from ptxgen.instr.model.check import check
from ptxgen.instr.model.difference import difference
from tests.support.instr_tables import LINE, module

F4, R4, R2 = "{%f1, %f2, %f3, %f4}", "{%r1, %r2, %r3, %r4}", "{%r5, %r6}"
MMA = f"{F4}, {R4}, {R2}, {F4}"
COPY = "[%r1], [%rd1, {%r2, %r3}], [%r4]"

#: An instruction and what its message must say: the modifier that ptxas refuses, and what is legal in its place.
SAID = [
    (f"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {MMA}", "the second .row of mma must be .col"),
    (f"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {MMA}", ".col .row of mma must be .row .col"),
    (
        f"mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.bf16 {R2}, {R4}, {R2}, {R2}",
        "the first and fourth .bf16 of mma must be .f32",
    ),
    (f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32 {MMA}", ".f16 of mma must be .bf16"),
    (f"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 {MMA}", "the first .f16 of mma must be .f32"),
    (f"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {MMA}", ".m16n8k32 of mma must be .m16n8k16"),
    (f"mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {MMA}", ".m16n8k16 of mma must be .m16n8k8 or .m16n8k4"),
    (f"mma.sync.aligned.m16n8k16.f32.f16.f16.f32 {MMA}", "mma requires .row .col"),
    (f"mma.sync.aligned.m16n8k16.row.col.s32.s8.f16.s32 {R4}, {R2}, %r1, {R4}", ".f16 of mma must be .s8 or .u8"),
    (f"mma.u4.aligned.m16n8k8.row.col.f32.f16.f16.f32 {MMA}", "this form of mma has no modifier .u4; it has .sync "),
    ("shr.f32 %f1, %f2, %r3", ".u32, .u64, .s16, .s32 or .s64; the nearest"),
    ("add.rn.ftz.f32.f16 %f1, %h2, %f3", "add allows no .ftz with .f16"),
    ("add.sat.s64 %rd1, %rd2, %rd3", "add allows no .sat with .s64"),
    ("add.rn.s32 %r1, %r2, %r3", "add allows no .rn with .s32"),
    ("add.f32.rn.rz %f1, %f2, %f3", "add allows no .rz with .rn"),
    ("add.rz.f16 %h1, %h2, %h3", ".rz of add must be .rn"),
    ("mul.s32 %r1, %r2, %r3", "mul requires .lo or .hi"),
    ("fma.f32 %f1, %f2, %f3, %f4", "fma requires .rn, .rz, .rm or .rp"),
    ("div.full.f64 %fd1, %fd2, %fd3", ".f64 of div.full must be .f32"),
    ("cvt.rn.satfinite.ue8m0x2.f32 %h1, %f1, %f2", ".rn of cvt must be .rz or .rp"),
    ("cvt.rna.f32.tf32 %f1, %r1", ".f32 .tf32 of cvt must be .tf32 .f32"),
    ("set.lt.f32 %f1, %f2, %f3", "set requires .f32, "),
    ("dp4a.s32 %r1, %r2, %r3, %r4", "dp4a requires .s32 or .u32"),
    ("ld.global.nc.relaxed.gpu.u32 %r1, [%rd1]", "ld allows no .nc with .relaxed .gpu"),
    ("ld.global.cs.L1::evict_first.u32 %r1, [%rd1]", "ld allows no .cs with .L1::evict_first"),
    ("ld.acquire.global.u32 %r1, [%rd1]", "ld requires .gpu, .cta, .cluster or .sys"),
    ("ld.nc.b32 %r1, [%rd1]", "ld requires .global"),
    ("st.const.u32 [%rd1], %r1", "st allows no .const"),
    ("st.global.v3.f32 [%rd1], {%f1, %f2, %f3}", ".v3 of st must be .v4, .v2 or .v8: PTX has no .v3"),
    ("atom.global.cas.f32 %f1, [%rd1], %f2, %f3", ".f32 of atom must be .b32"),
    ("atom.global.add.f16 %h1, [%rd1], %h2", "atom requires .noftz"),
    ("membar.sys.gl", "membar allows no .gl with .sys"),
    ("fence.proxy.async.global.shared::cta", "fence.proxy allows no .shared::cta with .global"),
    ("fence.mbarrier_init.release.cta", ".cta of fence must be .cluster"),
    ("barrier.cluster.wait.release.aligned", ".release of barrier.cluster.wait must be .acquire"),
    ("mbarrier.init.b64.shared::cluster [%r1], 1", ".shared::cluster of mbarrier.init must be .shared::cta or .shared"),
    (
        "cp.async.bulk.shared::cluster.global.bulk_group [%r1], [%rd1], %r2, [%r3]",
        ".bulk_group of cp.async.bulk must be .mbarrier::complete_tx::bytes",
    ),
    (
        "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd1], [%r1], %r2, [%r3]",
        ".mbarrier::complete_tx::bytes of cp.async.bulk must be .bulk_group",
    ),
    (f"cp.async.bulk.tensor.2d.global.shared::cta.im2col.bulk_group {COPY}", "cp.async.bulk.tensor allows no .im2col"),
    ("wgmma.fence.aligned", "wgmma.fence requires .sync"),
    (
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.bf16 %rd1, %rd2, %rd3, 1, 1, 1, 0, 0",
        ".f16 of wgmma.mma_async must be .bf16",
    ),
    ("tcgen05.mma.cta_group::1.kind::bf16 [%r1], %rd1, %rd2, %r2, %p1", ".kind::bf16 of tcgen05.mma must be .kind::f"),
    ("tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1", "of tcgen05.mma.ws must be .cta_group::1"),
    (
        "tcgen05.mma.cta_group::1.kind::f16.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.mma allows no .block_scale with .kind::f16",
    ),
    ("tcgen05.st.sync.aligned.32x32b.x2.pack::16b.b32 [%r3], {%r1, %r2}", "tcgen05.st allows no .pack::16b"),
    ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b8 {%r1, %r2}, [%r3]", ".b8 of ldmatrix must be .b16"),
    ("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd3]", "ldmatrix allows no .global"),
    ("redux.sync.xor.s32 %r1, %r2, -1", ".s32 of redux must be .b32"),
    ("vote.sync.any.b32 %r1, %p1, -1", ".b32 of vote must be .pred"),
    ("griddepcontrol.launch", ".launch of griddepcontrol must be .launch_dependents or .wait: PTX has no .launch"),
    ("exit.uni", "exit allows no .uni"),
    # Operands.
    ("mbarrier.arrive.shared::cluster.b64 %rd1, [%r1]", "state must be the sink _, not %rd1"),
    ("mbarrier.init.shared.b64 %r1, 1", "addr must be an address in brackets, not %r1"),
    ("ld.global.u32 [%rd1], [%rd1]", "d must be a register"),
    ("cvt.rn.satfinite.e2m1x2.f32 %rs1, %f1, %f2", "declare it, for example .reg .b8 %rs1;"),
    ("cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2", "d must be of type .b8 for .e2m1x2, but %h1 is declared .b16"),
    ("cvt.rn.satfinite.e4m3x2.f32 %r1, %f1, %f2", "d must be of type .b16 for .e4m3x2, but %r1 is declared .b32"),
    ("fma.rn.bf16x2 %r1, %r2, %r3, %f1", "c must be of type .b32 for .bf16x2, but %f1 is declared .f32"),
    ("add.rn.bf16 %h1, %h2, 1.0", "b must be a .b16 register for .bf16, not the constant 1.0"),
    ("cvt.rna.tf32.f32 %f1, %f2", "d must be of type .b32 for .tf32, but %f1 is declared .f32"),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "words"), SAID)
def test_messages(instruction: str, words: str) -> None:
    target = "sm_90a" if instruction.startswith("wgmma") else "sm_100a"
    found = [each for each in check(module(f"{instruction};", target, "9.4")) if each.severity == "error"]
    assert [each.line for each in found] == [LINE]
    assert words in found[0].message


def test_the_modifier_at_fault_is_marked() -> None:
    line = f"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {MMA};"
    (found,) = check(module(line))
    assert line[found.column - 1 : found.end_column - 1] == ".row"
    assert found.column - 1 == line.index(".row.row") + len(".row")
    line = f"mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.bf16 {R2}, {R4}, {R2}, {R2};"
    (found,) = check(module(line))
    assert found.column - 1 == line.index(".bf16")


@pytest.mark.parametrize("opcode", ["frobnicate.u32", "cp.async.wait_group.read", "mbarier.init.b64"])
def test_other_instructions_are_no_difference(opcode: str) -> None:
    assert difference(opcode) is None


def test_messages_without_differences() -> None:
    (found,) = check(module("add.rn.s32 %r1, %r2, %r3;"), differences=False)
    assert found.rule.startswith("this form of add has no modifier .rn; it has .u16 ")
