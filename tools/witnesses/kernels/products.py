"""Products of matrices, of every pair of types that Triton multiplies."""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Descriptor, Witness, output


@triton.jit
def product(
    a, b, c, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
    SUM: tl.constexpr,
):  # fmt: skip
    """c = a b through pointers with strides, masked on all edges."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + row[:, None] * am + inner[None, :] * ak
    right = b + inner[:, None] * bk + column[None, :] * bn
    total = tl.zeros((BM, BN), SUM)
    for at in range(0, K, BK):
        x = tl.load(left, mask=(row[:, None] < M) & (at + inner[None, :] < K), other=0.0)
        y = tl.load(right, mask=(at + inner[:, None] < K) & (column[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=SUM)
        left += BK * ak
        right += BK * bk
    where = c + row[:, None] * N + column[None, :]
    tl.store(where, total.to(c.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


def _product(
    name: str,
    made: tuple[str, ...],
    a: str,
    c: str,
    sizes: tuple[int, int, int],
    blocks: tuple[int, int, int],
    *,
    ta: bool = False,
    tb: bool = False,
    precision: str = "tf32",
    tolerance: tuple[float, float] = (1e-3, 1e-2),
    **options: Any,
) -> Witness:
    (m, n, k), (bm, bn, bk) = sizes, blocks
    sums = tl.float16 if c == "sum16" else tl.float64 if a == "fp64" else tl.float32
    c = "fp16" if c == "sum16" else c
    return Witness(
        f"product_{name}", product, (-(-m // bm), -(-n // bn)), made,
        {
            "a": Buffer(a, (k, m) if ta else (m, k)), "b": Buffer(a, (n, k) if tb else (k, n)),
            "c": output(c, m, n), "M": m, "N": n, "K": k, "am": 1 if ta else k, "ak": m if ta else 1,
            "bk": 1 if tb else n, "bn": k if tb else 1, "BM": Constant(bm), "BN": Constant(bn), "BK": Constant(bk),
            "PRECISION": Constant(precision), "SUM": Constant(sums),
        },
        functools.partial(references.product, a=a if precision == "tf32" else a.replace("tf", "fp"), b=a, ta=ta, tb=tb),
        options, tolerance,
    )  # fmt: skip


@triton.jit
def described(
    ad,
    bd,
    cd,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    TA: tl.constexpr,
    TB: tl.constexpr,
    TILES: tl.constexpr,
    WIDE: tl.constexpr,
    SPECIAL: tl.constexpr,
):
    """c = a b through descriptors that the host made; persistent, with or without specialized warps."""
    for tile in tl.range(tl.program_id(0), TILES, tl.num_programs(0), warp_specialize=SPECIAL, flatten=not SPECIAL):
        row, column = tile // WIDE * BM, tile % WIDE * BN
        total = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            if TA:
                x = ad.load([at, row]).T
            else:
                x = ad.load([row, at])
            if TB:
                y = bd.load([column, at]).T
            else:
                y = bd.load([at, column])
            total = tl.dot(x, y, total)
        cd.store([row, column], total.to(cd.dtype))


def _described(
    name: str,
    made: tuple[str, ...],
    a: str,
    c: str,
    sizes: tuple[int, int, int],
    blocks: tuple[int, int, int],
    *,
    programs: int = 2,
    ta: bool = False,
    tb: bool = False,
    special: bool = False,
    tolerance: tuple[float, float] = (1e-3, 1e-2),
    **options: Any,
) -> Witness:
    (m, n, k), (bm, bn, bk) = sizes, blocks
    buffers = {"a": Buffer(a, (k, m) if ta else (m, k)), "b": Buffer(a, (n, k) if tb else (k, n)), "c": output(c, m, n)}
    tiles = -(-m // bm), -(-n // bn)
    return Witness(
        f"described_{name}", described, (programs,), made,
        {
            "ad": Descriptor("a", (bk, bm) if ta else (bm, bk)), "bd": Descriptor("b", (bn, bk) if tb else (bk, bn)),
            "cd": Descriptor("c", (bm, bn)), "K": k, "BM": Constant(bm), "BN": Constant(bn), "BK": Constant(bk),
            "TA": Constant(ta), "TB": Constant(tb), "TILES": Constant(tiles[0] * tiles[1]), "WIDE": Constant(tiles[1]),
            "SPECIAL": Constant(special),
        },
        functools.partial(references.product, a=a, b=a, ta=ta, tb=tb), options, tolerance, buffers,
    )  # fmt: skip


WITNESSES = [
    _product("f16_sum16", ("t36_90",), "fp16", "sum16", (70, 50, 96), (64, 64, 32), tolerance=(5e-2, 5e-1)),
    _product("bf16_tb", ("t36_90", "t39_100"), "bf16", "fp32", (130, 70, 100), (64, 64, 32), tb=True),
    _product("bf16_ta", ("t35_100", "t37_90", "t37_100"), "bf16", "fp32", (64, 100, 80), (64, 32, 64), ta=True,
             num_warps=8),
    _product("tf32_ta_tb", ("t36_100",), "tf32", "fp32", (64, 96, 72), (64, 32, 32), ta=True, tb=True,
             tolerance=(1e-3, 5e-2)),
    _product("tf32x3", ("t36_90",), "tf32", "fp32", (64, 64, 64), (64, 64, 32), precision="tf32x3",
             tolerance=(1e-4, 1e-4)),
    _product("f32_ieee", ("t36_100",), "fp32", "fp32", (32, 48, 40), (32, 16, 16), precision="ieee",
             tolerance=(1e-5, 1e-5)),
    _product("f64", ("t37_90", "t37_100"), "fp64", "fp64", (32, 32, 48), (32, 32, 16), tolerance=(1e-12, 1e-12)),
    _product("e4m3_tb", ("t36_90", "t39_100"), "e4m3", "fp16", (100, 64, 160), (64, 64, 64), tb=True),
    _product("e5m2_thin", ("t36_90", "t36_100"), "e5m2", "fp32", (16, 64, 128), (16, 64, 64), tb=True, num_warps=4),
    _product("small", ("t39_90", "t39_100"), "fp16", "fp32", (16, 16, 64), (16, 16, 16), num_warps=1),
    _product("wide", ("t37_90",), "fp16", "fp16", (128, 256, 128), (128, 256, 64), num_warps=8, num_stages=2),
    _product("tall_16_warps", ("t36_90", "t36_100"), "bf16", "fp32", (256, 64, 64), (256, 64, 64), num_warps=16),
    _described("f16", ("t36_90", "t36_100"), "fp16", "fp16", (256, 192, 128), (128, 64, 64), programs=3),
    _described("bf16_ta", ("t39_90", "t39_100"), "bf16", "fp32", (128, 128, 192), (64, 128, 64), ta=True),
    _described("special", ("t37_100", "t39_100"), "fp16", "fp16", (384, 192, 192), (128, 64, 64), tb=True,
               special=True),
    _described("special_wide", ("t39_100",), "e4m3", "fp16", (256, 512, 256), (128, 256, 128), tb=True, special=True,
               num_warps=8, num_stages=3),
    _described("tf32_edges", ("t36_100",), "tf32", "fp32", (200, 120, 72), (64, 64, 32), tb=True,
               tolerance=(1e-3, 5e-2)),
    _described("e5m2", ("t37_90", "t37_100"), "e5m2", "bf16", (128, 128, 256), (128, 128, 128), tb=True, num_warps=8,
               tolerance=(1e-2, 1e-1)),
]  # fmt: skip
