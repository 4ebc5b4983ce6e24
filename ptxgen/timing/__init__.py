"""What is known about the machines' speed. The planner of `ptxgen.gemm` reads it."""

from ptxgen.timing.machines import MACHINES, Figure, Machine

__all__ = ["MACHINES", "Figure", "Machine"]
