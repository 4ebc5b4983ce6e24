"""The 32-bit instruction descriptors of tcgen05.mma, and the zero-column mask of .ws.

`InstructionDescriptor` (PTX ISA 9.7.16.4.2, table 42) is for the kinds f16, tf32, f8f6f4, i8 and ti16;
`BlockScaledInstructionDescriptor` (tables 43 and 44) for mxf8f6f4, mxf4 and mxf4nvf4; `ZeroColumnMask` (table 45) for
mma.ws. Legal types and shapes are in `ptxgen.descriptors.mma_kinds` (PTX ISA table 39). CUTLASS
include/cute/arch/mma_sm100_desc.hpp (InstrDescriptor, InstrDescriptorBlockScaled, MaskAndShiftB) names the same bits.
What sm_107 adds is from PTX ISA 9.4, 9.7.18.4.2, tables 51 to 53; no device has confirmed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.errors import DescriptorError, as_int, choices, refuse
from ptxgen.descriptors.evidence import documented, inferred
from ptxgen.descriptors.fields import context, field
from ptxgen.descriptors.mma_kinds import (
    BYTE_TYPES,
    KINDS,
    M_BY_GROUP,
    MAJORS,
    N_BY_GROUP,
    NO_SELECTOR,
    SCALED_KINDS,
    SHIFTS,
    SUB_BYTE_TYPES,
    WIDE_K_INPUTS,
    WS_M,
    WS_N,
    a_major_rule,
    b_major_rule,
    dense_k_rule,
    has_wide_k,
    id_rule,
    legal_ids,
    legal_m,
    legal_n,
    legal_vectors,
    m_rule,
    n_rule,
    scale_rule,
    selector_rule,
    shift_rule,
    sizes_in_words,
)
from ptxgen.descriptors.reading import Reading

_TABLE_42 = documented("PTX ISA 9.7.16.4.2, table 42")
_TABLE_43 = documented("PTX ISA 9.7.16.4.2, tables 43 and 44")
_TABLE_45 = documented("PTX ISA 9.7.16.4.3, table 45")
_TABLE_51 = documented("PTX ISA 9.4, 9.7.18.4.2, table 51 (sm_107)")
_TABLE_53 = documented("PTX ISA 9.4, 9.7.18.4.2, tables 52 and 53 (sm_107)")
_SPANS = inferred(
    "the worked examples of PTX ISA 9.7.16.4.3 and CUTLASS; the prose of table 45 has the two spans swapped"
)

_INPUTS = {name: kind.inputs for name, kind in KINDS.items()}
_ACCUMULATORS = {name: kind.accumulators for name, kind in KINDS.items()}


class InstructionDescriptor(BitStruct, bits=32):
    """The instruction descriptor of tcgen05.mma without block scales; M and N in elements, of the pair with group 2.

        >>> from ptxgen.descriptors import InstructionDescriptor
        >>> made = InstructionDescriptor.decode(0x08200490, kind="f16")
        >>> made.m, made.n, made.d_type
        (128, 128, 'f32')

    `kind`, `cta_group` and `ws` are not encoded: they decide what is legal. Raises DescriptorError for types
    and shapes that the instruction does not have, with the nearest legal shape.
    """

    kind: str = context(default="f16", values=KINDS)
    cta_group: int = context(default=1, values=(1, 2))
    ws: bool = context(default=False, values=(False, True))

    _overflowing = ("n", "m")

    sparsity_selector: int = field(0, 1, default=0, rule=selector_rule, doc="sparse only", evidence=_TABLE_42)
    sparse: bool = field(2, 2, default=False, flag=True, evidence=_TABLE_42)
    saturate: bool = field(3, 3, default=False, flag=True, doc="kind::i8 only", evidence=_TABLE_42)
    d_type: str = field(4, 5, values=_ACCUMULATORS, by="kind", evidence=_TABLE_42)
    a_type: str = field(7, 9, values=_INPUTS, by="kind", evidence=_TABLE_42)
    b_type: str = field(10, 12, values=_INPUTS, by="kind", evidence=_TABLE_42)
    negate_a: bool = field(13, 13, default=False, flag=True, evidence=_TABLE_42)
    negate_b: bool = field(14, 14, default=False, flag=True, evidence=_TABLE_42)
    a_major: str = field(15, 15, default="k", values=MAJORS, rule=a_major_rule, evidence=_TABLE_42)
    b_major: str = field(16, 16, default="k", values=MAJORS, rule=b_major_rule, evidence=_TABLE_42)
    n: int = field(17, 22, scale=8, rule=n_rule, evidence=_TABLE_42)
    m: int = field(24, 28, scale=16, rule=m_rule, evidence=_TABLE_42)
    wide_k: bool = field(
        29,
        29,
        default=False,
        flag=True,
        doc="kind::f8f6f4 only: K 64 of a dense instruction, 128 of a sparse one",
        evidence=_TABLE_51,
    )
    max_shift: int = field(
        30,
        31,
        default=0,
        values=SHIFTS,
        rule=shift_rule,
        doc="columns, .ws only",
        evidence=_TABLE_42,
    )

    @property
    def k(self) -> int:
        """Elements of K in one instruction (PTX ISA table 39)."""
        return KINDS[self.kind].k * (2 if self.wide_k else 1) * (2 if self.sparse else 1)

    def _check(self) -> None:
        if self.ws and self.cta_group == 2:
            raise DescriptorError("cta_group must be 1 for .ws, not 2 (PTX ISA table 39)")
        if self.max_shift and not self.ws:
            raise _refused("max_shift", shift_rule(vars(self)), self.max_shift, "table 42")
        kind = KINDS[self.kind]
        if self.kind == "i8":
            _require_off(self, ("negate_a", "negate_b"), "for kind::i8")
        else:
            _require_off(self, ("saturate",), f"for kind::{self.kind}; it is for kind::i8")
        if self.kind in NO_SELECTOR and self.sparsity_selector:
            raise _refused("sparsity_selector", selector_rule(vars(self)), self.sparsity_selector, "9.7.16.10.8.4.5")
        self._check_wide_k()
        legal_inputs = kind.inputs_of.get(self.d_type)
        for name in ("a_type", "b_type"):
            value = getattr(self, name)
            if legal_inputs is not None and value not in legal_inputs:
                raise DescriptorError(
                    f"{name} must be {choices(sorted(legal_inputs))} with d_type {self.d_type}, "
                    f"not {value} (PTX ISA table 39)"
                )
        _require_major(self)
        where = f"kind::{self.kind}, cta_group::{self.cta_group}"
        if self.ws:
            where += ", .ws" + (", sparse" if self.sparse else "")
        _require_shape("m", self.m, WS_M if self.ws else M_BY_GROUP[self.cta_group], where)
        _require_shape("n", self.n, legal_n(vars(self)), where)
        _require_n_of_transposed(self)

    def _check_wide_k(self) -> None:
        if not self.wide_k:
            return
        if self.kind != "f8f6f4":
            over = (
                "" if self.m else f"; m would be 512 with bit 29, but must be {m_rule({**vars(self), 'wide_k': False})}"
            )
            raise DescriptorError(f"wide_k must be False for kind::{self.kind}, whose K is {KINDS[self.kind].k}{over}")
        for name in ("a_type", "b_type"):
            if not self.sparse and getattr(self, name) not in WIDE_K_INPUTS:
                raise DescriptorError(
                    f"{name} must be {choices(sorted(WIDE_K_INPUTS))} at K 64, not {getattr(self, name)} "
                    "(PTX ISA 9.4, table 48)"
                )
        if not (self.sparse or self.ws) and self.m != 128 * self.cta_group:
            raise DescriptorError(f"m must be {128 * self.cta_group} at K 64, not {self.m} (PTX ISA 9.4, table 48)")

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that sources disagree about or that have no effect."""
        remarks = []
        if self.wide_k or self.kind == "ti16":
            remarks.append(f"{'K 64' if self.wide_k else 'kind::ti16'} exists on sm_107 only")
        if self.kind == "ti16" and "mn" in (self.a_major, self.b_major):
            remarks.append("PTX ISA 9.4 contradicts itself: table 51 has no MN-major ti16, table 62 has it")
        if not self.ws and self.cta_group == 1 and self.m == 128 and self.n % 16 and self.kind != "ti16":
            remarks.append(
                f"N {self.n} at M 128 is unverified: PTX ISA table 39 has steps of 8, older editions "
                "and some CUTLASS wrappers steps of 16"
            )
        if self.a_type != self.b_type and self.kind == "f16":
            remarks.append("mixed A and B types are an illegal instruction on a B200 (fact f16-mixed)")
        if self.ws and self.m == 32 and self.max_shift:
            remarks.append(f"max_shift {self.max_shift} with M 32 traps on a B200 (fact max-shift-m32)")
        if self.sparsity_selector and not self.sparse:
            remarks.append("sparsity_selector has no effect without sparse")
        if self.kind == "tf32" and "mn" in (self.a_major, self.b_major):
            remarks.append("MN-major tf32 in shared memory needs the swizzle 128B with 32B atoms (PTX ISA table 54)")
        if self.kind == "f8f6f4" and self.d_type == "f16":
            remarks.append("d_type f16 is in PTX ISA table 39 and CUTLASS, but not in every edition of table 42")
        return tuple(remarks)

    def notes(self) -> tuple[str, ...]:
        """Return the multiplication in words."""
        return (_product(self, f"{self.a_type} × {self.b_type} → {self.d_type}"),)

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        names = []
        if values["kind"] == "ti16":
            names.append("ti16-encoding")
        if values["wide_k"]:
            names.append("wide-k")
        if values["kind"] == "f8f6f4" and values["d_type"] == "f16":
            names.append("f8f6f4-f16-accumulator")
        if not values["ws"] and values["cta_group"] == 1 and values["m"] == 128 and values["n"] % 16:
            names.append("n-steps-m128")
        return tuple(names)

    def encode(self) -> int:
        """Return the 32-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, kind: str = "f16", cta_group: int = 1, ws: bool = False) -> Self:
        """Return the value of a 32-bit descriptor; DescriptorError lists what is illegal for its kind."""
        return cls._decode(encoded, kind=kind, cta_group=cta_group, ws=ws)


class BlockScaledInstructionDescriptor(BitStruct, bits=32):
    """The instruction descriptor of tcgen05.mma.block_scale; M and N in elements, pair totals with cta_group 2.

    `kind`, `cta_group` and `scale_vec` ("1X", "2X", "4X", or "block16", "block32") are not encoded: they decide what is
    legal. `sfa_id` and
    `sfb_id` choose the bytes of the scale factors in a column of tensor memory. Raises DescriptorError.
    """

    kind: str = context(default="mxf8f6f4", values=SCALED_KINDS)
    cta_group: int = context(default=1, values=(1, 2))
    scale_vec: str = context(
        default="", values=("", "1X", "2X", "4X", "block16", "block32"), doc="empty: any that the kind has"
    )

    sparse: bool = field(2, 2, default=False, flag=True, evidence=_TABLE_43)
    wide_k: bool = field(
        3, 3, default=False, flag=True, doc="mxf4 and mxf4nvf4: K 128 of a dense instruction", evidence=_TABLE_53
    )
    sfb_id: int = field(4, 5, default=0, rule=id_rule, evidence=_TABLE_43)
    a_type: str = field(7, 9, values={n: k.inputs for n, k in SCALED_KINDS.items()}, by="kind", evidence=_TABLE_43)
    b_type: str = field(10, 12, values={n: k.inputs for n, k in SCALED_KINDS.items()}, by="kind", evidence=_TABLE_43)
    negate_a: bool = field(13, 13, default=False, flag=True, evidence=_TABLE_43)
    negate_b: bool = field(14, 14, default=False, flag=True, evidence=_TABLE_43)
    a_major: str = field(
        15,
        15,
        default="k",
        values={n: k.majors for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=a_major_rule,
        evidence=_TABLE_43,
    )
    b_major: str = field(
        16,
        16,
        default="k",
        values={n: k.majors for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=b_major_rule,
        evidence=_TABLE_43,
    )
    n: int = field(17, 22, scale=8, rule=n_rule, evidence=_TABLE_43)
    scale_type: str = field(
        23,
        23,
        values={n: k.scales for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=scale_rule,
        evidence=_TABLE_43,
    )
    sfa_lanes: int = field(
        26, 26, default=32, values={32: 0, 128: 1}, doc="lanes of SFA; 128: sm_107", evidence=_TABLE_53
    )
    m: int = field(27, 28, scale=128, rule=m_rule, evidence=_TABLE_43)
    sfa_id: int = field(29, 30, default=0, rule=id_rule, evidence=_TABLE_43)
    dense_k: int = field(
        31,
        31,
        values={n: k.k for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=dense_k_rule,
        doc="K of a dense instruction without wide_k; 96: sm_103a and sm_107a, 64 of mxf8f6f4: sm_107",
        evidence=_TABLE_43,
    )

    @property
    def k(self) -> int:
        """Elements of K in one instruction (PTX ISA table 39)."""
        return self.k_of_dense * (2 if self.sparse else 1)

    @property
    def k_of_dense(self) -> int:
        """Elements of K of a dense instruction with these bits."""
        return self.dense_k * (2 if self.wide_k else 1)

    @property
    def is_wide(self) -> bool:
        """True at the K that only sm_107 has: 64 of mxf8f6f4, 128 of mxf4 and mxf4nvf4."""
        return has_wide_k(vars(self))

    def _check(self) -> None:
        if self.wide_k and (self.kind == "mxf8f6f4" or self.dense_k != 64 or self.sparse):
            raise DescriptorError(
                "wide_k must be False but for a dense kind::mxf4 or mxf4nvf4 with dense_k 64 (PTX ISA 9.4, table 53)"
            )
        _, vectors = legal_vectors(vars(self))
        if all(self.scale_type not in types for types, _ in vectors.values()):
            raise _refused("scale_type", scale_rule(vars(self)), self.scale_type, "table 57")
        if self.dense_k == 96 and self.sparse:
            raise _refused("dense_k", dense_k_rule(vars(self)), self.dense_k, "table 39")
        for name in ("sfa_id", "sfb_id"):
            if getattr(self, name) not in legal_ids(vars(self)):
                raise _refused(name, id_rule(vars(self)), getattr(self, name), "tables 43 and 44")
        _require_major(self)
        where = f"kind::{self.kind}, cta_group::{self.cta_group}" + (", sparse" if self.sparse else "")
        # Sizes that are too large set the bits of the fields above theirs, and leave 0.
        _require_shape("m", self.m, legal_m(vars(self)), where, "" if self.m else "; M 512 would set bit 29, sfa_id")
        _require_shape(
            "n", self.n, N_BY_GROUP[self.cta_group], where, "" if self.n else "; N 512 would set bit 23, scale_type"
        )
        _require_n_of_transposed(self)

    @classmethod
    def _reserved_hint(cls, bits: int) -> str:
        if not bits >> 24 & 1:
            return ""
        return "; N of 1024 and more reaches it, and must be a multiple of 8 from 8 to 256"

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that sources disagree about or that exist on few targets."""
        remarks = []
        if self.is_wide or self.sfa_lanes == 128:
            remarks.append(f"{f'K {self.k}' if self.is_wide else 'sfa_lanes 128'} exists on sm_107 only")
        if self.dense_k == 96:
            remarks.append("K 96 exists on sm_103a and sm_107a only")
            if self.cta_group == 1 or self.m == 128:
                remarks.append("K 96 at M 128 is in CUTLASS, not in PTX ISA table 39")
        if self.cta_group == 1 and self.n % 16:
            remarks.append(f"N {self.n} at M 128 is unverified: CUTLASS has steps of 16 in some wrappers")
        return tuple(remarks)

    def notes(self) -> tuple[str, ...]:
        """Return the multiplication in words."""
        return (_product(self, f"{self.a_type} × {self.b_type}, scaled by {self.scale_type} → f32"),)

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        names = []
        if values["wide_k"] or (values["kind"] == "mxf8f6f4" and values["dense_k"] == 64):
            names += ["wide-k", "wide-k-scales"]
        if values["dense_k"] == 96 and (values["cta_group"] == 1 or values["m"] == 128):
            names.append("k96-m128")
        if values["cta_group"] == 1 and values["n"] % 16:
            names.append("n-steps-m128")
        if values["cta_group"] == 2:
            names.append("sfb-both-ctas")
            if values["m"] == 128:
                names.append("sfb-split-m128")
        return tuple(names)

    def encode(self) -> int:
        """Return the 32-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, kind: str = "mxf8f6f4", cta_group: int = 1, scale_vec: str = "") -> Self:
        """Return the value of a 32-bit descriptor; DescriptorError lists what is illegal for its kind."""
        return cls._decode(encoded, kind=kind, cta_group=cta_group, scale_vec=scale_vec)


def _column_rule(values: Mapping[str, Any]) -> str:
    """What the shift of a mask must be with this M."""
    return f"0 to {16 if values['m'] == 32 else 32} for M {values['m']}"


class ZeroColumnMask(BitStruct, bits=64):
    """The zero-column mask descriptor of tcgen05.mma.ws: which columns of B count as zero. Spans and shift in columns.

    `use_span` columns of B are used, then `skip_span` are zero, and so on; sub-mask i has used up `start_count[i]`
    columns of its first span already, and begins with zeros where `first_zero[i]` is 1. Raises DescriptorError.
    """

    m: int = context(default=128, values=(32, 64, 128))

    start_count_0: int = field(0, 7, default=0, unit="columns", evidence=_TABLE_45)
    start_count_1: int = field(8, 15, default=0, unit="columns", doc="M 64 and 32", evidence=_TABLE_45)
    start_count_2: int = field(16, 23, default=0, unit="columns", doc="M 32", evidence=_TABLE_45)
    start_count_3: int = field(24, 31, default=0, unit="columns", doc="M 32", evidence=_TABLE_45)
    first_zero_0: bool = field(32, 32, default=False, flag=True, doc="first span", evidence=_TABLE_45)
    first_zero_1: bool = field(33, 33, default=False, flag=True, doc="first span, M 64 and 32", evidence=_TABLE_45)
    first_zero_2: bool = field(34, 34, default=False, flag=True, doc="first span, M 32", evidence=_TABLE_45)
    first_zero_3: bool = field(35, 35, default=False, flag=True, doc="first span, M 32", evidence=_TABLE_45)
    enabled: bool = field(39, 39, default=True, flag=True, doc="off: no column is zero", evidence=_TABLE_45)
    skip_span: int = field(40, 47, bias=1, unit="zero columns", evidence=_SPANS)
    use_span: int = field(48, 55, bias=1, unit="columns of B", evidence=_SPANS)
    column_shift: int = field(56, 61, default=0, maximum=32, unit="columns", rule=_column_rule, evidence=_TABLE_45)

    def _check(self) -> None:
        if self.m == 32 and self.column_shift > 16:
            raise _refused("column_shift", _column_rule(vars(self)), self.column_shift, "table 45")

    def mask(self, n: int) -> int:
        """Return the mask of N bits: a 1 in bit i makes column i of B zero. `n` is the N of the instruction."""
        _require_shape("n", n, WS_N[False], "the zero-column mask")
        if not self.enabled:
            return 0
        parts = 128 // self.m
        size = n // parts
        mask = 0
        for part in range(parts):
            zero = getattr(self, f"first_zero_{part}")
            used = getattr(self, f"start_count_{part}")
            column = 0
            while column < size:
                span = self.skip_span if zero else self.use_span
                length = min(span - min(used, span - 1), size - column)
                if zero:
                    mask |= ((1 << length) - 1) << (part * size + column)
                column += length
                zero, used = not zero, 0
        return mask

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values without effect or that no source has verified."""
        remarks: list[str] = []
        parts = 128 // self.m
        for part in range(4):
            count, zero = getattr(self, f"start_count_{part}"), getattr(self, f"first_zero_{part}")
            if part >= parts and (count or zero):
                remarks.append(f"sub-mask {part} does not exist for M {self.m}")
            elif count >= (self.skip_span if zero else self.use_span):
                remarks.append(f"start_count_{part} is not below its first span; one column of it is left (unverified)")
        return tuple(remarks)

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("zero-mask-spans",)

    def encode(self) -> int:
        """Return the 64-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, m: int = 128) -> Self:
        """Return the value of a 64-bit mask descriptor; DescriptorError lists reserved bits."""
        return cls._decode(encoded, m=m)


def _refused(name: str, rule: str, value: object, source: str) -> DescriptorError:
    return DescriptorError(f"{name} must be {rule}, not {value} (PTX ISA {source})")


def _product(value: InstructionDescriptor | BlockScaledInstructionDescriptor, types: str) -> str:
    pair = ", over the pair of CTAs" if value.cta_group == 2 else ""
    stored = f" (A is stored as {value.m}×{value.k // 2} with metadata)" if value.sparse else ""
    return f"D[{value.m}×{value.n}] += A[{value.m}×{value.k}] · B[{value.k}×{value.n}]{stored}; {types}{pair}"


def _require_off(value: BitStruct, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(value, name):
            raise DescriptorError(f"{name} must be False {why} (PTX ISA table 42)")


def _require_major(value: InstructionDescriptor | BlockScaledInstructionDescriptor) -> None:
    for side in ("a", "b"):
        type_of = getattr(value, f"{side}_type")
        if type_of in SUB_BYTE_TYPES and getattr(value, f"{side}_major") != "k":
            raise DescriptorError(
                f"{side}_major must be k for {type_of}, not mn: types of 4 and 6 bits are K-major (PTX ISA table 54)"
            )


def _require_n_of_transposed(value: InstructionDescriptor | BlockScaledInstructionDescriptor) -> None:
    if value.b_major == "mn" and value.b_type in BYTE_TYPES and value.n % (16 * value.cta_group):
        raise DescriptorError(
            f"n must be a multiple of {16 * value.cta_group} for MN-major B of 8 bits with "
            f"cta_group::{value.cta_group}, not {value.n} (PTX ISA table 52)"
        )


def _require_shape(name: str, value: int, legal: Iterable[int], where: str, hint: str = "") -> None:
    legal = tuple(legal)
    if as_int(value) is None or abs(value) >> 64:
        refuse(name, f"one of the sizes for {where}", value)
    if value in legal:
        return
    nearest = min(legal, key=lambda size: abs(size - value))
    raise DescriptorError(
        f"{name} must be {sizes_in_words(legal)} for {where}, not {value}; "
        f"the nearest is {nearest} (PTX ISA table 39){hint}"
    )


AnyInstructionDescriptor = InstructionDescriptor | BlockScaledInstructionDescriptor


def meanings(
    encoded: int, *, kind: str = "", cta_group: int | None = None, ws: bool | None = None, scale_vec: str = ""
) -> list[AnyInstructionDescriptor]:
    """All legal readings of a 32-bit pattern: the bits do not say their kind, so several may be.

    The keywords narrow them. Raises DescriptorError for a number of another width and for keywords that nothing has.
    """
    found: list[AnyInstructionDescriptor] = []
    for made, facts in _contexts(kind, cta_group, ws, scale_vec):
        if made.problem_count(encoded, **facts) == 0:
            found.append(made.decode(encoded, **facts))
    return found


def read_instruction(
    encoded: int, *, kind: str = "", cta_group: int | None = None, ws: bool | None = None, scale_vec: str = ""
) -> Reading:
    """The reading of a 32-bit pattern under the kind with the fewest problems; of those alike, the first."""
    fewest, chosen = 1 << 10, None
    for made, facts in _contexts(kind, cta_group, ws, scale_vec):
        count = made.problem_count(encoded, **facts)
        if count < fewest:
            fewest, chosen = count, (made, facts)
        if not count:
            break
    assert chosen is not None
    return chosen[0].read(encoded, **chosen[1])


def _contexts(
    kind: str, cta_group: int | None, ws: bool | None, scale_vec: str
) -> list[tuple[type[InstructionDescriptor] | type[BlockScaledInstructionDescriptor], dict[str, Any]]]:
    """The formats and facts under which a pattern may be read."""
    if kind and kind not in KINDS and kind not in SCALED_KINDS:
        raise DescriptorError(f"kind must be {choices([*KINDS, *SCALED_KINDS])}, not {kind!r}")
    groups = (1, 2) if cta_group is None else (cta_group,)
    plain = [
        (InstructionDescriptor, {"kind": name, "cta_group": group, "ws": stationary})
        for name in KINDS
        for stationary in ((False, True) if ws is None else (ws,))
        for group in groups
        if not scale_vec and kind in ("", name)
    ]
    scaled = [
        (BlockScaledInstructionDescriptor, {"kind": name, "cta_group": group, "scale_vec": scale_vec})
        for name in SCALED_KINDS
        for group in groups
        if not ws and kind in ("", name)
    ]
    if not plain and not scaled:
        given = f"kind {kind or 'any'}, ws {ws}, scale_vec {scale_vec or 'none'}"
        raise DescriptorError(f"kind must be {choices(KINDS)} with .ws, and another with scale vectors, not {given}")
    return [*plain, *scaled]
