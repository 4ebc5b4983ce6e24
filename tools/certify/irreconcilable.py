"""What cannot be reconciled: where the model and ptxas differ on purpose, each with its reason."""

from __future__ import annotations

import re

_MATRIX = r"(matrix|mma|wmma|wgmma)\."

#: Where ptxgen refuses on purpose what ptxas 13.5 takes: nonsense that it lets pass.
STRICTER = tuple(
    (re.compile(form), re.compile(line), re.compile(objection))
    for form, line, objection in (
        # A function's name as an operand of arithmetic, even of floats.
        ("", r"\bx_function\b", r"(not the|is a) function|address of x_function is an integer"),
        # `variable + constant` as an operand of arithmetic; some instructions take it, others do not.
        ("", r"\bx_\w+\+4", r"not the variable|\[operand-type\]$"),
        # Anything at all as the count of an arrival.
        (r"mbarrier\.arrive", "", r"vector|must be as in"),
        # Any parity at all, where a report is asked for too.
        (r"mbarrier\.\w+_wait_parity", r"%x_b8_", "parity must be 0 to 1"),
        # A scope for the layout of an object.
        (r"mbarrier\.check_layout", "", r"has no modifier \.(cta|cluster|gpu|sys)\b"),
        # Two registers as the mask of bytes.
        (r"bulk\.\w*store", r"cp_mask.*\{", "must be as in"),
        # A number, mask or policy in the place of the mbarrier.
        (r"bulk\.(load|copy|reduce_shared)", r"^[^\[]*\[[^\[]*\[[^\[]*$", "must be as in"),
        # A vector register as a response of 128 bits; fields of a tensormap that is copied whole.
        (r"cluster\.", r"%x_v[24]_7;$", "is a vector of"),
        (r"cluster\.", r", \{.*\};$", "must be as in"),
        (r"tensormap\.(cp_fenceproxy|query)", "", "has no modifier"),
        # Addresses without brackets.
        (r"tma\.load", r"^[^\[]*(\[[^\[]*){0,2}$", "must be as in"),
        (r"tma\.(store|reduce)", r"^[^\[]*(\[[^\[]*){0,1}$", "must be as in"),
        # Scopes, and reports of stores.
        (r"tma\.", "", r"has no modifier \.(cta|cluster|gpu|sys)\b"),
        (r"tma\.(store|reduce)", "", r"has no modifier \.mbarrier::report::"),
        # Four rows of a tensor of any number of dimensions, or of none.
        (r"tma\.applypriority", "gather4", r"takes \.2d, not|needs \.dim"),
        # Registers of any type with the address of a tensormap, floats beside integers as coordinates and offsets.
        (r"tma\.", r"%x_(f\d+|b128|pred)_7", "the address tensor_map must be in"),
        (r"tma\.", r"\{.*(1\.5|0[fd]3)", "must be an integer constant"),
        # Proxy fences and prefetches of what is hidden in a texture or surface variable.
        ("", r"\[EXAMPLE_(TEXTURE|SURFACE)\]", r"the memory of EXAMPLE_\w+ is hidden"),
        # Small integers eight at a time, in some state spaces; in others ptxas crashes.
        (r"memory\.", r"\.v8\.[bus](8|16)", r"takes 32-bit types"),
        # Variables that are not in the only state space where the instruction works.
        (r"atomic\.|multimem\.|cache\.|memory\.st_(async|bulk)", r"\[x_", r"must be in \.(global|shared)\b"),
        # Asynchronous stores without their mbarrier, with other state spaces, without order, with vectors of any
        # length, at addresses of 32 bits.
        (
            r"memory\.st_async|atomic\.red_async",
            "",
            r"must be as in|has no modifier|needs \.|64 bits wide|vector|1 elem",
        ),
        (r"multimem\.\w+_async", "", r"needs \.release|64 bits wide"),
        # Braces around one value, which multimem.red refuses.
        (r"multimem\.", "", "without braces"),
        # Accumulators where nothing is accumulated, and floats and constants as 8-bit floats.
        (r"multimem\.", "", r"has no modifier \.acc::|must be (of type|a register for) \.e[45]m\d"),
        # A generic address of 32 bits, which the 64-bit ABI does not have.
        (r"address\.isspacep", "", r"a must be of type \.u64, but %x_\w*(32_|v2_7\.x)"),
        # `variable + constant` as the description of a compression.
        (r"sparse\.spcompress", r", x_\w+\+4;$", "must be as in"),
        # Modifiers of other fences: ptxas overlooks some of those that the fence at hand has no use for.
        (
            r"fence\.",
            "",
            r"has no modifier \.(global|shared::\w+|async|alias|acq_rel|mbarrier_init|sync_restrict::[\w:]+)\b",
        ),
        # Any number, register or variable as the address of a tensormap.
        (r"fence\.fence_proxy_tensormap", r"\[", r"the address addr|a number as address"),
        # Vector registers, constants and special registers as matrix fragments: ptxas takes some, crashes on others.
        (_MATRIX, r"%x_v\d_7|\{%x_b32_7, (1|%tid\.x)\}", r"must be (as in|a register|one register)|not the special"),
        # What is no register of 32 bits as metadata, as scale factors and to movmatrix: floats, their bits, vectors.
        (_MATRIX, r"%x_(f32|v\d|pred)_7\b|0f3F800000|x_\w+\+4|\{%x_[bf]32_7", r"must be (as in|one register|of type)"),
        # An accumulator where nothing is added up, and addresses without brackets.
        (r"fabric\.", r"\.acc::f(16|32)\b", r"has no modifier \.acc::"),
        (r"fabric\.try_(get|put|red|pullred)", r"^[^\[]*(\[[^\[]*){0,2}$", "must be as in"),
        (r"fabric\.try_atom", r"^[^\[]*(\[[^\[]*){0,3}$", "must be as in"),
        # Selectors that no quad of mma.sp.m16n8k32 with .f16 has.
        (r"mma\.sp_f16", r"\.m16n8k32\.", "sparsity selector"),
        # Results that are not wanted, where ptxas does not make several instructions of one.
        (r"mma\.(sp_)?f(8|8f6f4|64)$", r"^\S+ \{[^}]*_[,}]", "must be a register, not the sink"),
        # Bit operations of .b1 on other integers.
        (r"mma\.(sp_)?i[48]", "", r"has no modifier \.(and|xor|popc)\b"),
        # Kinds that other forms have, which 8-bit floats overlook, and a type or vector too many.
        (r"w?mma\.", "", r"has no modifier \.(kind::mx\w+|[a-z]+\d\w*);"),
        # Shapes of other types: wmma.mma of .f64, and accumulators of integers that are floats.
        (r"wmma\.", r"\.f64\.f64|\.m8n8k(32|128)\b.*\.f32 ", r"\[unknown-modifier\]$|shape\]$"),
        # Layouts, which wgmma.mma_async overlooks, and .aligned left out, which the manual has as mandatory.
        (r"wgmma\.", "", r"has no modifier \.(row|col)\b|needs \.aligned"),
        # Rows of matrices at 16-bit addresses.
        (r"matrix\.", r"\[%x_b16_7\]", "must be in a 32-bit or 64-bit register"),
        # Special registers as results.
        (r"move\.mov", r"^mov.*\{.*%tid.*\},", "not the special"),
        # A special register as one of several values.
        (r"memory\.|atomic\.|multimem\.", r"\{%x_b32_7, %tid.x\}", "not the special"),
        # No address.
        (r"atomic\.red", r"^red[^ ]* _,", "must be as in"),
        # A predicate or a constant as the disabled lanes.
        (r"tcgen05\.mma", r", (%x_pred_\d|\d), (%x_pred_\d|\d)(, \d)?;$", "must be as in|scale-input-d is for"),
        # Formats of packed types, which tcgen05 without them overlooks.
        (r"tcgen05\.", r"\.(b2|b8x16|b6x16_p32|b4x16_p64)\b", r"\[unknown-modifier\]$"),
        # A vector of one as the result of a reduction.
        (r"tcgen05\.ld_red", r"\{%x_b32_7\}", "must be as in"),
        # A selector that ptxas overlooks, at one place of the scalar instructions.
        (r"video\.", r"\.b01", "takes (a|no) selector"),
        # Anything at all as a pair of .bf16, in some conversions; a scale that .scaled does not announce.
        (r"conversion\.cvt_\w+_pair", r"scaled.*\.bf16x2|\.(e2m1x2|ue5m3x2)\.bf16x2", r"must be as in|a must be"),
        (r"conversion\.cvt_ue5m3x2_pair", r"\.ue5m3x2\.\w+ [^,]+, [^,]+, ", r"must be as in"),
        # A vector as the result of a conversion.
        (r"conversion\.cvt_s2f6x2", r"\.s2f6x2\.f32 \{", r"must be as in"),
        # No property to test.
        (r"floating\.testp", r"^testp\.f", "needs .property"),
        # Roundings of .bf16 that become .f16 arithmetic.
        (r"half\.fma", r"^fma\.r[zmp].*\.bf16", "needs|no modifier"),
        # `.pred` besides the type, which arithmetic overlooks.
        (r"integer\.|extended\.|predicate\.", r"^[^ ]*\.pred\b", r"has no modifier \.pred"),
        # A vector of one as the parts of a packed value; one value, or special registers, as a vector of any type.
        (r"move\.mov", r"\{%x_b32_7\}", "must be as in"),
        (r"move\.mov_vector", "", "must be a vector|must be as in|%tid.x is read as"),
        # Vectors of any length as the data of a surface access, also special registers in them.
        (r"surface\.", "", r"\[vector-length\]$|not the special"),
        # A scalar in place of an offset or of several coordinates; in some geometries ptxas crashes on it.
        (r"texture\.t", r"\], [^{]|\}, [^{]", r"(depth must be|a depth compare|(tex|tld4)\b.* must be as in)"),
        (r"texture\.t", r"\[[^{]*\]", r"coords must (have|be of type)"),
        # A sampler of its own in the unified texture mode: ptxas reads it as the coordinates, and those as an offset.
        (r"texture\.t", r"\[[^{]*, [^{]*(, \{|\])", r"\[texture-mode\]$"),
        # A vector as the level of detail, of which one element is read; for cubes gradients of any length.
        (r"texture\.", r"^(tex|txq)\.level", r"lod must be one register|must be as in"),
        (r"texture\.tex_grad", r"^tex\.grad.*\.a?cube", r"dpd[xy] must have 4 elements"),
    )
)


#: What ptxas 13.5 refuses though nothing is wrong with it: it crashes, or loses its way.
BROKEN = tuple(
    (re.compile(line), re.compile(objection))
    for line, objection in (
        # A generic access with hints to the caches, at a variable that is not in global memory.
        (r"(L1|L2)::.*\[x_(shared|local)", r"Internal compiler error"),
        # Addresses of 16 bits, and integer constants as values of asynchronous operations.
        (
            r"^(prefetchu?|applypriority|discard|multimem|red\.async|st\.async)\b.*%x_b16_7",
            r"Internal compiler error|'mov'|16-bit address",
        ),
        (r"^(multimem\.)?(st|red)\.async\.[^,]*, [^%]", r"Internal compiler error"),
        (r"^multimem\.st\.async", "Unknown modifier|Rounding modifier required"),
        # A variable where st.bulk wants a register, half a vector as its size.
        (r"^st\.bulk\..*\[x_shared|^st\.bulk.*%x_v2_7\.x", "must be register|Arguments mismatch"),
        # Constants of 128 bits, a policy beside an address of 32 bits.
        (r"^atom\..*\.b128 .*, -?\d", "status -11"),
        (r"^cp\.async\.c.*cache_hint.*\[%x_[bu](16|32)_7", "Internal compiler error"),
        (r"%x_v2_7\.x", r"Internal compiler error|Argument 1 of instruction 'mov'|Parsing error near '.x'"),
        (r"^cvt.*%x_b128_7", r"instruction 'mov'"),
        (r"^mov.*\bx_function\b", r"status -11"),
        # It makes several instructions of one, and loses the types of C on the way.
        (r"^mma.*\.f16\.e\dm\d\.e\dm\d\.f16 .*\{%x_f32_7, %x_b32_8\}", r"instruction 'add'"),
        (r"^cp\.async\.mbarrier\..*%x_b16_7", r"instruction 'mov'"),
        (r"^cp\..*mbarrier::complete_tx.*%x_b16_7", r"must be register"),
        (r"^fabric\.try_.*%x_b16_7", r"instruction 'mov'"),
        # Vector registers as texels or coordinates, and texels of which a part is not wanted.
        (r"^(tex|tld4)\b.*%x_v\d_7", r"status -11"),
        (r"^tex\b.*\.v2\.f16x2\..*_, %", r"instruction 'mov'"),
        # A special register among the coordinates of a tex.grad that compares depths.
        (r"^tex\.grad\b.*%tid\.x", r"Special register argument not allowed for instruction 'mov'"),
    )
)
