"""Arithmetic with a carry, as sums and products of wide integers use it. References from PTX ISA 9.7.2."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import words
from microtests.harness.lanes import COUNT, elements
from microtests.harness.numbers import signed
from ptxgen.instr import extended


def _columns(kind: str, names: str, seed: int) -> dict[str, tuple[str, NDArray[Any]]]:
    rng = np.random.default_rng(seed)
    return {name: (kind, words(kind, int(kind[1:]), COUNT, rng)) for name in names}


def _rows(columns: dict[str, tuple[str, NDArray[Any]]]) -> list[list[int]]:
    return [[int(each) for each in row] for row in zip(*(values for _, values in columns.values()), strict=True)]


@microtest(*((op, kind) for op in ("add", "sub") for kind in ("u32", "s32", "u64", "s64")))
def wide_sum(draft: Draft, op: str, kind: Any) -> None:
    """Three words and then none: add.cc, addc.cc, addc.cc, addc of zeros, which gives the last carry."""
    bits = int(kind[1:])
    given = _columns(kind, "abcuvw", 1)

    def words_of() -> list[list[int]]:
        rows = []
        for a, b, c, u, v, w in _rows(given):
            x, y = a | b << bits | c << 2 * bits, u | v << bits | w << 2 * bits
            total = (x + y if op == "add" else x - y) & ((1 << 4 * bits) - 1)
            rows.append([total >> (bits * i) & ((1 << bits) - 1) for i in range(4)])
        return rows

    def body(r: dict[str, Any]) -> None:
        first, then = (extended.add_cc, extended.addc) if op == "add" else (extended.sub_cc, extended.subc)
        draft(first(r["d"], r["a"], r["u"], type=kind))
        draft(then(r["e"], r["b"], r["v"], cc=True, type=kind))
        draft(then(r["f"], r["c"], r["w"], cc=True, type=kind))
        draft(then(r["g"], 0, 0, type=kind))

    outputs = {name: (f"b{bits}", lambda i=i: [row[i] for row in words_of()]) for i, name in enumerate("defg")}
    elements(draft, given, outputs, body)


@microtest(*((half, kind) for half in ("lo", "hi") for kind in ("u32", "s32", "u64", "s64")))
def product_sum(draft: Draft, half: Any, kind: Any) -> None:
    """mad.cc, madc.cc and madc in a row, then the last carry by addc."""
    bits = int(kind[1:])
    mask = (1 << bits) - 1
    given = _columns(kind, "abcuv", 2)

    def part(x: int, y: int) -> int:
        if kind[0] == "s":
            x, y = signed(x, bits), signed(y, bits)
        return (x * y if half == "lo" else x * y >> bits) & mask

    def rows() -> list[list[int]]:
        made = []
        for a, b, c, u, v in _rows(given):
            first = part(a, b) + c
            second = part(u, v) + b + (first >> bits)
            third = part(a, v) + u + (second >> bits)
            made.append([first & mask, second & mask, third & mask, third >> bits & 1])
        return made

    def body(r: dict[str, Any]) -> None:
        draft(extended.mad_cc(r["d"], r["a"], r["b"], r["c"], half=half, type=kind))
        draft(extended.madc(r["e"], r["u"], r["v"], r["b"], half=half, cc=True, type=kind))
        draft(extended.madc(r["f"], r["a"], r["v"], r["u"], half=half, cc=True, type=kind))
        draft(extended.addc(r["g"], 0, 0, type=kind))

    outputs = {name: (f"b{bits}", lambda i=i: [row[i] for row in rows()]) for i, name in enumerate("defg")}
    elements(draft, given, outputs, body)


@microtest(*((op, kind, sat) for op in ("add", "sub") for kind, sat in (("u16", False), ("s16", False), ("s32", True))))
def last_sum(draft: Draft, op: str, kind: Any, sat: bool) -> None:
    """What takes a carry and leaves none may have 16 bits, or clamp (ptxas has it, the manual does not)."""
    bits = int(kind[1:])
    wide = _columns("u32", "xy", 3)
    given = {**_columns(kind, "ab", 4), **wide}

    def results() -> list[int]:
        found = []
        for a, b, x, y in _rows(given):
            carry = int(x + y >= 2**32) if op == "add" else int(x >= y)
            if not sat:
                found.append((a + b + carry if op == "add" else a - b - 1 + carry) % 2**bits)
                continue
            p, q = signed(a, 32), signed(b, 32)
            total = p + q + carry if op == "add" else p - q - 1 + carry
            found.append(min(max(total, -(2**31)), 2**31 - 1) % 2**32)
        return found

    def body(r: dict[str, Any]) -> None:
        first, then = (extended.add_cc, extended.addc) if op == "add" else (extended.sub_cc, extended.subc)
        draft(first(draft.reg("b32"), r["x"], r["y"], type="u32"))
        draft(then(r["d"], r["a"], r["b"], sat=sat, type=kind))

    elements(draft, given, {"d": (f"b{bits}", results)}, body)


@microtest(*((half, kind, False) for half in ("lo", "hi") for kind in ("u16", "s16")), ("hi", "s32", True))
def last_product(draft: Draft, half: Any, kind: Any, sat: bool) -> None:
    """madc alike: the high half of 16-bit types is that of 64 bits, and .sat clamps nothing (measured, H100)."""
    bits = int(kind[1:])
    given = {**_columns(kind, "abc", 5), **_columns("u32", "xy", 6)}

    def results() -> list[int]:
        found = []
        for a, b, c, x, y in _rows(given):
            p, q = (signed(a, bits), signed(b, bits)) if kind[0] == "s" else (a, b)
            part = p * q if half == "lo" else p * q >> 32
            found.append((part + c + int(x + y >= 2**32)) % 2**bits)
        return found

    def body(r: dict[str, Any]) -> None:
        draft(extended.add_cc(draft.reg("b32"), r["x"], r["y"], type="u32"))
        draft(extended.madc(r["d"], r["a"], r["b"], r["c"], half=half, sat=sat, type=kind))

    elements(draft, given, {"d": (f"b{bits}", results)}, body)
