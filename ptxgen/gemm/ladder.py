"""The GEMM kernels by name: rungs of the ladders in `ladder.toml` files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

from ptxgen.builder import KERNELS_FOLDER
from ptxgen.descriptors.mma_kinds import SCALED_KINDS
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.plan import Design, GemmPlan
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.types import OUTPUTS, PLAIN_INPUTS, QUANTIZED_OUTPUTS, SCALED_INPUTS
from ptxgen.ladder import LADDER, Rung, read_folder, read_ladder

#: A problem is large where M, N and K are all at least this (the MXFP8 article's figure).
LARGE = 8192


@dataclass(frozen=True)
class KernelEntry(Rung):
    """A GEMM kernel by name. `large`: what the defaults are instead where M, N and K are all at least `LARGE`."""

    config_type: ClassVar[type[Any]] = GemmConfig

    @property
    def format(self) -> tuple[ScaledType, ScaledType] | None:
        """A's and B's types with their scales, unless options change them; None without scales."""
        return GemmConfig(**self.defaults).scaled

    def plan_for(self, m: int, n: int, k: int, **choices: Any) -> GemmPlan:
        """The plan for a problem: with the rung's choices for large ones, if it is. Raises PlanError."""
        return self.plan(**{**self.choices_for(m, n, k), **choices})

    def choices_for(self, m: int, n: int, k: int) -> dict[str, Any]:
        """What the rung chooses otherwise for a problem: `large`, if it is."""
        return self.large if min(m, n, k) >= LARGE else {}

    def unnamed(self, **choices: Any) -> GemmPlan:
        """The plan of a config without a name and settings, which its text ends with. Raises PlanError."""
        config = self.config(**choices)
        if "kind" in self.options and not config.kind:
            raise PlanError(f"{self.name} multiplies operands with scales: kind must be {', '.join(SCALED_KINDS)}")
        return GemmPlan.of(config, self.template, design=cast("Design", self.design), target=self.target)

    def plan(self, **choices: Any) -> GemmPlan:
        """The plan of a config: the rung's defaults with other choices. Raises PlanError."""
        made = self.unnamed(**choices)
        return replace(made, name=self.title, settings=self.signature(made.config))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The types of A and B that the kernel may have."""
        return SCALED_INPUTS if "kind" in self.options else PLAIN_INPUTS

    @property
    def c_dtypes(self) -> tuple[str, ...]:
        """The types of C that the kernel may have."""
        scaled = (*(name for name in OUTPUTS if name != "s32"), *QUANTIZED_OUTPUTS)
        return scaled if "kind" in self.options else OUTPUTS

    def described(self) -> dict[str, dict[str, Any]]:
        """The options: default, choices or range (first, last, step), and help; only types that the kernel may have."""
        found = super().described()
        for name in {"dtype", "b_dtype", "c_dtype"} & set(found):
            known = self.dtypes if name != "c_dtype" else self.c_dtypes
            found[name]["choices"] = [each for each in found[name]["choices"] if not each or each in known]
        return found


@cache
def kernels() -> dict[str, KernelEntry]:
    """The packaged kernels by name, in the order of the ladders."""
    found: dict[str, KernelEntry] = {}
    for path in sorted(KERNELS_FOLDER.glob(f"*/{LADDER}")):
        found.update(read_ladder(path, found, KernelEntry))
    return found


def find(name: str) -> KernelEntry:
    """The kernel of this name or rung id, or of FOLDER#RUNG. Raises PlanError that lists the names if there is none.

    >>> from ptxgen.gemm import find
    >>> plan = find("blackwell/swizzled").plan(n_tile=64)
    >>> plan.shared.bytes, ".target sm_100a" in plan.text
    (24604, True)
    """
    folder, hash, rung = name.partition("#")
    if hash:
        return read_folder(Path(folder), rung, kernels(), KernelEntry)
    for entry in kernels().values():
        if name == entry.name or name in entry.rungs:
            return entry
    raise PlanError(f"there is no kernel {name!r}; there are: {', '.join(kernels())}")
