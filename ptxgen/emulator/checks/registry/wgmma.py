"""MMAs of warpgroups (wgmma)."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="wgmma")

WGMMA_REGISTER_IN_FLIGHT = _check(
    code="wgmma-register-in-flight",
    title="register of a wgmma in flight",
    section="9.7.15.7.3",
    rule="Until wgmma.wait_group has waited for the group of an MMA, no thread may read or write a register of its "
    "accumulator, write a register of its A, or use the accumulator as A of another MMA. Reading A is fine.",
    why="The tensor core reads and writes registers at its own time: the value is the old one, the new one, or "
    "neither. ptxas warns of some of these and then waits after every MMA, which is slow. A mov that copies or splits "
    "an accumulator is not reported, but the first use of the copy before the program's wait is (Triton 3.6 and 3.9 "
    "write such movs; ptxas 13.5 inserts no wait for them). Where mov packs accumulators, ptxas inserts a wait (its "
    "message C7517): that is advice.",
    fix="put wgmma.commit_group after the MMAs and wgmma.wait_group N before the access, where N is the number of "
    "groups that may still be in flight; MMAs without a commit_group are in no group",
    example="wgmma.commit_group.sync.aligned;\n// fixed: wgmma.wait_group.sync.aligned 0;\nst.global.f32 [%out], %d0;",
    fires="emulator/semantics/test_wgmma.py::test_a_in_flight",
    twin="emulator/semantics/test_wgmma.py::test_a_in_flight",
    explains=("wgmma-register-in-flight", "cta-exit"),
)

MISSING_WGMMA_FENCE = _check(
    code="missing-wgmma-fence",
    title="missing wgmma.fence",
    section="9.7.15.7.1",
    rule="wgmma.fence must precede the first MMA of a warp, and come between an access of its threads to a register of "
    "the accumulator or of A and the next MMA that uses it, and between MMAs whose accumulators share registers but "
    "have different shapes.",
    why="Without it the MMA may start from what a register held before.",
    fix="put wgmma.fence.sync.aligned before each batch of MMAs; none is needed between MMAs into the same accumulator",
    example="mov.f32 %d0, 0f00000000;\n// fixed: wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16... "
    "{%d0, ...}, ...;",
    fires="emulator/semantics/test_wgmma.py::test_missing_fences",
    twin="emulator/semantics/test_wgmma.py::test_missing_fences",
)

DIVERGENT_WARPGROUP = _check(
    code="divergent-warpgroup",
    title="operand differs in the warpgroup",
    section="9.7.15.5.2",
    rule="A matrix descriptor and scale-d must be the same in all 128 threads of the warpgroup.",
    why="It is one instruction for all of them: hardware takes the value from uniform registers of a warp of its "
    "choice.",
    fix="compute descriptors from the warpgroup's number, broadcast by shfl.sync.idx, not from the thread's",
    example="shr.u32 %warp, %tid, 5;      // fixed: shr.u32 %warpgroup, %tid, 7; then shfl.sync.idx",
    fires="emulator/semantics/test_wgmma.py::test_all_warps_of_a_warpgroup",
    twin="emulator/semantics/test_wgmma.py::test_products[f16.f16-memory-32-k-k-32B]",
)

INCOMPLETE_WARPGROUP = _check(
    code="incomplete-warpgroup",
    title="incomplete warpgroup",
    fault=True,
    section="9.7.15.1",
    rule="wgmma needs the four warps of a warpgroup, which begins at a multiple of 4 warps.",
    why="Hardware ends the kernel. A warp that stays away from wgmma.fence leaves the others waiting: that is a "
    "deadlock, which names them.",
    fix="launch a multiple of 128 threads",
    example=".reqntid 96      // fixed: .reqntid 128",
    fires="emulator/semantics/test_wgmma.py::test_all_warps_of_a_warpgroup",
    twin="emulator/semantics/test_wgmma.py::test_products[f16.f16-memory-32-k-k-32B]",
)
