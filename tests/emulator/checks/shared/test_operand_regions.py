"""Operands of MMAs against the variables in which they begin, some of which are only the base of more memory."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, errors, launch, poisoned

#: A wgmma of 64 x 8 x 16 in f16: A of 2048 bytes at an offset of 0x1000 in DECLARED's smem, B behind it.
KERNEL = """
    .reg .b64 %desc_a, %desc_b, %at;
    .reg .b32 %r0, %r1, %t;
    .reg .f32 %d<4>;
    mov.u32 %t, %tid.x;
    mov.b64 %desc_a, 0x00000010000800C0;
    mov.b64 %desc_b, 0x0000001000080140;
    shl.b32 %r0, %t, 4;
    FIRST
    add.u32 %r1, %r1, %r0;
    st.shared.v4.b32 [%r1], {0, 0, 0, 0};
    shr.u32 %r0, %r0, 1;
    add.u32 %r0, %r0, 0x1400;
    st.shared.v2.b32 [%r0], {0, 0};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc_a, %desc_b, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %out0;
    st.global.f32 [%at], %d0;
    ret;
"""
#: Before smem, up to 0xC00.
PADDING = ".shared .align 1024 .b8 padding[2048];\n"
AT_SMEM = "mov.u32 %r1, smem;"


def run(declared: str, first: str = AT_SMEM, *, shared_bytes: int = 0) -> LaunchReport:
    options: dict[str, Any] = {"kernel_target": "sm_90a", "version": "9.0", "target": "sm_90a"}
    body = PADDING + declared + KERNEL.replace("FIRST", first)
    return launch(body, [poisoned(128)], block=128, shared_bytes=shared_bytes, **options)[0]


def test_the_last_variable_before_dynamic_shared_memory_is_its_base() -> None:
    """Mosaic GPU: `.shared .align 16 .b8 __dynamic_shmem__0;`, and all of the launch's dynamic memory behind it."""
    report = run(".shared .align 1024 .b8 smem;", shared_bytes=8192)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize(
    "first",
    [
        "mov.u32 %r1, smem; st.shared.u32 [smem+4096], 0;",
        "mov.u32 %r1, smem; .reg .b32 %past; add.u32 %past, %r1, 4096; st.shared.u32 [%past], 0;",
        "mov.u32 %r1, smem; .reg .b32 %past; cvt.u32.u32 %past, %r1; add.s32 %past, %past, 4;",
        ".reg .b64 %g; mov.u64 %g, smem; add.s64 %g, %g, 2052; mov.u32 %r1, smem;",
    ],
    ids=["address", "sum", "copy and sum", "64 bits"],
)
def test_a_variable_that_other_accesses_pass_beyond(first: str) -> None:
    report = run(".shared .align 1024 .b8 smem;\n.shared .align 16 .b8 rest[6144];", first)
    assert report.status == "ok", report.summary()
    assert "operand-region" not in codes(report)


def test_a_variable_bounds_its_operands() -> None:
    """The rest of A lies in what the program calls `other`."""
    declared = ".shared .align 1024 .b8 smem[1024];\n.shared .align 1024 .b8 other[3072];"
    report = run(declared)
    assert "operand-region" in errors(report), report.summary()


def test_dynamic_shared_memory_does_not_free_the_variables_before_the_last() -> None:
    declared = ".shared .align 1024 .b8 smem[1024];\n.shared .align 1024 .b8 other[3072];"
    report = run(declared, shared_bytes=1024)
    assert "operand-region" in errors(report), report.summary()
