"""Warp-wide MMA: mma.sync, dense, sparse (`sp_`) and with scale factors (`mx`). PTX ISA 9.7.14.5.

A class is named after the type of A and B. The warp holds each matrix in registers, spread over the threads as the
manual shows for each shape and type.
"""

from ptxgen.instr.mma.dense import b1, bf16, f8, f8f6f4, f16, f16_m8n8k4, f64, i4, i8, tf32
from ptxgen.instr.mma.scaled import mxf4, mxf4nvf4, mxf8f6f4, sp_mxf4, sp_mxf4nvf4, sp_mxf8f6f4
from ptxgen.instr.mma.sparse import sp_bf16, sp_f8, sp_f8f6f4, sp_f16, sp_i4, sp_i8, sp_tf32

__all__ = [
    "b1",
    "bf16",
    "f8",
    "f8f6f4",
    "f16",
    "f16_m8n8k4",
    "f64",
    "i4",
    "i8",
    "mxf4",
    "mxf4nvf4",
    "mxf8f6f4",
    "sp_bf16",
    "sp_f8",
    "sp_f8f6f4",
    "sp_f16",
    "sp_i4",
    "sp_i8",
    "sp_mxf4",
    "sp_mxf4nvf4",
    "sp_mxf8f6f4",
    "sp_tf32",
    "tf32",
]
