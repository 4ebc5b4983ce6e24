"""Functions of NVIDIA's device runtime (libcudadevrt.a), which is machine code: barriers of a cooperative grid.

Declarations of cooperative_groups/details/driver_abi.h; Numba's `cuda.cg.this_grid().sync()` calls them. The barrier
is that of cooperative_groups/details/sync.h.
"""

from __future__ import annotations

import re

from ptxgen.driver.link import linked

_NAMES = re.compile(r"\.extern\s+\.func\b[^;]*\b(?:cudaCGGetIntrinsicHandle|cudaCGSynchronize)\b")

_MODULE = """
.version 7.0
.target sm_70
.address_size 64

.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %scope, %high, %low;
    .reg .b64 %workspace;
    .reg .pred %grid;
    ld.param.b32 %scope, [scope];
    mov.b32 %high, %envreg1;
    mov.b32 %low, %envreg2;
    mov.b64 %workspace, {%low, %high};
    setp.eq.s32 %grid, %scope, 1;
    selp.b64 %workspace, %workspace, 0, %grid;
    st.param.b64 [handle], %workspace;
    ret;
}

.weak .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .b64 %workspace;
    .reg .b32 %x, %y, %z, %id, %ctas, %add, %before, %now;
    .reg .pred %none, %others, %first, %waits;
    ld.param.b64 %workspace, [handle];
    setp.eq.u64 %none, %workspace, 0;
    @%none bra NONE;
    bar.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %id, %x, %y;
    or.b32 %id, %id, %z;
    setp.ne.u32 %others, %id, 0;
    @%others bra DONE;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %ctas, %x, %y;
    mul.lo.u32 %ctas, %ctas, %z;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %id, %x, %y;
    or.b32 %id, %id, %z;
    setp.eq.u32 %first, %id, 0;
    sub.u32 %add, 0x80000001, %ctas;
    selp.b32 %add, %add, 1, %first;
    fence.acq_rel.gpu;
    atom.add.u32 %before, [%workspace+4], %add;
WAIT:
    ld.volatile.u32 %now, [%workspace+4];
    xor.b32 %now, %now, %before;
    setp.ge.s32 %waits, %now, 0;
    @%waits bra WAIT;
    fence.acq_rel.gpu;
DONE:
    bar.sync 0;
    st.param.b32 [error], 0;
    ret;
NONE:
    st.param.b32 [error], 1;
    ret;
}
"""


def with_device_runtime(text: str) -> str:
    """The PTX of a module with those functions of the device runtime that it calls."""
    return linked([text, _MODULE]) if _NAMES.search(text) else text
