"""Tensor descriptors, made by the host and on the device, of several ranks; atomics of all kinds; clusters."""

from __future__ import annotations

import functools

import triton
import triton.language as tl

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Descriptor, Witness, output


@triton.jit
def made_on_device(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    """A product through descriptors that each program makes for itself, persistent."""
    ad = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    bd = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    cd = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN // 2])
    wide = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * wide, tl.num_programs(0), warp_specialize=SPECIAL):
        row, column = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            total = tl.dot(ad.load([row, at]), bd.load([column, at]).T, total)
        left, right = tl.split(tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1)))
        cd.store([row, column], left.to(c.dtype.element_ty))
        cd.store([row, column + BN // 2], right.to(c.dtype.element_ty))


@triton.jit
def five_dimensions(xd, yd, zd, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr, B3: tl.constexpr):
    """A box of five dimensions past all edges, padded; written back elsewhere, and added."""
    tile = xd.load([tl.program_id(0), -1, tl.program_id(1) * B2, 1, 8])
    yd.store([tl.program_id(0), 0, tl.program_id(1) * B2, 0, 0], tile * 2)
    zd.atomic_add([0, 0, tl.program_id(1) * B2, 0, 0], tile)


@triton.jit
def gathered(x, y, index, to, N, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Rows by index through a descriptor made on the device, and back to rows by another index."""
    xd = tl.make_tensor_descriptor(x, [N, WIDTH * 2], [WIDTH * 2, 1], [1, WIDTH])
    yd = tl.make_tensor_descriptor(y, [N, WIDTH], [WIDTH, 1], [1, WIDTH])
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = xd.gather(tl.load(index + at), WIDTH)
    yd.scatter(value + value, tl.load(to + at), 0)


@triton.jit
def reductions(x, s, half, brain, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums through descriptors made on the device, of 16 and 32 bits."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + tl.program_id(0) * ROWS * COLUMNS + at)
    tl.make_tensor_descriptor(s, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS]).atomic_add([0, 0], value)
    tl.make_tensor_descriptor(half, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS]).atomic_add(
        [0, 0], value.to(tl.float16)
    )
    tl.make_tensor_descriptor(brain, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS]).atomic_add(
        [0, 0], value.to(tl.bfloat16)
    )


@triton.jit
def atomics(x, add, low, high, both, either, other, taken, swapped, unsigned, wide, n, BLOCK: tl.constexpr):
    """Every atomic operation on integers, of several orders and scopes, with masks."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0)
    where = value & 31
    tl.atomic_add(add + where, value, mask=inside, sem="relaxed", scope="gpu")
    tl.atomic_min(low + where, value, mask=inside, sem="release")
    tl.atomic_max(high + where, value, mask=inside, sem="acquire", scope="sys")
    tl.atomic_and(both + where, value, mask=inside)
    tl.atomic_or(either + where, value, mask=inside, scope="sys")
    tl.atomic_xor(other + where, value, mask=inside, sem="acq_rel", scope="gpu")
    tl.store(taken + at, tl.atomic_xchg(swapped + at, value, mask=inside), mask=inside)
    tl.atomic_max(unsigned + where, value.to(tl.uint32, bitcast=True), mask=inside)
    tl.atomic_add(wide + where, value.to(tl.int64) * 4294967296, mask=inside)


@triton.jit
def float_atomics(x, add, half, brain, low, high, double, n, BLOCK: tl.constexpr):
    """Atomics on floating-point numbers of every width."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0.0)
    where = at % 16
    tl.atomic_add(add + where, value, mask=inside)
    tl.atomic_add(half + where, value.to(tl.float16), mask=inside, sem="relaxed")
    tl.atomic_add(brain + where, value.to(tl.bfloat16), mask=inside)
    tl.atomic_min(low + where, value, mask=inside)
    tl.atomic_max(high + where, value, mask=inside)
    tl.atomic_add(double + where, value.to(tl.float64), mask=inside)


@triton.jit
def clustered(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product by programs of several CTAs, whose tile is spread over the cluster."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + row[:, None] * K + (at + inner)[None, :])
        y = tl.load(b + column[None, :] * K + (at + inner)[:, None])
        total = tl.dot(x, y, total)
    total -= tl.max(total, 1)[:, None]
    tl.store(c + row[:, None] * N + column[None, :], total)


@triton.jit
def padded(xd, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A box past the edges, filled with NaN."""
    tile = xd.load([tl.program_id(0) * ROWS, 0])
    at = tl.program_id(0) * ROWS * COLUMNS + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + at, tile)


def _made(
    name: str, made: tuple[str, ...], kind: str, special: bool, sizes: tuple[int, int, int], **options: int
) -> Witness:
    m, n, k = sizes
    return Witness(
        f"made_on_device_{name}",
        made_on_device,
        (2,),
        made,
        {
            "a": Buffer(kind, (m, k)),
            "b": Buffer(kind, (n, k)),
            "c": output("fp16", m, n),
            "M": m,
            "N": n,
            "K": k,
            "BM": Constant(128),
            "BN": Constant(64),
            "BK": Constant(64),
            "SPECIAL": Constant(special),
        },
        functools.partial(references.product, a=kind, b=kind, ta=False, tb=True),
        options=options,
        tolerance=(2e-3, 5e-2),
    )


_BITS = {"init": "randint", "lo": -(2**31), "hi": 2**31}

WITNESSES = [
    _made("bf16", ("t37_90", "t39_100"), "bf16", False, (200, 136, 96)),
    _made("e5m2_special", ("t39_100",), "e5m2", True, (256, 128, 128)),
    Witness(
        "five_dimensions", five_dimensions, (3, 2), ("t37_90", "t39_100"),
        {
            "xd": Descriptor("x", (1, 4, 4, 4, 16)), "yd": Descriptor("y", (1, 4, 4, 4, 16)),
            "zd": Descriptor("z", (1, 4, 4, 4, 16)), "B0": Constant(1), "B1": Constant(4), "B2": Constant(4),
            "B3": Constant(4),
        },
        references.five_dimensions, tolerance=(2e-3, 2e-3),
        buffers={
            "x": Buffer("fp16", (3, 3, 5, 4, 16)), "y": output("fp16", 3, 4, 5, 4, 16),
            "z": Buffer("fp16", (1, 4, 5, 4, 16), role="inout"),
        },
    ),
    Witness(
        "gathered", gathered, (4,), ("t37_100", "t39_100"),
        {
            "x": Buffer("bf16", (64, 128)), "y": Buffer("bf16", (64, 64), "zeros", role="inout"),
            "index": Buffer("i32", (64,), "perm", n=64), "to": Buffer("i32", (64,), "perm", n=64),
            "N": 64, "WIDTH": Constant(64), "BLOCK": Constant(16),
        },
        references.gathered_doubled, tolerance=(0, 0),
    ),
    Witness(
        "reductions", reductions, (4,), ("t36_90", "t39_100"),
        {
            "x": Buffer("fp32", (128, 64)), "s": Buffer("fp32", (32, 64), role="inout"),
            "half": Buffer("fp16", (32, 64), role="inout"), "brain": Buffer("bf16", (32, 64), role="inout"),
            "ROWS": Constant(32), "COLUMNS": Constant(64),
        },
        references.reductions, tolerance=(2e-2, 5e-2),
    ),
    Witness(
        "atomics", atomics, (4,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (1000,), **_BITS),
            **{name: Buffer("i32", (32,), **_BITS, role="inout") for name in ("add", "low", "high")},
            **{name: Buffer("i32", (32,), **_BITS, role="inout") for name in ("both", "either", "other")},
            "taken": output("i32", 1000), "swapped": Buffer("i32", (1000,), **_BITS, role="inout"),
            "unsigned": Buffer("u32", (32,), "zeros", role="inout"),
            "wide": Buffer("i64", (32,), "zeros", role="inout"), "n": 1000, "BLOCK": Constant(256),
        },
        references.atomics, tolerance=(0, 0), options={"num_warps": 2},
    ),
    Witness(
        "float_atomics", float_atomics, (2,), ("t36_100", "t39_90"),
        {
            "x": Buffer("fp32", (500,)),
            **{name: Buffer("fp32", (16,), "zeros", role="inout") for name in ("add", "low", "high")},
            "half": Buffer("fp16", (16,), "zeros", role="inout"), "brain": Buffer("bf16", (16,), "zeros", role="inout"),
            "double": Buffer("fp64", (16,), "zeros", role="inout"),
            "n": 500, "BLOCK": Constant(256),
        },
        references.float_atomics, tolerance=(5e-2, 2e-1),
    ),
    Witness(
        "clustered_pair", clustered, (1, 1), ("t36_90", "t39_90"),
        {
            "a": Buffer("fp16", (128, 64)), "b": Buffer("fp16", (64, 64)), "c": output("fp32", 128, 64), "M": 128,
            "N": 64, "K": 64, "BM": Constant(128), "BN": Constant(64), "BK": Constant(64),
        },
        functools.partial(references.clustered, kind="fp16"), options={"num_ctas": 2}, tolerance=(2e-3, 2e-2),
    ),
    Witness(
        "padded", padded, (2,), ("t39_90",),
        {
            "xd": Descriptor("x", (32, 64), padding="nan"), "y": output("fp32", 64, 64), "ROWS": Constant(32),
            "COLUMNS": Constant(64),
        },
        references.padded, tolerance=(0, 0), buffers={"x": Buffer("fp32", (57, 48))},
    ),
]  # fmt: skip
