"""A kernel that is not a GEMM: each warp sums a row. `ptxgen run docs/examples/rowsum.py --schedules 5`."""

import numpy as np

from ptxgen import Job

ROWS, COLUMNS = 37, 100

PTX = """
.version 8.6
.target sm_90a
.address_size 64

.visible .entry rowsum(.param .u64 x, .param .u64 y, .param .u32 rows, .param .u32 columns)
.reqntid 128, 1, 1
{
    .reg .pred %p_more, %p_row;
    .reg .b32  %r_thread, %r_lane, %r_row, %r_cta, %r_rows, %r_columns, %r_column, %r_other;
    .reg .b64  %rd_x, %rd_y, %rd_at;
    .reg .f32  %f_sum, %f_value;

    mov.u32 %r_thread, %tid.x;
    and.b32 %r_lane, %r_thread, 31;
    shr.u32 %r_row, %r_thread, 5;
    mov.u32 %r_cta, %ctaid.x;
    mad.lo.u32 %r_row, %r_cta, 4, %r_row;
    ld.param.u32 %r_rows, [rows];
    setp.ge.u32 %p_row, %r_row, %r_rows;
    @%p_row bra $finish;
    ld.param.u32 %r_columns, [columns];
    ld.param.u64 %rd_x, [x];
    cvta.to.global.u64 %rd_x, %rd_x;
    mov.b32 %f_sum, 0f00000000;
    mov.b32 %r_column, %r_lane;
$column:
    setp.lt.u32 %p_more, %r_column, %r_columns;
    @!%p_more bra $reduce;
    mad.lo.u32 %r_other, %r_row, %r_columns, %r_column;
    mad.wide.u32 %rd_at, %r_other, 4, %rd_x;
    ld.global.f32 %f_value, [%rd_at];
    add.f32 %f_sum, %f_sum, %f_value;
    add.u32 %r_column, %r_column, 32;
    bra $column;
$reduce:
    bar.warp.sync 0xffffffff;
    shfl.sync.bfly.b32 %f_value, %f_sum, 16, 31, 0xffffffff;
    add.f32 %f_sum, %f_sum, %f_value;
    shfl.sync.bfly.b32 %f_value, %f_sum, 8, 31, 0xffffffff;
    add.f32 %f_sum, %f_sum, %f_value;
    shfl.sync.bfly.b32 %f_value, %f_sum, 4, 31, 0xffffffff;
    add.f32 %f_sum, %f_sum, %f_value;
    shfl.sync.bfly.b32 %f_value, %f_sum, 2, 31, 0xffffffff;
    add.f32 %f_sum, %f_sum, %f_value;
    shfl.sync.bfly.b32 %f_value, %f_sum, 1, 31, 0xffffffff;
    add.f32 %f_sum, %f_sum, %f_value;
    setp.ne.u32 %p_row, %r_lane, 0;
    @%p_row bra $finish;
    ld.param.u64 %rd_y, [y];
    cvta.to.global.u64 %rd_y, %rd_y;
    mad.wide.u32 %rd_at, %r_row, 4, %rd_y;
    st.global.f32 [%rd_at], %f_sum;
$finish:
    ret;
}
"""


def job(seed: int) -> Job:
    """Random rows; the sums of 100 numbers of size 1 in fp32 are off by less than 100 roundings."""
    x = np.random.default_rng(seed).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    return Job(
        ptx=PTX,
        inputs={"x": x},
        outputs={"y": ((ROWS,), np.float32)},
        arguments=["x", "y", ROWS, COLUMNS],
        grid=-(-ROWS // 4),
        block=128,
        reference=lambda inputs: {"y": inputs["x"].astype(np.float64).sum(axis=1)},
        tolerance=COLUMNS * 2.0**-24,
        reason="100 roundings of fp32",
        target="sm_90a",
    )
