"""What sums in tensor cores rest on where no manual states it; part of `ptxgen.descriptors.facts`."""

from __future__ import annotations

from ptxgen.descriptors.evidence import Fact, inferred, measured

_H200 = "H200, driver 580.159.04 (2026-11-22): microtests tensor_sums, docs/hardware.md"

SUM_FACTS: tuple[Fact, ...] = (
    Fact(
        "sum-fp8-13-bits",
        "sums",
        "wgmma of 8-bit floats (fp8: e4m3, e5m2) cuts every addend, C too, 13 bits below the largest exponent, and an "
        "f32 result has 13 bits of fraction; all other sums of sm_90 keep 25 bits, and 23 of the result.",
        measured(_H200),
        "A long K in one accumulator loses digits: add to an f32 accumulator of your own every few instructions.",
    ),
    Fact(
        "sum-fp8-mma-sync",
        "sums",
        "mma.sync of 8-bit floats (fp8) is no instruction of sm_90, sm_100, sm_103 and sm_107: ptxas makes two of f16 "
        "of it, each with every other pair of K, without C, and adds C after them.",
        measured(f"{_H200}; SASS of ptxas 13.5: two HMMA, then FADD or HADD2"),
        "C is in neither sum, and a D of f16 is rounded three times.",
    ),
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
    Fact(
        "sums-before-hopper",
        "sums",
        "mma.sync and wmma cut addends at 24 bits below the largest exponent on sm_75 to sm_89 (23 on sm_70), and sum "
        "K in steps: 8 products of f16 and bf16 (4 on sm_70), 4 of tf32. 8-bit floats of sm_89: 13 bits, also in a "
        "result of f32, 16 products. Floors are one above Hopper's, f16 into f16 on sm_70 two.",
        inferred(
            "microsoft/MMA-Sim c785138 and north-numerical-computing/MATLAB-tensor-core b12b5a7 (V100TC, A100TC, "
            "AdaTC), models that their authors compared with hardware, agree; 120,000 words that the latter recorded "
            "on V100, A100, A2, L40S and RTX 1000 Ada agree with the emulator, 2,240 of them are in "
            "tests/data/silicon. sm_75: MMA-Sim alone, without floors. Sparse sums are taken to have as many stored "
            "products: no public record"
        ),
        "A kernel for an earlier GPU that runs on a later one sums as that does: the emulator takes the GPU that it "
        "stands for if it runs the module, otherwise the module's target.",
    ),
)
