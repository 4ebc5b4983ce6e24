"""Loads and stores through the generic proxy. PTX ISA 9.7.9 (ld, st, prefetch).

Eviction priorities, prefetch sizes, cache hints, ld.global.nc, ldu and atomics are not here yet.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import address, vector
from ptxgen.instr.targets import ALL, Availability
from ptxgen.instr.types import TYPES

_LoadSpace = Literal[
    "const", "global", "local", "param", "param::entry", "param::func", "shared", "shared::cta", "shared::cluster"
]
_StoreSpace = Literal["global", "local", "param", "param::func", "shared", "shared::cta", "shared::cluster"]
_SyncSpace = Literal["global", "shared", "shared::cta", "shared::cluster"]
_Vector = Literal["v2", "v4", "v8"]
_Type = Literal["b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]
_Scope = Literal["cta", "cluster", "gpu", "sys"]
#: Accesses of 256 bits.
_WIDE = Availability("8.8", "sm_100+")
_NEEDS = {
    "shared::cta": Availability("7.8", "sm_30+"),
    "shared::cluster": Availability("7.8", "sm_90+"),
    "param::entry": Availability("8.3", ALL),
    "param::func": Availability("8.3", ALL),
    "cluster": Availability("7.8", "sm_90+"),
    "b128": Availability("8.3", "sm_70+"),
    "sys b128": Availability("8.4", "sm_70+"),
    "v8": _WIDE,
    **{f"vec=v4 type={name}": _WIDE for name in ("b64", "u64", "s64", "f64")},
}
#: .local came to volatile accesses with PTX 9.1 (measured, ptxas 13.5).
_VOLATILE_NEEDS = {**_NEEDS, "local": Availability("9.1", ALL)}


def elements(form: Any) -> int:
    """The vector length of an access; 1 without .v2, .v4, .v8."""
    return int(form.vec[1:]) if form.vec else 1


def _width(form: Any) -> str | None:
    """At most 128 bits, or 256 bits of 32-bit or 64-bit elements in .global or generic (measured, ptxas 13.5)."""
    if not form.vec:
        return None
    if form.vec == "v8" and TYPES[form.type].bits < 32:
        # ptxas 13.5 takes these in some state spaces and crashes in others (measured).
        return f".v8 takes 32-bit types, not .{form.type}"
    bits = TYPES[form.type].bits
    total = elements(form) * bits
    if total <= 128 or (total == 256 and bits in (32, 64) and form.space in (None, "global")):
        return None
    return (
        f".{form.vec}.{form.type} is {total} bits; the limit is 128, "
        "or 256 as .v8 of 32-bit or .v4 of 64-bit types in .global or generic"
    )


class ld(Instruction, section="9.7.9 (ld)", ptx="1.0", targets=ALL):
    """d = the value at an address of a state space (generic without `space`); `vec` loads 2, 4 or 8 at once."""

    syntax = "ld{.weak}{.space}{.cop}{.vec}.type d, [a]"
    d: OperandLike = vector("type", elements, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space", unified=True)
    _: KW_ONLY
    weak: bool = False
    space: _LoadSpace | None = None
    cop: Literal["ca", "cg", "cs", "lu", "cv"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)


class ld_volatile(Instruction, opcode="ld.volatile", section="9.7.9 (ld)", ptx="1.1", targets=ALL):
    """d = the value at an address, neither cached nor merged with other accesses."""

    syntax = "ld.volatile{.space}{.vec}.type d, [a]"
    d: OperandLike = vector("type", elements, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space")
    _: KW_ONLY
    space: Literal["global", "local", "shared", "shared::cta", "shared::cluster"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _VOLATILE_NEEDS
    _w = rule("width")(_width)


class ld_ordered(Instruction, opcode="ld", section="9.7.9 (ld)", ptx="6.0", targets="sm_70+"):
    """d = the value at an address, as a relaxed or acquire access in `scope`."""

    syntax = "ld.sem.scope{.space}{.vec}.type d, [a]"
    d: OperandLike = vector("type", elements, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space")
    _: KW_ONLY
    sem: Literal["relaxed", "acquire"]
    scope: _Scope
    space: _SyncSpace | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)


class st(Instruction, section="9.7.9 (st)", ptx="1.0", targets=ALL):
    """The value at an address of a state space (generic without `space`) = b."""

    syntax = "st{.weak}{.space}{.cop}{.vec}.type [a], b"
    a: OperandLike = address("space", written=True)
    b: OperandLike = vector("type", elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    weak: bool = False
    space: _StoreSpace | None = None
    cop: Literal["wb", "cg", "cs", "wt"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)


class st_volatile(Instruction, opcode="st.volatile", section="9.7.9 (st)", ptx="1.1", targets=ALL):
    """The value at an address = b, neither cached nor merged with other accesses."""

    syntax = "st.volatile{.space}{.vec}.type [a], b"
    a: OperandLike = address("space", written=True)
    b: OperandLike = vector("type", elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    space: Literal["global", "local", "shared", "shared::cta", "shared::cluster"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _VOLATILE_NEEDS
    _w = rule("width")(_width)


class st_ordered(Instruction, opcode="st", section="9.7.9 (st)", ptx="6.0", targets="sm_70+"):
    """The value at an address = b, as a relaxed or release access in `scope`."""

    syntax = "st.sem.scope{.space}{.vec}.type [a], b"
    a: OperandLike = address("space", written=True)
    b: OperandLike = vector("type", elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    sem: Literal["relaxed", "release"]
    scope: _Scope
    space: _SyncSpace | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)


class prefetch_tensormap(Instruction, opcode="prefetch", section="9.7.9 (prefetch)", ptx="8.0", targets="sm_90+"):
    """Bring a 128-byte tensormap close, ahead of its first use."""

    syntax = "prefetch{.space}.tensormap [a]"
    a: OperandLike = address("space", bits=(32, 64))
    _: KW_ONLY
    space: Literal["const", "param"] | None = None
