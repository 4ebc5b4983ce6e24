"""Tensormaps that a kernel changes."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

#: One warp publishes a copy of the map `map` at %slot in global memory.
PUBLISH = """
    .shared .align 128 .b8 tile[2048];
    .shared .align 128 .b8 draft[128];
    .shared .align 8 .b64 full;
    .reg .b64 %slot, %rows;
    .reg .b32 %own;
    add.u64 %slot, %data, 1024;
    add.u64 %rows, %matrix, 1024;
    @%lane0 mbarrier.init.shared.b64 [full], 1;
    @%lane0 fence.mbarrier_init.release.cluster;
    shl.b32 %own, %lane, 2;
    cvt.u64.u32 %rd0, %own;
    add.u64 %rd1, %map, %rd0;
    ld.u32 %r0, [%rd1];
    mov.u32 %r1, draft;
    add.u32 %r1, %r1, %own;
    st.shared.u32 [%r1], %r0;
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [draft], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;
"""
#: The warp changes the address in its draft and publishes it again.
CHANGE = """
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [draft], %rows;
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [draft], 128; // <--
    fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;
"""

LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"

BUGS = [
    Bug(
        name="tensormap-changed-while-loading",
        source="deepseek-ai/DeepGEMM#343",
        what="the scheduler switches groups and changes the tensormap in place while TMA loads still read it",
        code="tensormap-in-use",
        block=32,
        ptx=PUBLISH
        + f"""
    @%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%lane0 {LOAD} [tile], [%slot, {{0, 0}}], [full];
+LOADED:
+    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
+    @!%done bra LOADED;
"""
        + CHANGE
        + """
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LAST;
""",
    ),
    Bug(
        name="tensormap-changed-while-storing",
        source="NVIDIA/cutlass#2162",
        what="grouped GEMM: the store warp updates its tensormap without waiting for the TMA store of the last tile",
        code="tensormap-in-use",
        block=32,
        ptx=PUBLISH
        + """
    mov.u32 %r39, tile; @%lane0 st.bulk.weak.shared::cta [%r39], 1024, 0;
    @%lane0 fence.proxy.async.shared::cta;
    @%lane0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%slot, {0, 0}], [tile];
    @%lane0 cp.async.bulk.commit_group;
+    @%lane0 cp.async.bulk.wait_group.read 0;
"""
        + CHANGE
        + """
    @%lane0 cp.async.bulk.wait_group 0;
""",
        target="sm_100a",
    ),
    Bug(
        name="tensormap-next-descriptor-made-in-place",
        source="facebookexperimental/triton#680",
        what="grouped GEMM: the next group's descriptor is made where the loads in flight read the last one's",
        code="tensormap-in-use",
        block=32,
        ptx=PUBLISH
        + f"""
    @%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%lane0 {LOAD} [tile], [%slot, {{0, 0}}], [full];
+LOADED:
+    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
+    @!%done bra LOADED;
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.global.b1024.b64 [%slot], %rows; // <--
    @%lane0 fence.proxy.tensormap::generic.release.gpu;
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LAST;
""",
    ),
    Bug(
        name="tensormap-not-acquired",
        source="triton-lang/triton#7293",
        what="the fence after the update of a descriptor on the device is missing",
        code="missing-tensormap-fence",
        block=32,
        ptx=PUBLISH
        + f"""
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.global.b1024.b64 [%slot], %rows;
+    @%lane0 fence.proxy.tensormap::generic.release.gpu;
+    @%lane0 fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;
    @%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%lane0 {LOAD} [tile], [%slot, {{0, 0}}], [full]; // <--
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LAST;
""",
    ),
    Bug(
        name="tensormap-replaced-by-several-lanes",
        source="NVIDIA/cutlass#3165",
        what="lanes of a warp change fields of the tensormap and one publishes it, with no __syncwarp between",
        code="shared-race",
        block=32,
        ptx=PUBLISH
        + """
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [draft], %rows;
+    bar.warp.sync 0xffffffff;
    setp.eq.u32 %p1, %lane, 1;
    @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [draft], 1, 128; // <--
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [draft], 128;
""",
    ),
    Bug(
        name="tensormap-changed-with-two-loads-in-flight",
        source="deepseek-ai/DeepGEMM#430",
        what="the SM120 kernel was copied before the fix of #343: it publishes the next map under loads in flight",
        code="tensormap-in-use",
        block=32,
        target="sm_120a",
        ptx=PUBLISH
        + f"""
    @%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 2048;
    @%lane0 {LOAD} [tile], [%slot, {{0, 0}}], [full];
    @%lane0 {LOAD} [tile+1024], [%slot, {{0, 8}}], [full];
+LOADED:
+    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
+    @!%done bra LOADED;
"""
        + CHANGE
        + """
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LAST;
""",
    ),
    Bug(
        name="tensormap-draft-published-without-syncwarp",
        source="triton-lang/triton#11480",
        what="one lane changes the draft of a tensormap and the warp copies it, with no __syncwarp between",
        code="shared-race",
        severity="advice",
        block=32,
        ptx=PUBLISH
        + """
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [draft], %rows;
+    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [draft], 128; // <--
""",
    ),
    Bug(
        name="tensormap-changed-after-a-wait-for-an-open-group",
        source=REBUILT,
        what="the store is in no bulk group yet when wait_group comes, so that the map changes under it",
        code="tensormap-in-use",
        block=32,
        target="sm_100a",
        ptx=PUBLISH
        + """
    mov.u32 %r39, tile; @%lane0 st.bulk.weak.shared::cta [%r39], 1024, 0;
    @%lane0 fence.proxy.async.shared::cta;
    @%lane0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%slot, {0, 0}], [tile];
-    @%lane0 cp.async.bulk.wait_group 0;
    @%lane0 cp.async.bulk.commit_group;
+    @%lane0 cp.async.bulk.wait_group 0;
"""
        + CHANGE
        + """
    @%lane0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="tensormap-prefetched-before-its-fences",
        source=REBUILT,
        what="a box is prefetched through a tensormap that has just been changed in global memory",
        code="missing-tensormap-fence",
        block=32,
        ptx=PUBLISH
        + """
    bar.warp.sync 0xffffffff;
    @%lane0 tensormap.replace.tile.global_address.global.b1024.b64 [%slot], %rows;
+    @%lane0 fence.proxy.tensormap::generic.release.gpu;
+    @%lane0 fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;
    @%lane0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%slot, {0, 0}]; // <--
""",
    ),
    Bug(
        name="tensormap-acquired-by-another-warp",
        source=REBUILT,
        what="the warp that published the map acquires it after the barrier for which the loading warp waits",
        code="missing-tensormap-fence",
        block=64,
        ptx=PUBLISH.replace("@%lane0", "@%thread0")
        .replace("    shl.b32", "    setp.ne.u32 %p7, %warp, 0;\n    @%p7 bra USE;\n    shl.b32")
        .replace("    fence.proxy.tensormap", "-    bar.arrive 1, 64;\n    fence.proxy.tensormap")
        + f"""
+    bar.arrive 1, 64;
    bra END;
USE:
    bar.sync 1, 64;
    @%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%lane0 {LOAD} [tile], [%slot, {{0, 0}}], [full]; // <--
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LAST;
END:
""",
    ),
]
