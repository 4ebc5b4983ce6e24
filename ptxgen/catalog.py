"""All kernels by name: GEMM and attention. What takes one kind alone asks `ptxgen.gemm` or `ptxgen.attention`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ptxgen.attention.ladder import AttentionEntry
from ptxgen.attention.ladder import kernels as attention_kernels
from ptxgen.gemm.ladder import KernelEntry
from ptxgen.gemm.ladder import kernels as gemm_kernels
from ptxgen.ladder import read_folder
from ptxgen.options import PlanError

Entry = KernelEntry | AttentionEntry


@cache
def kernels() -> dict[str, Entry]:
    """The packaged kernels by name: the ladders of GEMM, then those of attention."""
    return {**gemm_kernels(), **attention_kernels()}


def find(name: str) -> Entry:
    """The kernel of this name or rung id, or of FOLDER#RUNG. Raises PlanError that lists the names if there is none."""
    folder, hash, rung = name.partition("#")
    if hash:
        return read_folder(Path(folder), rung, kernels(), KernelEntry)
    for entry in kernels().values():
        if name == entry.name or name in entry.rungs:
            return entry
    raise PlanError(f"there is no kernel {name!r}; there are: {', '.join(kernels())}")
