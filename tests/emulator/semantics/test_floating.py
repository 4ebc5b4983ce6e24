"""Floating-point arithmetic and comparison, bit by bit against exact integers rounded once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ptxgen.instr import floating, predicate
from ptxgen.instr.model.form import Instruction
from tests.support import exact
from tests.support.exact import FORMATS, Number, decode, float_edges, flushed
from tests.support.harness import ON_GPU, TARGET, lanewise, same

COUNT = 420
F32 = FORMATS["f32"]


def legal(*forms: type[Instruction]) -> list[Any]:
    return [each for form in forms for each in form.combinations() if not each.modifier_problems()]


def saturated(word: int) -> int:
    """Into [0, 1]; NaN becomes +0 (9.7.3.3)."""
    number = decode(word, F32)
    if number.kind == "nan" or number.negative:
        return 0
    return min(word, 0x3F800000)


ONE = Number("finite", False, 1, 0)


def computed(op: Any, *words: int) -> int:
    """The word of an add, sub, mul or fma."""
    format, mode = FORMATS[op.type], op.rounding or "rn"
    numbers = [decode(flushed(word, format) if op.ftz else word, format) for word in words]
    if isinstance(op, floating.mul):
        value = exact.multiply(*numbers)
        result = exact.round_number(value, format, mode)
    else:
        a, b = numbers[-2:]
        if len(numbers) == 3:
            a = exact.multiply(*numbers[:2])
        if isinstance(op, floating.sub):
            b = b._replace(negative=not b.negative)
        value = exact.total(a, b)
        result = exact.add(a, b, format, mode)
    if op.ftz and exact.is_tiny(value, format, mode):
        result &= format.sign
    return saturated(result) if op.sat else result


ARITHMETIC = legal(floating.add, floating.sub, floating.mul, floating.fma, floating.mad)


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.opcode_text)
def test_arithmetic(op: Any) -> None:
    names = "abc" if "c" in op.form.operands else "ab"
    operands = [float_edges(op.type, COUNT, seed + len(op.opcode_text)) for seed, _ in enumerate(names)]
    # Cancellation: the second (the third) operand undoes the first ones.
    sign = FORMATS[op.type].sign
    operands[-1][::7] = operands[0][::7] ^ operands[0].dtype.type(sign if not isinstance(op, floating.sub) else 0)
    if len(names) == 3:
        operands[1][::14] = exact.encode(1, 0, FORMATS[op.type], "rn")
    if op.type == "f64":
        near_limits(operands)
    if op.type == "f32" and not isinstance(op, floating.add | floating.sub):  # products next to the smallest normal
        near = [(0x3F000001, 0x00FFFFFE), (0x3F7FFFFF, 0x00800000), (0x3F7FFFFE, 0x80800001), (0x3F7FFFFF, 0x80800002)]
        for index, pair in enumerate(near):
            operands[0][index], operands[1][index] = pair
            if len(operands) == 3:
                operands[2][index] = 0
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    inputs = {name: (op.type, words) for name, words in zip(names, operands, strict=True)}
    found = lanewise(text, inputs, {"d": op.type})["d"]
    expected = [computed(op, *words) for words in zip(*(words.tolist() for words in operands), strict=True)]
    if op.type == "f64":  # which NaN, the manual leaves open
        nan = decode_nan(found, "f64")
        assert nan == decode_nan(expected, "f64")
        found = found.copy()
        found[nan] = exact.canonical_nan(FORMATS["f64"])
    same(found, expected, text, dict(zip(names, operands, strict=True)))


def near_limits(operands: list[Any]) -> None:
    """Operands of .f64 whose sums and products over- or underflow by little, or cancel but for their last bits."""
    word = operands[0].dtype.type
    for index, pair in enumerate([(1, 1), (1, 1 << 63), (3, 5), (0x7FEFFFFFFFFFFFFF, 0x7CA0000000000001)]):
        for operand, bits in zip(operands, pair, strict=False):
            operand[index] = word(bits)
    for index in range(20, 60):  # exponents that add to about those of the largest and smallest numbers
        power = (2046 if index % 2 else -60) + index % 5
        for operand, field in zip(operands, (power // 2 + 511, power - power // 2 + 512), strict=False):
            operand[index] = (operand[index] & word(0x800FFFFFFFFFFFFF)) | word(min(max(field, 0), 2046) << 52)
    if len(operands) == 3:
        a, b, c = (operand.view("f8") for operand in operands)
        with np.errstate(all="ignore"):
            c[60:200] = -(a[60:200] * b[60:200])  # what is left is the error of the product
        # Products that are ties, and a third operand that is far too small to be seen but says where they lie.
        a[200:240], b[200:240] = 1 + 2.0**-27, 1 + 2.0**-26
        c[200:240] = [sign * 2.0**-power for power in range(60, 80) for sign in (1, -1)]
        c[220:240] *= 2.0**-200
        a[210:230] *= -1


def decode_nan(words: Any, type: str) -> list[int]:
    return [i for i, word in enumerate(words) if decode(int(word), FORMATS[type]).kind == "nan"]


QUOTIENTS = legal(floating.div, floating.rcp, floating.sqrt)


def divided(a: Number, b: Number, format: exact.Format, mode: str) -> tuple[int, bool]:
    """The word of a / b, and whether it is tiny."""
    negative = a.negative != b.negative
    if "nan" in (a.kind, b.kind) or (a.kind == b.kind == "inf") or (a.n == b.n == 0 and a.kind == b.kind == "finite"):
        return exact.canonical_nan(format), False
    if a.kind == "inf" or (b.kind == "finite" and b.n == 0):
        return format.infinity | (format.sign if negative else 0), False
    if b.kind == "inf" or a.n == 0:
        return format.sign if negative else 0, False
    # 130 bits of the quotient, and one more that tells whether there is a rest.
    shift = 130 + b.n.bit_length()
    quotient, rest = divmod(a.n << shift, b.n)
    number = Number("finite", negative, 2 * quotient + bool(rest), a.e - b.e - shift - 1)
    return exact.round_number(number, format, mode), exact.is_tiny(number, format, mode)


def root_of(a: Number, format: exact.Format, mode: str) -> int:
    if a.kind == "nan" or (a.negative and (a.kind == "inf" or a.n)):
        return exact.canonical_nan(format)
    if a.kind == "inf":
        return format.infinity
    shift = 260 + (a.e & 1)
    n = a.n << shift
    root = math.isqrt(n)
    number = Number("finite", a.negative, 2 * root + (root * root != n), (a.e - shift) // 2 - 1)
    return exact.round_number(number, format, mode)


@pytest.mark.parametrize("op", QUOTIENTS, ids=lambda op: op.opcode_text)
def test_division_and_roots(op: Any) -> None:
    format = FORMATS[op.type]
    names = "ab" if isinstance(op, floating.div) else "a"
    operands = [float_edges(op.type, COUNT, 30 + i) for i, _ in enumerate(names)]
    if op.type == "f64" and len(operands) == 2:
        near_limits(operands)
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    inputs = {name: (op.type, words) for name, words in zip(names, operands, strict=True)}
    found = lanewise(text, inputs, {"d": op.type})["d"].copy()
    expected = []
    for words in zip(*(words.tolist() for words in operands), strict=True):
        ftz = op.ftz and op.type == "f32"
        numbers = [decode(flushed(word, format) if ftz else word, format) for word in words]
        if isinstance(op, floating.sqrt):
            word, tiny = root_of(numbers[0], format, op.rounding), False
        else:
            a, b = [ONE, *numbers][-2:]
            word, tiny = divided(a, b, format, op.rounding)
        expected.append(word & format.sign if ftz and tiny else word)
    if op.type == "f64":  # which NaN, the manual leaves open
        nan = decode_nan(found, "f64")
        assert nan == decode_nan(expected, "f64")
        found[nan] = exact.canonical_nan(format)
    same(found, expected, text, dict(zip(names, operands, strict=True)))


PACKED = legal(floating.add_f32x2, floating.sub_f32x2, floating.mul_f32x2, floating.fma_f32x2)


@pytest.mark.skipif(ON_GPU, reason=f"{TARGET} has no .f32x2")
@pytest.mark.parametrize("op", PACKED, ids=lambda op: op.opcode_text)
def test_packed(op: Any) -> None:
    names = "abc" if "c" in op.form.operands else "ab"
    halves = [float_edges("f32", 2 * COUNT, 60 + i) for i, _ in enumerate(names)]
    inputs = {name: ("b64", words.view(np.uint64)) for name, words in zip(names, halves, strict=True)}
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    found = lanewise(text, inputs, {"d": "b64"})["d"].view(np.uint32)
    scalar = {"add": floating.add, "sub": floating.sub, "mul": floating.mul, "fma": floating.fma}[op.form.opcode]
    one = scalar.bound({"type": "f32", "rounding": op.rounding, "ftz": op.ftz, "sat": False}, {})
    expected = [computed(one, *words) for words in zip(*(words.tolist() for words in halves), strict=True)]
    same(found, expected, text, dict(zip(names, halves, strict=True)))


@pytest.mark.parametrize("op", legal(floating.abs, floating.neg), ids=lambda op: op.opcode_text)
def test_signs(op: Any) -> None:
    format = FORMATS[op.type]
    a = float_edges(op.type, COUNT, 5)
    a = a[[decode(word, format).kind != "nan" for word in a.tolist()]]  # which NaN, the manual leaves open
    found = lanewise(f"{op.opcode_text} %d, %a;", {"a": (op.type, a)}, {"d": op.type})["d"]
    words = [flushed(word, format) if op.ftz else word for word in a.tolist()]
    wanted = [w & ~format.sign if isinstance(op, floating.abs) else w ^ format.sign for w in words]
    same(found, wanted, op.opcode_text, {"a": a})


@pytest.mark.parametrize("op", legal(floating.min, floating.max), ids=lambda op: op.opcode_text)
def test_extremes(op: Any) -> None:
    format, smaller = FORMATS[op.type], isinstance(op, floating.min)
    a, b = float_edges(op.type, 900, 6), float_edges(op.type, 900, 7)
    found = lanewise(f"{op.opcode_text} %d, %a, %b;", {"a": (op.type, a), "b": (op.type, b)}, {"d": op.type})["d"]
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        x, y = (flushed(w, format) if op.ftz else w for w in (x, y))
        sign = (x ^ y) & format.sign if op.xorsign else 0
        if op.xorsign:
            x, y = x & ~format.sign, y & ~format.sign
        m, n = decode(x, format), decode(y, format)
        if m.kind == n.kind == "nan" or (op.NaN and "nan" in (m.kind, n.kind)):
            expected.append(exact.canonical_nan(format))
        elif "nan" in (m.kind, n.kind):
            expected.append(sign | (y if m.kind == "nan" else x))
        else:
            # -0.0 is less than +0.0 (9.7.3.11).
            first = exact.less(m, n) or (not exact.less(n, m) and m.negative)
            expected.append(sign | (x if first == smaller else y))
    if op.type == "f64":
        nan = decode_nan(found, "f64")
        assert nan == decode_nan(expected, "f64")
        found[nan] = exact.canonical_nan(format)
    same(found, expected, op.opcode_text, {"a": a, "b": b})


FLOAT_COMPARES = [op for op in legal(predicate.setp) if op.type[0] == "f"]


@pytest.mark.parametrize("op", FLOAT_COMPARES, ids=lambda op: op.opcode_text)
def test_compare_floats(op: Any) -> None:
    format = FORMATS[op.type]
    a, b = float_edges(op.type, 300, 8), float_edges(op.type, 300, 9)
    b[::5] = a[::5]
    c = float_edges("f32", 300, 10) & 1
    combine = getattr(op, "combine", None)
    text = f"{op.opcode_text} %p|%q, %a, %b{', %c' if combine else ''};"
    inputs = {"a": (op.type, a), "b": (op.type, b), "c": ("pred", c)}
    found = lanewise(text, inputs, {"p": "pred", "q": "pred"})

    def holds(x: int, y: int) -> bool:
        m, n = (decode(flushed(w, format) if op.ftz else w, format) for w in (x, y))
        unordered = "nan" in (m.kind, n.kind)
        if op.compare in ("num", "nan"):
            return unordered == (op.compare == "nan")
        if unordered:
            return op.compare.endswith("u")
        below, above = exact.less(m, n), exact.less(n, m)
        return {
            "eq": not below and not above, "ne": below or above, "lt": below, "le": not above, "gt": above,
            "ge": not below,
        }[op.compare.removesuffix("u")]  # fmt: skip

    expected_p, expected_q = [], []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        result = holds(x, y)
        for target, first in ((expected_p, result), (expected_q, not result)):
            target.append(
                int({"and": first and bool(z), "or": first or bool(z), "xor": first != bool(z), None: first}[combine])
            )
    same(found["p"], expected_p, text, {"a": a, "b": b})
    same(found["q"], expected_q, text, {"a": a, "b": b})
