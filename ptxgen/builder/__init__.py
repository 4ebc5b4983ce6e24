"""Building kernels: templates of plain PTX, and builders of whole kernels from typed calls."""

from ptxgen.builder.blocks import Block, BlockError
from ptxgen.builder.buffers import Ring, Slot, Tile
from ptxgen.builder.kernel import KernelBuilder
from ptxgen.builder.registers import REGISTER_TYPES, Register, RegisterError, Registers
from ptxgen.builder.templates import KERNELS_FOLDER, Rendered, Template, TemplateError

__all__ = [
    "KERNELS_FOLDER",
    "REGISTER_TYPES",
    "Block",
    "BlockError",
    "KernelBuilder",
    "Register",
    "RegisterError",
    "Registers",
    "Rendered",
    "Ring",
    "Slot",
    "Template",
    "TemplateError",
    "Tile",
]
