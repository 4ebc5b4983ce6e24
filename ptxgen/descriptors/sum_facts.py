"""What sums in tensor cores rest on where no manual states it; part of `ptxgen.descriptors.facts`."""

from __future__ import annotations

from ptxgen.descriptors.evidence import Fact, inferred

SUM_FACTS: tuple[Fact, ...] = (
    Fact(
        "sum-floor",
        "sums",
        "The exponent at which a sum of products is cut is at least -133 with bf16 and tf32 into f32, -21 with f16 "
        "into f16, and -139 with mxf4 and mxf4nvf4: nothing below 2**-158, 2**-46 and 2**-174 counts.",
        inferred(
            "B200, by others: three recorded words of bf16 and tf32 (sf-tensor/tcgen05, tests/test_model.py at "
            "affce0c); -21 is a model's (north-numerical-computing/MATLAB-tensor-core, B200TC and H100TC at b12b5a7), "
            "-139 an observation of sf-tensor's. On Hopper -133 and -21 are measured (H200, driver 580.159.04, "
            "microtests tensor_sums_floor, mma.sync and wgmma)"
        ),
        "It shows only where all products are that small and C is zero. mxf8f6f4 has none in any model. Microtests "
        "tensor_sums_floor and tcgen05_questions distinguish the candidates.",
        silicon="B200, by others: recorded for bf16 and tf32 (tests/data/silicon)",
    ),
    Fact(
        "scaled-f4-groups",
        "sums",
        "In sums of mxf4 and mxf4nvf4 16 products are one addend. It has its factors' exponent though its products "
        "cancel, and none if all of them are zero.",
        inferred(
            "microsoft/MMA-Sim c785138, compared with hardware, and sf-tensor/tcgen05 MODEL.md, held to millions of "
            "cases on a B200, agree for .ue8m0; with .ue4m3 sf-tensor cuts 4 by 4 where the products outrank C, "
            "MMA-Sim 16 by 16: the one recorded word (nvfp4-k4-product-carry) fits both, and 16 needs one rule for all "
            "kinds"
        ),
        "The emulator adds 16 by 16 everywhere. Subnormal factors have the exponent of the least normal one.",
        silicon=(
            "B200, by others: words of every kind fit (tests/data/silicon); 4 or 16, groups of zeros: no public record"
        ),
    ),
)
