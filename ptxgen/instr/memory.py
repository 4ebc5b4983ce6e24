"""Loads and stores through the generic proxy. PTX ISA 9.7.9 (ld, st, prefetch).

Eviction priorities, prefetch sizes, cache hints, ld.global.nc, ldu and atomics are not here yet.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import address, vector
from ptxgen.instr.targets import ALL, Availability
from ptxgen.instr.types import TYPES

_LoadSpace = Literal["const", "global", "local", "param", "param::entry", "shared", "shared::cta", "shared::cluster"]
_StoreSpace = Literal["global", "local", "param", "shared", "shared::cta", "shared::cluster"]
_SyncSpace = Literal["global", "shared", "shared::cta", "shared::cluster"]
_Vector = Literal["v2", "v4", "v8"]
_Type = Literal["b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]
_Scope = Literal["cta", "cluster", "gpu", "sys"]
_NEEDS = {
    "shared::cta": Availability("7.8", "sm_30+"),
    "shared::cluster": Availability("7.8", "sm_90+"),
    "param::entry": Availability("8.3", ALL),
    "param::func": Availability("8.3", ALL),
    "cluster": Availability("7.8", "sm_90+"),
    "b128": Availability("8.3", "sm_70+"),
    "v8": Availability("8.8", "sm_100+"),
}
#: .local came to volatile accesses with PTX 9.1 (measured, ptxas 13.5).
_VOLATILE_NEEDS = {**_NEEDS, "local": Availability("9.1", ALL)}


def elements(form: Any) -> int:
    """The vector length of an access; 1 without .v2, .v4, .v8."""
    return int(form.vec[1:]) if form.vec else 1


def _width(form: Any) -> str | None:
    """At most 128 bits; 256 bits as .v8.b32 or .v4.b64 in .global alone."""
    if not form.vec:
        return None
    bits, count = TYPES[form.type].bits, elements(form)
    if count * bits == 256 and bits in (32, 64) and form.space == "global":
        return None
    if bits == 128:
        return f".{form.vec} of .b128 exceeds 128 bits; leave out .{form.vec}"
    if count == 8 and bits < 32:
        return f".v8 takes 32-bit types, not .{form.type}"
    if count * bits > 128:
        return f".{form.vec}.{form.type} is {count * bits} bits; the limit is 128 (256 in .global, .v8.b32 or .v4.b64)"
    return None


class ld(Instruction, section="9.7.9 (ld)", ptx="1.0", targets=ALL):
    """d = the value at an address of a state space (generic without `space`); `vec` loads 2, 4 or 8 at once."""

    syntax = "ld{.weak}{.space}{.cop}{.vec}.type d, [a]"
    d: OperandLike = vector("type", elements, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space")
    _: KW_ONLY
    weak: bool = False
    space: _LoadSpace | None = None
    cop: Literal["ca", "cg", "cs", "lu", "cv"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)

    @rule("cache")
    def _cache(self) -> str | None:
        """.weak and a cache operator exclude each other."""
        if self.weak and self.cop:
            return f"ld.weak takes no cache operator; leave out .{self.cop}"
        return None


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
    a: OperandLike = address("space")
    b: OperandLike = vector("type", elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    weak: bool = False
    space: _StoreSpace | None = None
    cop: Literal["wb", "cg", "cs", "wt"] | None = None
    vec: _Vector | None = None
    type: _Type
    needs = _NEEDS
    _w = rule("width")(_width)

    @rule("cache")
    def _cache(self) -> str | None:
        """.weak and a cache operator exclude each other."""
        if self.weak and self.cop:
            return f"st.weak takes no cache operator; leave out .{self.cop}"
        return None


class st_volatile(Instruction, opcode="st.volatile", section="9.7.9 (st)", ptx="1.1", targets=ALL):
    """The value at an address = b, neither cached nor merged with other accesses."""

    syntax = "st.volatile{.space}{.vec}.type [a], b"
    a: OperandLike = address("space")
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
    a: OperandLike = address("space")
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
    a: OperandLike = address("space")
    _: KW_ONLY
    space: Literal["const", "param"] | None = None
