"""Moves of vectors, packing into 128 bits, and special registers (9.7.9.3, 9.7.9.4, chapter 10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import Emulator, Kernel, edges, lanewise, launch, module, poisoned, same

COUNT = 130


def test_vectors_are_read_before_they_are_written() -> None:
    a, b = edges(32, COUNT, 1), edges(32, COUNT, 2)
    text = "mov.b32 %d, %a; mov.b32 %e, %b; mov.v2.b32 {%d, %e}, {%e, %d};"
    found = lanewise(text, {"a": ("b32", a), "b": ("b32", b)}, {"d": "b32", "e": "b32"})
    same(found["d"], b.tolist(), text)
    same(found["e"], a.tolist(), text)


def test_parts_that_are_left_out_are_zero() -> None:
    """A `_` among the elements of a source, as ptxas 13.5 compiles it."""
    a = edges(32, COUNT, 5)
    text = """.reg .b8 %p, %q, %r, %s; .reg .b16 %h, %i;
        mov.b32 {%p, %q, %r, %s}, %a;
        mov.b32 %d, {_, %q, %r, _};
        mov.b32 {%h, %i}, %a;
        mov.b32 %e, {_, %i};
        """
    found = lanewise(text, {"a": ("b32", a)}, {"d": "b32", "e": "b32"})
    same(found["d"], [x & 0xFFFF00 for x in a.tolist()], text)
    same(found["e"], [x & 0xFFFF0000 for x in a.tolist()], text)


def test_128_bits() -> None:
    """Two halves or four quarters, the first at the bottom."""
    a, b = edges(64, COUNT, 3), edges(64, COUNT, 4)
    text = """.reg .b128 %w, %v; .reg .b32 %p, %q, %r, %s;
        mov.b128 %w, {%a, %b};
        mov.b128 %v, %w;
        mov.b128 {%p, %q, %r, %s}, %v;
        mov.b128 %w, {%s, %p, %q, %r};
        mov.b128 {%d, %e}, %w;
        """
    found = lanewise(text, {"a": ("b64", a), "b": ("b64", b)}, {"d": "b64", "e": "b64"})
    mask = 2**32 - 1
    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    same(found["d"], [(y >> 32) | (x & mask) << 32 for x, y in rows], text)
    same(found["e"], [(x >> 32) | (y & mask) << 32 for x, y in rows], text)


def test_vector_registers() -> None:
    """Elements by both of their names, whole in loads, stores, vector moves and packing, in inner scopes and ranges."""
    a = edges(32, 64, 5)
    body = """.reg .v4 .b32 %v; .reg .v2 .b32 %w<3>; .reg .b32 %t; .reg .b64 %at, %p; .reg .v4 .f32 %f;
        mov.u32 %t, %tid.x;
        mul.wide.u32 %at, %t, 16;
        add.u64 %in0, %in0, %at;
        add.u64 %out0, %out0, %at;
        ld.global.v4.b32 %v, [%in0];
        add.u32 %v.x, %v.x, %v.a;
        xor.b32 %v.y, %v.g, %v.b;
        mov.v2.b32 %w1, {%v.w, %v.z};
        mov.b64 %p, %w1;
        mov.b64 %w2, %p;
        { .reg .v2 .b32 %w1;
        mov.v2.b32 %w1, {1, 2};
        add.u32 %v.y, %v.y, %w1.y; }
        mov.v4.b32 %f, {%v.x, %v.y, %w2.x, %w2.y};
        st.global.v4.f32 [%out0], %f;
        ret;
        """
    report, (found,) = launch(body, [poisoned(64)], inputs=[a], block=16)
    assert report.status == "ok", report.summary()
    expected = []
    for x, y, z, w in a.reshape(-1, 4).tolist():
        expected += [(x + w) & 0xFFFFFFFF, ((y ^ z) + 2) & 0xFFFFFFFF, w, z]
    assert found.tolist() == expected


SPECIAL: dict[str, Any] = {
    "%tid.w": lambda i: 0, "%tid.r": lambda i: i % 8, "%tid.g": lambda i: i // 8 % 4, "%tid.b": lambda i: i // 32,
    "%tid.a": lambda i: 0, "%ntid.w": lambda i: 0, "%ntid.r": lambda i: 8, "%nctaid.w": lambda i: 0,
    "%nctaid.b": lambda i: 1, "%cluster_nctaid.a": lambda i: 0, "%clock_hi": lambda i: 0,
    "%globaltimer_hi": lambda i: 0,
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_registers(name: str) -> None:
    body = f""".reg .b32 %d, %t, %y, %z; .reg .b64 %at;
        mov.u32 %t, %tid.x;
        mov.u32 %y, %tid.y;
        mov.u32 %z, %tid.z;
        mad.lo.u32 %y, %z, 4, %y;
        mad.lo.u32 %t, %y, 8, %t;
        mul.wide.u32 %at, %t, 4;
        add.u64 %out0, %out0, %at;
        mov.u32 %d, {name};
        st.global.b32 [%out0], %d;
        ret;
        """
    report, (found,) = launch(body, [poisoned(64)], block=(8, 4, 2))
    assert report.status == "ok", report.summary()
    assert found.tolist() == [SPECIAL[name](i) for i in range(64)]


def test_graphs_launch_nothing_here() -> None:
    text = module(
        ".reg .b64 %d, %at; ld.param.u64 %at, [out]; mov.u64 %d, %current_graph_exec; st.global.b64 [%at], %d; ret;",
        ".param .u64 out",
    )
    emulator = Emulator("sm_100a")
    out = emulator.array(np.full(1, 7, np.uint64))
    assert emulator.launch(Kernel.from_ptx(text), 1, 1, [out]).ok
    assert out.numpy()[0] == 0
