"""Building kernels: templates of plain PTX, and named registers for code that builds instructions."""

from ptxgen.builder.registers import Register, Registers
from ptxgen.builder.templates import KERNELS_FOLDER, Rendered, Template, TemplateError

__all__ = ["KERNELS_FOLDER", "Register", "Registers", "Rendered", "Template", "TemplateError"]
