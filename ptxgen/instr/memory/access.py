"""What loads and stores share: types, state spaces, widths, and hints to the caches. PTX ISA 9.7.9.1 and 9.7.9.8."""

from typing import Any, Literal, get_args

from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.model.types import TYPES

#: The element types of an access.
Element = Literal["b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]
Count = Literal["v2", "v4", "v8"]
#: State spaces of accesses that other threads can see.
Seen = Literal["global", "shared", "shared::cta", "shared::cluster"]
Scope = Literal["cta", "cluster", "gpu", "sys"]
#: What becomes of the line in the L1 cache, and in L2.
PriorityL1 = Literal["evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate"]
PriorityL2 = Literal["evict_normal", "evict_first", "evict_last"]
#: How much to fetch along with the data; L1::32B is not in the manual (measured, ptxas 13.5).
Prefetch = Literal["L1::32B", "L2::64B", "L2::128B", "L2::256B"]

#: Accesses of 256 bits.
_WIDE = Availability("8.8", "sm_100+")
NEEDS = {
    "weak": Availability("6.0", "sm_70+"),
    "shared::cta": Availability("7.8", "sm_30+"),
    "shared::cluster": Availability("7.8", "sm_90+"),
    "param::entry": Availability("8.3", ALL),
    "param::func": Availability("8.3", ALL),
    "cluster": Availability("7.8", "sm_90+"),
    "b128": Availability("8.3", "sm_70+"),
    "sys b128": Availability("8.4", "sm_70+"),
    "v8": _WIDE,
    **{f"vec=v4 type={name}": _WIDE for name in ("b64", "u64", "s64", "f64")},
    "L2::cache_hint": Availability("7.4", "sm_80+"),
    "L1::32B": Availability("7.4", "sm_75+"),
    "L2::64B": Availability("7.4", "sm_75+"),
    "L2::128B": Availability("7.4", "sm_75+"),
    "L2::256B": Availability("7.4", "sm_80+"),
}
#: What priorities in L1 need, where the line itself is older.
NEEDS_L1 = {f"L1::{name}": Availability("7.4", "sm_70+") for name in get_args(PriorityL1)}


def elements(form: Any) -> int:
    """The vector length of an access; 1 without .v2, .v4, .v8."""
    return int(form.vec[1:]) if form.vec else 1


def _bits(form: Any) -> int:
    return elements(form) * TYPES[form.type].bits


def _named(form: Any) -> str:
    return f".{form.vec}.{form.type}" if form.vec else f".{form.type}"


def is_256_bit(form: Any) -> bool:
    """Whether it is .v8 of 32-bit or .v4 of 64-bit types: the accesses that may leave elements out."""
    return _bits(form) == 256 and form.type != "b128"


def narrow(form: Any) -> str | None:
    """At most 128 bits."""
    if _bits(form) <= 128:
        return None
    return f"{_named(form)} is {_bits(form)} bits; the limit is 128"


def width(form: Any) -> str | None:
    """At most 128 bits, or 256 bits of 32-bit or 64-bit elements in .global or generic (measured, ptxas 13.5)."""
    if form.vec == "v8" and TYPES[form.type].bits < 32:
        # ptxas 13.5 takes these in some state spaces and crashes in others (measured).
        return f".v8 requires 32-bit types, not .{form.type}"
    if is_256_bit(form) and form.space in (None, "global"):
        return None
    broken = narrow(form)
    return broken and f"{broken}, or 256 as .v8 of 32-bit or .v4 of 64-bit types in .global or generic"


def l2_priority(form: Any) -> str | None:
    """Eviction priorities of L2 are for accesses of 256 bits."""
    if form.l2 and not is_256_bit(form):
        return f".L2::{form.l2} requires .v8 of 32-bit or .v4 of 64-bit types, not {_named(form)}"
    return None


def hints(form: Any) -> str | None:
    """Hints to the caches are for global memory."""
    if form.space in (None, "global"):
        return None
    given = [token for token in form.modifiers if token.startswith(("L1::", "L2::"))]
    if not given:
        return None
    return f".{given[0]} requires .global or generic addresses, not .{form.space}"
