"""The address of an element of an array: `mov.u32 %r, array[3]`. PTX ISA 6.4.2."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import module

#: ptxas 13.5.37 counts an index of any array by the bytes of its type: 12 for m[3] of .b32 m[4][8].
ARRAYS = [
    ("shared", ".b32 a[8]", "a[3]", "12"),
    ("shared", ".b8 a[64]", "a[3]", "3"),
    ("shared", ".b32 a[4][8]", "a[3]", "12"),
    ("shared", ".v4 .f32 a[4]", "a[2]", "8"),
    ("local", ".b64 a[8]", "a[5]", "40"),
    ("global", ".b16 a[8]", "a[7]", "14"),
    ("const", ".b32 a[8]", "a[1]", "4"),
]


@pytest.mark.parametrize(("space", "array", "element", "offset"), ARRAYS)
def test_the_address_of_an_element(space: str, array: str, element: str, offset: str) -> None:
    variable = f".{space} .align 16 {array};"
    outside = space in ("global", "const")
    body = f"""
        {"" if outside else f".shared .align 16 .b8 before[48]; {variable}"}
        .reg .b64 %out, %a, %b;
        ld.param.u64 %out, [out];
        mov.u64 %a, {element};
        mov.u64 %b, a;
        sub.u64 %a, %a, %b;
        st.global.u64 [%out], %a;
        ret;"""
    emulator = Emulator("sm_100a")
    out = emulator.array(np.full(1, 0xCDCD, np.uint64))
    kernel = Kernel.from_ptx(module(body, ".param .u64 out", items=variable if outside else ""))
    report = emulator.launch(kernel, 1, 1, [out])
    assert report.status == "ok", report.summary()
    assert out.numpy().tolist() == [int(offset)]
