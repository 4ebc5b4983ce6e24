"""Descriptors, tensormaps and metadata of sparse matrices."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Descriptors and tensormaps")

ILLEGAL_DESCRIPTOR = _check(
    code="illegal-descriptor",
    title="illegal descriptor",
    fault=True,
    section="9.7.16.4",
    rule="The bits must be a shared-memory descriptor, instruction descriptor or zero-column mask that the instruction "
    "can use: also no `sparse` that disagrees with .sp, no shapes and types that the kind does not have, no column "
    "shift beyond the descriptor's limit.",
    why="Hardware ends the kernel or computes something else.",
    fix="take the number apart with ptxgen explain smem|wgmma|idesc VALUE",
    example="mov.b64 %a, 0x6000404000010000;      // fixed: 0x4000404000010000 (128-byte swizzle)",
    fires="emulator/semantics/test_wgmma.py::test_descriptors",
    twin="emulator/kernels/test_gemm.py::test_right_and_clean[1x1x64-f16-late]",
)

OPERAND_REGION = _check(
    code="operand-region",
    title="MMA reads past its operand",
    section="9.7.16.4",
    rule="The bytes that a matrix descriptor and the shape of the MMA select must lie in the variable of shared "
    "memory, or the region of the plan, in which the operand begins.",
    why="A wrong stride (SBO, LBO), start or shape takes the MMA into whatever lies there: the result is wrong, and "
    "nothing faults. A variable that is only the base of more memory bounds nothing: the last one before dynamic "
    "shared memory (JAX's Mosaic GPU declares one byte), and one past whose end the program or a copy reaches.",
    fix="correct the strides of the descriptor; ptxgen explain smem|wgmma VALUE takes it apart",
    example="mov.b64 %b, 0x0000002000080040;      // SBO 512 where 8 rows take 256 bytes; fixed: 0x0000001000080040",
    fires="bugs/test_bugs.py::test_bug_is_reported[stride-takes-wgmma-behind-its-operand-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[stride-takes-wgmma-behind-its-operand-eager]",
    explains=("uninitialized-shared", "shared-race"),
)

DESCRIPTOR_VERSION = _check(
    code="descriptor-version",
    title="descriptor version 0",
    severity="advice",
    section="9.7.16.4.1",
    rule="Bits 46-48 of a shared-memory descriptor of tcgen05 are the constant 0b001 (table 40); 0 is advice, any "
    "other value an illegal descriptor.",
    why="Triton 3.5 wrote 0 and its kernels ran on B200 (`ptxgen explain facts descriptor-version`), but nothing "
    "promises that the next GPU accepts it.",
    fix="set bit 46, as SmemDescriptor.encode does",
    example="mov.b64 %a, 0x4000004000010000;      // fixed: 0x4000404000010000",
    fires="emulator/semantics/test_tcgen05_movement.py::test_copies",
    twin="emulator/semantics/test_tcgen05_movement.py::test_copies",
)

ILLEGAL_METADATA = _check(
    code="illegal-metadata",
    title="illegal metadata",
    section="9.7.14.6.1",
    rule="The metadata of a sparse MMA must name two different elements of each four, the lower first with "
    "sp::ordered_metadata; with .tf32 they must be 0b0100 or 0b1110.",
    why="Otherwise the result is undefined. Often the word is in another thread of the quad than the selector says.",
    fix="see ptxgen.layouts.fragments.metadata_places for the thread and bits of each chunk; the selector picks the "
    "thread or pair of each quad",
    example="mov.u32 %metadata, 0x00000000;      // fixed: 0x44444444",
    fires="emulator/semantics/test_wgmma.py::test_metadata_that_mean_nothing",
    twin="emulator/semantics/test_wgmma.py::test_metadata_that_mean_nothing",
)

SWIZZLE_MISMATCH = _check(
    code="swizzle-mismatch",
    title="swizzle mismatch",
    severity="advice",
    section="5.5.7",
    rule="The descriptor of an MMA must name the swizzle of the copy that wrote the bytes; a tile of threads must "
    "begin where the pattern of the swizzle does, or the descriptor have a base offset; a bulk reduction without a "
    "tensormap must not take a tile that a swizzled tensor copy wrote.",
    why="The elements are then read in another order than they were written. Threads may have swizzled by addresses, "
    "and a tile may be swizzled in global memory: that is advice. The bulk reduction is an error.",
    fix="use the tensormap's swizzle in the descriptor",
    example="mov.b64 %a, 0x8000404000010000;      // fixed: 0x4000404000010000, as the tensormap has 128-byte swizzle",
    fires="emulator/kernels/test_gemm.py::test_planted_errors[64-byte swizzle-late]",
    twin="emulator/kernels/test_gemm.py::test_right_and_clean[1x1x64-f16-late]",
)

OPERAND_LAYOUT = _check(
    code="operand-layout",
    title="MMA reads another layout than the tensor copy wrote",
    section="9.7.16.4",
    rule="The rows and K of an operand must map one by one to the rows and columns of the boxes that tensor copies "
    "wrote there: a row lies in one row of a box, no chunk is two chunks of the operand, none is multiplied for two K "
    "of one row and accumulator, and rows between others that are read are read too.",
    why="The MMA multiplies other elements than the tensor copy brought: the major in the instruction descriptor "
    "(wgmma: imm-trans), SBO, LBO, the start address or the step of K is wrong, and nothing faults. Transposed views, "
    "overlapping windows, strides of 0 and tails of a tile are all legal, and silent.",
    fix="take the descriptors apart with ptxgen explain smem|wgmma|idesc VALUE; ptxgen layout draws the tile",
    example="mov.b64 %a, 0x4000402000010000;      // SBO 512; fixed: 0x4000404000010000, 8 rows of 128 bytes",
    fires="bugs/test_bugs.py::test_bug_is_reported[sbo-of-half-a-group-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[sbo-of-half-a-group-eager]",
    explains=("operand-layout", "operand-region", "uninitialized-shared", "shared-race"),
)

OPERAND_TYPE = _check(
    code="operand-element-type",
    title="MMA multiplies another type than the tensormap has",
    section="9.7.16.4.2",
    rule="Elements that a tensormap of f16, bf16, tf32 or a padded type brings must be multiplied as that type.",
    why="The bits are read as other numbers, and nothing faults: a type field of 0 in an instruction descriptor is "
    "f16. Integer types of a tensormap move bits of any kind, such as fp8 by u8, and are silent; so is f32.",
    fix="set the type in the instruction descriptor, or wgmma's .atype and .btype, to that of the tensormap",
    example="mov.b32 %idesc, 0x08100010;      // f16 over a bf16 tensormap; fixed: 0x08100490",
    fires="bugs/test_bugs.py::test_bug_is_reported[f16-over-a-bf16-tensormap-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[f16-over-a-bf16-tensormap-eager]",
)

ILLEGAL_TENSORMAP = _check(
    code="illegal-tensormap",
    title="illegal tensormap",
    fault=True,
    section="5.5",
    rule="The 128 bytes must be a tensormap. What they say of dimensions beyond the map's rank is not read (H200).",
    why="Hardware ends the kernel. It is advice where tensormap.replace gives a stride that is no multiple of 16 "
    "bytes: the rest is lost.",
    fix="encode the map again, or correct its address; ptxgen explain tensormap takes it apart",
    example="cvta.param.u64 %map, other;      // fixed: cvta.param.u64 %map, tensormap_a;",
    fires="emulator/semantics/test_tma.py::test_what_is_wrong_with_a_map_comes_first",
    twin="emulator/semantics/test_tma.py::test_columns_of_pixels",
)

TENSOR_STORE_TAIL = _check(
    code="tensor-store-tail",
    title="tensor store writes past its rows",
    severity="advice",
    section="9.7.9.25.5.3",
    rule="The bytes of a row of a tensor that a copy stores to, or reduces into, should be a multiple of 16.",
    why="A store writes whole units of 16 bytes: where a row ends inside one, up to 15 bytes after it are "
    "overwritten, or combined, too (ptxgen explain facts tma-store-units; measured on an H200). They may be "
    "padding, as in right kernels with a tail: it is advice, and only where advice on accesses is asked for "
    "(`Emulator(advice=)`, `ptxgen run --advice`).",
    fix="keep the bytes of a row a multiple of 16, leave padding after each row, or store the last columns by "
    "st.global",
    example="// a tensormap of 60 bf16 elements in rows of 128 bytes; fixed: 64, or padding of 8 bytes\n"
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {0, 0}], [tile];",
    fires="emulator/checks/global_memory/test_copies.py::test_tensor_stores_write_whole_units",
    twin="emulator/checks/global_memory/test_copies.py::test_tensor_stores_write_whole_units",
)

TENSORMAP_RANK = _check(
    code="tensormap-rank",
    title="wrong tensormap rank",
    fault=True,
    section="9.7.9.25.5.2",
    rule="The dimensions of the instruction must be those of the tensormap.",
    why="Coordinates are missing or left over.",
    fix="use .2d for a map of rank 2, and so on",
    example="cp.async.bulk.tensor.3d ... [%map, {0, 0, 0}], [full];      // fixed: .2d with {0, 0}",
    fires="emulator/semantics/test_tma.py::test_maps_that_the_instruction_does_not_fit[another rank]",
    twin="emulator/semantics/test_tma.py::test_boxes[5-32B]",
)

TENSORMAP_MODE = _check(
    code="tensormap-mode",
    title="wrong tensormap mode",
    fault=True,
    section="5.5.3",
    rule="A tiled copy takes a tiled tensormap, an im2col copy an im2col one.",
    why="The two hold different fields in the same bits.",
    fix="use .tile or .im2col as the map was encoded",
    example="cp.async.bulk.tensor.4d ... .tile ... [%im2col_map, ...];      // fixed: .im2col",
    fires="emulator/semantics/test_tma.py::test_maps_that_the_instruction_does_not_fit[pixels for a tile]",
    twin="emulator/semantics/test_tma.py::test_columns_of_pixels",
)

TENSORMAP_BOX = _check(
    code="tensormap-box",
    title="tensormap does not fit the mode",
    fault=True,
    section="5.5.3.4",
    rule="tile::gather4 and tile::scatter4 take maps whose boxes have one row, without interleave; im2col::w takes "
    "maps with a swizzle and no interleave.",
    why="Hardware ends the kernel.",
    fix="encode the map with such a box, swizzle and interleave",
    example="TensorMap.tiled(..., box=(64, 4))      // fixed: box=(64, 1) for gather4",
    fires="emulator/semantics/test_tma.py::test_maps_that_the_instruction_does_not_fit[four rows of more]",
    twin="emulator/semantics/test_tma.py::test_boxes[5-32B]",
)

TENSORMAP_PIXEL = _check(
    code="tensormap-pixel",
    title="coordinates outside the pixel box",
    fault=True,
    section="9.7.9.25.5.2",
    rule="The coordinates of an im2col copy must be within the pixel box that the map's corners leave.",
    why="Hardware ends the kernel.",
    fix="put offsets inside the filter into the instruction's offsets, not into the coordinates",
    example="[%map, {%c, %w_plus_s, %h_plus_r, %n}], [full], {0, 0};      // fixed: {%c, %w, %h, %n} and {%s, %r}",
    fires="emulator/semantics/test_tma.py::test_maps_that_the_instruction_does_not_fit[a large halo]",
    twin="emulator/semantics/test_tma.py::test_columns_of_pixels",
)

TENSORMAP_TYPE = _check(
    code="tensormap-type",
    title="tensormap element type",
    fault=True,
    section="9.7.9.25.5.3",
    rule="A reduction must be one that the map's element type has; maps for loads alone (16u4_align16b, the 8-byte "
    "flip) do not store.",
    why="Hardware ends the kernel.",
    fix="encode the map with a type that the operation takes",
    example="cp.reduce.async.bulk.tensor.2d ... .and ... [%bf16_map, ...];      // fixed: .add",
    fires="emulator/semantics/test_tma_store.py::test_reductions_take_some_types",
    twin="emulator/semantics/test_tma_store.py::test_reductions_take_some_types",
)
