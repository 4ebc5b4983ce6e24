"""Building kernels: named registers and labels, and the Jinja environment whose instructions are model calls."""

from ptxgen.builder.environment import TemplateError, render
from ptxgen.builder.registers import Register, Registers

__all__ = ["Register", "Registers", "TemplateError", "render"]
