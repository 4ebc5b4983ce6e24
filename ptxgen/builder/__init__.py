"""Building kernels: templates of plain PTX, and named registers for code that builds instructions."""

from ptxgen.builder.registers import REGISTER_TYPES, Register, RegisterError, Registers
from ptxgen.builder.templates import KERNELS_FOLDER, Rendered, Template, TemplateError

__all__ = [
    "KERNELS_FOLDER",
    "REGISTER_TYPES",
    "Register",
    "RegisterError",
    "Registers",
    "Rendered",
    "Template",
    "TemplateError",
]
