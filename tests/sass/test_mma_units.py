"""The tensor-core instructions of a summary: one class for each opcode that ptxas makes of mma.sync."""

from __future__ import annotations

import pytest

from ptxgen.sass import load, summarize
from ptxgen.sass.show import summary_lines
from ptxgen.toolchain import assemble

D, A, B = "{%f0, %f1, %f2, %f3}", "{%r0, %r1, %r2, %r3}", "{%r4, %r5}"
SCALES = "%r6, {0, 0}, %r7, {0, 0}"
#: What each instruction multiplies, and the opcode of NVIDIA's SASS reference for sm_120.
LINES = {
    "HMMA": f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {D}, {A}, {B}, {D};",
    "QMMA": f"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {D}, {A}, {B}, {D};",
    "OMMA": "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
    f"{D}, {A}, {B}, {D}, {SCALES};",
    "IMMA": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r8, %r9, %r10, %r11}, "
    f"{A}, {B}, {{%r8, %r9, %r10, %r11}};",
}


def text(counts: dict[str, int]) -> str:
    loads = "\n".join(f"    ld.volatile.global.u32 %r{each}, [%p + {4 * each}];" for each in range(12))
    loads += "\n" + "\n".join(f"    ld.volatile.global.f32 %f{each}, [%p + {64 + 4 * each}];" for each in range(4))
    body = "\n".join(f"    {LINES[name]}" for name, count in counts.items() for _ in range(count))
    stores = "\n".join(f"    st.global.f32 [%p + {4 * each}], %f{each};" for each in range(4))
    stores += "\n" + "\n".join(f"    st.global.u32 [%p + {16 + 4 * each}], %r{8 + each};" for each in range(4))
    return (
        ".version 8.8\n.target sm_120a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        "    .reg .b32 %r<12>;\n    .reg .f32 %f<4>;\n    .reg .b64 %p;\n    ld.param.u64 %p, [p];\n"
        f"{loads}\n{body}\n{stores}\n    ret;\n}}\n"
    )


@pytest.mark.parametrize("counts", [{"HMMA": 3}, {"QMMA": 2}, {"OMMA": 1}, {"IMMA": 2}, dict.fromkeys(LINES, 2)])
def test_each_opcode_has_a_class(counts: dict[str, int]) -> None:
    [function] = load(assemble(text(counts)).data).functions
    [line] = [each for each in summary_lines(summarize(function)) if each.strip().startswith("classes")]
    found = {name: int(count) for count, name in (each.split() for each in line.split("classes")[1].split(",")
             if each.split()[1].endswith("MMA"))}  # fmt: skip
    assert found == counts
