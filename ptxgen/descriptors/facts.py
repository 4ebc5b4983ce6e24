"""The evidence for descriptors and layouts where the manual is silent, contradicts itself, or has a figure only.

`ptxgen explain facts` prints these, `ptxgen explain` shows the ones that concern a value beside its fields, and
docs/facts.md lists them (`ptxgen explain facts --markdown`). Evidence for single fields is declared with the fields.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ptxgen.descriptors.evidence import Fact, documented, inferred, measured, unverified
from ptxgen.descriptors.function_facts import FUNCTION_FACTS
from ptxgen.descriptors.rubin_facts import RUBIN_FACTS
from ptxgen.descriptors.sum_facts import SUM_FACTS

FACTS: tuple[Fact, ...] = (
    Fact(
        "lbo-swizzled-k-major",
        "shared-memory descriptors",
        "LBO of a swizzled K-major operand is not read: K runs on inside the swizzle row.",
        measured(
            "H200, driver 580.159.04: wgmma with arbitrary LBO gave the same results; tcgen05: PTX ISA 9.7.16.3.1.1 "
            '("not used, assumed to be 1")'
        ),
        "CUTLASS writes 1 unit (16 bytes), DeepGEMM 0; both work. Step along K with the start address instead.",
        silicon="",
    ),
    Fact(
        "stride-roles",
        "shared-memory descriptors",
        "LBO and SBO swap roles between MN-major without swizzle and MN-major with one.",
        measured(
            "H200, driver 580.159.04, wgmma with 16-bit operands; PTX ISA 9.7.16.3.3 and CUTLASS "
            "include/cute/arch/mma_sm100_desc.hpp write the same layouts"
        ),
        "Without swizzle SBO steps along MN and LBO along K; with one, LBO steps along MN and SBO along K.",
        silicon="B200, by others: mlc-ai/TIRx-harness 4f92290 holds MN-major operands of tcgen05 to it",
    ),
    Fact(
        "swizzle-absolute-address",
        "swizzles",
        "A swizzle XORs bits of the absolute shared-memory address, in TMA and in the tensor cores alike.",
        measured(
            "H200, driver 580.159.04: TMA writes at 0 to 640 bytes past a pattern boundary, and wgmma reads at every "
            "128-byte line, with modes 32B, 64B and 128B; tcgen05 and the 32- and 64-byte atoms by analogy"
        ),
        "A tile that TMA wrote is read back with base offset 0 wherever it starts, and K can be advanced by adding to "
        "the start address inside a swizzle row.",
        silicon="",
    ),
    Fact(
        "tma-and-mma-swizzle-agree",
        "swizzles",
        "TMA's modes 32B, 64B and 128B and the descriptors' modes of the same names are one XOR: address bits 4 and up "
        "with bits 7 and up, 1, 2 and 3 bits wide.",
        measured(
            "H200, driver 580.159.04: what TMA wrote, wgmma multiplied rightly; CUTLASS describes both with the same "
            "Swizzle<1..3,4,3> (PTX ISA 5.5.7 and 9.7.16.3.3)"
        ),
        "The row number (address / 128) goes into the 16-byte chunk number, so that eight rows' chunks of one column "
        "lie in 32 different banks: rows and columns are read without conflicts.",
    ),
    Fact(
        "base-offset",
        "shared-memory descriptors",
        "The base offset is subtracted from the line number before the XOR: chunk ^= (address >> 7) - base_offset.",
        measured("H200, driver 580.159.04, wgmma with 128B swizzle, every start line; tcgen05 by analogy"),
        "It is needed only where software laid the pattern out from a start that is not on its boundary.",
        silicon="",
    ),
    Fact(
        "descriptor-version",
        "shared-memory descriptors",
        "tcgen05 works with 0 in bits 46-48 of a descriptor, where the manual has the constant 0b001.",
        inferred(
            "Triton 3.5.1 writes 0 there, 3.6.0 writes 1 (triton-lang/triton PR 8032 of 2025-09, for "
            "the manual's sake); a fork's GEMM matched PyTorch on Blackwell before (facebookexperimental/triton PR 180)"
        ),
        "Write 0b001. ptxgen encodes it and decodes nothing else; the emulator runs what has 0, with advice.",
        silicon="",
    ),
    Fact(
        "k-major-32b-atom",
        "shared-memory descriptors",
        "The layout of K-major operands with 128B swizzle and 32-byte atoms is not published.",
        unverified(
            "PTX ISA table 54 allows it, table 55 gives it no atom, and CUTLASS's make_umma_desc refuses it "
            "(include/cute/arch/mma_sm100_desc.hpp)"
        ),
        "Use the mode for MN-major 32-bit operands only; ptxgen reads K-major by the same XOR as MN-major.",
        silicon="",
    ),
    Fact(
        "k-major-halves",
        "shared-memory descriptors",
        "A K-major operand with 64 bytes of K, as B of a sparse MMA is, has two halves with the 32-byte swizzle: "
        "each in rows of 32 bytes, the second LBO on. The XOR acts on the whole address.",
        measured(
            "H200, driver 580.159.04, 2026-11-22: wgmma.mma_async.sp with f16 and tf32, 42 settings of LBO, SBO and "
            "start each; tcgen05 by analogy"
        ),
        "The manual says that LBO is not used there; with the wider swizzles it is not.",
        silicon="",
    ),
    Fact(
        "lbo-absolute",
        "shared-memory descriptors",
        "With LBO mode 1 (bit 52) the LBO field is a shared-memory address: that of the part of a K = 96 row that does "
        "not fit into 128 bytes.",
        inferred(
            "PTX ISA 9.7.16.3.1.2 in words; how the bytes go on from CUTLASS, which puts the start address of the next "
            "128-byte tile there (include/cute/atom/mma_traits_sm100.hpp, SM103 mma_unpack; "
            "include/cutlass/gemm/collective/sm103_blockscaled_mma_warpspecialized.hpp); sm_103a only"
        ),
        "What passes the end of a row of 128 bytes goes on at the start of the same row there. 128B swizzle with "
        "16-byte atoms, K-major, base offset 0; anything else is refused.",
        silicon="",
    ),
    Fact(
        "copy-rows",
        "tcgen05.cp",
        "tcgen05.cp reads rows as a K-major operand has them: row r at (r / 8) * SBO + (r % 8) * the row of the "
        "swizzle mode; the second 16 bytes of 256-bit shapes are LBO away without swizzle, next to the first with one.",
        measured(
            "B200, by others, for 128x256b without swizzle; "
            "Apache TVM's tests of tcgen05.cp (which say they ran bit-exact on a B200) and CUTLASS's copy traits "
            "agree; the manual shows tcgen05.cp only with a descriptor"
        ),
        "One 32x128b copy takes 512 consecutive bytes where SBO is 128.",
        silicon=(
            "B200, by others: cicuvc/nvidia-sass-document 3e4430d, utccp.md, recorded 128x256b without swizzle "
            "(tests/data/silicon); other shapes and swizzles: no public record"
        ),
    ),
    Fact(
        "lbo-scale-factors",
        "scale factors",
        "LBO of a descriptor for scale factors is not read: a row of them is one 16-byte unit.",
        inferred(
            "DeepGEMM writes 0 (make_sf_desc), CUTLASS a computed value, Triton 0; PTX ISA 9.7.16.4.1 does not treat "
            "scale factors"
        ),
        "No swizzle and SBO 128 (8 rows of 16 bytes) is what all of them write.",
        silicon="",
    ),
    Fact(
        "scale-copy-warpx4",
        "scale factors",
        "tcgen05.cp.32x128b must have .warpx4: each of the four 32-lane windows needs its own copy of the scales.",
        measured(
            "ptxas 13.0 and 13.5 refuse the shape without it; PTX ISA 9.7.16.10.7: scale factors are duplicated to all "
            "32-lane partitions"
        ),
        "64x128b likewise needs .warpx2::02_13 or ::01_23, and no other shape may have either.",
        silicon="",
    ),
    Fact(
        "sfb-both-ctas",
        "scale factors",
        "With cta_group::2 the scale factors of B must lie in the tensor memory of both CTAs, for all of N.",
        inferred(
            "CUTLASS loads SFB for the whole N in each CTA (include/cutlass/gemm/collective/"
            "sm100_blockscaled_mma_warpspecialized.hpp), DeepGEMM and Triton's Gluon do the same; "
            "the manual is silent"
        ),
        "Each CTA holds rows of D over all columns, and a scale is read from its own tensor memory. B itself is split "
        "by N between the CTAs.",
        silicon="with different contents in the two CTAs at M 256: no public record",
    ),
    Fact(
        "sfb-split-m128",
        "scale factors",
        "With cta_group::2 and M 128, lane windows 0 and 1 hold the scales of the first half of N, 2 and 3 those of "
        "the second.",
        measured(
            "B200, by others; "
            "CUTLASS's ScaleFactorDuplicated2by2 (include/cute/atom/mma_traits_sm100_frag.hpp), and its example "
            "2cta_mma_blockscale_m128.py fills them so with tcgen05.cp.64x128b.warpx2::01_23"
        ),
        "It matches the accumulator's layout B; with M 256 all four windows hold the same.",
        silicon="B200, by others: mlc-ai/TIRx-harness 4f92290, mxf8_cta2.py, holds the SFB halves of layout B to it",
    ),
    Fact(
        "scale-columns",
        "scale factors",
        "The scales of row r (of A, or column of B) are on lane r % 32 of each quarter, in column r / 32.",
        measured(
            "B200, by others; "
            "CUTLASS's tmem_sf_frg (include/cute/atom/mma_traits_sm100_frag.hpp), Triton and DeepGEMM agree; "
            "the manual has figures 231 to 258 only"
        ),
        "One 32x128b.warpx4 copy of a 512-byte block fills four columns. Each quarter of D's lanes reads the copy on "
        "its own lanes.",
        silicon=(
            "B200, by others: mlc-ai/TIRx-harness 4f92290, tcgen05_scale_abi.py, holds the order of scale factors"
            " to it; ids other than 0: no public record"
        ),
    ),
    Fact(
        "scales-k96",
        "scale factors",
        "With K = 96, scales that do not fit into a word go on in the word of the next scales along K, 4 columns on "
        "for each 128 rows.",
        inferred(
            "CUTLASS steps the scales of its K = 96 main loop by 3 or 6 through tmem_sf_frg, whose next word along K "
            "is there (include/cutlass/gemm/collective/sm103_blockscaled_mma_warpspecialized.hpp, "
            "include/cute/atom/mma_traits_sm100_frag.hpp); the manual has figures 234 to 258 only"
        ),
        "Scales begin at the id and need not end in the same word: 6 from id 2 take 2 bytes of one, 4 of the next.",
        silicon="",
    ),
    Fact(
        "tmem-lane-field",
        "tensor memory",
        "The lane field of a tcgen05.ld or st is that of the warp's own quarter, or relative to it, 128 more or not.",
        inferred(
            "CUTLASS adds the quarter to the address, DeepGEMM's epilogue adds nothing, and gau-nernst's learn-cuda "
            "(02e_matmul_sm100, v5 to v7) adds 128 lanes in a pair's second CTA; all run on B200, with right results"
        ),
        "The emulator takes all of them, the last with advice, and refuses any other quarter; whether hardware masks "
        "or faults there is not known.",
        silicon=(
            "B200, by others: gau-nernst/learn-cuda v5 to v7 run with 128 + 32 warp in the second CTA of a pair; "
            "another quarter: no public record"
        ),
    ),
    Fact(
        "tmem-store-then-load",
        "tensor memory",
        "A warp's tcgen05.ld finds what its own tcgen05.st before it has stored, without a tcgen05.wait::st.",
        inferred(
            "CUTLASS's stream-K scheduler for sm_100 (include/cutlass/gemm/kernel/sm100_tile_scheduler_stream_k.hpp, "
            "tmem_fixup) stores sums that the epilogue of the same warps loads, with no wait between"
        ),
        "The manual promises no such order, so the emulator advises the wait.",
        silicon="",
    ),
    Fact(
        "tmem-copies-of-a",
        "tensor memory",
        "A in tensor memory is repeated for each part of N that the lanes hold: twice in layouts B and E, four times "
        "in G.",
        inferred("CUTLASS's TmemAllocMode::Duplicated (include/cute/atom/mma_traits_sm100_frag.hpp)"),
        "Each part of the lanes multiplies the rows of A on its own lanes.",
        silicon=(
            "B200, by others: mlc-ai/TIRx-harness 8123af3, tcgen05_fp8_ts.py, holds A of 8 bits at M 128; other "
            "types, and the copies of layouts B, E and G: no public record"
        ),
    ),
    Fact(
        "tmem-pack",
        "tensor memory",
        "With .pack::16b a register has columns 2c and 2c + 1 where the plain shape has column c; .unpack::16b clears "
        "the upper halves of its cells.",
        measured(
            "B200, by others; "
            "the columns: CUTLASS's SM100_TMEM_LOAD_*_16b (include/cute/atom/copy_traits_sm100.hpp); what unpacking "
            "leaves in the upper halves is said nowhere"
        ),
        "A shape covers twice as many columns as without packing.",
        silicon=(
            "B200, by others: mlc-ai/TIRx-harness 4f92290, tcgen05_transfer_semantics.py, holds pack and unpack "
            "of all shapes; cicuvc/nvidia-sass-document 031228c, ldtm.md. Upper halves of filled cells: no public"
            " record"
        ),
    ),
    Fact(
        "metadata-cells",
        "tensor memory",
        "Metadata of f16 and tf32: rows 8 apart share a cell, the halves of K are 8 lanes apart, the sparsity selector "
        "is the column. Of other kinds: a row's 64 bits on its own lane.",
        measured(
            "B200, by others; "
            "CUTLASS's tmem_e_frg (include/cute/atom/mma_traits_sm100_frag.hpp), for M 128 and .ws; for M 64 and pairs "
            "at M 128 the same within each 16 lanes. The manual has figures 262 to 267 only"
        ),
        "At M 64 each 16 rows begin a quarter of the lanes, as the accumulator's do.",
        silicon=(
            "B200, by others: sf-tensor/tcgen05 8fce64d, hardware_validation, holds sparse products of 17 kinds "
            "to it; metadata that differs by row, M 64, pairs and selectors: no public record"
        ),
    ),
    Fact(
        "shift-direction",
        "tensor memory",
        "tcgen05.shift and .ashift give each lane what the next one has, in all four quarters; the last lane of each "
        "32 keeps its own. .ashift does so after the MMA.",
        measured(
            "B200, by others: cicuvc/nvidia-sass-document, notes/sm100/instr/utcshift.md at 0ddf110, recorded one "
            "tcgen05.shift at lane 0, and 1 to 16 in a row; by NVIDIA for .ashift: CUTLASS "
            "examples/python/CuTeDSL/experimental/primitives/tcgen05/1cta_mma_a_from_tmem.py. An address on lane 32, "
            "64 or 96: by analogy"
        ),
        "tcgen05.cp.4x256b then brings the new last row of each quarter: its row r goes to lane 32r past the address.",
        silicon=(
            "B200, by others: recorded (tests/data/silicon); other lanes, pairs, and columns after the first 8: no "
            "public record"
        ),
    ),
    Fact(
        "disable-output-lane",
        "tensor memory",
        "Bit i of word w of disable-output-lane keeps lane 32w + i of D as it is.",
        measured("B200, by others: cicuvc/nvidia-sass-document, utchmma.md at 01c97e0; PTX ISA 9.7.16.10.9.1"),
        "With cta_group::2 eight words name the lanes of both CTAs, those of the even one first.",
        silicon=(
            "B200, by others: recorded at M 128 (tests/data/silicon); at M 64, in pairs and with .ws: no public record"
        ),
    ),
    Fact(
        "f16-mixed",
        "instruction descriptors",
        "kind::f16 with one operand of f16 and one of bf16 is an illegal instruction.",
        measured(
            "B200, by others: sf-tensor/tcgen05, hardware_validation/mma_probe/tcgen05.py at 6f19f22, an observation; "
            "the fields of PTX ISA table 42 can say it"
        ),
        "The descriptor encodes with a warning; the emulator ends in a fault (illegal-descriptor).",
        silicon="B200, by others: an observation, no record",
    ),
    Fact(
        "max-shift-m32",
        "instruction descriptors",
        ".ws with M 32 traps where max_shift is not 0, with a zero-column mask or without.",
        measured(
            "B200, by others: sf-tensor/tcgen05, hardware_validation/src/tcgen05_shape_probe.cu at 6f19f22, an "
            "observation; PTX ISA table 42 allows it"
        ),
        "The descriptor encodes with a warning; the emulator ends in a fault (illegal-descriptor).",
        silicon="B200, by others: an observation, no record",
    ),
    Fact(
        "tmem-six-bits",
        "tensor memory",
        "6-bit elements in bytes of their own are in bits 0 to 5, 4-bit ones in bits 2 to 5.",
        measured(
            "B200, by others: mlc-ai/TIRx-harness, tools/tests/numsim/microtests/cases/tcgen05_transfer_semantics.py, "
            "reads so what tcgen05.cp of every shape has decompressed; mma.sync documents both for its registers"
        ),
        "It shows only where threads read or write such bytes: tcgen05.cp and the MMA agree.",
        silicon="B200, by others: mlc-ai/TIRx-harness 4f92290",
    ),
    Fact(
        "tmem-f16-accumulator",
        "tensor memory",
        "A D of 16 bits is read from the lower half of its cell, whatever is above; an MMA clears the upper half.",
        measured(
            "B200, by others: mlc-ai/TIRx-harness, tools/tests/numsim/microtests/cases/tcgen05_mma_forms.py, for kinds "
            "f16 and f8f6f4"
        ),
        "tcgen05.ld with .pack::16b loads two such elements in a register.",
        silicon="B200, by others: mlc-ai/TIRx-harness 4f92290",
    ),
    Fact(
        "tensor-core-order",
        "tensor memory",
        "A tcgen05.cp waits for earlier MMAs that read what it overwrites.",
        inferred(
            "not among the pipelines of PTX ISA 9.7.16.6.2; CUTLASS and DeepGEMM copy the next scale factors over "
            "those of the last MMAs without a wait"
        ),
        "No race is reported between operations of the tensor core of a CTA or a pair.",
        silicon="",
    ),
    Fact(
        "scale-block",
        "scale factors",
        "128 rows of 4 scales are stored as 512 bytes: scale k of row r at (r % 32) * 16 + (r / 32) * 4 + k.",
        inferred(
            "cuBLAS's documentation of block scaling, torchao's to_blocked, CUTLASS's SfAtom and DeepGEMM's packing "
            "agree"
        ),
        "Such a block goes to tensor memory with one tcgen05.cp.32x128b.warpx4.",
        silicon="B200, by others: mlc-ai/TIRx-harness 4f92290, tcgen05_scale_abi.py",
    ),
    Fact(
        "f8f6f4-f16-accumulator",
        "instruction descriptors",
        "kind::f8f6f4 accumulates in f16 too.",
        documented("PTX ISA table 39 and CUTLASS; the row of table 42 names F32 only"),
        "d_type f16 is accepted.",
        silicon="B200, by others: sf-tensor/tcgen05 8fce64d recorded words of it (tests/data/silicon)",
    ),
    Fact(
        "n-steps-m128",
        "instruction descriptors",
        "At M 128 and cta_group::1, N goes in steps of 8.",
        documented(
            "PTX ISA table 39 (9.1, 9.2); most of CUTLASS's SM100 wrappers assert steps of 16 "
            "(include/cute/arch/mma_sm100_umma.hpp)"
        ),
        "Odd multiples of 8 are accepted with a warning.",
        silicon=(
            "B200, by others: sf-tensor/tcgen05 8fce64d, tcgen05_shape_probe.cu, runs every multiple of 8 at M 64"
            " and 128; cicuvc/nvidia-sass-document recorded M 128 with N 8 (tests/data/silicon)"
        ),
    ),
    Fact(
        "k96-m128",
        "instruction descriptors",
        "K = 96 of mxf4 and mxf4nvf4 exists for M 128 too.",
        inferred("CUTLASS's SM103_MXF4_ULTRA_SS_VS (mma_sm100_umma.hpp); PTX ISA table 39 has it with M 256 only"),
        "Accepted with a warning.",
        silicon="",
    ),
    Fact(
        "zero-mask-spans",
        "instruction descriptors",
        "In the zero-column mask, bits 40-47 count the columns that are zero and bits 48-55 those that are used.",
        inferred(
            "the four worked examples of PTX ISA 9.7.16.4.3 and CUTLASS's make_column_zero_mask; the prose of table 45 "
            "has the two the other way round"
        ),
        "The examples are tests of ptxgen.",
        silicon="",
    ),
    Fact(
        "tensormap-bits",
        "tensormaps",
        "The bits of a CUtensorMap: hardware reads the first 64 bytes; words 16 and 18 are notes of the driver.",
        measured(
            "H200, driver 580.159.04: the driver's answers with one argument varied at a time, and tensormap.replace, "
            "which never writes beyond byte 63; no document gives the bits"
        ),
        "Maps are made without a driver, and match it byte for byte on what was recorded.",
    ),
    Fact(
        "tensormap-blackwell-bits",
        "tensormaps",
        "Word 2: types 11 to 13 are the packed ones, bits 19-20 the swizzle's atom, bit 22 the 96-byte swizzle.",
        inferred("the SASS that ptxas makes of tensormap.replace for sm_100a and sm_103a; no driver has confirmed it"),
        "Maps that use them carry a warning.",
        silicon="",
    ),
    Fact(
        "tensormap-bit-85",
        "tensormaps",
        "Bit 85 (word 2, bit 21) may be set wrongly by the driver on Blackwell, and is then to be cleared.",
        documented(
            "NVIDIA's release notes of driver 595.71.05, known issues; CUTLASS commit b7ecaa60 and triton-lang/triton "
            "pull request 9235 do so"
        ),
        "It concerns allocations below 128 KB of tensors that are not dense. No map made here sets it; ptxas 13.5 "
        "reads it for tensormap.query.alloc_class_large (SASS), and its tensormap.replace leaves it alone.",
    ),
    Fact(
        "tensormap-wide",
        "tensormaps",
        "A map of the wide im2col modes has the bytes of an im2col map with corners of 0 in height and depth.",
        measured(
            "H200, driver 580.159.04: 250 answers of cuTensorMapEncodeIm2colWide, which the manual has for compute "
            "capability 10.0 and up"
        ),
        "A map does not distinguish im2col, w and w128; the instruction selects the mode.",
    ),
    Fact(
        "tensormap-interleave-corners",
        "tensormaps",
        "With interleave the driver holds corner i of the pixel box against dimension i, without it against i + 1.",
        measured("H200, driver 580.159.04: which empty pixel boxes it refused"),
        "Interleaved tensors have width, height and depth first; the slice of channels is no dimension of its own.",
    ),
    Fact(
        "tma-strided-rows",
        "tensor copies",
        "Of a strided dimension a box takes size / stride positions, rounded up; along a row nothing is skipped.",
        measured(
            "H100, driver 580.159.04: 40 copies; the driver's documents agree, its note in the map rounds down; the "
            "first element stride counts with interleave only"
        ),
        "complete_tx counts every byte that is written, so expect the rounded-up rows, those outside the tensor too.",
    ),
    Fact(
        "tma-store-units",
        "tensor copies",
        "A store or reduction writes whole 16-byte units: where a row of the tensor ends inside one, the bytes after "
        "the row's end are overwritten, or combined, too. Loads fill by the element.",
        measured("H200, driver 580.159.04 (2026-11-23): 335 copies of 7 types, with and without swizzle"),
        "What follows a row of C loses up to 15 bytes. Keep the bytes of N elements a multiple of "
        "16, leave padding after each row, or store the last columns with guarded st.global.",
    ),
    Fact(
        "copy-mbarrier-cta-bits",
        "tensor copies",
        "On sm_90a a bulk or tensor copy completes on the mbarrier at the given offset of the CTA that receives the "
        "data: the CTA in the mbarrier's address does not count.",
        measured(
            "H200, driver 580.159.04 (2026-11-23): bulk and tensor copies, address of rank 1 with bit 24 cleared "
            "(0xFEFFFFFF), address of a peer, and multicast"
        ),
        "So Hopper kernels run that mask the address, as Mojo does; the check copy-mbarrier-cta is advice there. On "
        "Blackwell it is an error: with .cta_group::2 the bits select the CTA of the pair.",
    ),
    Fact(
        "cache-policy-bits",
        "cache policies",
        "A fractional L2 policy has 2 in bits 59-63, the primary priority in bits 57-58 (evict_unchanged 0, "
        "evict_first 1, evict_last 2, evict_normal 3), the secondary one in bit 56, and the sixteenths of the accesses "
        "that get the primary one, less one, in bits 52-55.",
        measured(
            "H200: createpolicy.fractional of every pair of priorities; SASS of it for sm_90a and sm_100a, ptxas 13.5; "
            "CUTLASS include/cute/arch/copy_sm90_desc.hpp has three such constants"
        ),
        "0x12F0000000000000 is evict_first, 0x14F0000000000000 evict_last. What CUTLASS calls EVICT_NORMAL, "
        "0x1000000000000000, is evict_unchanged; createpolicy's evict_normal is 0x16F0000000000000.",
    ),
    Fact(
        "tma-interleave",
        "tensor copies",
        "Interleaved tensors have dimensions width, height, depth, slices of channels, images; a copy takes one slice.",
        measured("H100, driver 580.159.04: 90 copies with 16 and 32 bytes, tiles and im2col"),
        "Box and channels per pixel do not count in the channels: a pixel is 16 or 32 bytes. Rows have no gaps, also "
        "with a wider swizzle.",
    ),
    Fact(
        "tma-im2col-walk",
        "tensor copies",
        "Past the end of the pixel box the walk begins anew at its lower corner, whatever the stride leaves over.",
        measured("H100, driver 580.159.04: 79 columns; a filter outside of the pixel box ends the kernel"),
        "Images are stepped by the element stride of their dimension.",
    ),
    Fact(
        "tma-wide-halo",
        "tensor copies",
        "The halo of im2col::w is the next wHalo pixels of the walk, over the end of the pixel box too. im2col::w::128 "
        "has one for each 32 pixels, after all 128: the first pixel of the four halos, then the second, and so on.",
        inferred(
            "PTX ISA 9.2, 5.5.5.3 in words, its layout in figures 18 and 19; mlc-ai/TIRx-harness (numsim, for B200) "
            "walks and lays them out so; and four rows side by side, one for each 32 lanes, are what tcgen05.cp.4x256b "
            "takes after a tcgen05.shift of the 128 rows before them"
        ),
        "The 32 pixels after a halo begin with the same pixels again. Every pixel of a halo counts in complete_tx.",
        silicon="",
    ),
    Fact(
        "tma-swizzle-96b",
        "swizzles",
        "Rows of the 96-byte swizzle follow each other every 96 bytes, and bit 4 of the address is XORed with bit 7.",
        unverified(
            "PTX ISA 5.5.7 has the XOR and its period of 256 bytes, and the rows in a figure, which "
            "mlc-ai/TIRx-harness reads so (numsim, swizzle.rs); narrower rows by analogy with the other modes"
        ),
        "sm_103a alone has it, and no matrix descriptor.",
        silicon="",
    ),
    Fact(
        "cvt-narrow",
        "conversions",
        "cvt to .ue8m0x2 and .e2m1x2, .bf16x2 from .ue8m0x2, and .scaled::n2::ue8m0 give what the formats and "
        "roundings of PTX ISA 9.7.9.21 say, subnormal numbers, NaN and overflow too.",
        measured(
            "B200, driver 595.58.03, by others: 8,448 words of 33 forms in mlc-ai/TIRx-harness, "
            "tools/tests/numsim/microtests/cases/ptx_cvt_narrow_goldens.py at 8123af3"
        ),
        "The emulator computes them so; microtests conversion.",
        silicon=(
            "B200, by others: recorded (tests/data/silicon), with 24 forms of 8-bit floats and 70 scalar ones; .e2m3x2 "
            "and .e3m2x2: no public record"
        ),
    ),
    Fact(
        "cvt-rs-bits",
        "conversions",
        "cvt.rs with four results: of each pair (a, b and e, f) the second takes its 16 random bits as they are, the "
        "first takes the same bits in reverse order.",
        measured(
            "B200, driver 595.58.03, by others: 1,536 words of .e2m1x4, .e4m3x4 and .e5m2x4 in mlc-ai/TIRx-harness, "
            "tools/tests/numsim/microtests/cases/ptx_cvt_narrow_goldens.py at 8123af3, agree, and with no other order "
            "of bits; .e2m3x4 and .e3m2x4 by analogy: the manual has one figure for these and 8-bit ones"
        ),
        "a and b have the upper half of rbits, e and f the lower one; of .e2m1x4 a and b have the upper bytes of both "
        "halves, e and f the lower bytes.",
        silicon=(
            "B200, by others: recorded (tests/data/silicon); .e2m3x4, .e3m2x4, .f16x2 and .bf16x2: no public record"
        ),
    ),
    Fact(
        "tma-tf32",
        "tensor copies",
        "Maps of tf32 and tf32_ftz round loads to nearest even, keep subnormals, and make every NaN 0x7FFFE000.",
        measured("H100, driver 580.159.04: random words, ties, NaNs; stores and maps of f32_ftz change nothing"),
        "Only reductions of f32_ftz tensors flush subnormal numbers; those of f32 do not, though the manual says so.",
    ),
    Fact(
        "tensormap-rank-1",
        "tensormaps",
        "The driver refuses a null pointer to the strides of a tensor of rank 1, and reads none.",
        measured("H200, driver 580.159.04: 580 refusals with an empty list, and a call with one stride"),
        "TensorMap.tiled refuses empty strides with a bare address, as the driver's binding does; give it one number, "
        "or an array.",
    ),
    Fact(
        "tma-flip-8b",
        "swizzles",
        "128B with 32-byte atoms and 8-byte flip swaps the halves of each 16 bytes on odd 128-byte lines.",
        unverified(
            "the manual says alternate lines (PTX ISA 5.5.7) and shows which in a figure, which mlc-ai/TIRx-harness "
            "reads so (numsim, swizzle.rs)"
        ),
        "No matrix descriptor has this mode.",
        silicon="",
    ),
    *SUM_FACTS,
    *FUNCTION_FACTS,
    *RUBIN_FACTS,
)
"""All facts, by subject."""

_BY_NAME = {each.name: each for each in FACTS}


def fact(name: str) -> Fact:
    """The fact of that name; KeyError if there is none."""
    return _BY_NAME[name]


#: Words that people use, and the words of facts for them.
_MEANT = {
    "fp8": ("8-bit float", "e4m3", "e5m2", "f8f6f4"), "fp6": ("e2m3", "e3m2", "6 bits"), "fp4": ("e2m1", "mxf4"),
    "mxfp8": ("mxf8f6f4",), "mxfp4": ("mxf4",), "nvfp4": ("mxf4nvf4", "ue4m3"), "tma": ("tensor cop", "tensormap"),
    "tmem": ("tensor memory",), "smem": ("shared memory",), "sfa": ("scale",), "sfb": ("scale",), "sf": ("scale",),
    "precision": ("sums",), "rounding": ("sums", "rounded"), "expect_tx": ("complete_tx", "tx-count"),
    "int8": ("i8",), "k96": ("k 96",), "denormal": ("subnormal",), "denormals": ("subnormal",), "nan": ("nan",),
}  # fmt: skip


def find(words: str = "") -> tuple[Fact, ...]:
    """The facts that have each of the words, those with all in their name or subject first; all for none."""
    asked = [(each, *_MEANT.get(each, ())) for each in words.lower().split()]

    def rank(each: Fact) -> int:
        head = f"{each.name} {each.subject}".lower()
        text = f"{each.statement} {each.consequence}".lower()
        return max((_place(meant, head, text) for meant in asked), default=0)

    return tuple(sorted((each for each in FACTS if rank(each) < 2), key=rank))


def _place(meant: Sequence[str], head: str, text: str) -> int:
    """0 if a word of this meaning is in the name or subject, 1 if it is in the text, else 2."""
    if any(word in head for word in meant):
        return 0
    return 1 if any(re.search(rf"\b{re.escape(word)}", text) for word in meant) else 2


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown() -> str:
    """The page docs/facts.md."""
    lines = [
        "# Facts that no manual states",
        "",
        "The evidence for descriptors and layouts where the PTX manual is silent, contradicts itself, or has a figure",
        "only. **documented**: a vendor's text states it. **measured**: observed on a device, driver or assembler.",
        "**inferred**: sources agree without stating it. **unverified**: one indirect source, or sources disagree.",
        "*Blackwell silicon* names the evidence from Blackwell GPUs; recorded results are in tests/data/silicon.",
        "",
        "Written by `ptxgen explain facts --markdown`; `ptxgen explain` shows the ones that concern a value.",
    ]
    for subject in dict.fromkeys(each.subject for each in FACTS):
        lines += ["", f"## {subject[:1].upper()}{subject[1:]}", ""]
        for each in FACTS:
            if each.subject == subject:
                text = f"- **{each.name}** ({each.evidence.kind}). {each.statement} {each.consequence}"
                lines += _wrapped(text) + _wrapped(f"  *Source: {each.evidence.source}.*")
                if each.witness:
                    lines += _wrapped(f"  *{each.witness}.*")
    return "\n".join(lines) + "\n"
