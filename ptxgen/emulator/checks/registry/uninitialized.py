"""Reads of uninitialized memory and registers."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Uninitialized reads", title="uninitialized read")

UNINITIALIZED_SHARED = _check(
    code="uninitialized-shared",
    section="5.1.7",
    rule="Shared memory must be written before it is read.",
    why="Shared memory holds what an earlier CTA left there. It is advice where a load reads one element past the "
    "initialized ones, since merges do so and discard the value, and where a rerun with different bytes there changed "
    "nothing.",
    fix="store to it first, or wait for the copy that fills it",
    explains=(
        "uninitialized-shared",
        "mbarrier-parity",
        "mbarrier-split",
        "mbarrier-overflow",
        "shared-race",
        "deadlock",
    ),
    example="// fixed: st.shared.u32 [data], 0; bar.sync 0;\nld.shared.u32 %value, [data];",
    fires="emulator/checks/uninitialized/test_rerun.py::test_a_launch_on_much_memory_is_not_repeated",
    twin="emulator/checks/uninitialized/test_rerun.py::test_lanes_that_64_rows_leave_out[dropped-late]",
)

UNINITIALIZED_LOCAL = _check(
    code="uninitialized-local",
    section="5.1.5",
    rule="Local memory must be written by its thread before results depend on it.",
    why="Its value is undefined. It is an error where a result depends on the value, and advice where the value is "
    "only copied to memory, as compilers do with the padding of structures.",
    fix="store to it on every path that leads to the load",
    example=".local .u32 slot;\n// fixed: st.local.u32 [slot], 0;\nld.local.u32 %value, [slot];",
    fires="emulator/semantics/test_memory.py::test_reading_local_memory_before_writing_it",
    twin="emulator/semantics/test_memory.py::test_reading_local_memory_before_writing_it",
)

UNINITIALIZED_REGISTER = _check(
    code="uninitialized-register",
    section="5.1.1",
    rule="A register that its thread has not written must not be an address or a guard, and results must not depend on "
    "it. An accumulator of wgmma counts as read if scale-d is true.",
    why="Its value is undefined. It is advice where the value is only copied to memory, where the launch fails anyway, "
    "and, if it is stored or never written, where no rerun could show whether it matters. Values that are discarded "
    "are not reported, as in Triton's reductions, which shuffle registers that only some lanes have loaded.",
    fix="write the register on every path that leads to the read",
    example="// fixed: mov.u32 %sum, 0;\nadd.u32 %sum, %sum, %value;\nst.global.u32 [%out], %sum;",
    fires="emulator/checks/uninitialized/test_registers.py::test_accumulators_of_a_warpgroup",
    twin="emulator/checks/uninitialized/test_registers.py::test_accumulators_of_a_warpgroup",
)

UNINITIALIZED_TENSOR = _check(
    code="uninitialized-tensor",
    section="9.7.16.7",
    rule="The columns that a load, an accumulation, or the A, metadata or scale factors of an MMA read must have been "
    "written in that quarter of the lanes (or in half of the lanes, if results depend on those).",
    why="Tensor memory holds what an earlier CTA left there. It is advice where a rerun with different values there "
    "changed nothing.",
    fix="set enable-input-d to false in the first MMA of a tile; copy scale factors to all four quarters of the lanes "
    "(tcgen05.cp.32x128b.warpx4)",
    example="tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %idesc, 1;"
    "      // fixed: 0 instead of 1 in the first MMA of a tile",
    fires="emulator/semantics/test_tcgen05_pairs.py::test_products",
    twin="emulator/semantics/test_tcgen05_pairs.py::test_products",
)
