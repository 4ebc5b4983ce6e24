"""Kernels that treat elements one by one: arithmetic, conversions, random numbers, control flow, calls, assembly."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from casetools import E4M3, E5M2, bf16_dec, bf16_enc, e4m3_enc, e5m2_enc
from triton.language.extra import libdevice

from ..launch import Buffer, Constant, Long, Witness, output


@triton.jit
def integers(x, y, s, quotient, remainder, shifted, high, mixed, unsigned, n, BLOCK: tl.constexpr):
    """Division and remainder of every sign, shifts, high halves, minima, 32 bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    c = tl.load(s + at, mask=inside)
    tl.store(quotient + at, a // b, mask=inside)
    tl.store(remainder + at, a % b, mask=inside)
    tl.store(shifted + at, (a << c) ^ (a >> c), mask=inside)
    tl.store(high + at, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)), mask=inside)
    tl.store(mixed + at, (tl.minimum(a, b) & ~c) | tl.abs(tl.maximum(a, b)), mask=inside)
    wide = a.to(tl.uint32, bitcast=True) // 1000003 + (b.to(tl.uint32, bitcast=True) >> 3) % 977
    tl.store(unsigned + at, wide, mask=inside)


def integers_reference(i):
    a, b, c = (i[name].astype(np.int64) for name in ("x", "y", "s"))
    ua, ub = a.astype(np.uint32).astype(np.uint64), b.astype(np.uint32).astype(np.uint64)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    mixed = (np.minimum(a, b) & ~c) | np.abs(np.maximum(a, b))
    return {
        "quotient": quotient, "remainder": a - quotient * b, "shifted": (a << c).astype(np.int32) ^ (a >> c),
        "high": (ua * ub) >> np.uint64(32), "mixed": mixed.astype(np.int32),
        "unsigned": (ua // np.uint64(1000003) + (ub >> np.uint64(3)) % np.uint64(977)).astype(np.uint32),
    }  # fmt: skip


@triton.jit
def narrow_integers(x, y, total, wide, compared, n, BLOCK: tl.constexpr):
    """8-bit, 16-bit and 64-bit integers, comparison, selection."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    tl.store(total + at, a + b * 3, mask=inside)
    long = a.to(tl.int64) * 1234567890123 + b.to(tl.int64)
    tl.store(wide + at, long // 1000 + (long % 77) * (long >> 5), mask=inside)
    tl.store(compared + at, tl.where(a < b, a & b, a | b).to(tl.int16), mask=inside)


def narrow_integers_reference(i):
    a, b = i["x"], i["y"]
    long = a.astype(np.int64) * 1234567890123 + b
    quotient = np.sign(long) * (np.abs(long) // 1000)
    rest = long - np.sign(long) * (np.abs(long) // 77) * 77
    return {
        "total": (a.astype(np.int32) + b.astype(np.int32) * 3).astype(np.int8), "wide": quotient + rest * (long >> 5),
        "compared": np.where(a < b, a & b, a | b),
    }  # fmt: skip


@triton.jit
def conversions(x, h, b, e4, e5, i8, u16, back4, back5, n, BLOCK: tl.constexpr):
    """float32 to every narrower type, and fp8 back through half precision."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    tl.store(h + at, value.to(tl.float16), mask=inside)
    tl.store(b + at, value.to(tl.bfloat16), mask=inside)
    small4 = value.to(tl.float8e4nv)
    small5 = value.to(tl.float8e5)
    tl.store(e4 + at, small4, mask=inside)
    tl.store(e5 + at, small5, mask=inside)
    tl.store(back4 + at, small4.to(tl.float16) + 1, mask=inside)
    tl.store(back5 + at, small5.to(tl.bfloat16), mask=inside)
    tl.store(i8 + at, value.to(tl.int8), mask=inside)
    tl.store(u16 + at, tl.abs(value).to(tl.uint16), mask=inside)


def conversions_reference(i):
    x = i["x"]
    e4, e5 = E4M3[e4m3_enc(x)], E5M2[e5m2_enc(x)]
    return {
        "h": x.astype(np.float16), "b": bf16_dec(bf16_enc(x)), "e4": e4, "e5": e5, "i8": np.trunc(x),
        "u16": np.trunc(np.abs(x)), "back4": (e4 + 1).astype(np.float16), "back5": e5,
    }  # fmt: skip


@triton.jit
def roundings(x, down, wide, half, whole, truncated, n, BLOCK: tl.constexpr):
    """Conversions with a rounding of their own, integers to floats, float64."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    tl.store(down + at, value.to(tl.float16, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(wide + at, value.to(tl.float64) / 3.0 + tl.sqrt(value.to(tl.float64) * value), mask=inside)
    tl.store(half + at, (value * 100).to(tl.int32).to(tl.float16), mask=inside)
    tl.store(whole + at, tl.floor(value) + tl.ceil(value * 0.5) * 1000, mask=inside)
    tl.store(truncated + at, (value * 1e6).to(tl.int64), mask=inside)


def roundings_reference(i):
    x = i["x"]
    near = x.astype(np.float16)
    over = np.abs(near.astype(np.float32)) > np.abs(x)
    down = np.where(over, np.nextafter(near, np.float16(0)), near)
    wide = x.astype(np.float64)
    return {
        "down": down, "wide": wide / 3 + np.abs(wide), "half": np.trunc(x * np.float32(100)).astype(np.float16),
        "whole": np.floor(x) + np.ceil(x * np.float32(0.5)) * 1000, "truncated": np.trunc(x * np.float32(1e6)),
    }  # fmt: skip


@triton.jit
def functions(x, y, n, BLOCK: tl.constexpr):
    """Functions of the library, each to a row of y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside, other=1.0)
    tl.store(y + at, tl.exp(v), mask=inside)
    tl.store(y + n + at, tl.log2(tl.abs(v) + 0.5), mask=inside)
    tl.store(y + 2 * n + at, tl.sin(v * 3) * tl.cos(v), mask=inside)
    tl.store(y + 3 * n + at, tl.erf(v), mask=inside)
    tl.store(y + 4 * n + at, tl.rsqrt(tl.abs(v) + 0.1), mask=inside)
    tl.store(y + 5 * n + at, libdevice.tanh(v), mask=inside)
    tl.store(y + 6 * n + at, libdevice.pow(tl.abs(v) + 0.1, 2.5), mask=inside)
    tl.store(y + 7 * n + at, libdevice.atan2(v, 0.7), mask=inside)
    tl.store(y + 8 * n + at, tl.fma(v, 3.0, tl.clamp(v, -0.5, 0.5)), mask=inside)
    tl.store(y + 9 * n + at, tl.sigmoid(v) + tl.math.div_rn(v, 3.0), mask=inside)
    tl.store(y + 10 * n + at, libdevice.log1p(tl.abs(v)) + libdevice.expm1(v) + libdevice.cbrt(v), mask=inside)
    tl.store(y + 11 * n + at, libdevice.fmod(v * 10, 3.0) + libdevice.rint(v * 4), mask=inside)


def functions_reference(i):
    v = i["x"].astype(np.float64)
    t = np.abs(v)
    steps = np.linspace(0, 1, 2001)
    middle = (steps[1:] + steps[:-1]) / 2
    erf = 2 / np.sqrt(np.pi) * v * np.exp(-((v[:, None] * middle) ** 2)).mean(1)
    ten = (i["x"] * np.float32(10)).astype(np.float64)
    return {
        "y": np.stack([
            np.exp(v), np.log2(t + 0.5), np.sin(v * 3) * np.cos(v), erf, 1 / np.sqrt(t + 0.1), np.tanh(v),
            (t + 0.1) ** 2.5, np.arctan2(v, 0.7), v * 3 + np.clip(v, -0.5, 0.5), 1 / (1 + np.exp(-v)) + v / 3,
            np.log1p(t) + np.expm1(v) + np.cbrt(v), np.fmod(ten, 3) + np.rint(v * 4),
        ]),
    }  # fmt: skip


@triton.jit
def randoms(u, g, k, seed, n, BLOCK: tl.constexpr):
    """Philox: uniform, normal and whole numbers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(u + at, tl.rand(seed, at), mask=inside)
    tl.store(g + at, tl.randn(seed + 1, at), mask=inside)
    a, b, c, d = tl.randint4x(seed, at, n_rounds=7)
    tl.store(k + at, a ^ (b + c) ^ d, mask=inside)


def philox(counter, seed, rounds):
    m = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64), *(np.zeros(len(counter), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(rounds):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ key[0], q & m, (p >> np.uint64(32)) ^ c[3] ^ key[1], p & m]
        key = [(key[0] + np.uint64(0x9E3779B9)) & m, (key[1] + np.uint64(0xBB67AE85)) & m]
    return [each.astype(np.uint32) for each in c]


def uniform(words):
    x = words.view(np.int32)
    return np.where(x < 0, -x - 1, x).astype(np.float32) * np.float32(4.6566127342e-10)


def randoms_reference(i):
    at = np.arange(1000)
    first, _, _, _ = philox(at, 42, 10)
    again, more, _, _ = philox(at, 43, 10)
    r = np.sqrt(-2 * np.log(np.maximum(uniform(again), 1e-7).astype(np.float64)))
    a, b, c, d = philox(at, 42, 7)
    return {"u": uniform(first), "g": r * np.cos(2 * np.pi * uniform(more)), "k": (a ^ (b + c) ^ d).view(np.int32)}


@triton.jit
def steps_to_one(x, y, n, BLOCK: tl.constexpr):
    """Lengths of Collatz sequences: a loop that ends when all threads of the block are done."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1)
    count = tl.zeros((BLOCK,), tl.int32)
    left = tl.max(value)
    while left > 1:
        odd = (value & 1) == 1
        count += tl.where(value > 1, 1, 0)
        value = tl.where(value > 1, tl.where(odd, 3 * value + 1, value // 2), value)
        left = tl.max(value)
    tl.store(y + at, count, mask=at < n)


def steps_to_one_reference(i):
    value, count = i["x"].astype(np.int64), np.zeros(len(i["x"]), np.int32)
    while (value > 1).any():
        count += value > 1
        value = np.where(value > 1, np.where(value % 2 == 1, 3 * value + 1, value // 2), value)
    return {"y": count}


@triton.jit(noinline=True)
def _power(x, n):
    result = 1.0
    while n > 0:
        if n % 2 == 1:
            result *= x
        x *= x
        n //= 2
    return result


@triton.jit(noinline=True)
def _series(x, a, k):
    return _power(x, k) * a + _power(a, k - 1), x + 1


@triton.jit
def calls(x, y, n, a, k, BLOCK: tl.constexpr):
    """Functions that are not inlined, one of which calls the other and returns two values."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    once, more = _series(tl.max(value), a, k)
    twice, _ = _series(once + more, a - 0.25, k)
    tl.store(y + at, value * twice + once, mask=at < n)


def calls_reference(i):
    x = np.pad(i["x"].astype(np.float64), (0, 168)).reshape(3, 256)
    highest = x.max(1, keepdims=True)
    once = highest**3 * 0.75 + 0.75**2
    twice = (once + highest + 1) ** 3 * 0.5 + 0.25
    return {"y": (x * twice + once).reshape(-1)[:600]}


@triton.jit
def scalars(x, y, n):
    """Scalars only: recursion unrolled into a loop, a search for the root of a cubic."""
    p = tl.program_id(0)
    if p >= n:
        return
    target = tl.load(x + p)
    low = 0.0
    high = 4.0
    for _ in range(30):
        middle = (low + high) / 2
        if middle * middle * middle + middle < target:
            low = middle
        else:
            high = middle
    tl.store(y + p, low)


def scalars_reference(i):
    target = np.abs(i["x"].astype(np.float64))
    low, high = np.zeros_like(target), np.full_like(target, 4.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle**3 + middle < i["x"]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return {"y": low}


@triton.jit
def assembly(x, y, packed, n, BLOCK: tl.constexpr):
    """Inline PTX on single and on packed elements, with several results."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    counted, leading = tl.inline_asm_elementwise(
        "popc.b32 $0, $2; clz.b32 $1, $2;", "=r,=r,r", [value], dtype=(tl.int32, tl.int32), is_pure=True, pack=1
    )
    tl.store(y + at, counted * 100 + leading, mask=at < n)
    small = (value & 0xFF).to(tl.uint8)
    turned = tl.inline_asm_elementwise(
        "{ .reg .b32 t; not.b32 t, $1; prmt.b32 $0, t, $1, 0x0123; }", "=r,r", [small], dtype=tl.uint8, is_pure=True,
        pack=4,
    )  # fmt: skip
    tl.store(packed + at, turned, mask=at < n)


def assembly_reference(i):
    x = i["x"].astype(np.uint32)
    bits = (x[:, None] >> np.arange(31, -1, -1).astype(np.uint32)) & 1
    leading = np.where(x == 0, 32, bits.argmax(1))
    return {"y": bits.sum(1) * 100 + leading, "packed": ~(x & 255).astype(np.uint8).reshape(-1, 4)[:, ::-1]}


@triton.jit
def told(x, y, n, BLOCK: tl.constexpr):
    """Prints and asserts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1)
    tl.device_assert(value != 0, "zero", mask=at < n)
    if tl.program_id(0) == 1:
        tl.device_print("sum", tl.sum(value), n)
    tl.store(y + at, 1000 // value, mask=at < n)


def told_reference(i):
    return {"y": 1000 // i["x"]}


@triton.jit
def far(x, y, rows, stride, BLOCK: tl.constexpr):
    """Addresses that need 64 bits on the way: a large negative and a large positive offset."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    base = x + (rows - 1 - row) * stride
    away = base + stride * 4000000000
    value = tl.load(away - stride * 4000000000 + at)
    tl.store(y + row * BLOCK + at, value)


def far_reference(i):
    return {"y": i["x"][::-1]}


@triton.jit
def complex_product(x, y, z, n, BLOCK: tl.constexpr):
    """Pairs of numbers in memory, taken apart and joined, 4 dimensions on the way."""
    at = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    a, b = tl.split(tl.load(x + at, mask=at < 2 * n).reshape(BLOCK, 2))
    c, d = tl.split(tl.load(y + at, mask=at < 2 * n).reshape(BLOCK // 8, 2, 4, 2).permute(1, 0, 2, 3).reshape(BLOCK, 2))
    c = c.reshape(2, BLOCK // 8, 4).permute(1, 0, 2).reshape(BLOCK)
    d = d.reshape(2, BLOCK // 8, 4).permute(1, 0, 2).reshape(BLOCK)
    tl.store(z + at, tl.join(a * c - b * d, a * d + b * c).reshape(BLOCK * 2), mask=at < 2 * n)


def complex_product_reference(i):
    a, b = i["x"].view(np.complex64)[:, 0], i["y"].view(np.complex64)[:, 0]
    return {"z": (a.astype(np.complex128) * b).astype(np.complex64).view(np.float32).reshape(-1, 2)}


WITNESSES = [
    Witness(
        "integers", integers, (4,), ("t36_100", "t39_90"),
        {
            "x": Buffer("i32", (1000,), "randint", lo=-(2**31), hi=2**31),
            "y": Buffer("i32", (1000,), "randint", lo=1, hi=5000), "s": Buffer("i32", (1000,), "randint", lo=0, hi=31),
            **{name: output("i32", 1000) for name in ("quotient", "remainder", "shifted", "mixed")},
            "high": output("u32", 1000), "unsigned": output("u32", 1000), "n": 1000, "BLOCK": Constant(256),
        },
        integers_reference, tolerance=(0, 0),
    ),
    Witness(
        "narrow_integers", narrow_integers, (3,), ("t36_90", "t37_100"),
        {
            "x": Buffer("i8", (700,), "randint", lo=-128, hi=128),
            "y": Buffer("i8", (700,), "randint", lo=-128, hi=128),
            "total": output("i8", 700), "wide": output("i64", 700), "compared": output("i16", 700), "n": 700,
            "BLOCK": Constant(256),
        },
        narrow_integers_reference, tolerance=(0, 0), options={"num_warps": 2},
    ),
    Witness(
        "conversions", conversions, (2,), ("t36_90", "t37_100", "t39_100"),
        {
            "x": Buffer("fp32", (1000,), scale=20.0), "h": output("fp16", 1000), "b": output("bf16", 1000),
            "e4": output("e4m3", 1000), "e5": output("e5m2", 1000), "i8": output("i8", 1000),
            "u16": output("u16", 1000), "back4": output("fp16", 1000), "back5": output("bf16", 1000), "n": 1000,
            "BLOCK": Constant(512),
        },
        conversions_reference, tolerance=(0, 0),
    ),
    Witness(
        "roundings", roundings, (2,), ("t36_100", "t39_90"),
        {
            "x": Buffer("fp32", (500,), scale=5.0), "down": output("fp16", 500), "wide": output("fp64", 500),
            "half": output("fp16", 500), "whole": output("fp32", 500), "truncated": output("i64", 500), "n": 500,
            "BLOCK": Constant(256),
        },
        roundings_reference, tolerance=(1e-15, 0),
    ),
    Witness(
        "functions", functions, (2,), ("t36_100", "t39_90"),
        {"x": Buffer("fp32", (400,)), "y": output("fp32", 12, 400), "n": 400, "BLOCK": Constant(256)},
        functions_reference, tolerance=(2e-5, 2e-6), options={"num_warps": 8},
    ),
    Witness(
        "randoms", randoms, (4,), ("t36_100", "t39_90"),
        {
            "u": output("fp32", 1000), "g": output("fp32", 1000), "k": output("i32", 1000), "seed": 42, "n": 1000,
            "BLOCK": Constant(256),
        },
        randoms_reference, tolerance=(1e-4, 1e-5), helpers=(philox, uniform),
    ),
    Witness(
        "steps_to_one", steps_to_one, (2,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (300,), "randint", lo=1, hi=200), "y": output("i32", 300), "n": 300,
            "BLOCK": Constant(256),
        },
        steps_to_one_reference, tolerance=(0, 0),
    ),
    Witness(
        "calls", calls, (3,), ("t36_100", "t37_90", "t39_100"),
        {"x": Buffer("fp32", (600,)), "y": output("fp32", 600), "n": 600, "a": 0.75, "k": 3, "BLOCK": Constant(256)},
        calls_reference, tolerance=(1e-5, 1e-5),
    ),
    Witness(
        "scalars", scalars, (10,), ("t36_100",),
        {"x": Buffer("fp32", (8,), scale=4.0), "y": output("fp32", 8), "n": 8},
        scalars_reference, tolerance=(1e-5, 1e-5), options={"num_warps": 1},
    ),
    Witness(
        "assembly", assembly, (2,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (512,), "randint", lo=-(2**31), hi=2**31), "y": output("i32", 512),
            "packed": output("u8", 128, 4), "n": 512, "BLOCK": Constant(256),
        },
        assembly_reference, tolerance=(0, 0), options={"num_warps": 1},
    ),
    Witness(
        "told", told, (2,), ("t36_100", "t37_90", "t39_100"),
        {
            "x": Buffer("i32", (100,), "randint", lo=1, hi=99), "y": output("i32", 100), "n": 100,
            "BLOCK": Constant(64),
        },
        told_reference, tolerance=(0, 0), options={"debug": True, "num_warps": 1},
    ),
    Witness(
        "far", far, (6,), ("t36_100",),
        {
            "x": Buffer("fp32", (6, 128)), "y": output("fp32", 6, 128), "rows": 6, "stride": Long(128),
            "BLOCK": Constant(128),
        },
        far_reference, tolerance=(0, 0),
    ),
    Witness(
        "complex_product", complex_product, (2,), ("t37_90", "t39_100"),
        {
            "x": Buffer("fp32", (500, 2)), "y": Buffer("fp32", (500, 2)), "z": output("fp32", 500, 2), "n": 500,
            "BLOCK": Constant(256),
        },
        complex_product_reference, tolerance=(1e-4, 1e-5),
    ),
]  # fmt: skip
