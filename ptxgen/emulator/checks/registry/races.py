"""Races, fences, and what else is about the order and visibility of memory accesses."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Races and visibility")

SHARED_RACE = _check(
    code="shared-race",
    title="race",
    section="8.9",
    rule="Two accesses to the same bytes of shared memory, at least one of them a write and one of them weak, must be "
    "ordered by happens-before. That holds for warps, for lanes of one warp, and for asynchronous operations. Strong "
    "accesses (volatile, relaxed, acquire, release, atomics) race with weak ones (8.7), not with each other; copies "
    "and MMAs are weak. Not reported are lanes of a warp that store the same bytes in one instruction, or floats that "
    "differ in rounding only (the sums of a butterfly of shuffles).",
    why="The result depends on timing: a stage is overwritten while it is read, or read before it is filled. Lanes of "
    "a warp need bar.warp.sync (9.7.13.2) or a barrier of the CTA: shuffles, votes and collective loads converge the "
    "lanes but order no memory; cp.async.mbarrier.arrive publishes a thread's cp.async, not its stores. It is advice "
    "where CUTLASS relies on it: one arrival of a warpgroup releases a stage after a wgmma.mma_async that all its "
    "warps issue; fence.proxy.async without a barrier within a warpgroup; the copy of tensormap.cp_fenceproxy, which "
    "waits for its warp (Triton before #11480); where warps store the same bytes, as Triton lets them if a layout "
    "repeats a value or it duplicates a consumer; where lanes rely on what another lane has acquired and handed "
    "over by a shuffle, or a lane stores what others have loaded before a shuffle or reduction of the whole warp "
    "(NVIDIA's cooperative groups), or arrives for loads whose values the warp has exchanged; and where reruns with "
    "different bytes there changed nothing, as with rows that a small tile does not use, or where all warps load and "
    "one of them stores in place.",
    fix="wait for the mbarrier on which the copy or commit completes and branch on the result; synchronize warps by a "
    "barrier, lanes by bar.warp.sync",
    example="cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%source], 4096, [full];\n"
    "// fixed: L: mbarrier.try_wait.parity.shared.b64 %done, [full], 0; @!%done bra L;\n"
    "ld.shared.u32 %value, [tile];",
    fires="emulator/checks/shared/test_lanes.py::test_many_warps_at_once",
    twin="emulator/checks/shared/test_lanes.py::test_many_warps_at_once",
    explains=(
        "shared-race",
        "tensor-race",
        "cta-exit",
        "mbarrier-overflow",
        "tmem-freed-in-use",
        "uninitialized-shared",
        "missing-fence",
        "global-race",
        "mbarrier-round-behind",
        "mbarrier-split",
        "deadlock",
    ),
)

GLOBAL_RACE = _check(
    code="global-race",
    title="race",
    section="8.9",
    rule="Two accesses to the same bytes of global memory, at least one of them a write and one of them weak, must be "
    "ordered by happens-before, between warps of one CTA or of several, also where one CTA begins after the other has "
    "ended. Bulk and tensor copies count, and cp.async as a load. Reductions race neither with each other nor with "
    "atomics. Not reported are lanes of a warp that store the same bytes in one instruction.",
    why="bar.sync orders the warps of a CTA and barrier.cluster those of a cluster; CTAs are ordered only by release "
    "and acquire on a flag, or by atomics. A copy to shared memory reads its source until its mbarrier completes; a "
    "bulk group writes until cp.async.bulk.wait_group without .read (with .read only its shared memory is free). A "
    "store after another lane's load is not reported, nor an atomic operation after another warp's plain load in the "
    "CTA that its own warp has executed too. A release or acquire by one lane counts for the others of its warp from "
    "bar.warp.sync or a barrier on; shuffles and votes order nothing. A weak store over a flag that other CTAs poll "
    "races with their loads. It is advice "
    "where two warps or copies store the same bytes, as by a consumer that a compiler duplicates, and for a weak "
    "load whose value only feeds the compare and new values of an atom.cas at that address (the loop of atomicAdd in "
    "the CUDA programming guide), or decides whether an atomic operation at that address is tried, which decides again "
    "(the maximum of floats in Warp, visited[v] before atomicExch(&visited[v], 1)), beside other atomics. It is also "
    "advice where reruns with other values in place of a weak load changed nothing: all warps load and one stores in "
    "place, as Triton has it where a layout repeats elements.",
    fix="put a barrier between them within a CTA or cluster; across CTAs use st.release or red.release in the writer "
    "and ld.acquire in the reader",
    example="st.global.u32 [%data], %value;      // by one warp\n"
    "// fixed: bar.sync 0;\n"
    "ld.global.u32 %other, [%data];       // by another",
    fires="emulator/checks/global_memory/test_kernels.py::test_kernels",
    twin="emulator/checks/global_memory/test_kernels.py::test_kernels",
    explains=("global-race", "shared-race", "missing-fence"),
)

MISSING_FENCE = _check(
    code="missing-fence",
    title="missing fence",
    section="8.8",
    rule="A flag, lock or counter orders other accesses only if the thread that sets it releases and, as advice, the "
    "one that sees it acquires. A strong access alone (.relaxed, .volatile, atomics without .sem) orders nothing else. "
    "The scope must include both threads.",
    why="Without release and acquire the flag may become visible before the data. Between accesses that are all "
    "strong a missing fence is no finding, but `late` and `random` may return stale values. It is also advice where a "
    "CTA's accesses to its own shared memory are ordered by barrier.cluster.arrive.relaxed alone, and what comes "
    "after is in the same CTA (DeepGEMM) or overwrites them (a multicast after initialization, CUTLASS and Triton): "
    "the accesses precede the arrival, and shared memory executes them in order. A peer that reads the data needs the "
    "release.",
    fix="use st.release or red.release (or fence.acq_rel before the store), and ld.acquire (or fence.acq_rel after "
    "the load)",
    example="st.global.u32 [%data], %value;\n"
    "st.relaxed.gpu.global.u32 [%flag], 1;      // fixed: st.release.gpu.global.u32 [%flag], 1;",
    fires="emulator/checks/global_memory/test_races.py::test_missing_fences[relaxed store-late]",
    twin="emulator/checks/global_memory/test_races.py::test_fences_are_cumulative",
    explains=("missing-fence",),
)

NARROW_SCOPE = _check(
    code="narrow-scope",
    title="scope too narrow",
    section="8.7",
    rule="Strong accesses by threads of different CTAs are morally strong only if the scope of both includes both "
    "threads; else they race and order nothing. The same holds for mbarriers, whose scope is .cta by default (advice).",
    why=".cta leaves out other CTAs, .cluster other clusters. An mbarrier that orders stores to a peer with its loads "
    "takes .release.cluster and .acquire.cluster; kernels without have given right results on an H200, so that is "
    "advice. It is an error for what a peer has stored to global memory: with .cta ptxas puts no MEMBAR before the "
    "arrival and no CCTL.IVALL after the wait, so L1 may return old bytes. Copies, asynchronous stores and the tensor "
    "core do not need it.",
    fix="use .gpu, or .cluster within a cluster",
    example="atom.relaxed.cta.global.add.u32 %old, [%counter], 1;"
    "      // fixed: atom.relaxed.gpu.global.add.u32 %old, [%counter], 1;",
    fires="emulator/checks/global_memory/test_races.py::"
    "test_narrow_scopes[st.release.cta.global.u32 [%flag], 1;-ld.acquire.gpu.global.u32 %x, [%flag];-late"
    "]",
    twin="emulator/checks/global_memory/test_races.py::"
    "test_narrow_scopes[st.release.cta.global.u32 [%flag], 1;-ld.acquire.gpu.global.u32 %x, [%flag];-late"
    "]",
    explains=("narrow-scope", "missing-fence"),
)

MISSING_PROXY_FENCE = _check(
    code="missing-proxy-fence",
    title="missing proxy fence",
    section="8.6",
    rule="A copy or MMA reads memory through the async proxy (9.7.16.6.5), so fence.proxy.async must come between a "
    "thread's store and it: by the storing thread before it releases, or by the issuing thread after it has acquired.",
    why="Without the fence the async proxy may read the old bytes. One lane's fence covers the stores of others if "
    "bar.warp.sync or a barrier precedes it. It is advice for what cp.async wrote, since Triton leaves it out there, "
    "and where the response of clusterlaunchcontrol.try_cancel overwrites what threads have read (9.7.13.17). "
    "It is advice, too, before a copy overwrites what its own warp has read, or what only barriers of the CTA order; "
    "where an mbarrier gives the stage back CUTLASS leaves the fence out, and nothing is reported.",
    fix="put fence.proxy.async.shared::cta (or .global) after the stores, before the barrier",
    example="st.shared.b128 [smem_a], %value;\n"
    "// fixed: fence.proxy.async.shared::cta;\n"
    "bar.sync 0;\n"
    "tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %idesc, %p;",
    fires="emulator/checks/order/test_tcgen05_order.py::"
    "test_stores_reach_the_tensor_core_by_a_proxy_fence[nobody--True-late]",
    twin="emulator/checks/order/test_tcgen05_order.py::"
    "test_stores_reach_the_tensor_core_by_a_proxy_fence[each storing thread--False-late]",
)

MISSING_TENSORMAP_FENCE = _check(
    code="missing-tensormap-fence",
    title="missing tensormap fence",
    section="9.7.13.4",
    rule="A copy that uses a tensormap which the kernel has changed in global memory needs release and acquire of the "
    "tensormap proxy between.",
    why="The copy may use the tensormap as it was before.",
    fix="use tensormap.cp_fenceproxy or fence.proxy.tensormap::generic.release in the writer, then "
    "fence.proxy.tensormap::generic.acquire by the thread that copies",
    example="tensormap.replace.tile.global_address.global.b1024.b64 [%map], %address;\n"
    "// fixed: fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%map, {0, 0}], [full];",
    fires="emulator/semantics/test_tensormap.py::test_bytes_that_change_between_uses",
    twin="emulator/semantics/test_tensormap.py::test_a_changed_map_is_used",
)

TENSORMAP_IN_USE = _check(
    code="tensormap-in-use",
    title="race",
    section="9.7.9.25.5",
    rule="A thread must not change a tensormap in global memory before it has observed the completion of the copies "
    "that use it.",
    why="The copy may read the map at any time until it is done: it may take the next group's address, or half of it. "
    "Fences of the tensormap proxy publish a change; they do not wait for copies in flight.",
    fix="wait for the mbarrier of the load, or for cp.async.bulk.wait_group, before the change, or use two maps in "
    "turn",
    example="cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {%x, %y}], [tile];\n"
    "cp.async.bulk.commit_group;\n// fixed: cp.async.bulk.wait_group 0;\n"
    "tensormap.replace.tile.global_address.global.b1024.b64 [%map], %next;",
    fires="bugs/test_bugs.py::test_bug_is_reported[tensormap-changed-while-loading-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[tensormap-changed-while-loading-eager]",
)

NC_LOAD = _check(
    code="nc-load",
    title="read-only load of written memory",
    section="9.7.9.9",
    rule="ld.global.nc may read only what no thread writes during the kernel; with programmatic dependent launch "
    "(`launch_overlapping`) nor what the previous grid writes after griddepcontrol.launch_dependents.",
    why="It goes through the texture path, which is not coherent: no barrier, fence or griddepcontrol.wait orders it "
    "after a store. nvcc chooses it for `const __restrict__` and __ldg.",
    fix="use ld.global without .nc",
    example="st.global.u32 [%data], %value;\nbar.sync 0;\n"
    "ld.global.nc.u32 %other, [%data];      // fixed: ld.global.u32 %other, [%data];",
    fires="bugs/test_bugs.py::test_bug_is_reported[read-only-load-of-data-written-here-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[read-only-load-of-data-written-here-eager]",
)

DUPLICATE_COPY = _check(
    code="duplicate-copy",
    title="several lanes issue one copy",
    section="9.7.9.25",
    rule="One thread issues a bulk or tensor copy; each lane that executes it issues a copy of its own.",
    why="A reduction adds its data as often as lanes issue it. Stores of the same bytes are advice: ptxas makes one "
    "instruction of them, and CuTe DSL's epilogues rely on that, but the source pays for 32.",
    fix="issue it from one lane: elect.sync, or a predicate",
    example="cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [tile], 256;      // fixed: @%leader",
    fires="bugs/test_bugs.py::test_bug_is_reported[reduction-issued-by-a-whole-warp-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[reduction-issued-by-a-whole-warp-eager]",
)

GRID_RACE = _check(
    code="grid-race",
    title="race with the previous grid",
    section="9.7.13.13",
    rule="With programmatic dependent launch (`launch_overlapping`), a thread or copy may touch what the previous grid "
    "reads or writes only after griddepcontrol.wait.",
    why="The grids run at the same time once the first executes griddepcontrol.launch_dependents; only "
    "griddepcontrol.wait makes the earlier grid's memory visible. The second kernel may read stale values now and "
    "then. Strong accesses, and reductions by copies, do not race with each other.",
    fix="put griddepcontrol.wait before the first access to what the previous grid writes or reads, in the thread "
    "itself or by one with which it synchronizes afterwards",
    example="// fixed: griddepcontrol.wait;\nld.global.u32 %value, [%from_the_previous_grid];",
    fires="emulator/schedule/test_grids.py::test_copies_without_waiting",
    twin="emulator/schedule/test_grids.py::test_waiting_makes_the_grid_before_visible[3--late-0]",
    explains=("grid-race",),
)

CTA_EXIT = _check(
    code="cta-exit",
    title="CTA exits too early",
    section="5.1.7",
    rule="A CTA must not exit while a peer or an asynchronous operation may still use its shared memory.",
    why="The memory then belongs to another CTA: the access reads or corrupts its data.",
    fix="before the exit, wait for copies, for MMAs that read, and for commits of peers on mbarriers here; in a "
    "cluster end with barrier.cluster (a relaxed arrival is enough)",
    example="st.shared::cluster.u32 [%peer], %value;\n"
    "// fixed: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;",
    fires="emulator/semantics/test_cluster.py::test_a_cta_that_ends_too_early[loads-late]",
    twin="emulator/semantics/test_cluster.py::test_a_cta_that_ends_too_early[loads-late]",
    explains=("cta-exit",),
)

BULK_GROUP_UNWAITED = _check(
    code="bulk-group-unwaited",
    title="bulk group not waited for",
    severity="advice",
    section="9.7.9.25",
    rule="A CTA exits while a bulk store may still read its shared memory.",
    why="The memory then belongs to another CTA, and the store may send that CTA's bytes.",
    fix="wait with cp.async.bulk.wait_group.read 0 before the exit",
    example="cp.async.bulk.commit_group;\n// fixed: cp.async.bulk.wait_group.read 0;\nret;",
    fires="emulator/semantics/test_bulk.py::test_order[a source overwritten before the wait-late]",
    twin="emulator/semantics/test_bulk.py::test_stores[0-late]",
)
