"""What a loop calls belongs to it: slow paths of divisions, 64-bit divisions, and functions that are not inlined."""

from __future__ import annotations

import re

import pytest

from ptxgen.cli.toolchain.sass_gate import THRESHOLDS
from ptxgen.sass import Function, compare, load
from ptxgen.sass.flow import Flow
from ptxgen.sass.loops import summaries
from ptxgen.sass.show import broken_thresholds
from ptxgen.toolchain import assemble

#: A loop of `COUNT` FFMAs and more.
LOOP = """.version 8.7
.target TARGET
.address_size 64
.file 1 "/src/long.cu"
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b32 %n, %i, %r<4>; .reg .b64 %x, %y, %a, %l<4>; .reg .f32 %f<20>; .reg .f64 %d<2>; .reg .pred %p;
    .loc 1 5 0
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n]; mov.u32 %i, 0; mov.f32 %f0, 0f00000000;
$l:
    .pragma "nounroll";
    .loc 1 10 0
    mad.wide.u32 %a, %i, 4, %x;
    ld.global.f32 %f1, [%a]; ld.global.u32 %r1, [%a+64]; ld.global.u64 %l1, [%a+128];
WORK
    .loc 1 20 0
    EXTRA
    .loc 1 30 0
    add.f32 %f0, %f0, %f1; xor.b32 %r2, %r2, %r1; xor.b64 %l2, %l2, %l1;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra $l;
    .loc 1 40 0
    st.global.f32 [%y], %f0; st.global.u32 [%y+4], %r2; st.global.u64 [%y+8], %l2;
    ret;
}
"""
DIVISIONS = {
    "div.rn.f32": "div.rn.f32 %f1, %f1, %f2;",
    "div.approx.f32": "div.approx.f32 %f1, %f1, %f2;",
    "div.u32": "div.u32 %r1, %r1, %n;",
    "rem.s32": "rem.s32 %r1, %r1, %n;",
    "div.u64": "div.u64 %l1, %l1, %l2;",
    "sqrt.rn.f32": "sqrt.rn.f32 %f1, %f1;",
    "rcp.rn.f64": "cvt.f64.f32 %d0, %f1; rcp.rn.f64 %d1, %d0; cvt.rn.f32.f64 %f1, %d1;",
    "sin.approx.f32": "sin.approx.f32 %f1, %f1;",
    "bar.sync": "bar.sync 0;",
}


def text(extra: str, count: int = 600, target: str = "sm_90a") -> str:
    sums = [f"    fma.rn.f32 %f{2 + i % 16}, %f{2 + i % 16}, %f1, %f{2 + (i + 5) % 16};" for i in range(count)]
    sums += [f"    add.f32 %f1, %f1, %f{2 + i};" for i in range(16)]
    return LOOP.replace("TARGET", target).replace("WORK", "\n".join(sums)).replace("EXTRA", extra)


def broken(extra: str, thresholds: str, target: str = "sm_90a") -> list[str]:
    a, b = (load(assemble(text(each, target=target), options=("-lineinfo",))) for each in ("", extra))
    return [str(each) for each in broken_thresholds(compare(a, b), thresholds)]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_the_default_gate_sees_what_a_share_of_a_long_loop_hides(name: str, target: str) -> None:
    found = broken(DIVISIONS[name], THRESHOLDS, target)
    wanted = "loop-waits: " if name == "bar.sync" else "loop-MUFU: "
    assert any(each.startswith(wanted) for each in found), found


def test_what_the_default_gate_lets_pass() -> None:
    product = "mad.lo.u32 %r1, %r1, %n, %r1;"
    assert broken(product, THRESHOLDS) == []
    assert broken(product, "loop-instructions,loop-stalls")


def subroutine(function: Function) -> int:
    """Where the only subroutine of a function begins."""
    (start,) = function.subroutines.values()
    return start


@pytest.mark.parametrize("name", ["div.rn.f32", "sqrt.rn.f32", "div.u64", "rcp.rn.f64"])
def test_subroutines_count_once_for_each_call(name: str) -> None:
    once, twice = (
        load(assemble(text(DIVISIONS[name] * count, 20), options=("-lineinfo",))).functions[0] for count in (1, 2)
    )
    lengths = []
    for function, calls in ((once, 1), (twice, 2)):
        flow = Flow(function)
        (loop,) = (each for each in flow.loops if any(one.opcode == "CALL" for one in flow.instructions(each)))
        start = subroutine(function)
        end = max(each.index for each in function.instructions if each.opcode == "RET") + 1
        own = [each for each in flow.instructions(loop) if each.opcode != "NOP"]
        assert all(each.index < start for each in own)
        assert sum(each.opcode == "CALL" for each in own) == calls
        (figures,) = (each for each in summaries(flow) if not each.role)
        assert figures.instructions == len(own)
        assert figures.called_instructions == calls * (end - start)
        lengths.append(end - start)
    assert abs(lengths[0] - lengths[1]) <= 2  # ptxas allocates registers for each caller
    assert lengths[0] > 10


def test_a_slow_path_does_not_hide_what_the_loop_has_more() -> None:
    """Thirty multiply-adds are a fourth of the loop, and a twentieth of what it executes with its slow paths."""
    division = DIVISIONS["div.rn.f32"] * 8
    more = "".join(f"mad.lo.u32 %r{1 + i % 2}, %r{1 + i % 2}, %n, %r{2 - i % 2};" for i in range(30))
    a, b = (load(assemble(text(division + extra, 20), options=("-lineinfo",))) for extra in ("", more))
    (found,) = broken_thresholds(compare(a, b), "loop-instructions+5%")
    own, called = re.findall(r"(\d+) -> (\d+) instructions", found)
    assert int(own[1]) > 1.05 * int(own[0])
    assert int(called[1]) < 1.05 * int(called[0])
    assert "(with the subroutines that it calls: " in found


def test_a_function_that_is_not_inlined() -> None:
    """It is a subroutine of the kernel's section."""
    head, _, kernel = text("", 20).partition(".file")
    callee = """.func (.param .f32 r) far(.param .f32 v)
{
    .reg .f32 %v<3>;
    ld.param.f32 %v0, [v];
BODY
    st.param.f32 [r], %v0;
    ret;
}
"""
    call = "{ .param .f32 r; .param .f32 v; st.param.f32 [v], %f1; call (r), far, (v); ld.param.f32 %f1, [r]; }"
    short, long = (
        head
        + callee.replace("BODY", "    fma.rn.f32 %v0, %v0, %v0, %v0;\n" * count)
        + ".file"
        + kernel.replace("    .loc 1 20 0\n", f"    .loc 1 20 0\n    {call}\n")
        for count in (1, 30)
    )
    found = broken_thresholds(compare(load(assemble(short)), load(assemble(long))), "loop-instructions+20")
    assert found
    assert found[0].startswith("loop-instructions: ")
