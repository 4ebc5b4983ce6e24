"""What the epilogue makes of the accumulator before it stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.types import TYPES


@dataclass(frozen=True)
class LinearCombination:
    """C = activation(alpha·A·Bᵀ + beta·source + bias), each part only where the kernel has it.

    `compute` is the type of alpha, beta and all sums: that of the accumulator. `source` (M×N) and `bias` (N elements)
    are types; empty: there is none. The source is not read where beta is 0, whatever it holds.
    """

    compute: Literal["f32", "s32"] = "f32"
    alpha: bool = False
    source: str = ""
    bias: str = ""
    activation: str = "none"

    @classmethod
    def of(cls, d_type: str, *, alpha: bool, source: str, bias: str, activation: str) -> LinearCombination:
        """Raises PlanError for types that the accumulator has no conversion from."""
        integer = d_type == "s32"
        for name, dtype in (("source", source), ("bias", bias)):
            if dtype and TYPES[dtype].is_integer != integer:
                raise PlanError(f"the accumulator is {d_type}; {name} cannot be {dtype}")
        if integer and activation not in ("none", "relu"):
            raise PlanError(f"the accumulator is s32; activation must be none or relu, not {activation}")
        return cls("s32" if integer else "f32", alpha, source, bias, activation)

    @property
    def present(self) -> bool:
        """Whether there is anything to do."""
        return self.alpha or bool(self.source or self.bias) or self.activation != "none"

    @property
    def source_bytes(self) -> int:
        return TYPES[self.source].bytes

    @property
    def bias_bytes(self) -> int:
        return TYPES[self.bias].bytes

    def explain(self) -> str:
        """The formula: "gelu(alpha·A·Bᵀ + bias)"."""
        terms = ["alpha·A·Bᵀ" if self.alpha else "A·Bᵀ"]
        terms += ["beta·source"] * bool(self.source) + ["bias"] * bool(self.bias)
        words = " + ".join(terms)
        return words if self.activation == "none" else f"{self.activation}({words})"
