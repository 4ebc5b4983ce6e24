"""What the tensor cores of sm_107 rest on, which nobody here has; part of `ptxgen.descriptors.facts`."""

from __future__ import annotations

from ptxgen.descriptors.evidence import Fact, inferred, measured

RUBIN_FACTS: tuple[Fact, ...] = (
    Fact(
        "ti16-encoding",
        "sm_107",
        "An element of kind::ti16 (s1z4m11) is sign and magnitude: bit 15, four zeros, 11 bits. Sums are exact and "
        "wrap at 32 bits; negating A or B flips the sign.",
        inferred(
            "the range of PTX ISA 9.4, 9.7.18.4.2 (-2**11 + 1 to 2**11 - 1) and the name; mlc-ai/TIRx-harness NumSim "
            "(tcgen_ops/integer.rs at 8123af3) reads it so, and refuses elements with other bits, which the "
            "emulator ignores"
        ),
        "Layouts in shared and tensor memory, metadata included, are those of 16-bit floats. MN-major ti16 ends as "
        "incomplete, since tables 51 and 62 of PTX ISA 9.4 contradict each other.",
        silicon="",
    ),
    Fact(
        "wide-k",
        "sm_107",
        "At K 64 of 8-bit types and K 128 of mxf4 and mxf4nvf4 a row of K has 64 bytes, in shared memory as in 16 "
        "columns of tensor memory, and is one sum.",
        inferred(
            "PTX ISA 9.4, tables 48 and 51 to 53, has the sizes; that nothing else of the layouts changes, and that "
            "one instruction makes one sum, as at the smaller K, is an assumption"
        ),
        "Sums may differ in the last bits where hardware adds in two steps. Sparse A at these K ends as incomplete.",
        silicon="",
    ),
    Fact(
        "wide-k-scales",
        "sm_107",
        "At K 128 of mxf4 and mxf4nvf4 a row has 4 (block32) or 8 scale factors (block16) from id 0 on; those beyond "
        "four are in the next word, as at K 96.",
        inferred(
            "PTX ISA 9.4, table 68, has the counts; the next word is that of the layout of K 96, which CUTLASS has"
        ),
        "K 64 of mxf8f6f4, of which table 68 has one scale factor a row for a block of 32, and 128 lanes of scale "
        "factors of A (bit 26 of the instruction descriptor) end as incomplete.",
        silicon="",
    ),
    Fact(
        "cvt-scaled",
        "sm_107",
        "cvt.rn.satfinite.scaled::n1::ue8m0 of .f32 to e4m3x2 and e5m2x2 flushes subnormal inputs to zero, divides by "
        "2^(scale - 127) and rounds once. A scale of 255 and a NaN give 0x7f, infinities the largest value.",
        measured(
            "Rubin (compute capability 10.7), by NVIDIA: the tests of fp32_to_fp8_pack_scaled (NVIDIA/cudnn-frontend, "
            "python/cudnn/frost/tile_dsl/pointwise.py, 2026-09-29); not repeated here"
        ),
        "The scale byte of a block is passed as it is. Other types, .rz, .relu, .pzo and pairs of 16-bit floats end as "
        "incomplete with a scale.",
        silicon="NVIDIA's record on Rubin; no Blackwell GPU has the instruction",
    ),
)
