"""What is legal, but ptxas crashes on it or loses its way: each kind with its reason."""

from __future__ import annotations

from tools.certify.irreconcilable import Irreconcilable

#: What ptxas 13.5 refuses though nothing is wrong with it: it crashes, or loses its way.
BROKEN = (
    Irreconcilable(
        "`variable + constant` as the mask of a warp barrier, which it makes a function of",
        form=r"barrier\.bar_warp",
        line=r" x_\w+\+\d+;$",
        objection="Parsing error near",
    ),
    Irreconcilable(
        "Coordinates in integer registers of a tex.grad of pairs",
        form=r"texture\.tex_grad",
        line=r"^tex\.grad\..*\.f16x2\.f32 ",
        objection="instruction 'mov'",
    ),
    Irreconcilable(
        "`variable + constant` as a multicast mask of 16 bits, which it takes as one of 32 bits",
        form=r"tcgen05\.commit",
        line=r"multicast::cluster::16b.*\bx_\w+\+\d+;$",
        objection="must be 16-bit size",
    ),
    Irreconcilable(
        "A variable in local memory as the address of a tensormap",
        form=r"tma\.applypriority",
        line=r"\[x_local",
        objection="status -11",
    ),
    Irreconcilable(
        "A float register as the bits of an asynchronous reduction",
        form=r"atomic\.red_async_release",
        line=r"%x_f32_\d",
        objection="does not match formal parameter",
    ),
    Irreconcilable(
        "A generic access with hints to the caches, at a variable that is not in global memory",
        form="",
        line=r"(L1|L2)::.*\[x_(shared|local)",
        objection="Internal compiler error",
    ),
    Irreconcilable(
        "Addresses of 8 or 16 bits",
        form="",
        line=r"^(prefetchu?|applypriority|discard|multimem|red\.async|st\.async)\b.*%x_[bu](8|16)_7",
        objection="Internal compiler error|'mov'|(8|16)-bit address",
    ),
    Irreconcilable(
        "Integer constants as values of asynchronous operations",
        form="",
        line=r"^(multimem\.)?(st|red)\.async\.[^,]*, [^%]",
        objection="Internal compiler error",
    ),
    Irreconcilable(
        "Constants as values of asynchronous stores",
        form="",
        line=r"^multimem\.st\.async",
        objection="Unknown modifier|Rounding modifier required",
    ),
    Irreconcilable(
        "Half a vector as the size of st.bulk",
        form="",
        line=r"^st\.bulk.*%x_v2_7\.x",
        objection="Arguments mismatch",
    ),
    Irreconcilable(
        "Constants of 128 bits",
        form="",
        line=r"^atom\..*\.b128 .*, ([-(]?\d|x_\w+\+4)",
        objection="status -11",
    ),
    Irreconcilable(
        "A policy beside an address of 32 bits",
        form="",
        line=r"^cp\.async\.c.*cache_hint.*\[%x_[bu](16|32)_7",
        objection="Internal compiler error",
    ),
    Irreconcilable(
        "A component of a vector register",
        form="",
        line=r"%x_v2_7\.x",
        objection="Internal compiler error|Argument 1 of instruction 'mov'|Parsing error near '.x'",
    ),
    Irreconcilable(
        "Conversions of 128 bits",
        form="",
        line="^cvt.*%x_b128_7",
        objection="instruction 'mov'",
    ),
    Irreconcilable(
        "A function's address in parts",
        form="",
        line=r"^mov.*\bx_function\b",
        objection="status -11",
    ),
    Irreconcilable(
        "It makes several instructions of one, and loses the types of C on the way",
        form="",
        line=r"^mma.*\.f16\.e\dm\d\.e\dm\d\.f16 .*\{%x_f32_7, %x_b32_8\}",
        objection="instruction 'add'",
    ),
    Irreconcilable(
        "An address of 16 bits",
        form="",
        line=r"^cp\.async\.mbarrier\..*%x_b16_7",
        objection="instruction 'mov'",
    ),
    Irreconcilable(
        "An address of 16 bits",
        form="",
        line=r"^cp\..*mbarrier::complete_tx.*%x_b16_7",
        objection="must be register",
    ),
    Irreconcilable(
        "An address of 8 or 16 bits",
        form="",
        line=r"^fabric\.try_.*%x_[bu](8|16)_7",
        objection="instruction 'mov'",
    ),
    Irreconcilable(
        "Vector registers as texels or coordinates",
        form="",
        line=r"^(tex|tld4)\b.*%x_v\d_7",
        objection="status -11",
    ),
    Irreconcilable(
        "Texels of which a part is not wanted",
        form="",
        line=r"^tex\b.*\.v2\.f16x2\.[^}]*[{ ]_[,}]",
        objection="instruction 'mov'",
    ),
    Irreconcilable(
        "A special register among the coordinates of a tex.grad that compares depths",
        form="",
        line=r"^tex\.grad\b.*%tid\.x",
        objection="Special register argument not allowed for instruction 'mov'",
    ),
    Irreconcilable(
        "Registers of several types in a fragment of wmma, by their order and in B of .tf32 in any",
        form="",
        line=r"^wmma\.(mma|store)\.",
        objection="Arguments mismatch for instruction '_mma'|instruction 'mov'",
    ),
)
