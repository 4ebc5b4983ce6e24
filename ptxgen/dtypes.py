"""Element types of matrices, tensors and arrays: name, width, kind, and the NumPy type that holds one.

Names are PTX's. What only one format knows, such as the code of a type in a tensormap or an instruction descriptor, is
with that format, keyed by these names. The types of registers and variables are `ptxgen.instr.model.types`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "signed", "unsigned", "bits"]


@dataclass(frozen=True, slots=True)
class DType:
    """An element type; `bits` is its width in memory, packed (tf32 is stored in 32 bits)."""

    name: str
    kind: Kind
    bits: int
    #: The name in NumPy or else in ml_dtypes; empty where neither has it.
    array_name: str = ""

    @property
    def bytes(self) -> int:
        """Width in memory in bytes; 1 for types of less."""
        return max(1, self.bits // 8)

    @property
    def container_bits(self) -> int:
        """Bits of one element that is not packed with others: a float of 4 or 6 bits has a byte of its own."""
        return max(8, self.bits) if self.kind == "float" else self.bits


DTYPES: dict[str, DType] = {
    each.name: each
    for each in (
        DType("f64", "float", 64, "float64"),
        DType("f32", "float", 32, "float32"),
        DType("tf32", "float", 32, "float32"),
        DType("f16", "float", 16, "float16"),
        DType("bf16", "float", 16, "bfloat16"),
        DType("e4m3", "float", 8, "float8_e4m3fn"),
        DType("e5m2", "float", 8, "float8_e5m2"),
        DType("ue8m0", "float", 8, "float8_e8m0fnu"),
        DType("ue4m3", "float", 8),
        DType("e3m2", "float", 6, "float6_e3m2fn"),
        DType("e2m3", "float", 6, "float6_e2m3fn"),
        DType("e2m1", "float", 4, "float4_e2m1fn"),
        *(DType(f"s{bits}", "signed", bits, f"int{bits}") for bits in (4, 8, 16, 32, 64)),
        *(DType(f"u{bits}", "unsigned", bits, f"uint{bits}") for bits in (4, 8, 16, 32, 64)),
        *(DType(f"b{bits}", "bits", bits) for bits in (1, 8, 16, 32, 64)),
    )
}


@cache
def scalar_type(name: str) -> type[np.generic]:
    """The scalar type of NumPy, or of ml_dtypes, for an element type. Raises KeyError where there is none."""
    import ml_dtypes
    import numpy as np

    array_name = DTYPES[name].array_name
    if not array_name:
        raise KeyError(f"NumPy and ml_dtypes have no type for {name}")
    return getattr(np, array_name, None) or getattr(ml_dtypes, array_name)


def type_name(dtype: object) -> str:
    """The name of a type of NumPy or ml_dtypes as PTX has it (`bf16`), or its own where PTX has none."""
    name = str(dtype)
    return next((each.name for each in DTYPES.values() if each.array_name == name), name)
