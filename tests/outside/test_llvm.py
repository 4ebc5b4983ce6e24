"""LLVM's inline assembly is read out of Python and of IR: operands by their constraints."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.outside import llvm

CASES = {
    "positional": (
        "x = llvm.inline_asm(i32, [a, b], 'add.u32 $0, $1, $2;', '=r,r,r')",
        ["add.u32 %x_b32_0, %x_b32_1, %x_b32_2;"],
    ),
    "attributes": (
        "llvm.inline_asm(None, [p], 'st.shared.b64 [$0], $1;', 'r,l,~{memory}', has_side_effects=True)",
        ["st.shared.b64 [%x_b32_0], %x_b64_0;"],
    ),
    "keywords": (
        "tl.inline_asm_elementwise(asm='cvt.rn.bf16x2.f32 $0, $2, $1;', constraints='=r,f,f', args=[a, b])",
        ["cvt.rn.bf16x2.f32 %x_b32_0, %x_f32_0, %x_f32_1;"],
    ),
    "joined": (
        "inline_asm(t, [], 'mov.u32 $0, ' f'{\"%laneid;\"}', '=r')",
        ["mov.u32 %x_b32_0, %laneid;"],
    ),
    "braces": (
        "llvm.inline_asm(t, [a], f'mov.b64 {{$0, $1}}, $2;', '=r,=r,l')",
        ["mov.b64 {%x_b32_0, %x_b32_1}, %x_b64_0;"],
    ),
    "tied": ("ir.InlineAsm(f, 'add.u32 $0, ${1:r}, $2;', '=r,0,r')", ["add.u32 %x_b32_0, %x_b32_1, %x_b32_2;"]),
    "predicate": (
        "llvm.inline_asm(t, [a], '{ .reg .pred p; setp.ne.b32 p, $1, 0; selp.b32 $0, 1, 0, p; }', '=r,r')",
        ["setp.ne.b32 %x_pred_0, %x_b32_0, 0;", "selp.b32 %x_b32_0, 1, 0, %x_pred_0;"],
    ),
    "not fixed": ("llvm.inline_asm(t, [a], f'add.{kind} $0, $1, 1;', '=r,r')", []),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_in_python(case: str) -> None:
    text, expected = CASES[case]
    left_out: Counter[str] = Counter()
    assert [str(each) for each in llvm.extract_python(text, left_out)] == expected
    assert left_out.total() == (not expected)


def test_text_of_ir() -> None:
    text = r'''
    %0 = llvm.inline_asm has_side_effects asm_dialect = att "ex2.approx.ftz.f32 $0, $1;", "=f,f" %a : (f32) -> f32
    %1 = tail call i32 asm sideeffect "mov.u32 $0, %laneid;\0A\09", "=r"()
    // CHECK: llvm.inline_asm has_side_effects {{.*}} "@$1 st.shared.b32 [ $0 + 4 ], $2;", "r,b,r"
    '''  # fmt: skip
    assert [str(each) for each in llvm.extract_text(text, Counter())] == [
        "ex2.approx.ftz.f32 %x_f32_0, %x_f32_1;",
        "mov.u32 %x_b32_0, %laneid;",
    ]
