"""Floating-point arithmetic and comparison, bit by bit against exact integers rounded once."""

from __future__ import annotations

from typing import Any

import exact
import pytest
from exact import FORMATS, Number, decode, float_edges, flushed
from harness import lanewise, launch, same

from ptxgen.instr import floating, predicate
from ptxgen.instr.form import Instruction

COUNT = 420
F32 = FORMATS["f32"]


def legal(*forms: type[Instruction]) -> list[Any]:
    return [each for form in forms for each in form.combinations() if not each.modifier_problems()]


def is_modelled(op: Any) -> bool:
    """.f64 is here to the nearest only, and without fma."""
    return op.type == "f32" or (not isinstance(op, floating.fma) and getattr(op, "rounding", None) in (None, "rn"))


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
        if isinstance(op, floating.fma):
            a = exact.multiply(*numbers[:2])
        if isinstance(op, floating.sub):
            b = b._replace(negative=not b.negative)
        value = exact.total(a, b)
        result = exact.add(a, b, format, mode)
    if op.ftz and exact.is_tiny(value, format, mode):
        result &= format.sign
    return saturated(result) if op.sat else result


ARITHMETIC = [op for op in legal(floating.add, floating.sub, floating.mul, floating.fma) if is_modelled(op)]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.opcode_text)
def test_arithmetic(op: Any) -> None:
    names = "abc" if isinstance(op, floating.fma) else "ab"
    operands = [float_edges(op.type, COUNT, seed + len(op.opcode_text)) for seed, _ in enumerate(names)]
    # Cancellation: the second (the third) operand undoes the first ones.
    sign = FORMATS[op.type].sign
    operands[-1][::7] = operands[0][::7] ^ operands[0].dtype.type(sign if not isinstance(op, floating.sub) else 0)
    if isinstance(op, floating.fma):
        operands[1][::14] = 0x3F800000
    if op.type == "f32" and isinstance(op, floating.mul | floating.fma):  # products next to the smallest normal
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


def decode_nan(words: Any, type: str) -> list[int]:
    return [i for i, word in enumerate(words) if decode(int(word), FORMATS[type]).kind == "nan"]


UNMODELLED = [
    op for op in legal(floating.add, floating.sub, floating.mul, floating.fma) if not is_modelled(op)
]  # fmt: skip


@pytest.mark.parametrize("op", UNMODELLED, ids=lambda op: op.opcode_text)
def test_what_is_not_modelled_is_incomplete(op: Any) -> None:
    operands = ", ".join("%d" for _ in op.form.operands)
    report, _ = launch(f".reg .f64 %d; mov.f64 %d, 0d3FF0000000000000; {op.opcode_text} {operands}; ret;")
    assert report.status == "incomplete"


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
