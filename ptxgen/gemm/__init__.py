"""GEMM kernels: configs, plans made of concepts, and the ladders of rungs that name them.

`find(name).plan(**options)` plans a kernel, `best(m, n, k)` the one that should be fastest for a problem; `run_gemm` of
`ptxgen.gemm.job` runs a plan and compares.
"""

from ptxgen.gemm.config import GemmConfig, parse_options
from ptxgen.gemm.dispatch import best
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import KernelEntry, find, kernels
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.shared_map import SharedMap

__all__ = [
    "GemmConfig",
    "GemmPlan",
    "GemmProblem",
    "KernelEntry",
    "PlanError",
    "SharedMap",
    "best",
    "find",
    "kernels",
    "parse_options",
]
