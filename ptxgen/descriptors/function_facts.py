"""What approximate functions rest on where no manual states it; part of `ptxgen.descriptors.facts`."""

from __future__ import annotations

from ptxgen.descriptors.evidence import Fact, measured

_H200 = "H200, driver 580.159.04, ptxas 13.0.88, 2026-11-27"
_ALL = "hashes of all 2**32 outputs (tests/data/silicon/functions_h200.npz; make functions computes them)"

FUNCTION_FACTS: tuple[Fact, ...] = (
    Fact(
        "mufu-tables",
        "approximate functions",
        "MUFU evaluates V = (c0 << s) + c1 x + c2 square(x) + bias: the leading bits of the reduced operand select the "
        "integers c0, c1 and c2, x is the rest (17 bits; of rcp 16), and what does not fit in the result is cut off.",
        measured(
            f"{_H200}: with the tables of docs/hardware.md every output is equal, {_ALL}. Oberman and Siu, ARITH 2005, "
            "outline the unit. The tables of rcp, rsqrt, ex2, lg2 and sin are those that envytools (nvhw/sfu_tab.c at "
            "9014a51) found on G80, so they have stayed since 2006; those of sqrt and tanh are new"
        ),
        "The emulator computes the same bits for every target; for other chips than Hopper that is inferred.",
        silicon="",
    ),
    Fact(
        "mufu-square",
        "approximate functions",
        "square(x) is half the sum, over the bits i of x that are set, of x >> (18 - i): the low bits of each partial "
        "product are missing.",
        measured(
            f"{_H200}: with this square there are coefficients for every segment; with the exact one there were none, "
            "not even real ones, for any of seven segments of sqrt"
        ),
        "It is at most 8.5 units of 2**19 below the square.",
        silicon="",
    ),
    Fact(
        "mufu-reductions",
        "approximate functions",
        "MUFU.SIN and .COS take 25 bits after the binary point of an angle in turns, MUFU.EX2 23 bits of an exponent; "
        "both cut off the rest of the magnitude, and complement instead of negating: in falling quarters, and for "
        "negative exponents with a fraction. MUFU.LG2 has 36 bits after the binary point and complements below 1.",
        measured(f"{_H200}: {_ALL}"),
        "sin.approx and cos.approx multiply by 1 / (2 pi) as .f32 first, rounding towards zero.",
        silicon="",
    ),
    Fact(
        "mufu-halves",
        "approximate functions",
        "ex2.approx and tanh.approx of .f16 and .bf16 are MUFU of the operand as .f32, cut off to the format, not "
        "rounded; what ex2 has at 2**16 and above is infinite in .f16. Halves of packed operands do not influence each "
        "other.",
        measured(f"{_H200}: all words of the four forms, hashes of all pairs"),
        "tanh.approx.bf16 at 0x3f3f is 2.6e-7 beyond the manual's bound of 2**-8.",
        silicon="",
    ),
    Fact(
        "mufu-upper-halves",
        "approximate functions",
        "MUFU.RCP64H and .RSQ64H are MUFU.RCP and .RSQ of the first 20 bits of a .f64's mantissa, cut off to 20 bits.",
        measured(f"{_H200}: {_ALL}, with zeros and with random lower words"),
        "rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 ignore the lower word: an infinity with one is no NaN.",
        silicon="",
    ),
    Fact(
        "division-contraction",
        "approximate functions",
        "ptxas joins the last multiplication of div.full and div.approx and an add.f32 that follows into one FFMA.",
        measured(
            f"{_H200}: three recorded kernels (tests/data/silicon/kernels_h200.json) differ from the emulator in such "
            "sums alone, and are equal with rcp.approx.ftz and fma.rn in their place"
        ),
        "add.rn.f32 in place of add.f32 forbids it (PTX ISA 9.7.3.3). The emulator rounds the quotient and the sum.",
    ),
)
