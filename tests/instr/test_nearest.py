"""The nearest legal form of an opcode that is not legal."""

import pytest

from ptxgen.instr.model.check import Diagnostic
from ptxgen.instr.model.nearest import names_fix, nearest_opcode
from ptxgen.instr.model.recognize import candidates

#: What people write, and what they mean: types and shapes stay, the modifier that is near in meaning changes.
NEAREST = [
    ("cvt.rn.u32.f32", "cvt.rni.u32.f32"),
    ("cvt.rz.s32.f32", "cvt.rzi.s32.f32"),
    ("cvt.rzi.f32.s32", "cvt.rz.f32.s32"),
    ("cvt.rni.f16.f32", "cvt.rn.f16.f32"),
    ("cvt.u32.f32", "cvt.rni.u32.f32"),
    ("cvt.f16.f32", "cvt.rn.f16.f32"),
    ("cvt.rn.f32.f16", "cvt.f32.f16"),
    ("cvt.sat.u64.u32", "cvt.u64.u32"),
    ("cvt.rn.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32"),
    ("tcgen05.ld.sync.aligned.32x32b.x3.b32", "tcgen05.ld.sync.aligned.32x32b.x4.b32"),
    ("tcgen05.ld.sync.aligned.16x256b.x128.b32", "tcgen05.ld.sync.aligned.16x256b.x32.b32"),
    ("tcgen05.ld.aligned.32x32b.x8.b32", "tcgen05.ld.sync.aligned.32x32b.x8.b32"),
    ("tcgen05.mma.cta_group::1.kind::fp16", "tcgen05.mma.cta_group::1.kind::f16"),
    ("tcgen05.mma.kind::f16", "tcgen05.mma.cta_group::1.kind::f16"),
    ("tcgen05.mma.cta_group::3.kind::f16", "tcgen05.mma.cta_group::2.kind::f16"),
    (
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cta.b64",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
    ),
    ("tcgen05.alloc.sync.aligned.b32", "tcgen05.alloc.cta_group::1.sync.aligned.b32"),
    (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cluster.b32",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
    ),
    ("tcgen05.fence::before_thread_sync.sync", "tcgen05.fence::before_thread_sync"),
    ("tcgen05.wait::ld.sync", "tcgen05.wait::ld.sync.aligned"),
    ("tcgen05.cp.cta_group::1.128x256", "tcgen05.cp.cta_group::1.128x256b"),
    ("mbarrier.init.shared.b32", "mbarrier.init.shared.b64"),
    ("mbarrier.init.shared::cluster.b64", "mbarrier.init.shared::cta.b64"),
    ("mbarrier.try_wait.parity.acquire.shared.b64", "mbarrier.try_wait.parity.acquire.cta.shared.b64"),
    ("mbarrier.try_wait.parity.release.cta.shared::cta.b64", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64"),
    ("mbarrier.arrive.expect_tx.shared::cluster.cta.b64", "mbarrier.arrive.expect_tx.release.cta.shared::cluster.b64"),
    ("mbarrier.arrive.acquire.cta.shared.b64", "mbarrier.arrive.release.cta.shared.b64"),
    ("mbarrier.test_wait.parity.shared::cluster.b64", "mbarrier.test_wait.parity.shared::cta.b64"),
    ("mbarier.init.b64", "mbarrier.init.b64"),
    ("mbarrier.wait.parity.shared.b64", "mbarrier.try_wait.parity.shared.b64"),
    (
        "cp.async.bulk.tensor.2d.shared.global.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes",
    ),
    (
        "cp.async.bulk.tensor.6d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    ),
    (
        "cp.async.bulk.tensor.2d.global.shared::cta.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
    ),
    ("cp.async.bulk.shared::cluster.global", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"),
    ("cp.async.bulk.global.shared::cluster.bulk_group", "cp.async.bulk.global.shared::cta.bulk_group"),
    (
        "cp.async.bulk.shared.global.mbarrier::complete_tx::bytes",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes",
    ),
    ("cp.async.bulk.commit.group", "cp.async.bulk.commit_group"),
    ("cp.async.bulk.wait_group.write", "cp.async.bulk.wait_group"),
    ("cp.async.ca.shared.global.l2::128B", "cp.async.ca.shared.global.L2::128B"),
    ("cp.async.shared.global", "cp.async.ca.shared.global"),
    ("wgmma.mma_async.sync.aligned.m64n100k16.f32.f16.f16", "wgmma.mma_async.sync.aligned.m64n104k16.f32.f16.f16"),
    ("wgmma.mma_async.sync.aligned.m64n128k8.f32.f16.f16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"),
    ("wgmma.mma_async.sync.aligned.m64n128k16.f16.bf16.bf16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
    ("wgmma.mma_async.m64n128k16.f32.f16.f16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"),
    ("wgmma.fence", "wgmma.fence.sync.aligned"),
    ("wgmma.commit_group.aligned", "wgmma.commit_group.sync.aligned"),
    ("ld.relaxed.global.u32", "ld.relaxed.gpu.global.u32"),
    ("ld.acquire.global.u32", "ld.acquire.gpu.global.u32"),
    ("ld.release.gpu.global.u32", "ld.acquire.gpu.global.u32"),
    ("ld.shared.v3.f32", "ld.shared.v4.f32"),
    ("ld.shared.v4.b64", "ld.shared.v2.b64"),
    ("ld.global.v8.b128", "ld.global.b128"),
    ("ld.globl.u32", "ld.global.u32"),
    ("ld.global.f16", "ld.global.b16"),
    ("ld.global.nc.shared.u32", "ld.global.nc.u32"),
    ("ld.shared.nc.u32", "ld.shared.u32"),
    ("st.acquire.gpu.global.u32", "st.release.gpu.global.u32"),
    ("st.release.global.u32", "st.release.gpu.global.u32"),
    ("st.global.v3.b32", "st.global.v4.b32"),
    ("atom.add.global.f16", "atom.global.add.noftz.f16"),
    ("atom.shared.add.s64", "atom.shared.add.u64"),
    ("atom.global.inc.s32", "atom.global.inc.u32"),
    ("atom.cas.f32", "atom.cas.b32"),
    ("atom.global.sub.u32", "atom.global.add.u32"),
    ("red.global.exch.b32", None),
    ("fence.proxy.async.shared", "fence.proxy.async.shared::cta"),
    ("fence.acq_rel", "fence.acq_rel.gpu"),
    ("fence.sc.system", "fence.sc.sys"),
    ("fence.mbarrier_init.release.cta", "fence.mbarrier_init.release.cluster"),
    ("membar.gpu", "membar.gl"),
    ("membar.cluster", "membar.gl"),
    ("setmaxnreg.inc.sync.u32", "setmaxnreg.inc.sync.aligned.u32"),
    ("setmaxnreg.increase.sync.aligned.u32", "setmaxnreg.inc.sync.aligned.u32"),
    ("shfl.sync.down.u32", "shfl.sync.down.b32"),
    ("shfl.sync.xor.b32", "shfl.sync.bfly.b32"),
    ("shfl.sync.bfly.f32", "shfl.sync.bfly.b32"),
    ("bar.sync.aligned", "bar.sync"),
    ("barrier.sync.aligned.u32", "barrier.sync.aligned"),
    ("bar.arrive.b32", "bar.arrive"),
    ("barrier.cluster.arrive.acquire", "barrier.cluster.arrive.release"),
    ("barrier.cluster.wait.release", "barrier.cluster.wait.acquire"),
    ("add.u33", "add.u32"),
    ("mul.u32", "mul.lo.u32"),
    ("add.rni.f32", "add.rn.f32"),
    ("setp.lo.s32", "setp.lt.s32"),
    ("max.xorsign.f32", "max.xorsign.abs.f32"),
    ("frobnicate.u32", None),
    ("and.u32", "and.b32"),
    ("sub.rn.u32", "sub.u32"),
    ("div.f32", "div.rn.f32"),
    ("sqrt.f32", "sqrt.rn.f32"),
    ("ldmatrix.sync.aligned.m8n8.x3.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
    ("stmatrix.sync.aligned.m8n8.x8.shared.b16", "stmatrix.sync.aligned.m8n8.x4.shared.b16"),
    ("mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("vote.sync.ballot.pred", "vote.sync.ballot.b32"),
]


@pytest.mark.parametrize(("opcode", "nearest"), NEAREST)
def test_nearest(opcode: str, nearest: str | None) -> None:
    assert nearest_opcode(opcode) == nearest
    assert nearest is None or candidates(nearest), "what is proposed is legal"
    assert not candidates(opcode)


#: A rule, the opcode that breaks it, and whether the rule says already what the suggestion would.
SAID = [
    ("wgmma.fence requires .aligned: `wgmma.fence.sync.aligned`", "wgmma.fence.sync", True),
    ("wgmma.mma_async requires .sync .aligned: `...`", "wgmma.mma_async.m64n8k16.f32.f16.f16", True),
    ("cvt.u64.u32 allows no .sat: every .u32 fits .u64", "cvt.sat.u64.u32", True),
    ("cvt.u32.f32 needs .rni, .rzi, .rmi or .rpi, not .rn", "cvt.rn.u32.f32", False),
    ("atom.add requires .u32 .s32 .u64 .f32 .f64, not .s64", "atom.shared.add.s64", False),
    ("bar has no modifier .aligned; it has .cta .sync", "bar.sync.aligned", False),
]


@pytest.mark.parametrize(("rule", "opcode", "said"), SAID)
def test_no_suggestion_where_the_rule_names_the_fix(rule: str, opcode: str, said: bool) -> None:
    nearest = nearest_opcode(opcode)
    assert nearest is not None
    assert names_fix(rule, opcode, nearest) is said
    assert (Diagnostic(1, 1, "", "error", rule, opcode).nearest == "") is said
