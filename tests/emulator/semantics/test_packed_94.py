"""Packed arithmetic and comparison of PTX ISA 9.4, against exact fractions and lists of values of ml_dtypes."""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.instr import alternate, mixed, predicate
from tests.support.exact import FORMATS, add, decode, float_edges, multiply, round_number, total
from tests.support.harness import ON_GPU, edges, lanewise, module, same

pytestmark = pytest.mark.skipif(ON_GPU, reason="sm_100a and sm_107a")

COUNT = 60
DTYPES: dict[str, Any] = {
    "e4m3x4": ml_dtypes.float8_e4m3fn, "e5m2x4": ml_dtypes.float8_e5m2, "e2m3x4": ml_dtypes.float6_e2m3fn,
    "e3m2x4": ml_dtypes.float6_e3m2fn, "e2m1x4": ml_dtypes.float4_e2m1fn, "e2m1p4x4": ml_dtypes.float4_e2m1fn,
    "ue8m0x4": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@cache
def values(type: str) -> list[float]:
    """The value of each byte; bits above those of the format do not count."""
    bits = {"e2m3x4": 6, "e3m2x4": 6, "e2m1x4": 4, "e2m1p4x4": 4}.get(type, 8)
    codes = (np.arange(256) & ((1 << bits) - 1)).astype(np.uint8)
    return [float(each) for each in codes.view(DTYPES[type]).astype(np.float64)]


def elements(word: int, type: str) -> list[float]:
    width = 4 if type == "e2m1x4" else 8
    return [values(type)[word >> width * i & ((1 << width) - 1)] for i in range(4)]


def rounded(value: float | Fraction, type: str, negative_zero: bool, satfinite: bool) -> int:
    """The byte nearest to an exact value, ties to the even one."""
    finite = {code: Fraction(each) for code, each in enumerate(values(type)[:128]) if np.isfinite(each)}
    last = max(finite)
    if isinstance(value, float):
        if value != value:
            return 0x7F
        sign = 0x80 if value < 0 else 0
        return sign | (last if satfinite or type == "e4m3x4" else last + 1) if type == "e5m2x4" or satfinite else 0x7F
    sign = 0x80 if value < 0 or (value == 0 and negative_zero) else 0
    magnitude = abs(value)
    beyond = finite[last] + (finite[last] - finite[last - 1]) / 2
    if magnitude > beyond or (magnitude == beyond and last % 2):
        return sign | (last if satfinite else last + 1) if satfinite or type == "e5m2x4" else 0x7F
    return sign | min(finite, key=lambda code: (abs(finite[code] - magnitude), code % 2))


def exactly(op: Any, a: float, b: float, c: float) -> tuple[float | Fraction, bool]:
    """The result before rounding, and whether a zero is negative."""
    with np.errstate(all="ignore"):
        product = np.float64(a) * np.float64(b) if isinstance(op, alternate.mul) else np.float64(a)
        if type(op) is alternate.mul:
            plain = product
        else:
            plain = product + (-np.float64(c) if isinstance(op, alternate.sub) else np.float64(c))
    if not np.isfinite(plain):
        return float(plain), False
    exact = Fraction(a) * Fraction(b) if isinstance(op, alternate.mul) else Fraction(a)
    if type(op) is not alternate.mul:
        exact += -Fraction(c) if isinstance(op, alternate.sub) else Fraction(c)
    return exact, bool(np.signbit(plain))


def alternates() -> list[Any]:
    rng = random.Random(5)
    found = []
    for form in (alternate.add, alternate.sub, alternate.mul, alternate.fma):
        found += rng.sample([*form.combinations()], 4)
    return found


@pytest.mark.parametrize("op", alternates(), ids=lambda op: op.opcode_text)
def test_alternate(op: Any) -> None:
    names = {"a": op.atype, **({"b": op.btype} if isinstance(op, alternate.mul) else {})}
    if type(op) is not alternate.mul:
        names["c"] = op.dtype
    inputs = {name: ("b16" if t == "e2m1x4" else "b32", edges(16 if t == "e2m1x4" else 32, COUNT, i + len(t)))
              for i, (name, t) in enumerate(names.items())}  # fmt: skip
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    found = lanewise(text, inputs, {"d": "b32"}, target="sm_100a", version="9.4")["d"]
    expected = []
    for row in zip(*(words.tolist() for _, words in inputs.values()), strict=True):
        given = {name: elements(word, names[name]) for name, word in zip(names, row, strict=True)}
        ones = [1.0] * 4
        word = 0
        for i in range(4):
            value, negative = exactly(op, given["a"][i], given.get("b", ones)[i], given.get("c", ones)[i])
            word |= rounded(value, op.dtype, negative, op.satfinite) << 8 * i
        expected.append(word)
    same(found, expected, text, {name: words for name, (_, words) in inputs.items()})


def halves_of(words: Sequence[int], bits: int) -> list[list[int]]:
    return [[word >> bits * i & ((1 << bits) - 1) for word in words] for i in (0, 1)]


def pairs(name: str, bits: int, seed: int) -> Any:
    return float_edges(name, 2 * COUNT, seed).view(np.uint32 if bits == 16 else np.uint64)


@pytest.mark.parametrize("atype", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("rounding", ["", ".rz", ".rm", ".rp"])
@pytest.mark.parametrize("opcode", ["add", "sub", "fma"])
def test_sums_of_pairs(opcode: str, rounding: str, atype: str) -> None:
    half, single = FORMATS[atype[:-2]], FORMATS["f32"]
    mode = rounding[1:] or "rn"
    a, b, c = pairs(atype[:-2], 16, 1), pairs("f32", 32, 2), pairs("f32", 32, 3)
    inputs = {"a": ("b32", a), **({"b": ("b64", b)} if opcode == "fma" else {}), "c": ("b64", c)}
    types = ".f32x2" if opcode == "fma" else ""
    text = f"{opcode}.{mode}.f32x2.{atype}{types}.f32x2 %d, {', '.join('%' + each for each in inputs)};"
    found = lanewise(text, inputs, {"d": "b64"}, target="sm_107a", version="9.4")["d"]
    sides = []
    for x, y, z in zip(halves_of(a.tolist(), 16), halves_of(b.tolist(), 32), halves_of(c.tolist(), 32), strict=True):
        side = []
        for left, middle, right in zip(x, y, z, strict=True):
            addend = decode(right ^ (single.sign if opcode == "sub" else 0), single)
            value = decode(left, half)
            if opcode == "fma":
                value = multiply(value, decode(middle, single))
            side.append(add(value, addend, single, mode))
        sides.append(side)
    same(found, [low | high << 32 for low, high in zip(*sides, strict=True)], text)


@pytest.mark.parametrize("opcode", ["add", "sub", "mul"])
def test_singles_as_bf16(opcode: str) -> None:
    single, half = FORMATS["f32"], FORMATS["bf16"]
    a, c = pairs("f32", 32, 4), pairs("f32", 32, 5)
    text = f"{opcode}.rz.bf16x2.f32x2.f32x2 %d, %a, %c;"
    found = lanewise(text, {"a": ("b64", a), "c": ("b64", c)}, {"d": "b32"}, target="sm_107a", version="9.4")["d"]
    sides = []
    for x, z in zip(halves_of(a.tolist(), 32), halves_of(c.tolist(), 32), strict=True):
        side = []
        for left, right in zip(x, z, strict=True):
            one, other = decode(left, single), decode(right ^ (single.sign if opcode == "sub" else 0), single)
            if opcode == "mul":
                side.append(round_number(multiply(one, other), half, "rz"))
            elif one.kind == other.kind == "finite" and total(one, other).n:
                side.append(round_number(total(one, other), half, "rz"))
            else:
                side.append(add(one, other, half, "rz"))
        sides.append(side)
    same(found, [low | high << 16 for low, high in zip(*sides, strict=True)], text)


SETS = [op for op in predicate.set_packed.combinations() if not op.modifier_problems()]


@pytest.mark.parametrize("op", SETS[::2], ids=lambda op: op.opcode_text)
def test_set_packed(op: Any) -> None:
    a, b = edges(32, COUNT, 6), edges(32, COUNT, 7)
    b[::5] = a[::5]
    text = f"{op.opcode_text} %d, %a, %b;"
    found = lanewise(text, {"a": ("b32", a), "b": ("b32", b)}, {"d": "b32"}, target="sm_107a", version="9.4")["d"]
    count = int(op.type[-1])
    element = np.dtype(f"{'i' if op.type[0] == 's' else 'u'}{4 // count}")
    compare: str = op.compare or ""
    order = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(compare, compare)
    expected = []
    rows = [words.view(element).reshape(-1, count).tolist() for words in (a, b)]
    for left, right in zip(*rows, strict=True):
        true = [getattr(operator, order)(x, y) for x, y in zip(left, right, strict=True)]
        expected.append(sum(((1 << 32 // count) - 1) << 32 // count * i for i, each in enumerate(true) if each))
    same(found, expected, text)


@pytest.mark.parametrize(
    "line",
    [
        str(next(mixed.add_f16x2.variants())),
        str(next(mixed.mul_halves.variants())),
        "add.bf16x2.f32x2.f32x2 %x_b32_0, %x_b64_1, %x_b64_2;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.sync_restrict::shared::read::mma::a.b64 [%x_b64_0];",
    ],
)
def test_what_no_manual_defines_is_incomplete(line: str) -> None:
    registers = ".reg .b32 %x_b32_<300>; .reg .b64 %x_b64_<300>;"
    report = Emulator("sm_107a").launch(
        Kernel.from_ptx(module(f"{registers} {line} ret;", "", target="sm_107a", version="9.4")), 1, 32, []
    )
    assert report.status == "incomplete", report.summary()
