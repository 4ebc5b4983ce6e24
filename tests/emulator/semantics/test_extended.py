"""Sums with a carry: what the chain of words leaves, the last word clamped or of 16 bits (9.7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.instr import extended
from tests.support.harness import bits_of, edges, lanewise, same, signed

COUNT = 200


def legal(*forms: Any) -> list[Any]:
    return [each for form in forms for each in form.combinations() if not each.modifier_problems()]


def half(op: Any, a: int, b: int) -> int:
    """The low or high half of a product, as a word; of 16-bit types the high half of 64 bits (measured, H100)."""
    bits = bits_of(op.type)
    if op.type[0] == "s":
        a, b = signed(a, bits), signed(b, bits)
    return (a * b >> (max(bits, 32) if op.half == "hi" else 0)) & ((1 << bits) - 1)


@pytest.mark.parametrize("op", legal(extended.addc, extended.subc, extended.madc), ids=lambda op: op.opcode_text)
def test_words_with_a_carry(op: Any) -> None:
    """A carry from 32-bit words, the instruction, and the carry after it by addc."""
    bits = bits_of(op.type)
    x, y = edges(32, COUNT, 1), edges(32, COUNT, 2)
    x[::4] = y[::4]
    a, b, c = (edges(bits, COUNT, seed) for seed in (3, 4, 5))
    subtract, product = isinstance(op, extended.subc), isinstance(op, extended.madc)
    first = "sub.cc.u32" if subtract else "add.cc.u32"
    text = f"{first} %e, %x, %y; {op.opcode_text} %d, %a, %b{', %c' if product else ''}; addc.u32 %f, 0, 0;"
    kind = f"b{bits}"
    inputs = {"x": ("b32", x), "y": ("b32", y), "a": (kind, a), "b": (kind, b), "c": (kind, c)}
    found = lanewise(text, inputs, {"d": kind, "e": "b32", "f": "b32"})
    expected, carries = [], []
    for u, v, p, q, r in zip(*(each.tolist() for each in (x, y, a, b, c)), strict=True):
        # A subtraction carries where it does not borrow (measured, H100).
        carry = int(u >= v) if subtract else u + v >> 32
        left, right = (half(op, p, q), r) if product else (p, q)
        total = left - right - 1 + carry if subtract else left + right + carry
        out = int(total >= 0) if subtract else total >> bits
        if op.sat and not product:
            left, right = signed(left, bits), signed(right, bits)
            total = left - right - 1 + carry if subtract else left + right + carry
            total = min(max(total, -(1 << bits - 1)), (1 << bits - 1) - 1)
        expected.append(total & ((1 << bits) - 1))
        carries.append(out if op.cc else carry)
    same(found["d"], expected, text, {"x": x, "y": y, "a": a, "b": b, "c": c})
    same(found["f"], carries, text, {"x": x, "y": y, "a": a, "b": b, "c": c})


def test_carries_of_lanes_that_are_not_there() -> None:
    """A guarded add.cc leaves the carry of the other lanes."""
    a = edges(32, COUNT, 8)
    text = """.reg .pred %odd;
.reg .b32 %bit;
and.b32 %bit, %a, 1;
setp.ne.u32 %odd, %bit, 0;
        add.cc.u32 %e, 0xffffffff, 1;
        @%odd add.cc.u32 %e, 0, 0;
        addc.u32 %d, 0, 0;
        """
    found = lanewise(text, {"a": ("b32", a)}, {"d": "b32", "e": "b32"})["d"]
    same(found, [0 if word & 1 else 1 for word in a.tolist()], text, {"a": a})
