"""cvt in every direction: integers, .f16, .bf16, .f32, .f64, all roundings, ties, subnormals, limits, NaN."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.instr import conversion
from tests.support import exact
from tests.support.exact import FORMATS, decode, float_edges, flushed
from tests.support.harness import ON_GPU, bits_of, edges, lanewise, same, signed

COUNT = 160
#: Registers that hold a type that has none of its own, or that cannot be loaded as such.
REGISTER = {"bf16": "b16", "u8": "u16", "s8": "s16", "f16": "b16"}


def legal(*forms: Any) -> list[Any]:
    found = [each for form in forms for each in form.combinations() if not each.modifier_problems()]
    return [each for each in found if not (ON_GPU and each.pzo)]


def epoch(op: Any) -> dict[str, str]:
    """A target and version that have .pzo; else the default ones."""
    return {"target": "sm_107a", "version": "9.4"} if op.pzo else {}


def without_negative_zero(word: int, op: Any, format: Any) -> int:
    return 0 if op.pzo and word == format.sign else word


def words_of(type: str, seed: int, target: str) -> Any:
    """Words of a source type; floats also near the limits and the ties of the target."""
    if type not in FORMATS:
        return edges(bits_of(type), COUNT, seed)
    words = float_edges(type, COUNT, seed)
    format = FORMATS[type]
    for index in range(0, COUNT, 3):
        rest = index // 3
        if target in FORMATS:  # a word of the target, halves between it and its neighbors
            narrow = FORMATS[target]
            number = decode(int(float_edges(target, 1, seed + index)[0]), narrow)
            if number.kind == "finite":
                n = 4 * number.n + (rest % 5 - 2)
                words[index] = exact.encode(-n if number.negative else n, number.e - 2, format, "rz")
        else:  # limits and halves
            power = rest % (bits_of(target) + 2)
            n = 2 * (1 << power) + (rest % 5 - 2)
            words[index] = exact.encode(-n if rest % 2 else n, -1, format, "rz")
    return words


def clamped_integer(word: int, op: Any) -> int:
    """Float to integer: clamped; NaN as the manual's integer notes say."""
    bits = bits_of(op.dtype)
    number = decode(word, FORMATS[op.atype])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if op.dtype[0] == "s" else (0, (1 << bits) - 1)
    if number.kind == "nan":
        return 1 << (bits - 1) if op.atype == "f64" or bits == 64 else 0
    if number.kind == "inf":
        result = low if number.negative else high
    else:
        result = min(max(exact.to_integer(number, op.rounding), low), high)
    return result & ((1 << bits) - 1)


def converted(word: int, op: Any) -> int:
    """The result word of a cvt, in the width of its type."""
    source, target = FORMATS.get(op.atype), FORMATS.get(op.dtype)
    if source is not None and op.ftz and op.atype == "f32" and op.dtype != "f16":  # not to .f16: measured, H200
        word = flushed(word, source)
    if source is None:
        number = signed(word, bits_of(op.atype)) if op.atype[0] == "s" else word
        if target is None:
            bits = bits_of(op.dtype)
            if op.sat:
                low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if op.dtype[0] == "s" else (0, (1 << bits) - 1)
                number = min(max(number, low), high)
            return number & ((1 << bits) - 1)
        result = exact.encode(number, 0, target, op.rounding)
    elif target is None:
        return clamped_integer(word, op)
    else:
        number = decode(word, source)
        if op.rounding in ("rni", "rzi", "rmi", "rpi") and number.kind == "finite":
            result = exact.encode(exact.to_integer(number, op.rounding), 0, target, "rn", number.negative)
        else:
            result = exact.round_number(number, target, op.rounding or "rn")
            if op.ftz and op.dtype == "f32" and exact.is_tiny(number, target, op.rounding or "rn"):
                result &= target.sign
    if op.ftz and op.dtype == "f32":
        result = flushed(result, target)
    if op.sat:
        number = decode(result, target)
        one = exact.encode(1, 0, target, "rn")
        result = 0 if number.kind == "nan" or number.negative else min(result, one)
    return result if target is None else without_negative_zero(result, op, target)


def placed(word: int, type: str, bits: int) -> int:
    """A result in a wider register: extended by its sign."""
    width = bits_of(type)
    return (signed(word, width) if type[0] == "s" else word) & ((1 << bits) - 1)


@pytest.mark.parametrize("op", legal(conversion.cvt), ids=lambda op: op.opcode_text)
def test_cvt(op: Any) -> None:
    a = words_of(op.atype, len(op.opcode_text), op.dtype)
    source, target = (str(REGISTER.get(type, type)) for type in (op.atype, op.dtype))
    held = a.astype("u2") if bits_of(op.atype) == 8 else a
    if bits_of(op.atype) == 8:
        held = held | 0x5A00  # what lies above the type does not count
    text = f"{op.opcode_text} %d, %a;"
    setup = ""
    if "bf16" in (op.dtype, op.atype):  # these take registers of the type's own width
        setup = ".reg .b8 %narrow;"
        if bits_of(op.dtype) == 8:
            text = f"{op.opcode_text} %narrow, %a; cvt.{op.dtype[0]}16.{op.dtype} %d, %narrow;"
        elif bits_of(op.atype) == 8:
            text = f"cvt.{op.atype}.{op.atype[0]}16 %narrow, %a; {op.opcode_text} %d, %narrow;"
    found = lanewise(text, {"a": (source, held)}, {"d": target}, setup=setup, **epoch(op))["d"]
    expected = [placed(converted(word, op), op.dtype, bits_of(target)) for word in a.tolist()]
    if op.dtype in FORMATS:
        format = FORMATS[op.dtype]
        nan = [i for i, word in enumerate(expected) if decode(word, format).kind == "nan"]
        assert all(decode(int(found[i]), format).kind == "nan" for i in nan), text
        found[nan] = exact.canonical_nan(format)
    same(found, expected, text, {"a": a})


HALVES = legal(conversion.cvt_half, conversion.cvt_half2)


@pytest.mark.parametrize("op", HALVES, ids=lambda op: op.opcode_text)
def test_cvt_half(op: Any) -> None:
    kind = op.dtype.removesuffix("x2")
    format = FORMATS[kind]
    a, b = words_of("f32", 3, kind), words_of("f32", 4, kind)

    def one(word: int) -> int:
        number = decode(word, FORMATS["f32"])
        if number.kind == "nan":
            return 0x7FFF
        if op.relu and number.negative:
            return 0
        result = exact.round_number(number, format, op.rounding)
        if op.satfinite and decode(result, format).kind == "inf":
            result -= 1
        return without_negative_zero(result, op, format)

    if op.dtype == kind:
        found = lanewise(f"{op.opcode_text} %d, %a;", {"a": ("f32", a)}, {"d": "b16"}, **epoch(op))["d"]
        expected = [one(word) for word in a.tolist()]
    else:
        inputs = {"a": ("f32", a), "b": ("f32", b)}
        found = lanewise(f"{op.opcode_text} %d, %a, %b;", inputs, {"d": "b32"}, **epoch(op))["d"]
        expected = [one(x) << 16 | one(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    same(found, expected, op.opcode_text, {"a": a, "b": b})


WIDER = [
    ("cvt.s8.s32", "s32", "b32", lambda w: signed(w & 0xFF, 8) & 0xFFFFFFFF),
    ("cvt.u8.s32", "s32", "b32", lambda w: w & 0xFF),
    ("cvt.s16.u32", "u32", "b64", lambda w: signed(w & 0xFFFF, 16) & (2**64 - 1)),
    ("cvt.u16.s64", "s64", "b32", lambda w: w & 0xFFFF),
]


@pytest.mark.parametrize(("opcode", "type", "register", "reference"), WIDER, ids=[each[0] for each in WIDER])
def test_destination_wider_than_the_type(opcode: str, type: str, register: str, reference: Any) -> None:
    a = edges(bits_of(type), 200, 50)
    found = lanewise(f"{opcode} %d, %a;", {"a": (type, a)}, {"d": register})["d"]
    same(found, [reference(word) for word in a.tolist()], opcode, {"a": a})
