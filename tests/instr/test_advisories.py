"""What `check` warns of because ptxas does: every row is compared with what ptxas says of it."""

import re

import pytest

from ptxgen.instr.model.check import check
from ptxgen.instr.model.targets import parse_target
from ptxgen.toolchain import AssemblerError, Cubin, assemble

COPY = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{} "
    "[%r1], [%rd1, {{%r2, %r3}}], [%r4]{};"
)
TENSOR = COPY.format(".multicast::cluster", ", %h1")
BULK = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r4], "
    "%h1;"
)
SPARSE = (
    "mma.{}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r3, %r4}}, {{%f1, %f2, %f3, %f4}}, %r5, 0x0;"
)
MMA = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, "
    "1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
)
WAIT = "wgmma.wait_group.sync.aligned 0;"
STORE = "st.global.f32 [%rd3], %f1;"
LOOP = ".func f() { call f; ret; }"
ALLOCATES = ".func f() { .reg .b64 %a; alloca.u64 %a, 64; ret; }"
PAIR = ".func g();\n.func f() { call g; ret; }\n.func g() { call f; ret; }"

#: The code of the warning ("": none), the target, the version, the body of an entry, and text before the entry.
ROWS = [
    *[("slow-multicast", target, "9.4", TENSOR, "") for target in ("sm_90", "sm_100", "sm_107", "sm_120", "sm_120a")],
    *[("", target, "9.4", TENSOR, "") for target in ("sm_90a", "sm_100a", "sm_100f", "sm_103f", "sm_110a")],
    ("slow-multicast", "sm_90", "8.0", BULK, ""),
    ("", "sm_90a", "8.0", BULK, ""),
    ("", "sm_90", "9.4", COPY.format("", ""), ""),
    ("slow-sparse", "sm_80", "7.1", SPARSE.format("sp"), ""),
    ("slow-sparse", "sm_100a", "9.4", SPARSE.format("sp"), ""),
    ("", "sm_80", "8.5", SPARSE.format("sp::ordered_metadata"), ""),
    ("without-sync", "sm_75", "6.3", "shfl.down.b32 %r1, %r2, 1, 31;", ""),
    ("without-sync", "sm_75", "6.3", "vote.ballot.b32 %r1, %p1;", ""),
    ("", "sm_75", "6.3", "shfl.sync.down.b32 %r1, %r2, 1, 31, -1;", ""),
    ("beyond-variable", "sm_90", "9.0", "ld.global.u64 %rd1, [s];", ".global .align 8 .u32 s;"),
    ("beyond-variable", "sm_90", "9.0", "st.shared.b64 [s], 1;", ".shared .align 8 .b32 s;"),
    (
        "beyond-variable",
        "sm_90",
        "9.0",
        "ld.global.u64 %rd1, [t]; ld.global.u64 %rd1, [s];",
        ".global .align 8 .u32 t[2]; .global .align 8 .u32 s;",
    ),
    ("", "sm_90", "9.0", "ld.global.u64 %rd1, [s];", ".global .u64 s;"),
    ("", "sm_90", "9.0", "ld.global.u64 %rd1, [s];", ".global .align 8 .b8 s[8];"),
    ("loc-without-file", "sm_90", "9.0", ".loc 1 5 0\nmov.u32 %r1, 1;", ""),
    ("", "sm_90", "9.0", ".loc 1 5 0\nmov.u32 %r1, 1;", '.file 1 "k.cu"'),
    ("unknown-stack", "sm_90", "9.0", "call f;", LOOP),
    ("unknown-stack", "sm_90", "9.0", "call f;", PAIR),
    ("", "sm_90", "9.0", "", LOOP),
    ("without-abi", "sm_90", "9.0", "", ".func (.reg .b32 a, .reg .b32 b) f() { ret; }"),
    ("without-abi", "sm_80", "7.0", "call (%r1, %f1), f;", ".visible .func (.reg .b32 a, .reg .f32 b) f() { ret; }"),
    ("without-abi", "sm_90", "9.0", "", ".extern .func (.reg .b32 a, .reg .b32 b, .reg .b32 c) f();"),
    ("", "sm_90", "9.0", "", ".func (.reg .b32 a) f() { ret; }"),
    ("", "sm_90", "9.0", "", ".func (.param .b32 a[2]) f() { ret; }"),
    ("", "sm_90", "9.0", "p: .callprototype (.reg .b32 _, .reg .b32 _) _;", ""),
    ("unresolved-extern", "sm_90", "9.0", "ld.global.u32 %r1, [s];", ".extern .global .u32 s;"),
    ("unresolved-extern", "sm_90", "9.0", "", ".extern .const .b8 s[8];"),
    ("", "sm_90", "9.0", "st.shared.b32 [s], 0;", ".extern .shared .align 4 .b8 s[];"),
    ("unknown-stack", "sm_90", "9.0", "alloca.u64 %rd1, 64, 16;", ""),
    ("unknown-stack", "sm_90", "9.0", "call f;", ALLOCATES),
    ("", "sm_90", "9.0", "", ALLOCATES),
    ("", "sm_90", "9.0", "", ".extern .func f();"),
    ("", "sm_90", "9.0", "call f;", ".func f();\n.func f() { ret; }"),
    ("", "sm_90", "9.0", "call f;", ".func g() { ret; }\n.func f();\n.alias f, g;"),
    ("initializer", "sm_90, texmode_independent", "9.0", "", ".global .texref t = {filter_mode = linear};"),
    ("initializer", "sm_90, texmode_independent", "9.0", "", ".global .texref t[2] = {{}, {addr_mode_1 = wrap}};"),
    ("", "sm_90, texmode_independent", "9.0", "", ".global .texref t = {normalized_coords = 1};"),
    ("", "sm_90, texmode_independent", "9.0", "", ".global .samplerref s = {filter_mode = linear};"),
    ("pragma", "sm_90", "9.0", '.pragma "nounroll 5";', ""),
    ("", "sm_90a", "9.0", MMA + WAIT + STORE, ""),
    ("injected-wait", "sm_90a", "9.0", MMA + STORE, ""),
    ("injected-wait", "sm_90a", "9.0", MMA + "add.f32 %f5, %f1, %f2;" + WAIT + "st.global.f32 [%rd3], %f5;", ""),
    ("injected-wait", "sm_90a", "9.0", MMA + "mov.f32 %f5, %f1; st.global.f32 [%rd3], %f5;" + WAIT, ""),
    ("injected-wait", "sm_90a", "9.0", MMA, ""),
    ("injected-wait", "sm_90a", "9.0", MMA + "@%p1 bra E;" + WAIT + STORE + "E:", ""),
    ("", "sm_90a", "9.0", "L:" + MMA + "@%p1 bra L;" + WAIT + STORE, ""),
    ("", "sm_90a", "9.0", "L:" + MMA + "{ L: @%p2 bra L; } @%p1 bra L;" + WAIT + STORE, ""),
    ("injected-wait", "sm_90a", "9.0", "L:" + MMA + WAIT.replace("0", "1") + "@%p1 bra L;" + STORE, ""),
    ("", "sm_90", "9.0", '.pragma "nounroll";', ""),
]


def module(target: str, version: str, body: str, before: str) -> str:
    return f""".version {version}
.target {target}
.address_size 64
{before}
.visible .entry k() {{
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
.reg .pred %p<9>;
{body}
ret;
}}
"""


@pytest.mark.parametrize(("code", "target", "version", "body", "before"), ROWS)
def test_warnings_are_those_of_ptxas(code: str, target: str, version: str, body: str, before: str) -> None:
    text = module(target, version, body, before)
    found = check(text)
    assert [(each.code, each.severity) for each in found] == ([(code, "warning")] if code else [])
    made = assemble(text, str(parse_target(target.partition(",")[0])))
    assert isinstance(made, Cubin)
    assert bool(re.search("warning|Advisory|Potential|is ignored|is injected", made.log)) == bool(code), made.log


def test_a_function_without_a_body_is_unresolved_where_an_entry_calls_it() -> None:
    """ptxas refuses the module, but with --compile-only."""
    text = module("sm_90", "9.0", "call f;", ".extern .func f();")
    assert [(each.code, each.severity) for each in check(text)] == [("unresolved-extern", "warning")]
    with pytest.raises(AssemblerError, match="Unresolved extern function 'f'"):
        assemble(text)
    assert assemble(text, options=["--compile-only"]).data


def test_an_unknown_language_is_an_error() -> None:
    (found,) = check('.version 9.2\n.target sm_90\n.entry k() .language "Foo" { ret; }')
    assert (found.code, found.severity) == ("directive-value", "error")


def test_an_mma_without_operands_is_an_error() -> None:
    (found,) = check(module("sm_90a", "9.0", "wgmma.mma_async.sync.aligned;" + WAIT, ""))
    assert found.severity == "error"
