"""Forward attention: the second kind of kernel from the concepts of `ptxgen.gemm`.

`find(name).plan(**options)` plans a kernel and `plan.problem(queries, keys, heads=...)` applies it to a problem; `job`
of `ptxgen.attention.job` makes the `ptxgen.Job` that runs it on any device and compares.
"""

from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.ladder import AttentionEntry, find, kernels
from ptxgen.attention.plan import AttentionPlan
from ptxgen.attention.problem import AttentionProblem
from ptxgen.attention.softmax import Softmax

__all__ = [
    "AttentionConfig",
    "AttentionEntry",
    "AttentionPlan",
    "AttentionProblem",
    "Softmax",
    "find",
    "kernels",
]
