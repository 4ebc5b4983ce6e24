"""What the epilogue makes of the accumulator before it stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.types import TYPES


@dataclass(frozen=True)
class LinearCombination:
    """C = activation(alpha·A·Bᵀ + beta·source + bias), each part only where the kernel has it.

    `compute` is the type of alpha, beta and all sums: that of the accumulator, or f32 where a sum of integers becomes a
    floating-point C (`converts`). `source` (M×N) and `bias` (N elements) are types; empty: there is none. The source is
    not read where beta is 0, whatever it holds.
    """

    compute: Literal["f32", "s32"] = "f32"
    alpha: bool = False
    source: str = ""
    bias: str = ""
    activation: str = "none"
    converts: bool = False

    @classmethod
    def of(cls, d_type: str, c_type: str, *, alpha: bool, source: str, bias: str, activation: str) -> LinearCombination:
        """Of an accumulator and a C. Raises PlanError for types that the sums have no conversion from."""
        integer, converts = TYPES[c_type].is_integer, d_type == "s32" and not TYPES[c_type].is_integer
        sums = "C is s32, and so are alpha, beta and all sums" if integer else "the sums are f32"
        for name, dtype in (("source", source), ("bias", bias)):
            if dtype and TYPES[dtype].is_integer != integer:
                raise PlanError(f"{sums}; {name} cannot be {dtype}")
        if integer and activation not in ("none", "relu"):
            raise PlanError(f"{sums}; activation must be none or relu, not {activation}")
        return cls("s32" if integer else "f32", alpha, source, bias, activation, converts)

    @property
    def present(self) -> bool:
        """Whether there is anything to do."""
        return self.converts or self.alpha or bool(self.source or self.bias) or self.activation != "none"

    @property
    def source_bytes(self) -> int:
        return TYPES[self.source].bytes

    @property
    def bias_bytes(self) -> int:
        return TYPES[self.bias].bytes

    def explain(self) -> str:
        """The formula: "gelu(alpha·A·Bᵀ + bias)"."""
        product = "f32(A·Bᵀ)" if self.converts else "A·Bᵀ"
        terms = [f"alpha·{product}" if self.alpha else product]
        terms += ["beta·source"] * bool(self.source) + ["bias"] * bool(self.bias)
        words = " + ".join(terms)
        return words if self.activation == "none" else f"{self.activation}({words})"
