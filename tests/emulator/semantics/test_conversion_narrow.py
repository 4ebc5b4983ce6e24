"""cvt to and from the formats of 4 to 19 bits, against the list of their values as ml_dtypes has it."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen.instr import conversion
from ptxgen.instr.model.targets import parse_target
from tests.support.exact import FORMATS, decode, float_edges
from tests.support.harness import ON_GPU, TARGET, edges, lanewise, same, signed

COUNT = 200
DTYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "f16": 16, "bf16": 16}
#: NaN results (9.7.9.21): NaN, or the largest value where there is none.
NAN = {"e4m3": 0x7F, "e5m2": 0x7F, "e2m3": 0x1F, "e3m2": 0x1F, "e2m1": 0x7, "f16": 0x7FFF, "bf16": 0x7FFF}


def epoch(op: Any) -> tuple[str, str]:
    """A target and version that have the instruction."""
    if ON_GPU:
        return TARGET, "8.8"
    for target, version in (("sm_100a", "8.8"), ("sm_100a", "9.2"), ("sm_107a", "9.4")):
        if not op.availability_problems(parse_target(target), tuple(map(int, version.split(".")))):
            return target, version
    raise AssertionError(f"{op.opcode_text} is nowhere")


def legal(*forms: Any) -> list[Any]:
    """All variants; on a GPU those that it has."""
    found = [each for form in forms for each in form.combinations() if not each.modifier_problems()]
    return [each for each in found if not (ON_GPU and each.availability_problems(parse_target(TARGET), (8, 8)))]


def as_doubles(words: Any, name: str) -> Any:
    with np.errstate(invalid="ignore"):  # some casts of NaN warn
        return words.view(DTYPES[name]).astype(np.float64)


@cache
def positive(name: str) -> tuple[list[Fraction], list[float]]:
    """The values of the words from 0 on, which ascend, exactly and as .f64."""
    word = {4: np.uint8, 6: np.uint8, 8: np.uint8, 16: np.uint16}[BITS[name]]
    floats = as_doubles(np.arange(1 << (BITS[name] - 1)).astype(word), name)
    floats = floats[np.isfinite(floats)]
    assert all(x < y for x, y in pairwise(floats))
    return [Fraction(x) for x in floats.tolist()], floats.tolist()


def rounded(value: float, name: str, mode: str, noise: Fraction = Fraction(0), relu: bool = False) -> int:
    """The word of a value: clamped to the largest, otherwise one of its two neighbors."""
    if value != value:
        return NAN[name]
    if relu and (value < 0 or (value == 0 and np.signbit(value))):
        return 0
    sign = (1 << (BITS[name] - 1)) if np.signbit(value) else 0
    exact, floats = positive(name)
    if abs(value) >= floats[-1]:
        return sign | (len(floats) - 1)
    magnitude = Fraction(abs(value))
    below = bisect_right(exact, magnitude) - 1
    rest = (magnitude - exact[below]) / (exact[below + 1] - exact[below])
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and below % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rs": rest + noise >= 1,
    }[mode]
    return sign | (below + up)


def singles(name: str, seed: int, count: int = COUNT) -> Any:
    """.f32 values: edges of .f32, and those around the words of a format and the ties between them."""
    words = float_edges("f32", count, seed)
    rng = np.random.default_rng(seed)
    _, floats = positive(name)
    for index in range(0, count, 3):
        place = int(rng.integers(0, min(len(floats) - 1, 1 << 14)))
        middle = np.float32((floats[place] + floats[place + 1]) / 2 if index % 2 else floats[place])
        near = int(middle.view(np.uint32)) + int(rng.integers(-1, 2))
        words[index] = max(near, 0) | (int(rng.integers(0, 2)) << 31)
    return words


def halves(kind: str, seed: int) -> Any:
    return float_edges(kind, 2 * COUNT, seed)


def value_of(word: int, name: str) -> float:
    number = decode(word, FORMATS[name])
    if number.kind != "finite":
        return {"nan": float("nan"), "inf": float("inf")}[number.kind] * (-1 if number.negative else 1)
    return (-1 if number.negative else 1) * float(Fraction(number.n) * Fraction(2) ** number.e)


def is_modelled(op: Any) -> bool:
    return not getattr(op, "scaled", False) or isinstance(op, conversion.cvt_bf16x2 | conversion.cvt_s2f6x2)


TO_NARROW = [op for op in legal(conversion.cvt_narrow2, conversion.cvt_narrow2_pair) if is_modelled(op)]


@pytest.mark.parametrize("op", TO_NARROW, ids=lambda op: op.opcode_text)
def test_to_narrow(op: Any) -> None:
    target, version = epoch(op)
    name = op.dtype[:-2]
    width = 4 if name == "e2m1" else 8
    if isinstance(op, conversion.cvt_narrow2_pair):
        pairs = halves(op.atype[:-2], len(op.opcode_text))
        text, inputs = f"{op.opcode_text} %d, %a;", {"a": ("b32", pairs.view(np.uint32))}
        low, high = ([value_of(word, op.atype[:-2]) for word in pairs[start::2].tolist()] for start in (0, 1))
    else:
        a, b = singles(name, 1), singles(name, 2)
        text, inputs = f"{op.opcode_text} %d, %a, %b;", {"a": ("f32", a), "b": ("f32", b)}
        high, low = ([value_of(word, "f32") for word in words.tolist()] for words in (a, b))
    found = lanewise(text, inputs, {"d": f"b{2 * width}"}, target=target, version=version)["d"]
    words = [[rounded(value, name, op.rounding, relu=op.relu) for value in values] for values in (high, low)]
    if op.pzo:
        words = [[0 if word == 1 << (BITS[name] - 1) else word for word in each] for each in words]
    same(found, [x << width | y for x, y in zip(*words, strict=True)], text)


@pytest.mark.parametrize("op", legal(conversion.cvt_half2_rs, conversion.cvt_narrow4_rs), ids=lambda op: op.opcode_text)
def test_random_rounding(op: Any) -> None:
    """The bits cut off and the random ones, added, carry or not (9.7.9.21, .rs; fact cvt-rs-bits)."""
    target, version = epoch(op)
    name, count = op.dtype[:-2], int(op.dtype[-1])
    names = "abef"[:count]
    values = [singles(name, 40 + i) for i in range(count)]
    random = edges(32, COUNT, 50)
    operands = ", ".join(f"%{each}" for each in names)
    text = f"{op.opcode_text} %d, {operands if count == 2 else '{' + operands + '}'}, %r;"
    inputs = {each: ("f32", words) for each, words in zip(names, values, strict=True)}
    inputs["r"] = ("b32", random)
    width = 4 if op.dtype == "e2m1x4" else 32 // count
    found = lanewise(text, inputs, {"d": f"b{width * count}"}, target=target, version=version)["d"]
    bits = 13 if name == "f16" else 16
    expected = []
    for *words, bits_given in zip(*(each.tolist() for each in values), random.tolist(), strict=True):
        result = 0
        for place, word in enumerate(words):
            part = bits_given >> 16 if place < count // 2 else bits_given & 0xFFFF
            if op.dtype == "e2m1x4":
                shift = 8 if place < 2 else 0
                part = (bits_given >> 16 + shift & 255) << 8 | bits_given >> shift & 255
            if count == 4 and place % 2 == 0:
                part = sum((part >> i & 1) << 15 - i for i in range(16))
            noise = Fraction(part & ((1 << bits) - 1), 1 << bits)
            value = value_of(word, "f32")
            one = rounded(value, name, "rs", noise, op.relu)
            if count == 2 and not op.satfinite and abs(value) >= positive(name)[1][-1]:
                one = overflowing(value, name, noise, op.relu)
            result = result << width | one
        expected.append(result)
    same(found, expected, text, {**dict(zip(names, values, strict=True)), "r": random})


#: a, b, e, f, rbits and the answer of a B200 (driver 595.58.03), measured by mlc-ai/TIRx-harness
#: (tools/tests/numsim/microtests/cases/ptx_cvt_narrow_goldens.py): lines in which the order of the bits shows.
ANSWERED = {
    "cvt.rs.satfinite.e2m1x4.f32": (
        (0x40200000, 0x40400000, 0x40600000, 0x40800000, 0x80000000, 0x4556),
        (0xBE800000, 0xBF000000, 0xBF400000, 0xBF800000, 0x73D33D6F, 0x99AA),
        (0xBF400000, 0xBF800000, 0xBFA00000, 0xBFE00000, 0xCB515795, 0xAABB),
        (0xBFA00000, 0xBFE00000, 0xC0200000, 0xC0600000, 0xA113E0E5, 0xACDD),
        (0xBFE00000, 0xC0200000, 0xC0600000, 0xC0A00000, 0xD2E10D34, 0xCDDF),
        (0x37000000, 0x36800000, 0x3F880000, 0x3F980000, 0x0165C4AF, 0x0032),
        (0xBF87F000, 0x3F880000, 0xBF880000, 0x3F881000, 0x0433F7B1, 0xB2A2),
        (0x3F8FE000, 0xBF8FE000, 0x3F900000, 0xBF900000, 0x9F402FE0, 0x3A2A),
        (0xBF900000, 0x3F902000, 0xBF902000, 0x3F9FC000, 0x67357B2B, 0xB2B2),
        (0x3F9FC000, 0xBF9FC000, 0x3FA00000, 0xBFA00000, 0x1A8FF146, 0x3A2B),
        (0x40D48CAD, 0xC0BF1A6C, 0xC062D46D, 0x40830739, 0x00D5BCA4, 0x7ED6),
    ),
    "cvt.rs.satfinite.e5m2x4.f32": (
        (0x40D00000, 0x40E00000, 0x40FFFFFF, 0x41000000, 0x80402010, 0x46474848),
        (0x43F00000, 0x44000000, 0xC3E00000, 0xC3F00000, 0x23FD491E, 0x6060DFDF),
        (0x3F980000, 0x3F802000, 0x00800000, 0x80800000, 0x2A63705F, 0x3D3C0080),
        (0xBF881000, 0x3F8FE000, 0xBF8FE000, 0x3F8FF000, 0xB0ABC1AB, 0xBD3DBD3D),
        (0xBF8FF000, 0x3F802000, 0xBF802000, 0x3F804000, 0xEA36C748, 0xBC3CBC3C),
        (0xBF900000, 0x3F902000, 0xBF902000, 0x3F9FC000, 0x67357B2B, 0xBD3CBD3D),
    ),
}


@pytest.mark.parametrize("text", ANSWERED)
def test_random_rounding_answers(text: str) -> None:
    """What hardware answered, where the order of the random bits shows."""
    *words, random, expected = (np.array(column, np.uint32) for column in zip(*ANSWERED[text], strict=True))
    inputs = {each: ("f32", column) for each, column in zip("abef", words, strict=True)} | {"r": ("b32", random)}
    width = "b16" if "e2m1" in text else "b32"
    found = lanewise(f"{text} %d, {{%a, %b, %e, %f}}, %r;", inputs, {"d": width}, target="sm_100a", version="8.7")["d"]
    same(found[: len(expected)], expected.tolist(), text)


def overflowing(value: float, name: str, noise: Fraction, relu: bool) -> int:
    """The word of a value at or above the largest one, where infinity is next."""
    sign = 0x8000 if value < 0 else 0
    if relu and sign:
        return 0
    exact, _ = positive(name)
    infinity = len(exact)
    if abs(value) == float("inf"):
        return sign | infinity
    rest = (Fraction(abs(value)) - exact[-1]) / (exact[-1] - exact[-2])
    return sign | (infinity if rest + noise >= 1 else infinity - 1)


@pytest.mark.parametrize("op", legal(conversion.cvt_tf32), ids=lambda op: op.opcode_text)
def test_tf32(op: Any) -> None:
    """The upper 19 bits of .f32: those below are cut off, rounded as the modifier says."""
    target, version = epoch(op)
    a = float_edges("f32", COUNT, 60)
    a[::3] = (a[::3] & 0xFFFFE000) + np.array([0, 0x0FFF, 0x1000, 0x1001, 0x1FFF] * COUNT, np.uint32)[: len(a[::3])]
    text = f"{op.opcode_text} %d, %a;"
    found = lanewise(text, {"a": ("f32", a)}, {"d": "b32"}, target=target, version=version)["d"]
    expected = []
    for word in a.tolist():
        magnitude, sign = word & 0x7FFFFFFF, word & 0x80000000
        if magnitude > 0x7F800000:  # NaN: the canonical one, but .rna cuts it off (measured, H100)
            cut = (word & 0xFFFFE000) - (0x2000 if op.satfinite else 0)
            expected.append(cut if op.rounding == "rna" else 0x7FFFE000)
            continue
        if op.relu and sign:
            expected.append(0)
            continue
        rest, magnitude = magnitude & 0x1FFF, magnitude & ~0x1FFF
        nearest = rest > 0x1000 or (rest == 0x1000 and magnitude >> 13 & 1)
        up = {"rz": False, "rna": rest >= 0x1000, "rn": nearest}[op.rounding]
        magnitude += 0x2000 if up else 0
        if op.satfinite:
            magnitude = min(magnitude, 0x7F7FE000)
        expected.append(0 if op.pzo and magnitude == 0 else sign | magnitude)
    same(found, expected, text, {"a": a})


FROM_NARROW = [
    op
    for op in legal(conversion.cvt_f16x2, conversion.cvt_bf16x2)
    if op.atype not in ("ue5m3x2", "s2f6x2") and is_modelled(op)
]


@pytest.mark.parametrize("op", FROM_NARROW, ids=lambda op: op.opcode_text)
def test_from_narrow(op: Any) -> None:
    """Every word of the format, in both places; with random scales where there are any."""
    target, version = epoch(op)
    name = op.atype[:-2]
    kind = "f16" if isinstance(op, conversion.cvt_f16x2) else "bf16"
    width = 4 if name == "e2m1" else 8
    words = np.arange(1 << BITS[name])
    packed = (words << width | words[::-1]).astype(np.uint8 if width == 4 else np.uint16)
    scaled, finite = getattr(op, "scaled", False), getattr(op, "satfinite", False)
    scale = edges(16, len(words), 70)
    text = f"{op.opcode_text} %d, %a{', %s' if scaled else ''};"
    inputs = {"a": (f"b{2 * width}", packed)}
    if scaled:
        inputs["s"] = ("b16", scale)
    found = lanewise(text, inputs, {"d": "b32"}, target=target, version=version)["d"]

    def one(word: int, power: int) -> int:
        value = float(as_doubles(np.array([word], np.uint8), name)[0])
        if value != value or power == 255:
            return 0x7FFF
        if op.relu and np.signbit(value):
            return 0
        result = rounded(value * 2.0 ** (power - 127), kind, "rn")
        if kind == "bf16" and not finite and abs(value) * 2.0 ** (power - 127) >= 2.0**128 * (1 - 2.0**-9):
            result = (result & 0x8000) | 0x7F80
        if abs(value) == float("inf") and not finite:
            result = (result & 0x8000) | (0x7F80 if kind == "bf16" else 0x7C00)
        return result

    expected = []
    for index, word in enumerate(words.tolist()):
        powers = (int(scale[index]) >> 8, int(scale[index]) & 255) if scaled else (127, 127)
        expected.append(one(word, powers[0]) << 16 | one(int(words[::-1][index]), powers[1]))
    same(found, expected, text, {"a": packed, "s": scale})


SCALES = legal(conversion.cvt_ue8m0x2, conversion.cvt_ue8m0x2_pair)


@pytest.mark.parametrize("op", SCALES, ids=lambda op: op.opcode_text)
def test_to_powers_of_two(op: Any) -> None:
    target, version = epoch(op)
    if isinstance(op, conversion.cvt_ue8m0x2_pair):
        pairs = halves("bf16", 80)
        text, inputs = f"{op.opcode_text} %d, %a;", {"a": ("b32", pairs.view(np.uint32))}
        low, high = ([value_of(word, "bf16") for word in pairs[start::2].tolist()] for start in (0, 1))
    else:
        a, b = float_edges("f32", COUNT, 81), float_edges("f32", COUNT, 82)
        text, inputs = f"{op.opcode_text} %d, %a, %b;", {"a": ("f32", a), "b": ("f32", b)}
        high, low = ([value_of(word, "f32") for word in words.tolist()] for words in (a, b))
    found = lanewise(text, inputs, {"d": "b16"}, target=target, version=version)["d"]

    def one(value: float) -> int:
        if value != value:
            return 255
        if abs(value) == float("inf"):
            return 254 if op.satfinite else 255
        magnitude = Fraction(abs(value))
        powers = [p for p in range(256) if (Fraction(2) ** (p - 127) <= magnitude)]
        word = powers[-1] if powers else 0
        if op.rounding == "rp" and Fraction(2) ** (word - 127) < magnitude:
            word += 1
        return min(word, 254) if op.satfinite else word

    same(found, [one(x) << 8 | one(y) for x, y in zip(high, low, strict=True)], text)


def test_powers_of_two_as_bf16() -> None:
    words = np.arange(65536, step=7).astype(np.uint16)
    text = "cvt.rn.bf16x2.ue8m0x2 %d, %a;"
    found = lanewise(text, {"a": ("b16", words)}, {"d": "b32"}, target="sm_100a")["d"]

    def one(power: int) -> int:
        return 0x7FFF if power == 255 else 0x40 if power == 0 else power << 7

    same(found, [one(word >> 8) << 16 | one(word & 255) for word in words.tolist()], text)


FIXED = legal(conversion.cvt_s2f6x2, conversion.cvt_s2f6x2_pair)


@pytest.mark.parametrize("op", FIXED, ids=lambda op: op.opcode_text)
def test_fixed_point(op: Any) -> None:
    target, version = epoch(op)
    scale = (127 + np.random.default_rng(3).integers(-6, 7, (2, COUNT))).astype(np.uint16)
    scale[0, ::50] = 255
    inputs: dict[str, Any] = {}
    if isinstance(op, conversion.cvt_s2f6x2_pair):
        pairs = halves("bf16", 90)
        text, inputs["a"] = f"{op.opcode_text} %d, %a", ("b32", pairs.view(np.uint32))
        low, high = ([value_of(word, "bf16") for word in pairs[start::2].tolist()] for start in (0, 1))
    else:
        numbers = np.random.default_rng(4).normal(size=(2, COUNT)).astype(np.float32)
        numbers[:, ::2] = np.rint(numbers[:, ::2] * 128) / 128
        numbers[:, 5::40] = np.float32("nan")
        text = f"{op.opcode_text} %d, %a, %b"
        inputs["a"], inputs["b"] = (("f32", row.view(np.uint32)) for row in numbers)
        high, low = (row.tolist() for row in numbers)
    if op.scaled:
        text, inputs["s"] = text + ", %s", ("b16", scale[0] << 8 | scale[1])
    else:
        scale[:] = 127
    found = lanewise(text + ";", inputs, {"d": "b16"}, target=target, version=version)["d"]

    def one(value: float, power: int) -> int:
        if value != value or power == 255:
            return 127
        if abs(value) == float("inf"):
            units: float = value
        else:
            exact = Fraction(value) / Fraction(2) ** (power - 127) * 64
            units = round(exact) if op.rounding == "rn" else int(exact)
        return int(max(min(units, 127), 0 if op.relu else -128)) & 255

    expected = [
        one(x, p) << 8 | one(y, q) for x, y, p, q in zip(high, low, scale[0].tolist(), scale[1].tolist(), strict=True)
    ]
    same(found, expected, text)


@pytest.mark.parametrize(
    "op", [op for op in legal(conversion.cvt_bf16x2) if op.atype == "s2f6x2"], ids=lambda op: op.opcode_text
)
def test_from_fixed_point(op: Any) -> None:
    target, version = epoch(op)
    words = np.arange(256)
    packed = (words << 8 | words[::-1]).astype(np.uint16)
    scale = np.random.default_rng(5).integers(100, 150, (2, 256)).astype(np.uint16)
    text = f"{op.opcode_text} %d, %a{', %s' if op.scaled else ''};"
    inputs = {"a": ("b16", packed)} | ({"s": ("b16", scale[0] << 8 | scale[1])} if op.scaled else {})
    found = lanewise(text, inputs, {"d": "b32"}, target=target, version=version)["d"]

    def one(word: int, power: int) -> int:
        value = signed(word, 8) / 64 * (2.0 ** (power - 127) if op.scaled else 1)
        return 0 if op.relu and value < 0 else rounded(value, "bf16", "rn")

    expected = [
        one(x, int(p)) << 16 | one(y, int(q))
        for x, y, p, q in zip(words.tolist(), words[::-1].tolist(), scale[0], scale[1], strict=True)
    ]
    same(found, expected, text, {"a": packed})


@pytest.mark.parametrize("op", legal(conversion.cvt_pack16, conversion.cvt_pack), ids=lambda op: op.opcode_text)
def test_packed_integers(op: Any) -> None:
    a, b, c = (edges(32, COUNT, seed) for seed in (100, 101, 102))
    bits = int(op.type[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if op.type[0] == "s" else (0, (1 << bits) - 1)
    third = isinstance(op, conversion.cvt_pack)
    text = f"{op.opcode_text} %d, %a, %b{', %c' if third else ''};"
    found = lanewise(text, {"a": ("s32", a), "b": ("s32", b), "c": ("b32", c)}, {"d": "u32"})["d"]

    def one(word: int) -> int:
        return min(max(signed(word, 32), low), high) & ((1 << bits) - 1)

    expected = [
        (one(x) << bits | one(y) | (z << 2 * bits if third else 0)) & 0xFFFFFFFF
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    same(found, expected, text, {"a": a, "b": b, "c": c})


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_with_a_scale_for_both(name: str) -> None:
    """As NVIDIA measured on Rubin: fp8(ftz(x) * 2^(127 - scale)), 0x7f for NaN and for scale 255."""
    random = np.random.default_rng(33)
    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[name]
    largest = float(ml_dtypes.finfo(dtype).max)
    scale = random.integers(0, 256, 4096).astype(np.uint8)
    scale[:64] = 255
    values = []
    for _ in "ab":
        power = np.clip(scale.astype(np.int64) - 127 + random.integers(-12, 18, scale.size), -149, 127)
        value = np.ldexp(random.uniform(1, 2, scale.size), power) * random.choice([-1, 1], scale.size)
        value[::97], value[::89], value[::83], value[::79] = np.inf, -np.inf, np.nan, -0.0
        value[::73] = np.ldexp(1.0, -130)
        with np.errstate(over="ignore"):
            values.append(value.astype(np.float32))
    text = f"cvt.rn.satfinite.scaled::n1::ue8m0.{name}x2.f32 %d, %a, %b, %s;"
    inputs = {"a": ("f32", values[0]), "b": ("f32", values[1]), "s": ("b8", scale)}
    found = lanewise(text, inputs, {"d": "b16"}, target="sm_107a", version="9.4")["d"]

    def one(value: np.ndarray) -> np.ndarray:
        flushed = np.where(np.abs(value) < 2.0**-126, np.copysign(0.0, value), value).astype(np.float64)
        result = np.clip(flushed * 2.0 ** (127.0 - scale), -largest, largest).astype(dtype).view(np.uint8)
        return np.where(np.isnan(value) | (scale == 255), 0x7F, result).astype(np.uint16)

    same(found, (one(values[0]) << 8 | one(values[1])).tolist(), text, {"a": values[0], "b": values[1], "s": scale})


@pytest.mark.parametrize(
    "line", ["rn.satfinite.scaled::n1::ue8m0.e2m1x2.f32", "rz.satfinite.scaled::n1::ue8m0.e4m3x2.f32"]
)
def test_scales_that_nobody_has_measured_are_incomplete(line: str) -> None:
    d = "b8" if "e2m1" in line else "b16"
    inputs = {"a": ("f32", np.ones(32, np.float32)), "s": ("b8", np.full(32, 127, np.uint8))}
    with pytest.raises(AssertionError, match="nobody has measured"):
        lanewise(f"cvt.{line} %d, %a, %a, %s;", inputs, {"d": d}, target="sm_107a", version="9.4")
