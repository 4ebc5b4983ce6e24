"""The 32-bit instruction descriptor of tcgen05.mma without block scales: PTX ISA 9.7.16.4.2, table 42.

Legal types and shapes come from the table `KINDS` (PTX ISA table 39), one entry a kind: a new kind that
shares this format is one more entry. The block-scaled formats (tables 43 and 44) are other classes over the
same base. CUTLASS include/cute/arch/mma_sm100_desc.hpp (InstrDescriptor) names the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from ptxgen.descriptors.bits import BitStruct, DescriptorError, choices, context, field
from ptxgen.descriptors.evidence import documented

_TABLE_42 = documented("PTX ISA 9.7.16.4.2, table 42")


@dataclass(frozen=True, slots=True)
class MmaKind:
    """What one `.kind` allows: type codes, and N by cta_group (PTX ISA tables 39 and 42)."""

    inputs: Mapping[str, int]
    accumulators: Mapping[str, int]
    inputs_of: Mapping[str, frozenset[str]]
    """Accumulator types that only some input types have."""
    n: Mapping[int, tuple[int, ...]]


KINDS: dict[str, MmaKind] = {
    "f16": MmaKind(
        inputs={"f16": 0, "bf16": 1},
        accumulators={"f16": 0, "f32": 1},
        inputs_of={"f16": frozenset({"f16"})},
        n={1: tuple(range(8, 257, 8)), 2: tuple(range(16, 257, 16))},
    ),
}
"""The kinds of this format."""

M_BY_GROUP: dict[int, tuple[int, ...]] = {1: (64, 128), 2: (128, 256)}
"""Legal M by cta_group; totals of the pair for 2."""

WS_M = (32, 64, 128)
WS_N: dict[bool, tuple[int, ...]] = {False: (64, 128, 256), True: (64, 128)}
"""Legal shapes of .ws; N by sparse."""

_INPUTS = {name: kind.inputs for name, kind in KINDS.items()}
_ACCUMULATORS = {name: kind.accumulators for name, kind in KINDS.items()}
_MAJOR = {"k": 0, "mn": 1}


class InstructionDescriptor(BitStruct, bits=32):
    """The instruction descriptor of tcgen05.mma; M and N in elements, pair totals with cta_group 2.

    `kind`, `cta_group` and `ws` are not encoded: they decide what is legal. Raises DescriptorError for types
    and shapes that the instruction does not have, with the nearest legal shape.
    """

    kind: str = context(default="f16", values=KINDS)
    cta_group: int = context(default=1, values=(1, 2))
    ws: bool = context(default=False, values=(False, True))

    sparsity_selector: int = field(0, 1, default=0, doc="sparse only", evidence=_TABLE_42)
    sparse: bool = field(2, 2, default=False, flag=True, evidence=_TABLE_42)
    d_type: str = field(4, 5, values=_ACCUMULATORS, by="kind", evidence=_TABLE_42)
    a_type: str = field(7, 9, values=_INPUTS, by="kind", evidence=_TABLE_42)
    b_type: str = field(10, 12, values=_INPUTS, by="kind", evidence=_TABLE_42)
    negate_a: bool = field(13, 13, default=False, flag=True, evidence=_TABLE_42)
    negate_b: bool = field(14, 14, default=False, flag=True, evidence=_TABLE_42)
    a_major: str = field(15, 15, default="k", values=_MAJOR, evidence=_TABLE_42)
    b_major: str = field(16, 16, default="k", values=_MAJOR, evidence=_TABLE_42)
    n: int = field(17, 22, scale=8, evidence=_TABLE_42)
    m: int = field(24, 28, scale=16, evidence=_TABLE_42)
    max_shift: int = field(
        30,
        31,
        default=0,
        values={0: 0, 8: 1, 16: 2, 32: 3},
        doc="columns, .ws only",
        evidence=_TABLE_42,
    )

    def _check(self) -> None:
        if self.ws and self.cta_group == 2:
            raise DescriptorError("cta_group must be 1 for .ws, not 2 (PTX ISA table 39)")
        if self.max_shift and not self.ws:
            raise DescriptorError(f"max_shift must be 0 without .ws, not {self.max_shift} (PTX ISA table 42)")
        kind = KINDS[self.kind]
        legal_inputs = kind.inputs_of.get(self.d_type)
        for name in ("a_type", "b_type"):
            value = getattr(self, name)
            if legal_inputs is not None and value not in legal_inputs:
                raise DescriptorError(
                    f"{name} must be {choices(sorted(legal_inputs))} with d_type {self.d_type}, "
                    f"not {value} (PTX ISA table 39)"
                )
        where = f"kind::{self.kind}, cta_group::{self.cta_group}"
        if self.ws:
            where += ", .ws" + (", sparse" if self.sparse else "")
        _require_shape("m", self.m, WS_M if self.ws else M_BY_GROUP[self.cta_group], where)
        _require_shape("n", self.n, WS_N[self.sparse] if self.ws else kind.n[self.cta_group], where)

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that sources disagree about or that have no effect."""
        remarks = []
        if not self.ws and self.cta_group == 1 and self.m == 128 and self.n % 16:
            remarks.append(
                f"N {self.n} at M 128 is unverified: PTX ISA table 39 has steps of 8, older editions "
                "and some CUTLASS wrappers steps of 16"
            )
        if self.a_type != self.b_type:
            remarks.append("mixed A and B types are unverified: the fields allow them, no known kernel uses them")
        if self.sparsity_selector and not self.sparse:
            remarks.append("sparsity_selector has no effect without sparse")
        return tuple(remarks)

    def encode(self) -> int:
        """Return the 32-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, kind: str = "f16", cta_group: int = 1, ws: bool = False) -> Self:
        """Return the value of a 32-bit descriptor; DescriptorError lists what is illegal for its kind."""
        return cls._decode(encoded, kind=kind, cta_group=cta_group, ws=ws)


def _require_shape(name: str, value: int, legal: Iterable[int], where: str) -> None:
    legal = tuple(legal)
    if value in legal:
        return
    nearest = min(legal, key=lambda size: abs(size - value))
    if len(legal) > 4:
        rule = f"a multiple of {legal[1] - legal[0]} from {legal[0]} to {legal[-1]}"
    else:
        rule = choices(legal)
    raise DescriptorError(
        f"{name} must be {rule} for {where}, not {value}; the nearest is {nearest} (PTX ISA table 39)"
    )
