"""Tensor memory and the instructions of tcgen05."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Tensor memory and tcgen05")
_fault = partial(_check, fault=True)

TENSOR_RACE = _check(
    code="tensor-race",
    title="race in tensor memory",
    section="9.7.16.6",
    rule="Two accesses to the same cells of tensor memory, one of them a write, must be ordered; only the pairs of "
    "9.7.16.6.2 are implicitly ordered. Operations of the tensor core of a CTA, or of a CTA pair, run in their order "
    "of issue.",
    why="MMA, copy, shift, load and store are asynchronous (9.7.16.6.1): a load before the commit of the MMA reads "
    "stale sums, an MMA reads A that a tcgen05.st has not written yet, a store overwrites what an MMA still reads. "
    "Reading a register of a tcgen05.ld waits for its value and orders nothing else (9.7.16.6.4.5): the columns may be "
    "freed after it, as CuTe DSL's kernels do, but before another warp overwrites them there must be a "
    "tcgen05.wait::ld.",
    fix="use tcgen05.commit and wait for its mbarrier (mma, cp, shift), tcgen05.wait::ld or tcgen05.wait::st; for "
    "other warps synchronize between tcgen05.fence::before_thread_sync and ::after_thread_sync",
    example="tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
    "// fixed: L: mbarrier.try_wait.parity.shared.b64 %p, [done], 0; @!%p bra L; tcgen05.fence::after_thread_sync;\n"
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];",
    fires="emulator/checks/order/test_tcgen05_order.py::test_columns_used_again_before_a_load_is_waited_for",
    twin="emulator/checks/order/test_tcgen05_order.py::test_columns_used_again_before_a_load_is_waited_for",
    explains=("tensor-race", "tmem-freed-in-use", "cta-exit", "missing-tcgen05-wait"),
)

MISSING_TCGEN05_WAIT = _check(
    code="missing-tcgen05-wait",
    title="missing tcgen05.wait",
    severity="advice",
    section="9.7.16.6.4.5",
    rule="tcgen05.wait::st belongs between a warp's tcgen05.st and its load of the same cells; before PTX ISA 9.2 also "
    "tcgen05.wait::ld between a tcgen05.ld and the first use of its registers.",
    why="From .version 9.2 on the use of a register waits for its load, so nothing is reported there. In older modules "
    "it is undefined, but advice: CuTe DSL 4.8.1 omits the wait in all its modules of version 8.8, which run. "
    "CUTLASS's stream-K kernels omit the first, which no manual permits.",
    fix="put one tcgen05.wait::ld after all loads, before the first use; put tcgen05.wait::st after the stores",
    example="tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];\n// fixed: tcgen05.wait::ld.sync.aligned;\n"
    "st.global.u32 [%out], %value;",
    fires="emulator/checks/order/test_tcgen05_order.py::test_order[no wait for the load-late]",
    twin="emulator/checks/order/test_tcgen05_order.py::test_columns_used_again_before_a_load_is_waited_for",
)

MISSING_TCGEN05_FENCE = _check(
    code="missing-tcgen05-fence",
    title="missing tcgen05.fence",
    severity="advice",
    section="9.7.16.6.4",
    rule="tcgen05.fence::after_thread_sync belongs between a wait and a tcgen05 instruction that relies on it, "
    "::before_thread_sync between a tcgen05.ld or st and the synchronization that follows.",
    why="Only these fences order asynchronous instructions with a synchronization. CuTe and Triton leave them out in "
    "places, so it is advice.",
    fix="put the fence after every such wait",
    example="mbarrier.try_wait.parity.shared.b64 %p, [done], 0;\n// fixed: tcgen05.fence::after_thread_sync;\n"
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];",
    fires="emulator/semantics/test_tcgen05_movement.py::test_a_stored_by_other_warps_wants_fences",
    twin="emulator/semantics/test_tcgen05_movement.py::test_a_stored_by_other_warps_wants_fences",
    explains=("missing-tcgen05-fence",),
)

TMEM_ALLOCATION = _fault(
    code="tmem-allocation",
    title="illegal TMEM allocation",
    section="9.7.16.7.1",
    rule="tcgen05.alloc takes 32, 64, 128, 256 or 512 columns, the same number in both CTAs of a pair.",
    why="Other numbers are undefined.",
    fix="round up to a power of two from 32 to 512",
    example="tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 96;      // fixed: 128",
    fires="emulator/semantics/test_tcgen05_pairs.py::test_allocation",
    twin="emulator/semantics/test_tcgen05_pairs.py::test_allocation",
)

TMEM_RELINQUISHED = _fault(
    code="tmem-relinquished",
    title="tcgen05.alloc after relinquish",
    section="9.7.16.7.1",
    rule="A CTA must not allocate after tcgen05.relinquish_alloc_permit.",
    why="The behavior is undefined.",
    fix="allocate first, relinquish last",
    example="tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;      // fixed: after the tcgen05.alloc",
    fires="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[after relinquishing]",
    twin="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[never given back]",
)

TMEM_DEALLOC = _fault(
    code="tmem-dealloc",
    title="illegal tcgen05.dealloc",
    section="9.7.16.7.1",
    rule="tcgen05.dealloc takes the address and the number of columns of an allocation, once.",
    why="Other columns may belong to another CTA.",
    fix="free each allocation once, with its own address and size",
    example="tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 64;      // fixed: 128, as allocated",
    fires="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[given back twice]",
    twin="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[growing]",
)

TMEM_NOT_FREED = _check(
    code="tmem-not-freed",
    title="TMEM not freed",
    section="9.7.16.7.1",
    rule="A CTA must free all its columns before it exits.",
    why="The columns are lost to the next CTAs of the multiprocessor.",
    fix="free them with tcgen05.dealloc, by one warp, after all uses",
    example="// fixed: tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 128;\nret;",
    fires="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[never given back]",
    twin="emulator/semantics/test_tcgen05_allocation.py::test_all_columns_for_one",
)

TMEM_ALLOCATION_GROWS = _check(
    code="tmem-allocation-grows",
    title="TMEM allocation grows",
    severity="advice",
    section="9.7.16.7.1",
    rule="An allocation should not be larger than the one before.",
    why="The manual requires it: other CTAs may hold what lies between.",
    fix="allocate the larger part first, or all at once",
    example="tcgen05.alloc... [a], 32;\ntcgen05.alloc... [b], 64;      // fixed: in the other order",
    fires="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[growing]",
    twin="emulator/semantics/test_tcgen05_allocation.py::test_life_of_allocations[never given back]",
)

TMEM_FREED_IN_USE = _check(
    code="tmem-freed-in-use",
    title="TMEM freed while in use",
    section="9.7.16.7.1",
    rule="tcgen05.dealloc must come after all operations that read or write the columns, with .cta_group::2 in either "
    "CTA of the pair.",
    why="The columns may belong to another CTA by then. The manual says that both warps of the pair must synchronize "
    "accesses to tensor memory before they free it; they may exit right after it (9.7.16.5). Where only that is "
    "missing it is advice: the first of the two to free could block until the other does, says table 46, and "
    "CUTLASS's CuTe tutorial 04 has no more than __syncthreads there.",
    fix="wait for the operation (commit and mbarrier, tcgen05.wait), synchronize the warps, then free; in a CTA pair "
    "with a barrier of both",
    example="tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];\n// fixed: tcgen05.wait::ld.sync.aligned; "
    "tcgen05.fence::before_thread_sync; bar.sync 0;\n@%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, "
    "128;",
    fires="emulator/semantics/test_tcgen05_movement.py::test_a_stored_without_a_wait",
    twin="emulator/semantics/test_tcgen05_movement.py::test_a_stored_without_a_wait",
    explains=("tmem-freed-in-use", "tmem-out-of-allocation", "cta-exit"),
)

TMEM_OUT_OF_BOUNDS = _fault(
    code="tmem-out-of-bounds",
    title="out of bounds in tensor memory",
    section="9.7.16.1.1",
    rule="Tensor memory has 128 lanes and 512 columns; a matrix must begin on a lane that its layout allows, A and "
    "metadata on the lane of D (layouts C and F).",
    why="Hardware ends the kernel.",
    fix="correct the address; ptxgen layout draws the lanes and columns of a matrix",
    example="add.u32 %taddr, %taddr, 512;      // fixed: below 512 columns",
    fires="emulator/semantics/test_tcgen05.py::test_what_a_load_may_reach",
    twin="emulator/semantics/test_tcgen05.py::test_what_a_load_may_reach",
)

TMEM_OUT_OF_ALLOCATION = _fault(
    code="tmem-out-of-allocation",
    title="TMEM not allocated",
    section="9.7.16.7.1",
    rule="An access must lie in columns that the CTA has allocated and not freed.",
    why="The columns may belong to another CTA. If they were freed, the fault names the tcgen05.dealloc.",
    fix="allocate as many columns as are used, and free them last",
    example="tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;      // fixed: 128",
    fires="emulator/semantics/test_tcgen05_allocation.py::test_all_columns_for_one",
    twin="emulator/semantics/test_tcgen05_allocation.py::test_all_columns_for_one",
)

TMEM_LANE_RIGHTS = _fault(
    code="tmem-lane-rights",
    title="lanes of another warp",
    section="9.7.16.8.1",
    rule="Warp w of a warpgroup may load and store the lanes 32*(w mod 4) to 32*(w mod 4) + 31 of tensor memory.",
    why="Hardware ends the kernel.",
    fix="set bits 16-31 of the address to 32 * (warp mod 4)",
    example="shl.b32 %lane, %warp, 20;      // fixed: shl.b32 %lane, %warp, 21;",
    fires="emulator/semantics/test_tcgen05.py::test_what_a_load_may_reach",
    twin="emulator/semantics/test_tcgen05.py::test_what_a_load_may_reach",
)

DIVERGENT_TENSOR_ADDRESS = _check(
    code="divergent-tensor-address",
    title="TMEM address differs in the warp",
    section="9.7.16.8.1",
    rule="All threads of a warp must give tcgen05.ld, st, alloc and dealloc the same address and the same number of "
    "columns.",
    why="It is one instruction for the warp: hardware takes the value of a thread of its choice. The lanes that each "
    "thread gets follow from the shape of the instruction, not from its address.",
    fix="compute the address from the number of the warp (thread & 0x60), not of the thread",
    example="and.b32 %lane, %thread, 0x7f;      // fixed: 0x60\nshl.b32 %lane, %lane, 16;\nadd.u32 %taddr, %d, %lane;",
    fires="emulator/semantics/test_tcgen05_movement.py::test_addresses_that_differ_in_the_warp",
    twin="emulator/semantics/test_tcgen05_movement.py::test_addresses_that_differ_in_the_warp",
)

PAIR_NOT_STARTED = _check(
    code="pair-not-started",
    title="pair allocates before its peer has started",
    severity="advice",
    section="9.7.16.7.1",
    rule="A CTA should synchronize with its peer before tcgen05.alloc.cta_group::2, which works in both CTAs.",
    why="The manual lets a warp of each CTA perform the allocation together and does not say what happens to one whose "
    "peer has not started. CUTLASS and Triton put a barrier of the cluster before it (triton-lang/triton#10735). On "
    "a B300 the launch is reported to fail where a CTA frees before its peer has allocated (NVIDIA/cutlass#3435).",
    fix="put barrier.cluster.arrive and .wait before the allocation; the one that publishes mbarriers is enough",
    example="// fixed: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;",
    fires="bugs/test_bugs.py::test_bug_is_reported[pair-allocates-before-its-peer-has-started-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[pair-allocates-before-its-peer-has-started-eager]",
)

TMEM_OVERLAP = _check(
    code="tmem-overlap",
    title="operands overlap in TMEM",
    section="9.7.16.10",
    rule="The accumulator of an MMA, its scale factors, its A and its metadata must not overlap in tensor memory.",
    why="The MMA writes D over operands that it, or the next MMA of the loop, still reads, or reads as one operand "
    "what was put there as another. The address of one of them is wrong, or its shape: scale factors take a column for "
    "each 32 rows, in all four quarters of the lanes. Scale factors of A and B may share an address if they are the "
    "same (all of them one, say).",
    fix="allocate columns of their own to D, A and each scale factor",
    example="add.u32 %scales, %d, 24;      // D has 32 columns; fixed: 32",
    fires="bugs/test_bugs.py::test_bug_is_reported[scales-overlap-the-accumulator-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[scales-overlap-the-accumulator-eager]",
)

OPERAND_CELLS = _check(
    code="operand-cells",
    title="TMEM read in another layout than it was written",
    section="9.7.16.10.1",
    rule="The MMAs of one accumulation must read each column of A once, and A of 16-bit elements has two in each "
    "column; .pack::16b and .unpack::16b are for accumulators of f16. What an MMA has accumulated in 32 bits is no A "
    "of a narrower type, and A is no accumulator to add to.",
    why="A step of 4 columns for 8 multiplies half of P twice, and leaves half out; A that .unpack::16b has stored is "
    "every second element and zeros. Scores that no tcgen05.st has replaced are multiplied as pairs of bf16, and "
    "scores added to P as if it were f32. Nothing faults. It is advice where .pack::16b keeps the low halves of f32. "
    "Halves of a pack in the wrong order are no finding: which register has which element is the kernel's choice. "
    "`ptxgen run --why 'c[3, 5]'` walks from an element of the result to the instructions that stored its operands.",
    fix="step A by 8 columns for each MMA, and store it packed",
    example="add.u32 %p, %p, 4;      // A of the next MMA; fixed: 8",
    fires="bugs/test_bugs.py::test_bug_is_reported[p-of-half-a-step-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[p-of-half-a-step-eager]",
)

MANY_ISSUERS = _check(
    code="many-issuers",
    title="several lanes issue",
    severity="advice",
    section="9.7.16.5",
    rule="A single thread issues tcgen05.mma, cp, shift and commit.",
    why="Each lane issues its own: the products are added to D, and arrivals counted on the mbarrier, once per lane.",
    fix="issue it from one lane: elect.sync, or a predicate",
    example="tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %idesc, %p;      // fixed: @%leader tcgen05.mma...",
    fires="emulator/semantics/test_tcgen05.py::test_what_several_lanes_issue[tcgen05.mma--32-late]",
    twin="emulator/semantics/test_tcgen05.py::test_what_several_lanes_issue[tcgen05.mma-@%leader-1-late]",
)

CTA_PAIR = _fault(
    code="cta-pair",
    title="no CTA pair",
    section="9.7.16.5",
    rule=".cta_group::2 needs a peer CTA that has not exited.",
    why="Hardware ends the kernel. (Both .cta_group::1 and ::2 in one kernel are illegal PTX.) A tcgen05.alloc of a "
    "pair waits for a warp of the peer, and a dealloc may (table 48): if it never comes, that is a deadlock.",
    fix="launch clusters of an even number of CTAs; end with barrier.cluster",
    example="tcgen05.alloc.cta_group::2...      // fixed: launch with cluster=2",
    fires="emulator/semantics/test_tcgen05_pairs.py::test_allocation",
    twin="emulator/semantics/test_tcgen05_pairs.py::test_allocation",
)
