"""PTX data types: width, kind, and which register may hold which instruction type.

PTX ISA 5.2 (types) and 9.4.1, 9.4.2 (operand size and type checking). The compatibility rules are those of
ptxas, which takes untyped (.b) registers for every type of their width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["unsigned", "signed", "float", "bits", "packed", "predicate", "opaque"]


@dataclass(frozen=True, slots=True)
class Type:
    """A PTX type: its name without the dot, its kind, and its width in bits (a predicate has 1).

    `packed` are the formats without arithmetic registers of their own: they live in untyped ones. `opaque` are the
    descriptors of textures, samplers and surfaces (5.3), of which only variables exist; their size is hidden.
    """

    name: str
    kind: Kind
    bits: int

    @property
    def bytes(self) -> int:
        """Width in memory, in bytes."""
        return max(1, self.bits // 8)

    def __str__(self) -> str:
        return "." + self.name


def _types() -> dict[str, Type]:
    table = {"pred": Type("pred", "predicate", 1)}
    for bits in (8, 16, 32, 64):
        table[f"u{bits}"] = Type(f"u{bits}", "unsigned", bits)
        table[f"s{bits}"] = Type(f"s{bits}", "signed", bits)
    for bits in (8, 16, 32, 64, 128):
        table[f"b{bits}"] = Type(f"b{bits}", "bits", bits)
    for bits in (16, 32, 64):
        table[f"f{bits}"] = Type(f"f{bits}", "float", bits)
    # Formats without registers of their own live in untyped registers of their width (5.2.3, 5.2.5).
    for name, bits in (
        ("f16x2", 32),
        ("bf16", 16),
        ("bf16x2", 32),
        ("tf32", 32),
        ("f32x2", 64),
        ("u16x2", 32),
        ("s16x2", 32),
        ("u8x4", 32),
        ("s8x4", 32),
        ("e4m3x2", 16),
        ("e5m2x2", 16),
        ("e4m3x4", 32),
        ("e5m2x4", 32),
        ("e2m1x2", 8),
        ("e2m1x4", 16),
        ("e2m3x2", 16),
        ("e3m2x2", 16),
        ("e2m3x4", 32),
        ("e3m2x4", 32),
        ("e2m1p4x4", 32),
        ("ue8m0x4", 32),
        ("ue8m0x2", 16),
        ("ue5m3x2", 16),
        ("s2f6x2", 16),
    ):
        table[name] = Type(name, "packed", bits)
    for name in ("texref", "samplerref", "surfref"):
        table[name] = Type(name, "opaque", 64)
    # Elements of matrices and of packed values, and registers of them, which few instructions name.
    for name, bits in (
        ("e4m3", 8),
        ("e5m2", 8),
        ("e3m2", 6),
        ("e2m3", 6),
        ("e2m1", 4),
        ("ue8m0", 8),
        ("ue4m3", 8),
        ("e2m1x8", 32),
    ):
        table[name] = Type(name, "packed", bits)
    for bits in (2, 4):
        table[f"u{bits}"] = Type(f"u{bits}", "unsigned", bits)
        table[f"s{bits}"] = Type(f"s{bits}", "signed", bits)
    table["b1"] = Type("b1", "bits", 1)
    return table


TYPES = _types()


#: What a register declared .f16x2, the one packed type that registers have, may be besides an integer.
_LANES = frozenset({"f16x2", "u16x2", "s16x2", "u8x4", "s8x4"})


def holds(register: Type, wanted: Type) -> bool:
    """Whether a register declared as `register` may be an operand of instruction type `wanted`.

    Same width, and not an integer against a float; .b matches everything of its width (9.4.2), and alone holds the
    packed formats, but for some in .f16x2 registers, which pass for integers too (measured, ptxas 13.5).
    """
    if register.bits != wanted.bits or (register.kind == "predicate") != (wanted.kind == "predicate"):
        return False
    if register.kind == "bits" or wanted.kind == "bits":
        return True
    if register.kind == "packed":
        return wanted.kind in ("unsigned", "signed") or wanted.name in _LANES
    if register.kind == "opaque" or wanted.kind in ("packed", "opaque"):
        return False
    return (register.kind == "float") == (wanted.kind == "float")


def holds_wider(register: Type, wanted: Type) -> bool:
    """The relaxed rule of ld, st and cvt: the register may be wider than the type (9.4.1).

    A register of a float type is one of its width, or holds untyped data; a float sits in a wider .b register
    (measured, ptxas 13.5).
    """
    if holds(register, wanted):
        return True
    if register.bits <= wanted.bits or "predicate" in (register.kind, wanted.kind):
        return False
    if register.kind == "bits" or wanted.kind == "bits":
        return True
    return register.kind != "float" and wanted.kind in ("unsigned", "signed")
