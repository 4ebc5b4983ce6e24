"""docs/races.md shows what the emulator says of its kernel, and names modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ptxgen import Kernel
from ptxgen.emulator import Emulator

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/races.md").read_text(encoding="utf-8")
KERNEL = """\
.version 8.8
.target sm_90a
.address_size 64
.visible .entry reverse(.param .u64 out)
{
    .shared .align 4 .b32 tile[64];
    .reg .b32 %t, %at, %x;
    .reg .b64 %to;
    ld.param.u64 %to, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %t, 4, %at;
    st.shared.u32 [%at], %t;
    mov.u32 %at, tile;
    xor.b32 %x, %t, 63;
    mad.lo.u32 %at, %x, 4, %at;
    ld.shared.u32 %x, [%at];
    mad.wide.u32 %to, %t, 4, %to;
    st.global.u32 [%to], %x;
    ret;
}
"""


def test_the_message_of_the_page() -> None:
    emulator = Emulator("sm_90a")
    report = emulator.launch(Kernel.from_ptx(KERNEL), 1, 64, [emulator.array(np.zeros(64, np.uint32))])
    (found,) = report.findings
    assert str(found) in PAGE


def test_the_modules_of_the_page() -> None:
    for path in re.findall(r"`((?:checks|emulator|ptxgen)/[\w/.]+)`", PAGE):
        places = [ROOT / path, ROOT / "ptxgen" / path, ROOT / "ptxgen/emulator" / path]
        assert any(each.exists() for each in places), path
