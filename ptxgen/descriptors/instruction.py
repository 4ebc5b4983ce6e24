"""The 32-bit instruction descriptors of tcgen05.mma, and the zero-column mask of .ws.

`InstructionDescriptor` (PTX ISA 9.7.16.4.2, table 42) is for the kinds f16, tf32, f8f6f4, i8 and ti16;
`BlockScaledInstructionDescriptor` (tables 43 and 44) for mxf8f6f4, mxf4 and mxf4nvf4; `ZeroColumnMask` (table 45) for
mma.ws. Legal types and shapes come from the tables `KINDS` and `SCALED_KINDS` (PTX ISA table 39). CUTLASS
include/cute/arch/mma_sm100_desc.hpp (InstrDescriptor, InstrDescriptorBlockScaled, MaskAndShiftB) names the same bits.
What sm_107 adds is from PTX ISA 9.4, 9.7.18.4.2, tables 51 to 53; no device has confirmed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.errors import DescriptorError, as_int, choices, refuse
from ptxgen.descriptors.evidence import documented, inferred
from ptxgen.descriptors.fields import context, field
from ptxgen.descriptors.reading import Reading

_TABLE_42 = documented("PTX ISA 9.7.16.4.2, table 42")
_TABLE_43 = documented("PTX ISA 9.7.16.4.2, tables 43 and 44")
_TABLE_45 = documented("PTX ISA 9.7.16.4.3, table 45")
_TABLE_51 = documented("PTX ISA 9.4, 9.7.18.4.2, table 51 (sm_107)")
_TABLE_53 = documented("PTX ISA 9.4, 9.7.18.4.2, tables 52 and 53 (sm_107)")
_SPANS = inferred(
    "the worked examples of PTX ISA 9.7.16.4.3 and CUTLASS; the prose of table 45 has the two spans swapped"
)

_NARROW = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
#: Types of 4 and 6 bits, which are never MN-major (PTX ISA table 54).
_SUB_BYTE = frozenset({"e2m3", "e3m2", "e2m1"})
_BYTES = frozenset({"e4m3", "e5m2", "u8", "s8"})


@dataclass(frozen=True, slots=True)
class MmaKind:
    """What one `.kind` allows: type codes, N by cta_group, and K of a dense instruction (PTX ISA tables 39 and 42)."""

    inputs: Mapping[str, int]
    accumulators: Mapping[str, int]
    n: Mapping[int, tuple[int, ...]]
    k: int
    inputs_of: Mapping[str, frozenset[str]]
    """Accumulator types that only some input types have."""


_N = {1: tuple(range(8, 257, 8)), 2: tuple(range(16, 257, 16))}

KINDS: dict[str, MmaKind] = {
    "f16": MmaKind({"f16": 0, "bf16": 1}, {"f16": 0, "f32": 1}, _N, 16, {"f16": frozenset({"f16"})}),
    "tf32": MmaKind({"tf32": 2}, {"f32": 1}, _N, 8, {}),
    "f8f6f4": MmaKind(_NARROW, {"f16": 0, "f32": 1}, _N, 32, {}),
    "i8": MmaKind(
        {"u8": 0, "s8": 1}, {"s32": 2}, {1: (8, 16, 24, *range(32, 257, 16)), 2: tuple(range(32, 257, 32))}, 32, {}
    ),
    "ti16": MmaKind({"s1z4m11": 3}, {"s32": 2}, {1: _N[1], 2: tuple(range(32, 257, 32))}, 16, {}),
}
"""The kinds of table 42, and of PTX ISA 9.4, table 51."""

_WIDE_K_INPUTS = frozenset({"e4m3", "e5m2"})
"""What a dense A and B may be at K 64 (PTX ISA 9.4, table 48)."""

M_BY_GROUP: dict[int, tuple[int, ...]] = {1: (64, 128), 2: (128, 256)}
"""Legal M by cta_group; totals of the pair for 2."""

_SHIFTS = {0: 0, 8: 1, 16: 2, 32: 3}
#: Kinds whose metadata has no selector.
_NO_SELECTOR = ("i8", "f8f6f4")

WS_M = (32, 64, 128)
WS_N: dict[bool, tuple[int, ...]] = {False: (64, 128, 256), True: (64, 128)}
"""Legal shapes of .ws; N by sparse."""


@dataclass(frozen=True, slots=True)
class ScaledKind:
    """What one block-scaled `.kind` allows.

    `vectors` has for each scale vector the types of scales and the legal scale-factor ids (PTX ISA tables 43, 44, 57).
    `k` maps the dense K of an instruction to its code.
    """

    inputs: Mapping[str, int]
    majors: Mapping[str, int]
    scales: Mapping[str, int]
    vectors: Mapping[str, tuple[frozenset[str], tuple[int, ...]]]
    k: Mapping[int, int]


def _legal_n(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of N with this kind, group and M (PTX ISA table 39; 9.4, table 48, for ti16)."""
    if values.get("ws"):
        return WS_N[bool(values.get("sparse"))]
    kind, group = values["kind"], values["cta_group"]
    sizes = (KINDS[kind].n if kind in KINDS else _N)[group]
    if kind == "ti16" and group == 1 and as_int(values.get("m")) == 128:
        return tuple(each for each in sizes if each % 16 == 0)
    return sizes


def _legal_m(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of M with this group, and at twice the K (PTX ISA table 39; 9.4, table 48)."""
    group = values["cta_group"]
    if values["kind"] in SCALED_KINDS:
        return (128,) if group == 1 else (256,) if values.get("sparse") or _is_wide(values) else (128, 256)
    if values.get("ws"):
        return WS_M
    return (128 * group,) if values.get("wide_k") and not values.get("sparse") else M_BY_GROUP[group]


def _is_wide(values: Mapping[str, Any]) -> bool:
    """Whether K is what only sm_107 has: 64 of mxf8f6f4, 128 of mxf4 and mxf4nvf4."""
    return bool(values.get("wide_k")) or (values["kind"] == "mxf8f6f4" and _dense_k(values) == 64)


def _dense_k(values: Mapping[str, Any]) -> int:
    """K of a dense instruction; the least of the kind where none that it has is given."""
    legal = SCALED_KINDS[values["kind"]].k
    given = as_int(values.get("dense_k"))
    return given if given is not None and given in legal else min(legal)


def _n_rule(values: Mapping[str, Any]) -> str:
    """What N must be, in words."""
    group, legal = values["cta_group"], _legal_n(values)
    step = 16 * group
    if values.get("b_major") == "mn" and values.get("b_type") in _BYTES and not values.get("ws"):
        legal = tuple(each for each in legal if each % step == 0)
        return f"{_sizes(legal)} for MN-major B of 8 bits with cta_group::{group} (PTX ISA table 52)"
    where = " with .ws" if values.get("ws") else f" with cta_group::{group}" if group == 2 else ""
    return f"{_sizes(legal)}{where} (PTX ISA table 39)"


def _m_rule(values: Mapping[str, Any]) -> str:
    """What M must be, in words."""
    where = ".ws" if values.get("ws") else f"cta_group::{values['cta_group']}"
    return f"{choices(_legal_m(values))} with {where} (PTX ISA table 39)"


def _selector_rule(values: Mapping[str, Any]) -> str:
    """What the sparsity selector must be with this kind."""
    if values["kind"] in _NO_SELECTOR:
        return f"0 for kind::{values['kind']}"
    return "an integer from 0 to 3"


def _shift_rule(values: Mapping[str, Any]) -> str:
    """What the largest shift must be with or without .ws."""
    return choices(_SHIFTS) if values["ws"] else "0 without .ws"


def _major_rule(values: Mapping[str, Any], side: str) -> str:
    """What the major-ness of A or B must be with its type."""
    kind, name = values["kind"], values[f"{side}_type"]
    if kind in SCALED_KINDS and "mn" not in SCALED_KINDS[kind].majors:
        return f"k for kind {kind}"
    if name in _SUB_BYTE:
        return f"k for {name}: types of 4 and 6 bits are K-major"
    return "k or mn"


def _a_major_rule(values: Mapping[str, Any]) -> str:
    return _major_rule(values, "a")


def _b_major_rule(values: Mapping[str, Any]) -> str:
    return _major_rule(values, "b")


def _vectors(values: Mapping[str, Any]) -> tuple[str, Mapping[str, tuple[frozenset[str], tuple[int, ...]]]]:
    """The scale vector, "" where the kind has several and none is given, and what the kind has of it."""
    kind = SCALED_KINDS[values["kind"]]
    vector = vector_of(values["kind"], values["scale_vec"]) or (
        "" if len(kind.vectors) > 1 else next(iter(kind.vectors))
    )
    if vector and vector not in kind.vectors:
        raise DescriptorError(
            f"scale_vec must be {choices(kind.vectors)} for kind::{values['kind']}, not {vector} (PTX ISA table 57)"
        )
    return vector, {vector: kind.vectors[vector]} if vector else kind.vectors


def _scale_rule(values: Mapping[str, Any]) -> str:
    """What the type of scale factors must be with this kind and vector."""
    vector, vectors = _vectors(values)
    names = sorted(frozenset().union(*(types for types, _ in vectors.values())))
    return f"{choices(names)} for kind::{values['kind']}{_with_vector(vector)}"


def _id_rule(values: Mapping[str, Any]) -> str:
    """What the ids of scale factors must be with this kind, vector and K."""
    vector, _ = _vectors(values)
    dense = _dense_k(values) * (2 if values.get("wide_k") else 1)
    where = f"for kind::{values['kind']}{_with_vector(vector)} at K {dense}"
    return f"{choices(_legal_ids(values))} {where}"


def _legal_ids(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The ids of scale factors with this kind, vector and K."""
    _, vectors = _vectors(values)
    if _is_wide(values):
        listed = [_WIDE_IDS[vector] for vector in vectors]
    elif _dense_k(values) == 96:
        listed = [_K96_IDS[vector] for vector in vectors]
    else:
        listed = [ids for _, ids in vectors.values()]
    return tuple(sorted(set().union(*listed)))


def _with_vector(vector: str) -> str:
    return f" with scale_vec::{vector}" if vector else ""


def _dense_k_rule(values: Mapping[str, Any]) -> str:
    """What the K of a dense instruction must be with this kind."""
    legal = SCALED_KINDS[values["kind"]].k
    if 96 in legal and (values.get("sparse") or values.get("wide_k")):
        return f"64 for {'sparse' if values.get('sparse') else 'wide_k'} kind::{values['kind']}"
    return f"{choices(legal)} for kind::{values['kind']}"


_UE8M0 = frozenset({"ue8m0"})
_MAJOR = {"k": 0, "mn": 1}

SCALED_KINDS: dict[str, ScaledKind] = {
    "mxf8f6f4": ScaledKind(_NARROW, _MAJOR, {"ue8m0": 1}, {"1X": (_UE8M0, (0, 1, 2, 3))}, {32: 0, 64: 1}),
    "mxf4": ScaledKind({"e2m1": 1}, {"k": 0}, {"ue8m0": 1}, {"2X": (_UE8M0, (0, 2))}, {64: 0, 96: 1}),
    "mxf4nvf4": ScaledKind(
        {"e2m1": 1},
        {"k": 0},
        {"ue4m3": 0, "ue8m0": 1},
        {"2X": (_UE8M0, (0, 2)), "4X": (frozenset({"ue4m3", "ue8m0"}), (0,))},
        {64: 0, 96: 1},
    ),
}
"""The kinds of tables 43 and 44. Vectors: 1X and 2X (block32) and 4X (block16) scales a row at K 32 or 64."""

_K96_IDS = {"2X": (0, 1, 2, 3), "4X": (0, 2)}
"""Scale-factor ids at K 96, where block32 has 3 scales a row and block16 has 6."""
_WIDE_IDS = {"1X": (0, 1, 2, 3), "2X": (0,), "4X": (0,)}
"""Scale-factor ids at twice the K (sm_107): rows of mxf4 have 4 and 8 scales (PTX ISA 9.4, table 68)."""


def vector_of(kind: str, scale_vec: str) -> str:
    """The scale vector that a qualifier names: `.block16` and `.block32` are aliases (PTX ISA 9.7.16.10.7.1)."""
    if scale_vec == "block16":
        return "4X"
    if scale_vec == "block32":
        return "1X" if kind == "mxf8f6f4" else "2X"
    return scale_vec


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

    sparsity_selector: int = field(0, 1, default=0, rule=_selector_rule, doc="sparse only", evidence=_TABLE_42)
    sparse: bool = field(2, 2, default=False, flag=True, evidence=_TABLE_42)
    saturate: bool = field(3, 3, default=False, flag=True, doc="kind::i8 only", evidence=_TABLE_42)
    d_type: str = field(4, 5, values=_ACCUMULATORS, by="kind", evidence=_TABLE_42)
    a_type: str = field(7, 9, values=_INPUTS, by="kind", evidence=_TABLE_42)
    b_type: str = field(10, 12, values=_INPUTS, by="kind", evidence=_TABLE_42)
    negate_a: bool = field(13, 13, default=False, flag=True, evidence=_TABLE_42)
    negate_b: bool = field(14, 14, default=False, flag=True, evidence=_TABLE_42)
    a_major: str = field(15, 15, default="k", values=_MAJOR, rule=_a_major_rule, evidence=_TABLE_42)
    b_major: str = field(16, 16, default="k", values=_MAJOR, rule=_b_major_rule, evidence=_TABLE_42)
    n: int = field(17, 22, scale=8, rule=_n_rule, evidence=_TABLE_42)
    m: int = field(24, 28, scale=16, rule=_m_rule, evidence=_TABLE_42)
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
        values=_SHIFTS,
        rule=_shift_rule,
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
            raise _refused("max_shift", _shift_rule(vars(self)), self.max_shift, "table 42")
        kind = KINDS[self.kind]
        if self.kind == "i8":
            _require_off(self, ("negate_a", "negate_b"), "for kind::i8")
        else:
            _require_off(self, ("saturate",), f"for kind::{self.kind}; it is for kind::i8")
        if self.kind in _NO_SELECTOR and self.sparsity_selector:
            raise _refused("sparsity_selector", _selector_rule(vars(self)), self.sparsity_selector, "9.7.16.10.8.4.5")
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
        _require_shape("n", self.n, _legal_n(vars(self)), where)
        _require_n_of_transposed(self)

    def _check_wide_k(self) -> None:
        if not self.wide_k:
            return
        if self.kind != "f8f6f4":
            over = (
                ""
                if self.m
                else f"; m would be 512 with bit 29, but must be {_m_rule({**vars(self), 'wide_k': False})}"
            )
            raise DescriptorError(f"wide_k must be False for kind::{self.kind}, whose K is {KINDS[self.kind].k}{over}")
        for name in ("a_type", "b_type"):
            if not self.sparse and getattr(self, name) not in _WIDE_K_INPUTS:
                raise DescriptorError(
                    f"{name} must be {choices(sorted(_WIDE_K_INPUTS))} at K 64, not {getattr(self, name)} "
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
    sfb_id: int = field(4, 5, default=0, rule=_id_rule, evidence=_TABLE_43)
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
        rule=_a_major_rule,
        evidence=_TABLE_43,
    )
    b_major: str = field(
        16,
        16,
        default="k",
        values={n: k.majors for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=_b_major_rule,
        evidence=_TABLE_43,
    )
    n: int = field(17, 22, scale=8, rule=_n_rule, evidence=_TABLE_43)
    scale_type: str = field(
        23,
        23,
        values={n: k.scales for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=_scale_rule,
        evidence=_TABLE_43,
    )
    sfa_lanes: int = field(
        26, 26, default=32, values={32: 0, 128: 1}, doc="lanes of SFA; 128: sm_107", evidence=_TABLE_53
    )
    m: int = field(27, 28, scale=128, rule=_m_rule, evidence=_TABLE_43)
    sfa_id: int = field(29, 30, default=0, rule=_id_rule, evidence=_TABLE_43)
    dense_k: int = field(
        31,
        31,
        values={n: k.k for n, k in SCALED_KINDS.items()},
        by="kind",
        rule=_dense_k_rule,
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
        return _is_wide(vars(self))

    def _check(self) -> None:
        if self.wide_k and (self.kind == "mxf8f6f4" or self.dense_k != 64 or self.sparse):
            raise DescriptorError(
                "wide_k must be False but for a dense kind::mxf4 or mxf4nvf4 with dense_k 64 (PTX ISA 9.4, table 53)"
            )
        _, vectors = _vectors(vars(self))
        if all(self.scale_type not in types for types, _ in vectors.values()):
            raise _refused("scale_type", _scale_rule(vars(self)), self.scale_type, "table 57")
        if self.dense_k == 96 and self.sparse:
            raise _refused("dense_k", _dense_k_rule(vars(self)), self.dense_k, "table 39")
        for name in ("sfa_id", "sfb_id"):
            if getattr(self, name) not in _legal_ids(vars(self)):
                raise _refused(name, _id_rule(vars(self)), getattr(self, name), "tables 43 and 44")
        _require_major(self)
        where = f"kind::{self.kind}, cta_group::{self.cta_group}" + (", sparse" if self.sparse else "")
        # Sizes that are too large set the bits of the fields above theirs, and leave 0.
        _require_shape("m", self.m, _legal_m(vars(self)), where, "" if self.m else "; M 512 would set bit 29, sfa_id")
        _require_shape("n", self.n, _N[self.cta_group], where, "" if self.n else "; N 512 would set bit 23, scale_type")
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
        if type_of in _SUB_BYTE and getattr(value, f"{side}_major") != "k":
            raise DescriptorError(
                f"{side}_major must be k for {type_of}, not mn: types of 4 and 6 bits are K-major (PTX ISA table 54)"
            )


def _require_n_of_transposed(value: InstructionDescriptor | BlockScaledInstructionDescriptor) -> None:
    if value.b_major == "mn" and value.b_type in _BYTES and value.n % (16 * value.cta_group):
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
        f"{name} must be {_sizes(legal)} for {where}, not {value}; the nearest is {nearest} (PTX ISA table 39){hint}"
    )


def _sizes(legal: tuple[int, ...]) -> str:
    """Sizes in words, one by one where they are few."""
    return _steps(legal) if len(legal) > 4 else choices(legal)


def _steps(legal: tuple[int, ...]) -> str:
    """Sizes in words: `8, 16, 24 or a multiple of 16 from 32 to 256`."""
    step = legal[-1] - legal[-2]
    first = len(legal) - 1
    while first and legal[first] - legal[first - 1] == step and legal[first - 1] % step == 0:
        first -= 1
    # Smaller sizes that are multiples of the step too stand by themselves if others are between them.
    while first < len(legal) and first and any(each % step for each in legal[:first]) and legal[first] <= 16:
        first += 1
    run = f"a multiple of {step} from {legal[first]} to {legal[-1]}"
    return f"{', '.join(map(str, legal[:first]))} or {run}" if first else run


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
