"""Larger kernels in Triton: attention forward and backward, block-scaled products, convolution, mixtures of experts."""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Witness, output


@triton.jit
def attention(
    q,
    k,
    v,
    o,
    lse,
    n,
    scale,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Flash attention with grouped queries, any length, and the logarithms of the sums."""
    head = tl.program_id(1)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    q += head * n * D
    k += head // GROUP * n * D
    v += head // GROUP * n * D
    queries = tl.load(q + row[:, None] * D + inner[None, :], mask=row[:, None] < n, other=0.0)
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(n, (tl.program_id(0) + 1) * BM) if CAUSAL else n
    for at in range(0, end, BN):
        column = at + tl.arange(0, BN)
        keys = tl.load(k + column[:, None] * D + inner[None, :], mask=column[:, None] < n, other=0.0)
        score = tl.dot(queries, keys.T) * (scale * 1.4426950408889634)
        inside = column[None, :] < n
        if CAUSAL:
            inside = inside & (column[None, :] <= row[:, None])
        score = tl.where(inside, score, -float("inf"))
        now = tl.maximum(highest, tl.max(score, 1))
        power = tl.exp2(score - now[:, None])
        old = tl.exp2(highest - now)
        total = total * old + tl.sum(power, 1)
        values = tl.load(v + column[:, None] * D + inner[None, :], mask=column[:, None] < n, other=0.0)
        result = tl.dot(power.to(values.dtype), values, result * old[:, None])
        highest = now
    tl.store(lse + head * n + row, highest / 1.4426950408889634 + tl.log(total), mask=row < n)
    where = o + head * n * D + row[:, None] * D + inner[None, :]
    tl.store(where, (result / total[:, None]).to(o.dtype.element_ty), mask=row[:, None] < n)


@triton.jit
def attention_backward(
    q, k, v, do, lse, delta, dq, dk, dv, scale, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """dK and dV of a block of keys, and dQ by atomic addition."""
    head = tl.program_id(1) * N * D
    rows = tl.program_id(1) * N
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, D)
    keys = tl.load(k + head + column[:, None] * D + inner[None, :])
    values = tl.load(v + head + column[:, None] * D + inner[None, :])
    sum_k = tl.zeros((BN, D), tl.float32)
    sum_v = tl.zeros((BN, D), tl.float32)
    for at in range(0, N, BM):
        row = at + tl.arange(0, BM)
        queries = tl.load(q + head + row[:, None] * D + inner[None, :])
        grads = tl.load(do + head + row[:, None] * D + inner[None, :])
        p = tl.exp(tl.dot(queries, keys.T) * scale - tl.load(lse + rows + row)[:, None])
        sum_v = tl.dot(p.to(grads.dtype).T, grads, sum_v)
        dp = tl.dot(grads, values.T)
        ds = (p * (dp - tl.load(delta + rows + row)[:, None]) * scale).to(queries.dtype)
        sum_k = tl.dot(ds.T, queries, sum_k)
        tl.atomic_add(dq + head + row[:, None] * D + inner[None, :], tl.dot(ds, keys), sem="relaxed")
    tl.store(dk + head + column[:, None] * D + inner[None, :], sum_k)
    tl.store(dv + head + column[:, None] * D + inner[None, :], sum_v)


@triton.jit
def scaled(
    a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, VECTOR: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """A product of block-scaled types through pointers, of some pair of formats."""
    pack_a: tl.constexpr = 2 if A == "e2m1" else 1
    pack_b: tl.constexpr = 2 if B == "e2m1" else 1
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        in_a = at // pack_a + tl.arange(0, BK // pack_a)
        in_b = at // pack_b + tl.arange(0, BK // pack_b)
        group = at // VECTOR + tl.arange(0, BK // VECTOR)
        x = tl.load(a + row[:, None] * (K // pack_a) + in_a[None, :])
        y = tl.load(b + column[:, None] * (K // pack_b) + in_b[None, :])
        scale_b = tl.load(sb + column[:, None] * (K // VECTOR) + group[None, :])
        if SCALED:
            scale_a = tl.load(sa + row[:, None] * (K // VECTOR) + group[None, :])
        else:
            scale_a = None
        total = tl.dot_scaled(x, scale_a, A, y.T, scale_b, B, total)
    tl.store(c + row[:, None] * N + column[None, :], total)


@triton.jit
def convolution(
    x, w, y, H, W, C: tl.constexpr, P, Q, F: tl.constexpr, R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr,
    PAD: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, pixels,
):  # fmt: skip
    """A convolution as an implicit product: NHWC, filters KRSC."""
    pixel = tl.program_id(0) * BM + tl.arange(0, BM)
    image, p, q = pixel // (P * Q), pixel // Q % P, pixel % Q
    filters = tl.arange(0, F)
    total = tl.zeros((BM, F), tl.float32)
    for tap in range(R * S):
        h = p * STRIDE + tap // S - PAD
        v = q * STRIDE + tap % S - PAD
        inside = (pixel < pixels) & (h >= 0) & (h < H) & (v >= 0) & (v < W)
        for at in range(0, C, BK):
            channel = at + tl.arange(0, BK)
            value = tl.load(
                x + ((image * H + h) * W + v)[:, None] * C + channel[None, :], mask=inside[:, None], other=0.0
            )
            weight = tl.load(w + filters[None, :] * (R * S * C) + (tap * C + channel)[:, None])
            total = tl.dot(value, weight, total)
    total = tl.maximum(total, 0.0)
    tl.store(y + pixel[:, None] * F + filters[None, :], total.to(y.dtype.element_ty), mask=pixel[:, None] < pixels)


@triton.jit
def experts(
    x,
    w,
    y,
    token,
    expert_of,
    weight,
    K: tl.constexpr,
    N: tl.constexpr,
    TOP: tl.constexpr,
    tokens,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A grouped product for a mixture of experts: rows by sorted index, an expert for each block, added by atomics."""
    slot = tl.load(token + tl.program_id(0) * BM + tl.arange(0, BM))
    there = slot < tokens * TOP
    expert = tl.load(expert_of + tl.program_id(0))
    if expert == -1:
        return
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        rows = tl.load(x + (slot // TOP)[:, None] * K + inner[None, :], mask=there[:, None], other=0.0)
        columns = tl.load(w + expert * N * K + column[None, :] * K + inner[:, None])
        total = tl.dot(rows, columns, total)
    total *= tl.load(weight + slot, mask=there, other=0.0)[:, None]
    where = y + (slot // TOP)[:, None] * N + column[None, :]
    tl.atomic_add(where, total, mask=there[:, None], sem="relaxed")


@triton.jit
def unpacked(a, b, scale, c, M, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """Weights of 4 bits, unpacked and scaled on the way to the product."""
    row = tl.arange(0, BM)
    column = tl.arange(0, N)
    total = tl.zeros((BM, N), tl.float32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        x = tl.load(a + row[:, None] * K + inner[None, :], mask=row[:, None] < M, other=0.0)
        half = at // 2 + tl.arange(0, BK // 2)
        pairs = tl.load(b + column[:, None] * (K // 2) + half[None, :])
        low = (pairs << 4).to(tl.int8) >> 4
        high = pairs >> 4
        weights = tl.interleave(low, high).to(tl.bfloat16)
        step = tl.load(scale + column * (K // BK) + at // BK)
        total += tl.dot(x, weights.T) * step[None, :]
    tl.store(c + row[:, None] * N + column[None, :], total, mask=row[:, None] < M)


@triton.jit
def split(a, b, c, lock, M: tl.constexpr, N: tl.constexpr, K, PARTS: tl.constexpr, BK: tl.constexpr):
    """A product whose depth is split over programs that add up in a chain, in order."""
    part = tl.program_id(0)
    row, column, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in range(part * BK, K, PARTS * BK):
        x = tl.load(a + row[:, None] * K + (at + inner)[None, :])
        y = tl.load(b + (at + inner)[:, None] * N + column[None, :])
        total = tl.dot(x, y, total)
    where = c + row[:, None] * N + column[None, :]
    while tl.atomic_add(lock, 0, sem="acquire") != part:
        pass
    if part > 0:
        total += tl.load(where)
    tl.store(where, total)
    tl.debug_barrier()
    tl.atomic_add(lock, 1, sem="release")


def _attention(
    name: str,
    made: tuple[str, ...],
    kind: str,
    n: int,
    d: int,
    blocks: tuple[int, int],
    *,
    group: int = 1,
    causal: bool = False,
    **options: Any,
) -> Witness:
    heads = 2
    return Witness(
        f"attention_{name}",
        attention,
        (-(-n // blocks[0]), heads),
        made,
        {
            "q": Buffer(kind, (heads, n, d)),
            "k": Buffer(kind, (heads // group, n, d)),
            "v": Buffer(kind, (heads // group, n, d)),
            "o": output(kind, heads, n, d),
            "lse": output("fp32", heads, n),
            "n": n,
            "scale": 0.125,
            "D": Constant(d),
            "BM": Constant(blocks[0]),
            "BN": Constant(blocks[1]),
            "CAUSAL": Constant(causal),
            "GROUP": Constant(group),
        },
        functools.partial(references.attention, kind=kind, group=group, causal=causal),
        options=options,
        tolerance=(2e-2, 2e-2),
    )


def _scaled(
    name: str,
    made: tuple[str, ...],
    a: str,
    b: str,
    *,
    scale: str = "e8m0",
    vector: int = 32,
    both: bool = True,
    sizes: tuple[int, int, int] = (128, 64, 256),
    depth: int = 128,
    **options: Any,
) -> Witness:
    m, n, k = sizes

    def operand(kind: str, rows: int) -> Buffer:
        return Buffer(kind, (rows, k // 2), "bits") if kind == "e2m1x2" else Buffer(kind, (rows, k))

    init: dict[str, Any] = {"init": "randint", "lo": 122, "hi": 131} if scale == "e8m0" else {"init": "e4m3pos"}
    formats = {"fp16": "fp16", "bf16": "bf16", "e2m1x2": "e2m1", "e4m3": "e4m3", "e5m2": "e5m2"}
    return Witness(
        f"scaled_{name}", scaled, (1, 1), made,
        {
            "a": operand(a, m), "sa": Buffer(scale, (m, k // vector), **init) if both else Constant(None),
            "b": operand(b, n), "sb": Buffer(scale, (n, k // vector), **init), "c": output("fp32", m, n),
            "M": Constant(m), "N": Constant(n), "K": k, "BM": Constant(m), "BN": Constant(n), "BK": Constant(depth),
            "A": Constant(formats[a]), "B": Constant(formats[b]), "VECTOR": Constant(vector), "SCALED": Constant(both),
        },
        functools.partial(references.scaled, a=a, b=b, scale=scale, vector=vector), options=options,
        tolerance=(1e-2, 5e-1),
    )  # fmt: skip


WITNESSES = [
    _attention("causal_groups", ("t37_90",), "fp16", 150, 64, (64, 64), group=2, causal=True),
    _attention("bf16_wide", ("t36_90",), "bf16", 256, 128, (128, 64), num_warps=8, num_stages=2),
    _attention("small", ("t36_100",), "bf16", 70, 32, (32, 32), causal=True, num_warps=2),
    Witness(
        "attention_backward", attention_backward, (2, 2), ("t36_100", "t39_90"),
        {
            **{name: Buffer("fp16", (2, 128, 64)) for name in ("q", "k", "v", "do")},
            "lse": Buffer("fp32", (2, 128), "randint", lo=4, hi=7), "delta": Buffer("fp32", (2, 128)),
            "dq": Buffer("fp32", (2, 128, 64), "zeros", role="inout"), "dk": output("fp32", 2, 128, 64),
            "dv": output("fp32", 2, 128, 64), "scale": 0.125, "N": Constant(128), "D": Constant(64),
            "BM": Constant(64), "BN": Constant(64),
        },
        references.attention_backward, tolerance=(2e-2, 2e-2), options={"num_stages": 2},
    ),
    _scaled("mxfp8", ("t37_100",), "e4m3", "e4m3"),
    _scaled("mxfp4", ("t39_100",), "e2m1x2", "e2m1x2"),
    _scaled("nvfp4", ("t39_100",), "e2m1x2", "e2m1x2", scale="e4m3", vector=16),
    _scaled("e5m2_e2m1", ("t37_100",), "e5m2", "e2m1x2", sizes=(128, 128, 128)),
    _scaled("bf16_e2m1", ("t39_100",), "bf16", "e2m1x2", both=False),
    Witness(
        "convolution", convolution, (2,), ("t37_90", "t39_100"),
        {
            "x": Buffer("fp16", (2, 11, 9, 32)), "w": Buffer("fp16", (64, 3, 3, 32)), "y": output("fp16", 2, 6, 5, 64),
            "H": 11, "W": 9, "C": Constant(32), "P": 6, "Q": 5, "F": Constant(64), "R": Constant(3), "S": Constant(3),
            "STRIDE": Constant(2), "PAD": Constant(1), "BM": Constant(32), "BK": Constant(32), "pixels": 60,
        },
        references.convolution, tolerance=(2e-3, 5e-2),
    ),
    Witness(
        "experts", experts, (5, 2), ("t36_90", "t39_100"),
        {
            "x": Buffer("bf16", (32, 128)), "w": Buffer("bf16", (4, 64, 128)),
            "y": Buffer("fp32", (32, 64), "zeros", role="inout"), "token": Buffer("i32", (80,), "perm", n=80),
            "expert_of": Buffer("i32", (5,), "randint", lo=-1, hi=4), "weight": Buffer("fp32", (64,)),
            "K": Constant(128), "N": Constant(64), "TOP": Constant(2), "tokens": 32, "BM": Constant(16),
            "BN": Constant(32), "BK": Constant(64),
        },
        references.experts, tolerance=(1e-3, 1e-2),
    ),
    Witness(
        "unpacked", unpacked, (1,), ("t37_100", "t39_90"),
        {
            "a": Buffer("bf16", (50, 128)), "b": Buffer("i8", (64, 64), "randint", lo=-128, hi=128),
            "scale": Buffer("fp32", (64, 2)), "c": output("fp32", 50, 64), "M": 50, "K": Constant(128),
            "N": Constant(64), "BM": Constant(64), "BK": Constant(64),
        },
        references.unpacked, tolerance=(1e-3, 1e-2),
    ),
    Witness(
        "split", split, (3,), ("t36_90", "t39_100"),
        {
            "a": Buffer("fp16", (64, 256)), "b": Buffer("fp16", (256, 64)), "c": output("fp32", 64, 64),
            "lock": Buffer("i32", (1,), "zeros", role="inout"), "M": Constant(64), "N": Constant(64), "K": 256,
            "PARTS": Constant(3), "BK": Constant(32),
        },
        references.split, tolerance=(1e-3, 1e-2),
    ),
]  # fmt: skip
