"""Comparison and selection. References from PTX ISA 9.7.6 and 9.7.7."""

from __future__ import annotations

from typing import Any

from microtests.harness.lanes import lanewise
from microtests.harness.numbers import BF16, F16, FORMATS, Format, Number, decode, less, signed
from ptxgen.instr import predicate

#: Comparisons whose result on ordered operands is that of another.
_PLAIN = {
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
    "equ": "eq",
    "neu": "ne",
    "ltu": "lt",
    "leu": "le",
    "gtu": "gt",
    "geu": "ge",
}


def _compare(how: str, a: Any, b: Any) -> bool:
    if isinstance(a, Number):
        unordered = "nan" in (a.kind, b.kind)
        if how in ("num", "nan"):
            return unordered == (how == "nan")
        if unordered:
            return how in ("equ", "neu", "ltu", "leu", "gtu", "geu")
        smaller, larger = less(a, b), less(b, a)
    else:
        smaller, larger = a < b, b < a
    return {
        "eq": not smaller and not larger,
        "ne": smaller or larger,
        "lt": smaller,
        "le": not larger,
        "gt": larger,
        "ge": not smaller,
    }[_PLAIN.get(how, how)]


def _combined(form: Any, found: bool, c: int) -> bool:
    if not form.combine:
        return found
    return {"and": found and bool(c), "or": found or bool(c), "xor": found != bool(c)}[form.combine]


def _value(kind: str, word: int, ftz: bool) -> Any:
    return decode(word, FORMATS[kind], ftz) if kind in FORMATS else word


def _kept(form: Any) -> bool:
    """All comparisons alone; with .combine and .ftz, those of one type."""
    kind = getattr(form, "stype", None) or form.type
    return (not form.combine or (kind in ("s32", "f32", "f16", "f16x2") and form.compare in ("lt", "ltu"))) and (
        not form.ftz or form.compare in ("eq", "lt", "geu")
    )


@lanewise(predicate.setp, only_if=lambda form: _kept(form) and (form.q is None or form.type in ("u32", "f32")))
def setp(form: Any, a: int, b: int, c: int = 0) -> tuple[int, ...]:
    """p, and q of the opposite comparison, each combined with c."""
    found = _compare(form.compare, _value(form.type, a, form.ftz), _value(form.type, b, form.ftz))
    return int(_combined(form, found, c)), int(_combined(form, not found, c))


@lanewise(predicate.setp_half, only_if=_kept)
def setp_half(form: Any, a: int, b: int, c: int = 0) -> int:
    return int(
        _combined(form, _compare(form.compare, _value(form.type, a, form.ftz), _value(form.type, b, form.ftz)), c)
    )


def _halves(form: Any, kind: str, a: int, b: int) -> list[bool]:
    format: Format = F16 if kind == "f16x2" else BF16
    return [
        _compare(form.compare, decode(a >> s & 0xFFFF, format, form.ftz), decode(b >> s & 0xFFFF, format, form.ftz))
        for s in (0, 16)
    ]


@lanewise(predicate.setp_half2, only_if=lambda form: _kept(form) and (form.q is not None or form.compare == "lt"))
def setp_half2(form: Any, a: int, b: int, c: int = 0) -> tuple[int, ...]:
    """p of the low halves, q of the high ones, on request."""
    low, high = _halves(form, form.type, a, b)
    return int(_combined(form, low, c)), int(_combined(form, high, c))


#: What a true comparison writes, by the type of the result.
_TRUE = {
    "u16": 0xFFFF,
    "s16": 0xFFFF,
    "u32": 0xFFFFFFFF,
    "s32": 0xFFFFFFFF,
    "f32": 0x3F800000,
    "f16": 0x3C00,
    "bf16": 0x3F80,
}


@lanewise(predicate.set, predicate.set_half, predicate.set_of_half, only_if=_kept, every=2)
def set_(form: Any, a: int, b: int, c: int = 0) -> int:
    found = _compare(form.compare, _value(form.stype, a, form.ftz), _value(form.stype, b, form.ftz))
    return _TRUE[form.dtype] if _combined(form, found, c) else 0


lanewise(predicate.set_of_half, only_if=lambda form: _kept(form) and form.stype == "bf16" and form.compare == "ltu")(
    set_
)


@lanewise(predicate.set_half2, only_if=_kept, every=2)
def set_half2(form: Any, a: int, b: int, c: int = 0) -> int:
    """Each half alone; a .u32 or .s32 result has all ones in a half."""
    true = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(form.dtype, 0xFFFF)
    low, high = (true if _combined(form, found, c) else 0 for found in _halves(form, form.stype, a, b))
    return high << 16 | low


@lanewise(predicate.selp)
def selp(form: Any, a: int, b: int, c: int) -> int:
    return a if c else b


@lanewise(predicate.slct)
def slct(form: Any, a: int, b: int, c: int) -> int:
    return a if c >= 0 else b


@lanewise(predicate.slct_float)
def slct_float(form: Any, a: int, b: int, c: int) -> int:
    """-0 counts as not negative, a NaN chooses b; .ftz makes a subnormal c a zero."""
    chosen = decode(c, FORMATS["f32"], form.ftz)
    return a if chosen.kind != "nan" and (chosen.is_zero or not chosen.negative) else b


@lanewise(predicate.set_packed, every=3)
def set_packed(form: Any, a: int, b: int) -> int:
    """All ones in each element that compares, PTX ISA 9.4."""
    width = 8 if form.type.endswith("x4") else 16
    found = 0
    for shift in range(0, 32, width):
        left, right = (word >> shift & (1 << width) - 1 for word in (a, b))
        if form.type.startswith("s"):
            left, right = signed(left, width), signed(right, width)
        if _compare(form.compare, left, right):
            found |= (1 << width) - 1 << shift
    return found
