"""The nearest legal form of an opcode that is not legal."""

import pytest

from ptxgen.instr.model.nearest import nearest_opcode
from ptxgen.instr.model.recognize import candidates

NEAREST = [
    ("tcgen05.ld.sync.aligned.16x256b.x128.b32", "tcgen05.ld.sync.aligned.16x256b.x32.b32"),
    ("tcgen05.alloc.sync.aligned.b32", "tcgen05.alloc.cta_group::1.sync.aligned.b32"),
    ("add.u33", "add.u32"),
    ("mul.u32", "mul.lo.u32"),
    ("setp.lo.s32", "setp.lt.s32"),
    ("max.xorsign.f32", "max.xorsign.abs.f32"),
    ("cvt.u32.f32", "cvt.rni.u32.f32"),
    ("ld.shared.v4.b64", "ld.shared.v2.b64"),
    ("ld.global.v8.b128", "ld.global.b128"),
    ("mbarier.init.b64", "mbarrier.init.b64"),
    ("frobnicate.u32", None),
]


@pytest.mark.parametrize(("opcode", "nearest"), NEAREST)
def test_nearest(opcode: str, nearest: str | None) -> None:
    assert nearest_opcode(opcode) == nearest
    assert nearest is None or candidates(nearest), "what is proposed is legal"
    assert not candidates(opcode)
