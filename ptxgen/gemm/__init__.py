"""GEMM kernels: configs, plans made of concepts, and the ladders of rungs that name them.

`find(name).plan(**options)` plans a kernel, `best(m, n, k)` the one that should be fastest for a problem; `run_gemm` of
`ptxgen.gemm.job` runs a plan and compares. The concepts (`Operand`, `Pipeline`, `Accumulator`, `TileScheduler`,
`Epilogue`) are values that blocks of templates spell in PTX: in the packaged kernels, and by `KernelBuilder.block` in
builders.

The rooms: `concepts` (of plans), `reference` (inputs, expected C, comparison), `prediction` (times), `selection` (which
kernel for a problem); at the top stand config, plan, problem, job, ladder and the scales of operands.
"""

from ptxgen.gemm.concepts.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.epilogue import Epilogue
from ptxgen.gemm.concepts.operand import Operand
from ptxgen.gemm.concepts.pipeline import Pipeline
from ptxgen.gemm.concepts.shared_map import SharedMap, Wanted
from ptxgen.gemm.concepts.tile_scheduler import TileScheduler
from ptxgen.gemm.config import GemmConfig, parse_options
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import KernelEntry, find, kernels
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.selection.dispatch import best

__all__ = [
    "Accumulator",
    "Epilogue",
    "GemmConfig",
    "GemmPlan",
    "GemmProblem",
    "KernelEntry",
    "Operand",
    "Pipeline",
    "PlanError",
    "RegisterAccumulator",
    "SharedMap",
    "TileScheduler",
    "Wanted",
    "best",
    "find",
    "kernels",
    "parse_options",
]
