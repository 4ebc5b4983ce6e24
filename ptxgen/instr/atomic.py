"""Atomic operations on memory: with a result (atom), without (red), and asynchronous. PTX ISA 9.7.13.5 to 9.7.13.7."""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.expanded import element_result
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, is_sink, register, source, vector
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.syntax_line import flag
from ptxgen.instr.model.targets import ALL, Availability, Target

_Global = Literal["global"]
_Space = Literal["global", "shared", "shared::cta", "shared::cluster"]
_Scope = Literal["cta", "cluster", "gpu", "sys"]
_Float = Literal["add", "min", "max"]
_V24 = Literal["v2", "v4"]
_V248 = Literal["v2", "v4", "v8"]
#: The state spaces whose variables generic addresses may name.
_SPACES = ("global", "shared")
_ORDER = Availability("6.0", "sm_70+")
_NEEDS = {
    **dict.fromkeys(("relaxed", "acquire", "release", "acq_rel"), Availability("6.0", "sm_70+")),
    **dict.fromkeys(("cta", "gpu", "sys"), Availability("5.0", "sm_60+")),
    "cluster": Availability("7.8", "sm_90+"),
    "shared::cta": Availability("7.8", "sm_30+"),
    "shared::cluster": Availability("7.8", "sm_90+"),
    "L2::cache_hint": Availability("7.4", "sm_80+"),
    "b128": Availability("8.3", "sm_90+"),
    "sys b128": Availability("8.4", "sm_90+"),
    "f64": Availability("5.0", "sm_60+"),
}
#: add.f32 in global memory flushes subnormals to zero unless .noftz stands (measured, ptxas 13.5).
_FLOAT = Availability("9.4", "sm_90+")
_NOFTZ_NEEDS = {
    **_NEEDS,
    "f32": _FLOAT,
    "f16": Availability("6.3", "sm_70+"),
    "f16x2": Availability("6.2", "sm_60+"),
    "bf16": Availability("7.8", "sm_90+"),
    "bf16x2": Availability("7.8", "sm_90+"),
}
_VECTOR_NEEDS = {"noftz f32": _FLOAT}
_TYPES = {
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    "exch": ("b32", "b64", "b128"),
    "add": ("u32", "s32", "u64", "f32", "f64"),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64")),
}
_ASYNC_TYPES = {
    **dict.fromkeys(("and", "or", "xor"), ("b32",)),
    "add": ("u32", "s32", "u64", "s64"),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
}


def _wrong_type(form: Any, types: dict[str, tuple[str, ...]]) -> str | None:
    legal = types[form.op]
    if form.type in legal:
        return None
    return f"{form.form.opcode}.{form.op} requires {' '.join('.' + name for name in legal)}, not .{form.type}"


def _operation(form: Any) -> str | None:
    """Each operation has its types."""
    return _wrong_type(form, _TYPES)


def _async_operation(form: Any) -> str | None:
    """Each operation has its types."""
    return _wrong_type(form, _ASYNC_TYPES)


def _count(form: Any) -> int:
    return int(form.vec[1:])


def _hint(form: Any) -> str | None:
    """The hint is for global memory."""
    if form.hint and form.space not in (None, "global"):
        return f".L2::cache_hint requires .global or generic addresses, not .{form.space}"
    return None


def _b128(form: Any) -> bool:
    return form.type == "b128"


def _without_result(form: Any) -> bool:
    return is_sink(form.d)


class _Atom(Instruction, section="9.7.13.5", ptx="1.1", targets=ALL):
    d: OperandLike = register("type", sink=True)
    a: OperandLike = address("space", variables=_SPACES, memory="read-write")
    b: OperandLike = source("type", plain=_b128, float_sums=_without_result)
    _: KW_ONLY
    sem: Literal["relaxed", "acquire", "release", "acq_rel"] | None = None
    scope: _Scope | None = None
    space: _Space | None = None
    needs = _NEEDS

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        if self.space in ("shared", "shared::cta"):
            yield from element_result(self, target, resolve)


class atom(_Atom):
    """d = the value at a, which becomes the result of `op` with b; relaxed and in GPU scope unless said otherwise.

    inc counts to b and begins again at 0, dec counts from b to 0.
    """

    syntax = "atom{.sem}{.scope}{.space}.op{.hint}.type d, [a], b{, policy}"
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    op: Literal["and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"]
    hint: bool = flag("L2::cache_hint", default=False)
    type: Literal["b32", "b64", "b128", "u32", "u64", "s32", "s64", "f32", "f64"]
    _o = rule("operation")(_operation)
    _h = rule("hint")(_hint)


class atom_cas(_Atom):
    """d = the value at a, which becomes c if it is b."""

    syntax = "atom{.sem}{.scope}{.space}.cas.type d, [a], b, c"
    c: OperandLike = source("type", plain=_b128, float_sums=_without_result)
    _: KW_ONLY
    type: Literal["b16", "b32", "b64", "b128"]
    needs = {**_NEEDS, "b16": Availability("6.3", "sm_70+")}

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        del target, resolve
        return iter(())


class atom_add_noftz(_Atom):
    """d = the value at a, which becomes its sum with b, subnormals and all."""

    syntax = "atom{.sem}{.scope}{.space}.add.noftz{.hint}.type d, [a], b{, policy}"
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    hint: bool = flag("L2::cache_hint", default=False)
    type: Literal["f16", "f16x2", "bf16", "bf16x2", "f32"]
    needs = _NOFTZ_NEEDS
    _h = rule("hint")(_hint)


class _AtomVector(Instruction, section="9.7.13.5", ptx="8.1", targets="sm_90+"):
    d: OperandLike = vector("type", _count, scalar=True, sink=True, discard=True, braced=True)
    a: OperandLike = address("space", variables=("global",), memory="read-write")
    b: OperandLike = vector("type", _count, scalar=True, immediate=True)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["relaxed", "acquire", "release", "acq_rel"] | None = None
    scope: _Scope | None = None
    space: _Global | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    needs = _VECTOR_NEEDS


class atom_vector(_AtomVector):
    """d = the values at a; each becomes its sum with the one of b, atomically by itself."""

    syntax = "atom{.sem}{.scope}{.space}.add{.noftz}{.hint}.vec.type d, [a], b{, policy}"
    _: KW_ONLY
    noftz: bool = False
    vec: _V24
    type: Literal["f32"]


class atom_vector_half(_AtomVector):
    """As atom_vector, of 16-bit values."""

    syntax = "atom{.sem}{.scope}{.space}.op.noftz{.hint}.vec.type d, [a], b{, policy}"
    _: KW_ONLY
    op: _Float
    vec: _V248
    type: Literal["f16", "bf16"]


class atom_vector_packed(_AtomVector):
    """As atom_vector, of pairs of 16-bit values."""

    syntax = "atom{.sem}{.scope}{.space}.op.noftz{.hint}.vec.type d, [a], b{, policy}"
    _: KW_ONLY
    op: _Float
    vec: _V24
    type: Literal["f16x2", "bf16x2"]


class _Red(Instruction, section="9.7.13.6", ptx="1.2", targets=ALL):
    a: OperandLike = address("space", variables=_SPACES, memory="read-write")
    b: OperandLike = source("type")
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["relaxed", "release"] | None = None
    scope: _Scope | None = None
    space: _Space | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    needs = _NEEDS
    _h = rule("hint")(_hint)


class red(_Red):
    """The value at a becomes the result of `op` with b, as atom does it."""

    syntax = "red{.sem}{.scope}{.space}.op{.hint}.type [a], b{, policy}"
    _: KW_ONLY
    op: Literal["and", "or", "xor", "add", "inc", "dec", "min", "max"]
    type: Literal["b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"]
    _o = rule("operation")(_operation)


class red_add_noftz(_Red):
    """The value at a becomes its sum with b, subnormals and all."""

    syntax = "red{.sem}{.scope}{.space}.add.noftz{.hint}.type [a], b{, policy}"
    _: KW_ONLY
    type: Literal["f16", "f16x2", "bf16", "bf16x2", "f32"]
    needs = _NOFTZ_NEEDS


class _RedVector(Instruction, section="9.7.13.6", ptx="8.1", targets="sm_90+"):
    a: OperandLike = address("space", variables=("global",), memory="read-write")
    b: OperandLike = vector("type", _count, scalar=True, immediate=True)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["relaxed", "release"] | None = None
    scope: _Scope | None = None
    space: _Global | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    needs = _VECTOR_NEEDS


class red_vector(_RedVector):
    """Each value at a becomes its sum with that of b; atomic each for itself."""

    syntax = "red{.sem}{.scope}{.space}.add{.noftz}{.hint}.vec.type [a], b{, policy}"
    _: KW_ONLY
    noftz: bool = False
    vec: _V24
    type: Literal["f32"]


class red_vector_half(_RedVector):
    """As red_vector, of 16-bit values."""

    syntax = "red{.sem}{.scope}{.space}.op.noftz{.hint}.vec.type [a], b{, policy}"
    _: KW_ONLY
    op: _Float
    vec: _V248
    type: Literal["f16", "bf16"]


class red_vector_packed(_RedVector):
    """As red_vector, of pairs of 16-bit values."""

    syntax = "red{.sem}{.scope}{.space}.op.noftz{.hint}.vec.type [a], b{, policy}"
    _: KW_ONLY
    op: _Float
    vec: _V24
    type: Literal["f16x2", "bf16x2"]


class red_async(
    Instruction,
    opcode="red.async",
    section="9.7.13.7",
    ptx="8.1",
    targets="sm_90+",
    completed_by="the mbarrier",
):
    """Change the value at a, in shared memory of a peer CTA of the cluster, as red does, and do not wait for it.

    When it is done, the mbarrier beside it gets its bytes (complete_tx).
    """

    syntax = "red.async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [mbar]"
    a: OperandLike = address("space", bits=(32, 64), variables=("shared",), memory="read-write")
    b: OperandLike = source("type")
    mbar: OperandLike = address("space", bits=(32, 64), variables=("shared",), memory="read-write")
    _: KW_ONLY
    space: Literal["shared::cluster"] | None = None
    op: Literal["and", "or", "xor", "add", "inc", "dec", "min", "max"]
    type: Literal["b32", "u32", "s32", "u64", "s64"]
    _o = rule("operation")(_async_operation)


class red_async_release(
    Instruction,
    opcode="red.async",
    section="9.7.13.7",
    ptx="8.7",
    targets="sm_100+",
    completed_by="the end of the CTA",
):
    """Change the value at a, in global memory, as red.release does, and do not wait for it."""

    syntax = "red.async.release.scope{.space}.op.type [a], b"
    a: OperandLike = address("space", variables=("global",), memory="read-write")
    b: OperandLike = source("type", sums=False, plain=True)
    _: KW_ONLY
    scope: Literal["gpu", "sys"]
    space: _Global | None = None
    op: Literal["and", "or", "xor", "add", "inc", "dec", "min", "max"]
    type: Literal["b32", "u32", "s32", "u64", "s64"]
    _o = rule("operation")(_async_operation)


class red_async_mmio(red_async_release):
    """As red_async_release, of a device register, exactly once."""

    syntax = "red.async.mmio.release.scope{.space}.op.type [a], b"
    _: KW_ONLY
    scope: Literal["sys"]  # type: ignore[assignment]
