"""The kinds of tcgen05.mma, and which shapes, types, majors and scales their instruction descriptors may have.

`KINDS` and `SCALED_KINDS` are PTX ISA table 39 with the codes of tables 42 to 44; what sm_107 adds is from PTX ISA 9.4,
tables 48, 51 and 68, and no device has confirmed it. Functions take the fields of a descriptor, as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.descriptors.errors import DescriptorError, as_int, choices

_NARROW = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
#: Types of 4 and 6 bits, which are never MN-major (PTX ISA table 54).
SUB_BYTE_TYPES = frozenset({"e2m3", "e3m2", "e2m1"})
BYTE_TYPES = frozenset({"e4m3", "e5m2", "u8", "s8"})


@dataclass(frozen=True, slots=True)
class MmaKind:
    """What one `.kind` allows: type codes, N by cta_group, and K of a dense instruction (PTX ISA tables 39 and 42)."""

    inputs: Mapping[str, int]
    accumulators: Mapping[str, int]
    n: Mapping[int, tuple[int, ...]]
    k: int
    inputs_of: Mapping[str, frozenset[str]]
    """Accumulator types that only some input types have."""


N_BY_GROUP = {1: tuple(range(8, 257, 8)), 2: tuple(range(16, 257, 16))}

KINDS: dict[str, MmaKind] = {
    "f16": MmaKind({"f16": 0, "bf16": 1}, {"f16": 0, "f32": 1}, N_BY_GROUP, 16, {"f16": frozenset({"f16"})}),
    "tf32": MmaKind({"tf32": 2}, {"f32": 1}, N_BY_GROUP, 8, {}),
    "f8f6f4": MmaKind(_NARROW, {"f16": 0, "f32": 1}, N_BY_GROUP, 32, {}),
    "i8": MmaKind(
        {"u8": 0, "s8": 1}, {"s32": 2}, {1: (8, 16, 24, *range(32, 257, 16)), 2: tuple(range(32, 257, 32))}, 32, {}
    ),
    "ti16": MmaKind({"s1z4m11": 3}, {"s32": 2}, {1: N_BY_GROUP[1], 2: tuple(range(32, 257, 32))}, 16, {}),
}
"""The kinds of table 42, and of PTX ISA 9.4, table 51."""

WIDE_K_INPUTS = frozenset({"e4m3", "e5m2"})
"""What a dense A and B may be at K 64 (PTX ISA 9.4, table 48)."""

M_BY_GROUP: dict[int, tuple[int, ...]] = {1: (64, 128), 2: (128, 256)}
"""Legal M by cta_group; totals of the pair for 2."""

SHIFTS = {0: 0, 8: 1, 16: 2, 32: 3}
#: Kinds whose metadata has no selector.
NO_SELECTOR = ("i8", "f8f6f4")

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


def legal_n(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of N with this kind, group and M (PTX ISA table 39; 9.4, table 48, for ti16)."""
    if values.get("ws"):
        return WS_N[bool(values.get("sparse"))]
    kind, group = values["kind"], values["cta_group"]
    sizes = (KINDS[kind].n if kind in KINDS else N_BY_GROUP)[group]
    if kind == "ti16" and group == 1 and as_int(values.get("m")) == 128:
        return tuple(each for each in sizes if each % 16 == 0)
    return sizes


def legal_m(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of M with this group, and at twice the K (PTX ISA table 39; 9.4, table 48)."""
    group = values["cta_group"]
    if values["kind"] in SCALED_KINDS:
        return (128,) if group == 1 else (256,) if values.get("sparse") or has_wide_k(values) else (128, 256)
    if values.get("ws"):
        return WS_M
    return (128 * group,) if values.get("wide_k") and not values.get("sparse") else M_BY_GROUP[group]


def has_wide_k(values: Mapping[str, Any]) -> bool:
    """Whether K is what only sm_107 has: 64 of mxf8f6f4, 128 of mxf4 and mxf4nvf4."""
    return bool(values.get("wide_k")) or (values["kind"] == "mxf8f6f4" and _dense_k(values) == 64)


def _dense_k(values: Mapping[str, Any]) -> int:
    """K of a dense instruction; the least of the kind where none that it has is given."""
    legal = SCALED_KINDS[values["kind"]].k
    given = as_int(values.get("dense_k"))
    return given if given is not None and given in legal else min(legal)


def n_rule(values: Mapping[str, Any]) -> str:
    """What N must be, in words."""
    group, legal = values["cta_group"], legal_n(values)
    step = 16 * group
    if values.get("b_major") == "mn" and values.get("b_type") in BYTE_TYPES and not values.get("ws"):
        legal = tuple(each for each in legal if each % step == 0)
        return f"{sizes_in_words(legal)} for MN-major B of 8 bits with cta_group::{group} (PTX ISA table 52)"
    where = " with .ws" if values.get("ws") else f" with cta_group::{group}" if group == 2 else ""
    return f"{sizes_in_words(legal)}{where} (PTX ISA table 39)"


def m_rule(values: Mapping[str, Any]) -> str:
    """What M must be, in words."""
    where = ".ws" if values.get("ws") else f"cta_group::{values['cta_group']}"
    return f"{choices(legal_m(values))} with {where} (PTX ISA table 39)"


def selector_rule(values: Mapping[str, Any]) -> str:
    """What the sparsity selector must be with this kind."""
    if values["kind"] in NO_SELECTOR:
        return f"0 for kind::{values['kind']}"
    return "an integer from 0 to 3"


def shift_rule(values: Mapping[str, Any]) -> str:
    """What the largest shift must be with or without .ws."""
    return choices(SHIFTS) if values["ws"] else "0 without .ws"


def _major_rule(values: Mapping[str, Any], side: str) -> str:
    """What the major-ness of A or B must be with its type."""
    kind, name = values["kind"], values[f"{side}_type"]
    if kind in SCALED_KINDS and "mn" not in SCALED_KINDS[kind].majors:
        return f"k for kind {kind}"
    if name in SUB_BYTE_TYPES:
        return f"k for {name}: types of 4 and 6 bits are K-major"
    return "k or mn"


def a_major_rule(values: Mapping[str, Any]) -> str:
    return _major_rule(values, "a")


def b_major_rule(values: Mapping[str, Any]) -> str:
    return _major_rule(values, "b")


def legal_vectors(values: Mapping[str, Any]) -> tuple[str, Mapping[str, tuple[frozenset[str], tuple[int, ...]]]]:
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


def scale_rule(values: Mapping[str, Any]) -> str:
    """What the type of scale factors must be with this kind and vector."""
    vector, vectors = legal_vectors(values)
    names = sorted(frozenset().union(*(types for types, _ in vectors.values())))
    return f"{choices(names)} for kind::{values['kind']}{_with_vector(vector)}"


def id_rule(values: Mapping[str, Any]) -> str:
    """What the ids of scale factors must be with this kind, vector and K."""
    vector, _ = legal_vectors(values)
    dense = _dense_k(values) * (2 if values.get("wide_k") else 1)
    where = f"for kind::{values['kind']}{_with_vector(vector)} at K {dense}"
    return f"{choices(legal_ids(values))} {where}"


def legal_ids(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The ids of scale factors with this kind, vector and K."""
    _, vectors = legal_vectors(values)
    if has_wide_k(values):
        listed = [_WIDE_IDS[vector] for vector in vectors]
    elif _dense_k(values) == 96:
        listed = [_K96_IDS[vector] for vector in vectors]
    else:
        listed = [ids for _, ids in vectors.values()]
    return tuple(sorted(set().union(*listed)))


def _with_vector(vector: str) -> str:
    return f" with scale_vec::{vector}" if vector else ""


def dense_k_rule(values: Mapping[str, Any]) -> str:
    """What the K of a dense instruction must be with this kind."""
    legal = SCALED_KINDS[values["kind"]].k
    if 96 in legal and (values.get("sparse") or values.get("wide_k")):
        return f"64 for {'sparse' if values.get('sparse') else 'wide_k'} kind::{values['kind']}"
    return f"{choices(legal)} for kind::{values['kind']}"


_UE8M0 = frozenset({"ue8m0"})
MAJORS = {"k": 0, "mn": 1}

SCALED_KINDS: dict[str, ScaledKind] = {
    "mxf8f6f4": ScaledKind(_NARROW, MAJORS, {"ue8m0": 1}, {"1X": (_UE8M0, (0, 1, 2, 3))}, {32: 0, 64: 1}),
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


def sizes_in_words(legal: tuple[int, ...]) -> str:
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
