"""Operands that few programs use: sums of a register or symbol, elements of arrays, constants of every spelling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel, check
from ptxgen.emulator import Emulator
from tests.support.harness import module

HEAD = """.shared .align 16 .b8 before[64]; .shared .align 16 .b32 a[16]; .shared .align 16 .v2 .b32 v[8];
    .local .align 16 .b32 l[16]; .reg .u32 %r<9>; .reg .u64 %d<9>; .reg .u16 %h<4>; .reg .pred %p;
    ld.param.u64 %d0, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8; add.u64 %d0, %d0, %d1;
    cvt.u64.u32 %d2, %r1; cvt.u16.u32 %h1, %r1; mov.u64 %d3, 0;
"""
#: What stores a value of %r2 or %d3 (the wide one counts where it is not 0), and the value of thread i.
FORMS: list[tuple[str, Any]] = [
    ("add.u32 %r2, %r1, %r1+4;", lambda i: 2 * i + 4),
    ("add.u32 %r2, %r1+1, %r1+-2;", lambda i: (2 * i - 1) % 2**32),
    ("mov.u32 %r2, %r1+5;", lambda i: i + 5),
    ("mov.b32 %r2, %r1+5000000000;", lambda i: i + 0x2A05F200),
    ("shl.b32 %r2, 1, %r1+1;", lambda i: 2 << i if i < 31 else 0),
    ("cvt.u64.u32 %d3, %r1+1;", lambda i: i + 1),
    (
        "add.s32 %r2, %r1, -1; cvt.u64.u32 %d3, %r2; add.u64 %d3, %d3, -1; add.u64 %d3, %d3, 2;",
        lambda i: (i - 1) % 2**32 + 1,
    ),
    ("mad.wide.u32 %d3, %r1+1, 4, %d2;", lambda i: 5 * i + 4),
    ("mul.lo.u16 %h2, %h1, %h1+1; cvt.u32.u16 %r2, %h2;", lambda i: i * (i + 1)),
    ("setp.lt.u32 %p, %r1+1, 4; selp.u32 %r2, 7, %r1+1, %p;", lambda i: 7 if i < 3 else i + 1),
    ("shfl.sync.bfly.b32 %r2, %r1+1, 1, 31, 0xffffffff;", lambda i: (i ^ 1) + 1),
    ("mov.u32 %r3, a; mov.u32 %r2, a[%r1]; sub.u32 %r2, %r2, %r3;", lambda i: 4 * i),
    ("mov.u32 %r3, a; mov.u32 %r2, a[%r1+2]; sub.u32 %r2, %r2, %r3;", lambda i: 4 * i + 8),
    ("mov.u32 %r3, a; mov.u32 %r2, a[(1 << 2) - 1]; sub.u32 %r2, %r2, %r3;", lambda i: 12),
    ("mov.u32 %r3, a; mov.u32 %r2, a[-1]; sub.u32 %r2, %r3, %r2;", lambda i: 4),
    ("mov.u32 %r3, v; mov.u32 %r2, v[3]; sub.u32 %r2, %r2, %r3;", lambda i: 12),
    ("mov.u32 %r3, a; add.u32 %r2, %r1, a+4; sub.u32 %r2, %r2, %r3;", lambda i: i + 4),
    ("mov.u64 %d4, g; add.u64 %d3, %d2, g+4; sub.u64 %d3, %d3, %d4;", lambda i: i + 4),
    ("mov.u64 %d4, g; mov.u64 %d3, g[%d2]; sub.u64 %d3, %d3, %d4; add.u64 %d3, %d3, 1;", lambda i: 8 * i + 1),
    ("mov.u64 %d4, g; mov.u64 %d3, g[%r1]; sub.u64 %d3, %d3, %d4; add.u64 %d3, %d3, 1;", lambda i: 8 * i + 1),
    ("mov.u32 %r2, l[%r1]; mov.u32 %r3, l; sub.u32 %r2, %r2, %r3;", lambda i: 4 * i),
    ("st.shared.u32 a[3], 9; ld.shared.u32 %r2, [a+12];", lambda i: 9),
    ("st.local.u32 l[%r1], %r1+3; ld.local.u32 %r2, l[%r1];", lambda i: i + 3),
    ("st.local.u32 [l+8], 5; ld.u32 %r2, l[2];", lambda i: 5),
    ("st.local.v2.u32 l[2], {%r1, 8}; ld.local.u32 %r2, l[3];", lambda i: 8),
    ("ld.global.u64 %d3, g[1];", lambda i: 22),
    ("ld.const.u32 %r2, c[2];", lambda i: 13),
    ("ld.param.u8 %r2, more[1];", lambda i: 0x55),
    ("mov.u32 %r2, 0x10U;", lambda i: 16),
    ("setp.eq.u32 %p, %r1, %r1; xor.pred %p, %p, 3 > 2 ? 5 : 0; selp.u32 %r2, 1, 2, %p;", lambda i: 2),
    ("setp.eq.u32 %p, %r1, %r1; and.pred %p, %p, 1 - 1; selp.u32 %r2, 1, 2, %p;", lambda i: 2),
    ("mov.u32 %r2, 017;", lambda i: 15),
    ("mov.u32 %r2, 0b101;", lambda i: 5),
    ("mov.u32 %r2, 5 > 3 ? 2 * 3 + 1 : ~0;", lambda i: 7),
    ("mov.u64 %d3, (.u64)-1;", lambda i: 2**64 - 1),
    ("mov.u32 %r2, WARP_SZ * 2;", lambda i: 64),
    ("mov.b32 %r2, 0f3F800000;", lambda i: 0x3F800000),
    ("mov.b64 %d3, 0d3FF0000000000000;", lambda i: 0x3FF0000000000000),
    ("mov.b64 %d3, 1.5 + 2.0 > 3.0;", lambda i: 1),
]


@pytest.mark.parametrize(("form", "expected"), FORMS, ids=[form for form, _ in FORMS])
def test_value(form: str, expected: Any) -> None:
    lanes = 16 if "l[%r1" in form else 32
    tail = "cvt.u64.u32 %d5, %r2; setp.ne.u64 %p, %d3, 0; selp.u64 %d5, %d3, %d5, %p; st.global.u64 [%d0], %d5; ret;"
    text = module(
        f"{HEAD} mov.u32 %r2, 0; {form} {tail}",
        ".param .u64 out, .param .align 4 .b8 more[8]",
        items=".global .align 8 .u64 g[40] = {11, 22}; .const .align 4 .u32 c[4] = {11, 12, 13};",
    )
    assert not [each for each in check(text) if each.severity == "error"]
    emulator = Emulator("sm_100a")
    out = emulator.array(np.full(lanes, 0xCDCD, np.uint64))
    report = emulator.launch(Kernel.from_ptx(text), 1, lanes, [out, bytes(range(0x54, 0x5C))])
    assert report.status == "ok", report.summary()
    assert out.numpy().tolist() == [expected(i) % 2**64 for i in range(lanes)]
