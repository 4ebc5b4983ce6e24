"""Forward attention: the second kind of kernel from the concepts of `ptxgen.gemm`.

`find(name).plan(**options)` plans a kernel, `best` the fastest one for a number of queries and keys, and
`plan.problem(queries, keys, heads=...)` applies a plan to a problem; `job` of `ptxgen.attention.job` makes the
`ptxgen.Job` that runs it on any device and compares.
"""

from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.dispatch import best
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
    "best",
    "find",
    "kernels",
]
