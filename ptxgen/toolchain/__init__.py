"""NVIDIA's command-line tools: find ptxas and nvdisasm, run them, read their reports.

PTX is opaque here; `ptxgen.syntax` and `ptxgen.instr` interpret it.
"""

from ptxgen.toolchain.find import ToolNotFoundError, ToolNotInstalledError, find_nvdisasm, find_ptxas, find_tool
from ptxgen.toolchain.nvcc import CompilerError, compile_cuda
from ptxgen.toolchain.nvdisasm import DisassemblerError, disassemble
from ptxgen.toolchain.ptxas import (
    AssemblerError,
    AssemblerMessage,
    Cubin,
    FunctionInfo,
    assemble,
    assemble_many,
    ptxas_version,
    target_of,
)

__all__ = [
    "AssemblerError",
    "AssemblerMessage",
    "CompilerError",
    "Cubin",
    "DisassemblerError",
    "FunctionInfo",
    "ToolNotFoundError",
    "ToolNotInstalledError",
    "assemble",
    "assemble_many",
    "compile_cuda",
    "disassemble",
    "find_nvdisasm",
    "find_ptxas",
    "find_tool",
    "ptxas_version",
    "target_of",
]
