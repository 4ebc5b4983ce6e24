"""Kernels that treat elements one by one: arithmetic, conversions, random numbers, control flow, calls, assembly."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from tools.recorded.references import witnesses as references

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


@triton.jit
def randoms(u, g, k, seed, n, BLOCK: tl.constexpr):
    """Philox: references.uniform, normal and whole numbers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(u + at, tl.rand(seed, at), mask=inside)
    tl.store(g + at, tl.randn(seed + 1, at), mask=inside)
    a, b, c, d = tl.randint4x(seed, at, n_rounds=7)
    tl.store(k + at, a ^ (b + c) ^ d, mask=inside)


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
        "{ .reg .b32 t; not.b32 t, $1; prmt.b32 $0, t, $1, 0x0123; }",
        "=r,r",
        [small],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(packed + at, turned, mask=at < n)


@triton.jit
def told(x, y, n, BLOCK: tl.constexpr):
    """Prints and asserts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1)
    tl.device_assert(value != 0, "zero", mask=at < n)
    if tl.program_id(0) == 1:
        tl.device_print("sum", tl.sum(value), n)
    tl.store(y + at, 1000 // value, mask=at < n)


@triton.jit
def far(x, y, rows, stride, BLOCK: tl.constexpr):
    """Addresses that need 64 bits on the way: a large negative and a large positive offset."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    base = x + (rows - 1 - row) * stride
    away = base + stride * 4000000000
    value = tl.load(away - stride * 4000000000 + at)
    tl.store(y + row * BLOCK + at, value)


@triton.jit
def complex_product(x, y, z, n, BLOCK: tl.constexpr):
    """Pairs of numbers in memory, taken apart and joined, 4 dimensions on the way."""
    at = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    a, b = tl.split(tl.load(x + at, mask=at < 2 * n).reshape(BLOCK, 2))
    c, d = tl.split(tl.load(y + at, mask=at < 2 * n).reshape(BLOCK // 8, 2, 4, 2).permute(1, 0, 2, 3).reshape(BLOCK, 2))
    c = c.reshape(2, BLOCK // 8, 4).permute(1, 0, 2).reshape(BLOCK)
    d = d.reshape(2, BLOCK // 8, 4).permute(1, 0, 2).reshape(BLOCK)
    tl.store(z + at, tl.join(a * c - b * d, a * d + b * c).reshape(BLOCK * 2), mask=at < 2 * n)


WITNESSES = [
    Witness(
        "integers", integers, (4,), ("t36_100", "t39_90"),
        {
            "x": Buffer("i32", (1000,), "randint", lo=-(2**31), hi=2**31),
            "y": Buffer("i32", (1000,), "randint", lo=1, hi=5000), "s": Buffer("i32", (1000,), "randint", lo=0, hi=31),
            **{name: output("i32", 1000) for name in ("quotient", "remainder", "shifted", "mixed")},
            "high": output("u32", 1000), "unsigned": output("u32", 1000), "n": 1000, "BLOCK": Constant(256),
        },
        references.integers, tolerance=(0, 0),
    ),
    Witness(
        "narrow_integers", narrow_integers, (3,), ("t36_90", "t37_100"),
        {
            "x": Buffer("i8", (700,), "randint", lo=-128, hi=128),
            "y": Buffer("i8", (700,), "randint", lo=-128, hi=128),
            "total": output("i8", 700), "wide": output("i64", 700), "compared": output("i16", 700), "n": 700,
            "BLOCK": Constant(256),
        },
        references.narrow_integers, tolerance=(0, 0), options={"num_warps": 2},
    ),
    Witness(
        "conversions", conversions, (2,), ("t36_90", "t37_100", "t39_100"),
        {
            "x": Buffer("fp32", (1000,), scale=20.0), "h": output("fp16", 1000), "b": output("bf16", 1000),
            "e4": output("e4m3", 1000), "e5": output("e5m2", 1000), "i8": output("i8", 1000),
            "u16": output("u16", 1000), "back4": output("fp16", 1000), "back5": output("bf16", 1000), "n": 1000,
            "BLOCK": Constant(512),
        },
        references.conversions, tolerance=(0, 0),
    ),
    Witness(
        "roundings", roundings, (2,), ("t36_100", "t39_90"),
        {
            "x": Buffer("fp32", (500,), scale=5.0), "down": output("fp16", 500), "wide": output("fp64", 500),
            "half": output("fp16", 500), "whole": output("fp32", 500), "truncated": output("i64", 500), "n": 500,
            "BLOCK": Constant(256),
        },
        references.roundings, tolerance=(1e-15, 0),
    ),
    Witness(
        "functions", functions, (2,), ("t36_100", "t39_90"),
        {"x": Buffer("fp32", (400,)), "y": output("fp32", 12, 400), "n": 400, "BLOCK": Constant(256)},
        references.functions, tolerance=(2e-5, 2e-6), options={"num_warps": 8},
    ),
    Witness(
        "randoms", randoms, (4,), ("t36_100", "t39_90"),
        {
            "u": output("fp32", 1000), "g": output("fp32", 1000), "k": output("i32", 1000), "seed": 42, "n": 1000,
            "BLOCK": Constant(256),
        },
        references.randoms, tolerance=(1e-4, 1e-5),
    ),
    Witness(
        "steps_to_one", steps_to_one, (2,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (300,), "randint", lo=1, hi=200), "y": output("i32", 300), "n": 300,
            "BLOCK": Constant(256),
        },
        references.steps_to_one, tolerance=(0, 0),
    ),
    Witness(
        "calls", calls, (3,), ("t36_100", "t37_90", "t39_100"),
        {"x": Buffer("fp32", (600,)), "y": output("fp32", 600), "n": 600, "a": 0.75, "k": 3, "BLOCK": Constant(256)},
        references.calls, tolerance=(1e-5, 1e-5),
    ),
    Witness(
        "scalars", scalars, (10,), ("t36_100",),
        {"x": Buffer("fp32", (8,), scale=4.0), "y": output("fp32", 8), "n": 8},
        references.scalars, tolerance=(1e-5, 1e-5), options={"num_warps": 1},
    ),
    Witness(
        "assembly", assembly, (2,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (512,), "randint", lo=-(2**31), hi=2**31), "y": output("i32", 512),
            "packed": output("u8", 128, 4), "n": 512, "BLOCK": Constant(256),
        },
        references.assembly, tolerance=(0, 0), options={"num_warps": 1},
    ),
    Witness(
        "told", told, (2,), ("t36_100", "t37_90", "t39_100"),
        {
            "x": Buffer("i32", (100,), "randint", lo=1, hi=99), "y": output("i32", 100), "n": 100,
            "BLOCK": Constant(64),
        },
        references.quotients, tolerance=(0, 0), options={"debug": True, "num_warps": 1},
    ),
    Witness(
        "far", far, (6,), ("t36_100",),
        {
            "x": Buffer("fp32", (6, 128)), "y": output("fp32", 6, 128), "rows": 6, "stride": Long(128),
            "BLOCK": Constant(128),
        },
        references.far, tolerance=(0, 0),
    ),
    Witness(
        "complex_product", complex_product, (2,), ("t37_90", "t39_100"),
        {
            "x": Buffer("fp32", (500, 2)), "y": Buffer("fp32", (500, 2)), "z": output("fp32", 500, 2), "n": 500,
            "BLOCK": Constant(256),
        },
        references.complex_product, tolerance=(1e-4, 1e-5),
    ),
]  # fmt: skip
