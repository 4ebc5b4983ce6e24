"""Addresses, state spaces, alignment and sizes of accesses."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Addresses and memory")
_fault = partial(_check, fault=True)

OUT_OF_BOUNDS = _fault(
    code="out-of-bounds",
    title="out of bounds",
    section="6.4.1",
    rule="An access must lie inside an array, the CTA's shared memory, the parameters or the thread's stack.",
    why="Hardware ends the kernel or touches another allocation. The message names the nearest array and element.",
    fix="guard the last elements, or correct the address",
    example="st.global.u32 [%address], %value;      // fixed: @%inside st.global.u32 [%address], %value;",
    fires="emulator/semantics/test_memory.py::test_an_array_that_ends_inside_a_word",
    twin="emulator/semantics/test_memory.py::test_an_array_that_ends_inside_a_word",
)

MISALIGNED = _fault(
    code="misaligned",
    title="misaligned address",
    section="6.4.1",
    rule="An address must be a multiple of the access's size, or of what the copy, mbarrier or tensormap requires.",
    why="Hardware ends the kernel.",
    fix="align the variable (.align) and the offsets",
    example=".shared .b8 tile[4096];      // fixed: .shared .align 128 .b8 tile[4096];",
    fires="emulator/semantics/test_matrix.py::test_what_goes_wrong",
    twin="emulator/semantics/test_matrix.py::test_what_goes_wrong",
)

NOT_SHARED = _fault(
    code="not-shared",
    title="not a shared address",
    section="5.1.7",
    rule="The operand must be in shared memory; this generic address is not.",
    why="Hardware ends the kernel.",
    fix="pass a shared address, or convert it with cvta.shared",
    example="mbarrier.arrive.b64 _, [%global_pointer];      // fixed: cvta.shared.u64 %pointer, full; ... [%pointer]",
    fires="emulator/semantics/test_matrix.py::test_what_goes_wrong",
    twin="emulator/semantics/test_matrix.py::test_what_goes_wrong",
)

NOT_GLOBAL = _fault(
    code="not-global",
    title="not a global address",
    section="5.1.4",
    rule="The operand must be in global memory; this generic address is not.",
    why="Hardware ends the kernel.",
    fix="pass a global address, or name the state space",
    example="discard.L2 [%shared_pointer], 128;      // fixed: discard.global.L2 [%global_pointer], 128;",
    fires="emulator/semantics/test_async_store.py::test_a_discarded_line_is_indeterminate",
    twin="emulator/semantics/test_async_store.py::test_a_discarded_line_is_indeterminate",
)

NOT_AN_OBJECT = _fault(
    code="not-an-object",
    title="no texture or surface object",
    section="9.7.10",
    rule="The handle must be that of a texture or surface object, which has the dimensions of the instruction.",
    why="Hardware fetches from anywhere, or ends the kernel.",
    fix="pass the handle of an object that has not been destroyed; in the emulator the address of Texture.encode() in "
    "global memory",
    example="tex.2d.v4.f32.f32 {...}, [%data, {%x, %y}];      // fixed: ... [%texture, {%x, %y}];",
    fires="emulator/semantics/test_texture.py::test_what_is_no_object",
    twin="emulator/semantics/test_texture.py::test_points",
)

ATOMIC_SPACE = _fault(
    code="atomic-space",
    title="atomic outside global and shared memory",
    section="9.7.13.5",
    rule="Atomic operations work on global and shared memory alone.",
    why="Elsewhere the behavior is undefined.",
    fix="move the word to shared or global memory",
    example="atom.add.u32 %old, [%local_pointer], 1;      // fixed: atom.shared.add.u32 %old, [word], 1;",
    fires="emulator/semantics/test_atomic.py::test_faults",
    twin="emulator/semantics/test_atomic.py::test_faults",
)

READ_ONLY = _fault(
    code="read-only",
    title="store to read-only memory",
    section="5.1.3",
    rule="Kernel parameters and constants cannot be written.",
    why="Hardware ends the kernel.",
    fix="copy the value to local or global memory and change it there",
    example="st.u32 [%generic_parameter], 1;      // fixed: st.local.u32 [copy], 1;",
    fires="emulator/semantics/test_memory.py::test_a_store_to_parameters",
    twin="emulator/semantics/test_memory.py::test_a_store_to_parameters",
)

GENERIC_SHARED_ADDRESS = _check(
    code="generic-shared-address",
    title="shared address in place of a generic one",
    severity="advice",
    section="6.4.1",
    rule="Without a state space the operand is a generic address, but this is one of the shared window.",
    why="It works, as Triton relies on, but nothing promises that.",
    fix="name .shared::cluster",
    example="tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%bar];"
    "      // fixed: ...mbarrier::arrive::one.shared::cluster.b64 [%bar]",
    fires="emulator/kernels/test_compiled.py::test_a_triton_gemm_with_edges",
    twin="emulator/kernels/test_gemm.py::test_right_and_clean[1x1x64-f16-late]",
)

BULK_SIZE = _fault(
    code="bulk-size",
    title="illegal bulk size",
    section="9.7.9.25",
    rule="The size of a bulk operation must be a multiple of what it moves at once.",
    why="Other sizes are undefined.",
    fix="round the size up and pad the memory",
    example="st.bulk.weak.shared::cta [%data], 100, 0;      // fixed: 104",
    fires="emulator/semantics/test_async_store.py::test_illegal_bulk_stores",
    twin="emulator/semantics/test_async_store.py::test_illegal_bulk_stores",
)

BULK_IGNORE = _fault(
    code="bulk-ignore",
    title="illegal .ignore_oob",
    section="9.7.9.25.4",
    rule=".ignore_oob leaves out 0 to 15 bytes at each end.",
    why="Other counts are undefined.",
    fix="pass 0 to 15; move the address by whole 16 bytes",
    example="cp.async.bulk ... .ignore_oob [tile], [%source], 64, 16, 0, [full];      // fixed: 15, or another address",
    fires="emulator/semantics/test_bulk.py::test_bytes_outside_are_ignored",
    twin="emulator/semantics/test_bulk.py::test_bytes_outside_are_ignored",
)

COPY_SIZE = _fault(
    code="copy-size",
    title="src-size too large",
    section="9.7.9.25.3.1",
    rule="The src-size of cp.async must not exceed its size.",
    why="The behavior is undefined.",
    fix="limit src-size to cp-size",
    example="cp.async.ca.shared.global [data], [%source], 8, 16;      // fixed: 8",
    fires="emulator/semantics/test_async_copy.py::"
    "test_faults[mov.u32 %n, 5; cp.async.ca.shared.global [%place], [%from], 4, %n;-copy-size]",
    twin="emulator/semantics/test_async_copy.py::"
    "test_faults[cp.async.cg.shared.global [%place], [%from+304], 16;-None]",
)
