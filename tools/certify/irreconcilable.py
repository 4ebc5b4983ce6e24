"""What cannot be reconciled: where the model and ptxas differ on purpose, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MATRIX = r"(matrix|mma|wmma|wgmma)\."

#: Objections to the kind of an operand, or to the operands as a whole.
_OPERANDS = r"must be (as in|an? |in brackets|one )"


@dataclass(frozen=True, slots=True)
class Irreconcilable:
    """Lines on which the two differ: `form`, `line` and `objection` are patterns of a declaration's key, of the
    instruction, and of what the stricter one of the two says.
    """

    reason: str
    form: str
    line: str
    objection: str

    def matches(self, form: str, line: str, objection: str) -> bool:
        return bool(re.match(self.form, form) and re.search(self.line, line) and re.search(self.objection, objection))


#: Where ptxgen refuses on purpose what ptxas 13.5 takes: nonsense that it lets pass.
STRICTER = (
    Irreconcilable(
        "A function's name as an operand of arithmetic, even of floats",
        form="",
        line=r"\bx_function\b",
        objection="(not the|is a) function|address of x_function is an integer",
    ),
    Irreconcilable(
        "`variable + constant` as an operand of arithmetic; some instructions take it, others do not",
        form="",
        line=r"\bx_\w+\+4",
        objection=r"not the variable|\[operand-type\]$",
    ),
    Irreconcilable(
        "Anything at all as the count of an arrival",
        form=r"mbarrier\.arrive",
        line="",
        objection=f"vector|{_OPERANDS}",
    ),
    Irreconcilable(
        "Any parity at all, where a report is asked for too",
        form=r"mbarrier\.\w+_wait_parity",
        line="%x_b8_",
        objection="parity must be 0 to 1",
    ),
    Irreconcilable(
        "Special registers in vectors, of results too; mov and cvt alone read them (PTX ISA 10)",
        form="",
        line=r"\{([^}]*, )?%[a-wyz]\w+",
        objection="must be a register, not the special",
    ),
    Irreconcilable(
        "A predicate among the registers of a vector, which must agree with the instruction (PTX ISA 9.4)",
        form="",
        line=r"\{[^}]*%x_pred_7",
        objection="must have one width, not .*[.]pred",
    ),
    Irreconcilable(
        "An mbarrier at an address of 16 bits",
        form=r"atomic\.red_async",
        line=r"\[%x_[bu]16_7\];$",
        objection="the address mbar must be in a 32-bit or 64-bit register",
    ),
    Irreconcilable(
        "The state of an arrival at several CTAs, of which each has its own",
        form=r"mbarrier\.arrive",
        line=r"multicast::cluster",
        objection="state must be the sink",
    ),
    Irreconcilable(
        "Special registers as addresses, in some instructions; mov and cvt alone read them (PTX ISA 10)",
        form="",
        line=r"\[%[a-z]\w+(\+|\]|, )",
        objection="must be a register or variable, not the special register",
    ),
    Irreconcilable(
        "Two registers as the mask of bytes",
        form=r"bulk\.\w*store",
        line=r"cp_mask.*\{",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "A number, mask or policy in the place of the mbarrier",
        form=r"bulk\.(load|copy|reduce_shared)",
        line=r"^[^\[]*\[[^\[]*\[[^\[]*$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Variables as the address of the tensormap of a fabric operation",
        form=r"fabric\.\w+_tensor",
        line=r"\[x_\w+, ",
        objection=r"\[(state-space|operand-kind)\]$",
    ),
    Irreconcilable(
        "Vectors as operands of arithmetic on packed 8-bit floats",
        form=r"alternate\.",
        line=r"%x_v[24]_7|\{",
        objection=f"is a vector of|{_OPERANDS}",
    ),
    Irreconcilable(
        "A vector register as a response of 128 bits",
        form=r"cluster\.",
        line="%x_v[24]_7;$",
        objection="is a vector of",
    ),
    Irreconcilable(
        "Two registers as a response of 128 bits",
        form=r"cluster\.",
        line=r", \{.*\};$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Fields of a tensormap that is copied whole",
        form=r"tensormap\.(cp_fenceproxy|query)",
        line="",
        objection="has no modifier",
    ),
    Irreconcilable(
        "Addresses without brackets",
        form=r"tma\.load",
        line=r"^[^\[]*(\[[^\[]*){0,2}$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Addresses without brackets",
        form=r"tma\.(store|reduce)",
        line=r"^[^\[]*(\[[^\[]*){0,1}$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Reports of stores",
        form=r"tma\.(store|reduce)",
        line="",
        objection=r"has no modifier \.mbarrier::report::",
    ),
    Irreconcilable(
        "Four rows of a tensor of any number of dimensions, or of none",
        form=r"tma\.applypriority",
        line="gather4",
        objection=r"(takes|requires) \.2d, not|requires \.dim",
    ),
    Irreconcilable(
        "Registers of any type with the address of a tensormap",
        form=r"tma\.",
        line=r"%x_(f\d+|b128|pred)_\d",
        objection="the address tensor_map must be in",
    ),
    Irreconcilable(
        "Floats beside integers as coordinates and offsets",
        form=r"tma\.",
        line=r"\{.*(1\.5|0[fd]3)",
        objection="must be an integer constant",
    ),
    Irreconcilable(
        "Proxy fences and prefetches of what is hidden in a texture or surface variable",
        form="",
        line=r"\[EXAMPLE_(TEXTURE|SURFACE)\]",
        objection=r"the memory of EXAMPLE_\w+ is hidden",
    ),
    Irreconcilable(
        "Small integers eight at a time, in some state spaces; in others ptxas crashes",
        form=r"memory\.",
        line=r"\.v8\.[bus](8|16)",
        objection="(takes|requires) 32-bit types",
    ),
    Irreconcilable(
        "Variables that are not in the only state space where the instruction works",
        form=r"atomic\.|multimem\.|cache\.|memory\.st_(async|bulk)",
        line=r"\[x_",
        objection=r"must be in \.(global|shared)\b",
    ),
    Irreconcilable(
        "Asynchronous stores without mbarrier or order, with other spaces, lengths and widths of addresses",
        form=r"memory\.st_async|atomic\.red_async",
        line="",
        objection=rf"{_OPERANDS}|has no modifier|requires \.|64 bits wide|vector|1 elem",
    ),
    Irreconcilable(
        "Asynchronous stores without mbarrier or order, with other spaces, lengths and widths of addresses",
        form=r"multimem\.\w+_async",
        line="",
        objection=r"requires \.release|64 bits wide",
    ),
    Irreconcilable(
        "Braces around one value, which multimem.red refuses",
        form=r"multimem\.",
        line="",
        objection="without braces",
    ),
    Irreconcilable(
        "Accumulators where nothing is accumulated, and floats and constants as 8-bit floats",
        form=r"multimem\.",
        line="",
        objection=r"has no modifier \.acc::|must be .* for \.e[45]m\d",
    ),
    Irreconcilable(
        "A generic address of 32 bits, which the 64-bit ABI does not have",
        form=r"address\.isspacep",
        line="",
        objection=r"a must be of type \.u64, but %x_\w*(32_|v2_7\.x)",
    ),
    Irreconcilable(
        "`variable + constant` as the description of a compression",
        form=r"sparse\.spcompress",
        line=r", x_\w+\+4;$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Any number, register or variable as the address of a tensormap",
        form=r"fence\.fence_proxy_tensormap",
        line=r"\[",
        objection="the address addr|a number as address|a constant address",
    ),
    Irreconcilable(
        "Vector registers, constants and special registers as matrix fragments: ptxas takes some, crashes on others",
        form=_MATRIX,
        line=r"%x_v\d_7|\{%x_b32_7, (1|%tid\.x)\}",
        objection=f"{_OPERANDS}|not the special",
    ),
    Irreconcilable(
        "Vectors of several registers where one holds the metadata or scale factors, which may stand in braces",
        form=r"mma\.(sp_|mx)|wgmma\.mma_async_sp",
        line="",
        objection=r"(e|sp_meta|scale_[ab]) must have 1 elements, not \d",
    ),
    Irreconcilable(
        "What is no register of 32 bits as metadata, as scale factors and to movmatrix: bits of floats, vectors",
        form=_MATRIX,
        line=r"%x_([fus]32_\d+|v\d_7|pred_7)\b|0f3F800000|x_\w+\+4|\{%x_[bf]32_7",
        objection=f"{_OPERANDS}|must be of type",
    ),
    Irreconcilable(
        "An accumulator where nothing is added up",
        form=r"fabric\.",
        line=r"\.acc::f(16|32)\b",
        objection=r"has no modifier \.acc::",
    ),
    Irreconcilable(
        "Addresses without brackets",
        form=r"fabric\.try_(get|put|red|pullred)",
        line=r"^[^\[]*(\[[^\[]*){0,2}$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Addresses without brackets",
        form=r"fabric\.try_atom",
        line=r"^[^\[]*(\[[^\[]*){0,3}$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "Selectors that no quad of mma.sp.m16n8k32 with .f16 has",
        form=r"mma\.sp_f16",
        line=r"\.m16n8k32\.",
        objection="sparsity selector",
    ),
    Irreconcilable(
        "Results that are not wanted, where ptxas does not make several instructions of one",
        form=r"mma\.(sp_)?f(8|8f6f4|64)$",
        line=r"^\S+ \{[^}]*_[,}]",
        objection="must be a register, not the sink",
    ),
    Irreconcilable(
        "Bit operations of .b1 on other integers",
        form=r"mma\.(sp_)?i[48]",
        line="",
        objection=r"has no modifier \.(and|xor|popc)\b",
    ),
    Irreconcilable(
        "Kinds that other forms have, which 8-bit floats overlook, and a type or vector too many",
        form=r"w?mma\.",
        line="",
        objection=r"has no modifier \.(kind::mx\w+|[a-z]+\d\w*);",
    ),
    Irreconcilable(
        "Shapes of other types: wmma.mma of .f64, and accumulators of integers that are floats",
        form=r"wmma\.",
        line=r"\.f64\.f64|\.m8n8k(32|128)\b.*\.f32 ",
        objection=r"\[unknown-modifier\]$|shape\]$",
    ),
    Irreconcilable(
        "Constants in C of 8-bit floats with a sum of .f16, which ptxas takes for sm_120 and later alone",
        form=r"mma\.(sp_)?f8\b",
        line=r"\.f16 ",
        objection=r"the elements of c must be registers, not",
    ),
    Irreconcilable(
        "Special registers as results",
        form=r"move\.mov",
        line=r"^mov.*\{.*%tid.*\},",
        objection="not the special",
    ),
    Irreconcilable(
        "A special register as one of several values",
        form=r"memory\.|atomic\.|multimem\.",
        line=r"\{%x_b32_7, %tid.x\}",
        objection="not the special",
    ),
    Irreconcilable(
        "Integers beside registers of floats",
        form=r"multimem\.st_float",
        line=r"\{%x_b32_7, 1\}",
        objection="must be a floating-point constant",
    ),
    Irreconcilable(
        "A special register among gradients",
        form=r"texture\.tex_grad",
        line=r"\{%x_b32_7, %tid\.x\}",
        objection="%tid.x is read as",
    ),
    Irreconcilable(
        "A register as the address of st.param: ptxas takes it for sm_80, and crashes for sm_90 and later",
        form="",
        line=r"^st\.[\w.]*param\.",
        objection=r"must be a \.param variable",
    ),
    Irreconcilable(
        "A scale of D for integers: ptxas overlooks it, whatever its number; of .kind::f16 it checks the range",
        form=r"tcgen05\.mma",
        line=r"\.kind::i8\b",
        objection=r"scale-input-d requires \.kind::f16",
    ),
    Irreconcilable(
        "A second value for atom.and, .or, .xor and .exch, as atom.cas has one",
        form=r"atomic\.atom(_cas)?$",
        line=r"^atom\b.*\.(and|or|xor|exch)\.(\w+\.)*b(32 .*, %x_\w*32_\d|128 .*, %x_b128_\d);$",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "No address",
        form=r"atomic\.red",
        line="^red[^ ]* _,",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "A predicate or a constant as the disabled lanes",
        form=r"tcgen05\.mma",
        line=r", (%x_pred_\d|\d), (%x_pred_\d|\d)(, \d)?;$",
        objection=f"{_OPERANDS}|scale-input-d is for",
    ),
    Irreconcilable(
        "A vector of one as the result of a reduction",
        form=r"tcgen05\.ld_red",
        line=r"\{%x_b32_7\}",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "A selector that ptxas overlooks, at one place of the scalar instructions",
        form=r"video\.",
        line=r"\.b01",
        objection="takes (a|no) selector",
    ),
    Irreconcilable(
        "Anything at all as a pair of .bf16, in some conversions",
        form=r"conversion\.cvt_\w+_pair",
        line=r"scaled.*\.bf16x2|\.(e2m1x2|ue5m3x2)\.bf16x2",
        objection=f"{_OPERANDS}|a must be",
    ),
    Irreconcilable(
        "A scale that .scaled does not announce",
        form=r"conversion\.cvt_ue5m3x2_pair",
        line=r"\.ue5m3x2\.\w+ [^,]+, [^,]+, ",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "A vector as the result of a conversion",
        form=r"conversion\.cvt_s2f6x2",
        line=r"\.s2f6x2\.f32 \{",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "No property to test",
        form=r"floating\.testp",
        line=r"^testp\.f",
        objection="requires .property",
    ),
    Irreconcilable(
        "Roundings of .bf16 that become .f16 arithmetic",
        form=r"half\.fma",
        line=r"^fma\.r[zmp].*\.bf16",
        objection="requires|no modifier",
    ),
    Irreconcilable(
        "A vector of one as the parts of a packed value",
        form=r"move\.mov",
        line=r"\{%x_b32_7\}",
        objection=_OPERANDS,
    ),
    Irreconcilable(
        "One value, or special registers, as a vector of any type",
        form=r"move\.mov_vector",
        line="",
        objection="must be a vector|must be as in|%tid.x is read as",
    ),
    Irreconcilable(
        "Vectors of any length as the data of a surface access, also special registers in them",
        form=r"surface\.",
        line="",
        objection=r"\[vector-length\]$|not the special",
    ),
    Irreconcilable(
        "A scalar in place of an offset or of several coordinates; in some geometries ptxas crashes on it",
        form=r"texture\.t",
        line=r"\], [^{]|\}, [^{]",
        objection=r"(depth must be|a depth compare|(tex|tld4)\b.* must be as in)",
    ),
    Irreconcilable(
        "A scalar in place of an offset or of several coordinates; in some geometries ptxas crashes on it",
        form=r"texture\.t",
        line=r"\[[^{]*\]",
        objection="coords must (have|be of type)",
    ),
    Irreconcilable(
        "A sampler of its own in the unified texture mode: ptxas reads it as the coordinates, and those as an offset",
        form=r"texture\.t",
        line=r"\[[^{]*, [^{]*(, \{|\])",
        objection=r"\[texture-mode\]$",
    ),
    Irreconcilable(
        "A vector as the level of detail, of which one element is read",
        form=r"texture\.",
        line=r"^(tex|txq)\.level",
        objection=f"lod must be|{_OPERANDS}",
    ),
    Irreconcilable(
        "For cubes gradients of any length",
        form=r"texture\.tex_grad",
        line=r"^tex\.grad.*\.a?cube",
        objection="dpd[xy] must have 4 elements",
    ),
    Irreconcilable(
        "The low bits of a floating-point constant of another width, beside an untyped register or a constant of the "
        "other width (`{%b, 1.5}` of .b32 stores 0), in what is stored, packed and reduced",
        form=r"memory\.|move\.mov_(pack|vector)|multimem\.|atomic\.|w?mma\.|surface\.|matrix\.",
        line=r"\{[^}]*(\d\.\d|0[fd][0-9A-F]{8})",
        objection=r"must be (an integer constant for|floats of 64 bits|registers or floats of 32 bits)|"
        r"elements of \w+ must be of type",
    ),
    Irreconcilable(
        "Registers of another width or kind beside an integer constant, at which alone ptxas looks; they must agree "
        "with the type of the instruction (PTX ISA 9.4)",
        form=r"memory\.|move\.mov|multimem\.|atomic\.|surface\.|w?mma\.|matrix\.",
        line=r"\{[^}]*(?<![\w.%])-?\d",
        objection="elements of \\w+ must (be of type|have one width)|elements of c must be registers|untyped registers",
    ),
    Irreconcilable(
        "Registers of integers in vectors of floats, of which some instructions ask no more than the width; they must "
        "agree in kind (PTX ISA 9.4)",
        form=r"memory\.st_async|move\.mov_vector|multimem\.|atomic\.|w?mma\.",
        line=r"\{[^}]*%x_[us]\d",
        objection=r"elements of \w+ must be of type \.f\d+, not \.[us]\d",
    ),
    Irreconcilable(
        "A float register as A or B of .m8n8k16, which ptxas takes for sm_100 and later, beside some registers alone",
        form=r"mma\.i8",
        line=r"\.m8n8k16\..*%x_f32_\d",
        objection="elements of [ab] must be of type",
    ),
    Irreconcilable(
        "The bits of an integer in a vector of floats, in first place or beside an untyped register; an integer is no "
        ".f32 or .f64 (PTX ISA 4.5.1, 9.4), and elsewhere ptxas refuses it too",
        form=r"memory\.|multimem\.|atomic\.|w?mma\.",
        line=r"\{[^}]*(?<![\w.%])-?\d",
        objection=r"must be (a floating-point constant|floats, as in)",
    ),
    Irreconcilable(
        "The low bits of a float in a C of integers, beside an untyped register; a float is no .s32 (PTX ISA 9.4)",
        form=r"w?mma\.",
        line=r"\.s32 .*\{[^}]*(\d\.\d|0[fd][0-9A-F]{8})",
        objection="must be integers, not",
    ),
    Irreconcilable(
        "The low bits of a constant in a vector of 8-bit, 16-bit or packed floats, which have no constants (PTX ISA "
        "4.5.2)",
        form=r"multimem\.|atomic\.",
        line=r"\{[^}]*(?<![\w.%])-?\d",
        objection=r"must be a \.\w+ register( for \.\w+)?, not the constant",
    ),
    Irreconcilable(
        "An integer as the only register of A or B of 4 bits, which ptxas takes from sm_90 on, and not before",
        form=r"wmma\.mma_i4",
        line=r"\{-?\d+\}",
        objection="must have a register among its elements",
    ),
    Irreconcilable(
        "Integers in B of 8 bits at m16n16k16, which ptxas takes for sm_75 alone",
        form=r"wmma\.mma_i8",
        line=r"\.m16n16k16\.",
        objection=r"takes no integer constant",
    ),
    Irreconcilable(
        "A type once more after .satfinite",
        form=r"mma\.(sp_)?i[48]",
        line=r"\.satfinite\.[su][48]\b",
        objection="is repeated; write it once",
    ),
)
