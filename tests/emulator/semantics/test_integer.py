"""Integer arithmetic, logic, comparison, selection and moves, element by element against Python's integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.semantics import find
from ptxgen.instr import integer, logic, move, predicate
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.targets import parse_target
from tests.support.harness import ON_GPU, TARGET, bits_of, edges, lanewise, same, signed

COUNT = 260


def legal(*forms: type[Instruction]) -> list[Any]:
    """Every legal choice of modifiers of these declarations."""
    return [each for form in forms for each in form.combinations() if not each.modifier_problems()]


def value(word: int, type: str) -> int:
    return signed(word, bits_of(type)) if type[0] == "s" else word


def quotient(a: int, b: int) -> int:
    """Rounded towards zero (9.7.1.8)."""
    magnitude = abs(a) // abs(b)
    return -magnitude if (a < 0) != (b < 0) else magnitude


def half(op: Any, product: int) -> int:
    return product >> bits_of(op.type) if op.half == "hi" else product


def clamp(op: Any, number: int) -> int:
    """Cut to the range of the type, or of a part of it."""
    part = op.type.partition("x")[0]
    low = -(1 << bits_of(part) - 1) if part[0] == "s" else 0
    return min(max(number, low), low + (1 << bits_of(part)) - 1)


ARITHMETIC: dict[type[Instruction], Callable[..., int]] = {
    integer.add: lambda op, a, b: a + b,
    integer.sub: lambda op, a, b: a - b,
    integer.add_sat: lambda op, a, b: clamp(op, a + b),
    integer.sub_sat: lambda op, a, b: clamp(op, a - b),
    integer.mul: lambda op, a, b: half(op, a * b),
    integer.mad: lambda op, a, b, c: half(op, a * b) + c,
    integer.mul_wide: lambda op, a, b: a * b,
    integer.mad_wide: lambda op, a, b, c: a * b + c,
    integer.div: lambda op, a, b: quotient(a, b),
    integer.rem: lambda op, a, b: a - quotient(a, b) * b,
    integer.abs: lambda op, a: abs(a),
    integer.neg: lambda op, a: -a,
    integer.min: lambda op, a, b: max(min(a, b), 0) if op.relu else min(a, b),
    integer.max: lambda op, a, b: max(a, b, 0) if op.relu else max(a, b),
}


@pytest.mark.parametrize("op", legal(*ARITHMETIC), ids=lambda op: op.opcode_text)
def test_arithmetic(op: Any) -> None:
    type = op.type
    wide = isinstance(op, integer.mul_wide | integer.mad_wide)
    result = f"{type[0]}{2 * bits_of(type)}" if wide else type
    part, _, packed = type.partition("x")
    epoch = ("sm_120a", "9.2") if op.availability_problems(parse_target(TARGET), (8, 8)) else (TARGET, "8.8")
    if ON_GPU and epoch[0] != TARGET:
        pytest.skip(f"not on {TARGET}")
    names = [name for name in ("a", "b", "c") if name in op.form.operands]
    types = [result if name == "c" else type for name in names]
    operands = [edges(bits_of(each), COUNT, seed) for seed, each in enumerate(types)]
    if isinstance(op, integer.div | integer.rem):
        operands[1][operands[1] == 0] = 7  # by zero is unspecified
    registers = {n: ("b32" if packed else t, words) for n, t, words in zip(names, types, operands, strict=True)}
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    found = lanewise(text, registers, {"d": "b32" if packed else result}, target=epoch[0], version=epoch[1])["d"]

    def one(type: str, *words: int) -> int:
        numbers = [value(word, result if name == "c" else type) for name, word in zip(names, words, strict=True)]
        return ARITHMETIC[op.__class__](op, *numbers) & ((1 << bits_of(result if not packed else type)) - 1)

    if packed:
        bits = bits_of(part)
        expected = [
            sum(
                one(part, *(w >> shift & (1 << bits) - 1 for w in words)) % (1 << bits) << shift
                for shift in range(0, 32, bits)
            )
            for words in zip(*(array.tolist() for array in operands), strict=True)
        ]
    else:
        expected = [one(type, *words) for words in zip(*(array.tolist() for array in operands), strict=True)]
    same(found, expected, text, dict(zip(names, operands, strict=True)))


def clamped(number: int) -> int:
    return min(max(number, -(2**31)), 2**31 - 1)


def low_24(op: Any, word: int) -> int:
    return signed(word & 0xFFFFFF, 24) if getattr(op, "type", "s32") == "s32" else word & 0xFFFFFF


def product_24(op: Any, a: int, b: int) -> int:
    product = low_24(op, a) * low_24(op, b)
    return product if getattr(op, "half", "hi") == "lo" else product >> 16


def highest(op: Any, a: int) -> int:
    """The highest bit that is not a copy of the sign (9.7.1.16)."""
    number = value(a, op.type)
    place = (~number if number < 0 else number).bit_length() - 1
    return place & 0xFFFFFFFF if place < 0 or not op.shiftamt else bits_of(op.type) - 1 - place


def nth(op: Any, mask: int, base: int, offset: int) -> int:
    """9.7.1.17; base is from 0 to 31."""
    base, offset = base % 32, signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    places = [i for i in (range(base, 32) if offset > 0 else range(base, -1, -1)) if mask >> i & 1]
    return places[abs(offset) - 1] if abs(offset) <= len(places) else 0xFFFFFFFF


def inserted(op: Any, a: int, b: int, c: int, d: int) -> int:
    """9.7.1.20; c and d count as in bfe."""
    bits = bits_of(op.type)
    if bits == 32:
        c, d = c & 255, d & 255
    return sum((a >> i - c & 1 if c <= i < c + d else b >> i & 1) << i for i in range(bits))


def extended(op: Any, a: int, b: int) -> int:
    """9.7.1.21."""
    count = b & 31 if op.mode == "wrap" else b
    if count >= 32:
        return a
    low = a & (1 << count) - 1
    return signed(low, count) & 0xFFFFFFFF if op.type == "s32" and count else low


def mask_of(op: Any, a: int, b: int) -> int:
    """9.7.1.22."""
    start, count = (a & 31, b & 31) if op.mode == "wrap" else (a, min(b, 32))
    return ((1 << count) - 1 << start) & 0xFFFFFFFF if start < 32 else 0


def dot(op: Any, a: int, b: int, c: int) -> int:
    halves = isinstance(op, integer.dp2a)

    def split(word: int, type: str, bits: int) -> list[int]:
        found = [word >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
        return [signed(each, bits) for each in found] if type == "s32" else found

    second = split(b, op.btype, 8)
    if halves:
        second = second[2:] if op.half == "hi" else second[:2]
    return c + sum(x * y for x, y in zip(split(a, op.atype, 16 if halves else 8), second, strict=True))


def without_carry(op: Any, a: int, b: int, c: int) -> int:
    product = 0
    for i in range(64):
        product ^= a << i if b >> i & 1 else 0
    return (product >> 64 if op.half == "hi" else product) ^ c


#: Functions of words, with the types of the operands besides the instruction's own.
OTHERS: dict[type[Instruction], tuple[Callable[..., int], dict[str, str]]] = {
    integer.mad_sat: (lambda op, a, b, c: clamped((signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32)), {}),
    integer.mul24: (product_24, {}),
    integer.mad24: (lambda op, a, b, c: product_24(op, a, b) + c, {}),
    integer.mad24_sat: (lambda op, a, b, c: clamped(product_24(op, a, b) + signed(c, 32)), {}),
    integer.clmad: (without_carry, {}),
    integer.sad: (lambda op, a, b, c: c + abs(value(a, op.type) - value(b, op.type)), {}),
    integer.popc: (lambda op, a: a.bit_count(), {"d": "u32"}),
    integer.clz: (lambda op, a: bits_of(op.type) - a.bit_length(), {"d": "u32"}),
    integer.bfind: (highest, {"d": "u32"}),
    integer.fns: (nth, {}),
    integer.brev: (lambda op, a: int(f"{a:0{bits_of(op.type)}b}"[::-1], 2), {}),
    integer.bfi: (inserted, {"c": "u32", "d": "u32"}),
    integer.szext: (extended, {}),
    integer.bmsk: (mask_of, {}),
    integer.dp4a: (dot, {}),
    integer.dp2a: (dot, {}),
}


@pytest.mark.parametrize("op", legal(*OTHERS), ids=lambda op: op.opcode_text)
def test_others(op: Any) -> None:
    reference, types = OTHERS[type(op)]
    version = "9.3" if isinstance(op, integer.clmad) else "8.8"
    if ON_GPU and version != "8.8":
        pytest.skip("the driver is older")
    result, *names = op.form.operands
    own = f"b{bits_of(getattr(op, 'type', 'b32'))}"
    operands = {name: edges(bits_of(types.get(name, own)), COUNT, 30 + i) for i, name in enumerate(names)}
    for name, most in (("base", 32), ("offset", 41)):
        if name in operands:
            operands[name] = (operands[name] % most - (most == 41) * np.uint32(20)).astype(np.uint32)
    for name in {"b", "c", "d"} & set(names):  # amounts, half of them small
        if isinstance(op, integer.bfi | integer.szext | integer.bmsk) and (name != "b" or result == "d"):
            operands[name][::2] %= 70
    kind = own if types.get(result) is None else types[result]
    text = f"{op.opcode_text} %{result}_, {', '.join('%' + name for name in names)};"
    inputs = {name: (types.get(name, own), words) for name, words in operands.items()}
    found = lanewise(text, inputs, {f"{result}_": kind}, version=version)[f"{result}_"]
    mask = (1 << bits_of(kind)) - 1
    expected = [
        reference(op, *words) & mask for words in zip(*(each.tolist() for each in operands.values()), strict=True)
    ]
    same(found, expected, text, operands)


def test_every_integer_form_is_here() -> None:
    declared = {each for each in vars(integer).values() if isinstance(each, type) and issubclass(each, Instruction)}
    assert {each for each in declared if find(each)} - {integer.bfe} == {*ARITHMETIC, *OTHERS}


@pytest.mark.parametrize("op", legal(integer.bfe), ids=lambda op: op.opcode_text)
def test_bit_fields(op: Any) -> None:
    """9.7.1.19, bit by bit: bits past the top are copies of the sign, or zero."""
    bits, rng = bits_of(op.type), np.random.default_rng(3)
    a = edges(bits, 3000, 1)
    b = np.concatenate([rng.integers(0, bits + 4, 2500), edges(32, 500, 2)]).astype(np.uint32)
    c = np.concatenate([rng.integers(0, bits + 4, 2500), edges(32, 500, 3)]).astype(np.uint32)
    found = lanewise(
        f"{op.opcode_text} %d, %a, %b, %c;", {"a": (op.type, a), "b": ("u32", b), "c": ("u32", c)}, {"d": op.type}
    )["d"]
    expected = []
    for word, position, length in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        if bits == 32:  # what the H200 does with more than the manual's 0 to 255
            position, length = position & 255, length & 255
        sign = 0
        if op.type[0] == "s" and length:
            sign = word >> min(position + length - 1, bits - 1) & 1
        taken = [word >> position + i & 1 if i < length and position + i < bits else sign for i in range(bits)]
        expected.append(sum(bit << i for i, bit in enumerate(taken)))
    same(found, expected, op.opcode_text, {"a": a, "b": b, "c": c})


BITWISE = {logic.and_: operator.and_, logic.or_: operator.or_, logic.xor: operator.xor, logic.not_: lambda a: ~a}


@pytest.mark.parametrize("op", legal(*BITWISE), ids=lambda op: op.opcode_text)
def test_bitwise(op: Any) -> None:
    bits = bits_of(op.type)
    names = ["a"] if isinstance(op, logic.not_) else ["a", "b"]
    operands = [edges(bits, COUNT, seed) for seed in range(len(names))]
    text = f"{op.opcode_text} %d, {', '.join('%' + name for name in names)};"
    found = lanewise(text, {n: (op.type, w) for n, w in zip(names, operands, strict=True)}, {"d": op.type})["d"]
    mask = (1 << bits) - 1
    expected = [BITWISE[op.__class__](*words) & mask for words in zip(*(o.tolist() for o in operands), strict=True)]
    same(found, expected, text)


@pytest.mark.parametrize("op", legal(logic.shl, logic.shr), ids=lambda op: op.opcode_text)
def test_shifts(op: Any) -> None:
    bits = bits_of(op.type)
    a, b = edges(bits, COUNT, 1), edges(32, COUNT, 2)
    b[::2] %= 70  # around and past every width
    text = f"{op.opcode_text} %d, %a, %b;"
    found = lanewise(text, {"a": (op.type, a), "b": ("u32", b)}, {"d": op.type})["d"]
    expected = []
    for word, amount in zip(a.tolist(), b.tolist(), strict=True):
        amount = min(amount, bits)
        number = value(word, op.type) if isinstance(op, logic.shr) else word
        moved = number << amount if isinstance(op, logic.shl) else number >> amount
        expected.append(moved & ((1 << bits) - 1))
    same(found, expected, text, {"a": a, "b": b})


@pytest.mark.parametrize("name", ["and", "or", "xor", "not"])
def test_logic_on_predicates(name: str) -> None:
    a, b = edges(32, COUNT, 3) & 1, edges(32, COUNT, 4) & 1
    text = "not.pred %d, %a;" if name == "not" else f"{name}.pred %d, %a, %b;"
    found = lanewise(text, {"a": ("pred", a), "b": ("pred", b)}, {"d": "pred"})["d"]
    function: Any = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": lambda a, b: 1 - a}[name]
    same(found, [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], text)
    if name != "not":
        negated = lanewise(f"{name}.pred %d, %a, !%b;", {"a": ("pred", a), "b": ("pred", b)}, {"d": "pred"})["d"]
        same(negated, [function(x, 1 - y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], "negated")


COMPARE = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
INTEGER_COMPARES = [op for op in legal(predicate.setp) if op.type[0] != "f" and not op.ftz]


@pytest.mark.parametrize("op", INTEGER_COMPARES, ids=lambda op: op.opcode_text)
def test_compare_integers(op: Any) -> None:
    bits = bits_of(op.type)
    a, b = edges(bits, 120, 5), edges(bits, 120, 6)
    b[::3] = a[::3]
    c = edges(32, 120, 7) & 1
    combine = getattr(op, "combine", None)
    text = f"{op.opcode_text} %p|%q, %a, %b{', %c' if combine else ''};"
    inputs = {"a": (op.type, a), "b": (op.type, b), "c": ("pred", c)}
    found = lanewise(text, inputs, {"p": "pred", "q": "pred"})
    together: Any = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, None: lambda r, c: r}[combine]
    results = [
        COMPARE[op.compare](value(x, op.type), value(y, op.type)) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    third = [bool(x) for x in c.tolist()]
    same(found["p"], [int(together(r, t)) for r, t in zip(results, third, strict=True)], text, {"a": a, "b": b})
    same(found["q"], [int(together(not r, t)) for r, t in zip(results, third, strict=True)], text, {"a": a, "b": b})


@pytest.mark.parametrize("op", legal(predicate.selp), ids=lambda op: op.opcode_text)
def test_select(op: Any) -> None:
    bits = bits_of(op.type)
    a, b, c = edges(bits, COUNT, 8), edges(bits, COUNT, 9), edges(32, COUNT, 10) & 1
    inputs = {"a": (op.type, a), "b": (op.type, b), "c": ("pred", c)}
    for text, wanted in ((f"{op.opcode_text} %d, %a, %b, %c;", 1), (f"{op.opcode_text} %d, %a, %b, !%c;", 0)):
        found = lanewise(text, inputs, {"d": op.type})["d"]
        same(found, [x if t == wanted else y for x, y, t in zip(*(i.tolist() for i in (a, b, c)), strict=True)], text)


@pytest.mark.parametrize("op", [op for op in legal(move.mov) if op.type != "b128"], ids=lambda op: op.opcode_text)
def test_move(op: Any) -> None:
    a = edges(bits_of(op.type), COUNT, 11)
    same(lanewise(f"{op.opcode_text} %d, %a;", {"a": (op.type, a)}, {"d": op.type})["d"], a.tolist(), op.opcode_text)


@pytest.mark.parametrize(("whole", "parts"), [(16, 2), (32, 2), (64, 2), (32, 4), (64, 4)])
def test_pack_and_unpack(whole: int, parts: int) -> None:
    width = whole // parts
    words = [edges(width, COUNT, 20 + i) for i in range(parts)]
    # 8-bit registers cannot be loaded and stored as such: they travel in wider ones.
    if width == 8:
        declared = f".reg .b8 {', '.join(f'%x{i}' for i in range(parts))};"
        spread = "".join(f"cvt.u8.u16 %x{i}, %a{i};" for i in range(parts))
        inputs = {f"a{i}": ("b16", w.astype(np.uint16)) for i, w in enumerate(words)}
        names = ", ".join(f"%x{i}" for i in range(parts))
    else:
        declared, spread = "", ""
        inputs = {f"a{i}": (f"b{width}", w) for i, w in enumerate(words)}
        names = ", ".join(f"%a{i}" for i in range(parts))
    text = f"{spread} mov.b{whole} %d, {{{names}}};"
    found = lanewise(text, inputs, {"d": f"b{whole}"}, setup=declared)["d"]
    lists = [w.tolist() for w in words]
    packed = [sum(lists[i][n] << (i * width) for i in range(parts)) for n in range(COUNT)]
    same(found, packed, text)
    whole_words = edges(whole, COUNT, 30)
    outputs = {f"d{i}": "b16" if width == 8 else f"b{width}" for i in range(parts)}
    if width == 8:
        text = f"mov.b{whole} {{{names}}}, %a;" + "".join(f"cvt.u16.u8 %d{i}, %x{i};" for i in range(parts))
    else:
        text = f"mov.b{whole} {{{', '.join(f'%d{i}' for i in range(parts))}}}, %a;"
    taken = lanewise(text, {"a": (f"b{whole}", whole_words)}, outputs, setup=declared)
    for i in range(parts):
        expected = [w >> (i * width) & ((1 << width) - 1) for w in whole_words.tolist()]
        same(taken[f"d{i}"], expected, f"part {i} of {text}")


CONSTANTS = [
    ("add.u16 %d, %a, -1;", "u16", lambda a: (a - 1) & 0xFFFF),
    ("add.s32 %d, %a, 0xFFFFFFFF;", "s32", lambda a: (a - 1) & 0xFFFFFFFF),
    ("xor.b64 %d, %a, 0xFFFFFFFFFFFFFFFF;", "b64", lambda a: ~a & (2**64 - 1)),
    ("and.b32 %d, %a, (1 << 4) - 1;", "b32", lambda a: a & 15),
    ("mov.b32 %d, -2147483648;", "b32", lambda a: 1 << 31),
    ("mov.f32 %d, 0f7FC12345;", "f32", lambda a: 0x7FC12345),
    ("mov.f32 %d, 1.5;", "f32", lambda a: 0x3FC00000),
    ("mov.f64 %d, 0dFFF8000000000001;", "f64", lambda a: 0xFFF8000000000001),
    ("mov.f64 %d, -0.0;", "f64", lambda a: 1 << 63),
    ("mov.u32 %d, WARP_SZ;", "u32", lambda a: 32),
    ("shl.b32 %d, %a, 33;", "b32", lambda a: 0),
    ("mov.pred %p, 1; selp.b32 %d, %a, 0, %p;", "b32", lambda a: a),
]


@pytest.mark.parametrize(("text", "type", "reference"), CONSTANTS, ids=[each[0] for each in CONSTANTS])
def test_constants(text: str, type: str, reference: Callable[[int], int]) -> None:
    a = edges(bits_of(type), 100, 40)
    found = lanewise(text, {"a": (type, a)}, {"d": type}, setup=".reg .pred %p;")["d"]
    same(found, [reference(word) for word in a.tolist()], text)


#: The bytes that the modes of prmt give, the highest first, by the selector (9.7.9.7).
PERMUTATIONS = {
    "f4e": ["3210", "4321", "5432", "6543"],
    "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"],
    "rc16": ["1010", "3232", "1010", "3232"],
}


@pytest.mark.parametrize("mode", [None, *PERMUTATIONS])
def test_permutation(mode: str | None) -> None:
    a, b, c = (edges(32, COUNT, seed) for seed in (20, 21, 22))
    text = f"prmt.b32{'.' + mode if mode else ''} %d, %a, %b, %c;"
    found = lanewise(text, {"a": ("b32", a), "b": ("b32", b), "c": ("b32", c)}, {"d": "b32"})["d"]
    expected = []
    for low, high, control in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        digits = f"{control & 0xFFFF:04x}" if mode is None else PERMUTATIONS[mode][control & 3]
        result = 0
        for digit in (int(each, 16) for each in digits):
            byte = (high << 32 | low) >> 8 * (digit & 7) & 255
            result = result << 8 | ((255 if byte >> 7 else 0) if digit & 8 else byte)
        expected.append(result)
    same(found, expected, text, {"a": a, "b": b, "c": c})
