"""Triton kernels that only judge predictions, of other kinds than those of `triton_kernels`.

They are compiled without a GPU: `compiled` needs triton alone, at the time when the launches are written down.
"""

# pyright: basic, reportMissingImports=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def rms_norm_add(x, residual, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(residual + row + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row + at, value.to(tl.bfloat16), mask=inside)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + eps)
    tl.store(out + row + at, (value * scale * tl.load(weight + at, mask=inside)).to(tl.bfloat16), mask=inside)


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    g = tl.load(gate + at, mask=inside).to(tl.float32)
    u = tl.load(up + at, mask=inside).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.bfloat16), mask=inside)


@triton.jit
def rotary(x, cosines, sines, out, tokens, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0)
    heads, at = tl.arange(0, HEADS), tl.arange(0, HALF)
    c = tl.load(cosines + token * HALF + at)[None, :]
    s = tl.load(sines + token * HALF + at)[None, :]
    first = token * HEADS * 2 * HALF + heads[:, None] * 2 * HALF + at[None, :]
    a = tl.load(x + first).to(tl.float32)
    b = tl.load(x + first + HALF).to(tl.float32)
    tl.store(out + first, (a * c - b * s).to(tl.bfloat16))
    tl.store(out + first + HALF, (b * c + a * s).to(tl.bfloat16))


@triton.jit
def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = logits + row.to(tl.int64) * columns
    most, total = -float("inf"), 0.0
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(base + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        grown = tl.maximum(most, tl.max(value, axis=0))
        total = total * tl.exp(most - grown) + tl.sum(tl.exp(value - grown), axis=0)
        most = grown
    chosen = tl.load(base + tl.load(labels + row)).to(tl.float32)
    tl.store(losses + row, most + tl.log(total) - chosen)


@triton.jit
def embedding(table, tokens, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(tokens + row).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    tl.store(out + row.to(tl.int64) * columns + at, tl.load(table + source * columns + at, mask=inside), mask=inside)


@triton.jit
def quantize_fp8(x, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(value), axis=0) / 448.0
    tl.store(scales + row, scale)
    tl.store(out + row * columns + at, (value / scale).to(tl.float8e4nv), mask=at < columns)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(kept, value / (1 - p), 0.0), mask=at < n)


@triton.jit
def cumulative(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row + at, mask=at < columns, other=0.0)
    tl.store(out + row + at, tl.cumsum(value, axis=0), mask=at < columns)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def matmul_fp8(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    from_a = a + rows[:, None] * k + inner[None, :]
    from_b = b + columns[None, :] * k + inner[:, None]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for _ in range(0, k, TILE_K):
        total = tl.dot(tl.load(from_a), tl.load(from_b), total)
        from_a += TILE_K
        from_b += TILE_K
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def matmul_split_k(a, b, c, m, n, k, SPLIT: tl.constexpr, TILE: tl.constexpr, TILE_K: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    first, part = tl.program_id(2) * (k // SPLIT), k // SPLIT
    inner = first + tl.arange(0, TILE_K)
    from_a = a + rows[:, None] * k + inner[None, :]
    from_b = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for _ in range(0, part, TILE_K):
        total = tl.dot(tl.load(from_a), tl.load(from_b), total)
        from_a += TILE_K
        from_b += TILE_K * n
    tl.atomic_add(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def matmul_persistent(a, b, c, m, n, k, CTAS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):  # fmt: skip  # noqa: E501
    across = tl.cdiv(n, TILE_N)
    for tile in range(tl.program_id(0), tl.cdiv(m, TILE_M) * across, CTAS):
        rows = tile // across * TILE_M + tl.arange(0, TILE_M)
        columns = tile % across * TILE_N + tl.arange(0, TILE_N)
        inner = tl.arange(0, TILE_K)
        from_a = a + rows[:, None] * k + inner[None, :]
        from_b = b + inner[:, None] * n + columns[None, :]
        total = tl.zeros((TILE_M, TILE_N), tl.float32)
        for _ in range(0, k, TILE_K):
            total = tl.dot(tl.load(from_a), tl.load(from_b), total)
            from_a += TILE_K
            from_b += TILE_K * n
        tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def decode_attention(q, k, v, out, keys, scale, SIZE: tl.constexpr, TILE: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    inner = tl.arange(0, SIZE)
    query = tl.load(q + head * SIZE + inner).to(tl.float32)
    most, weight = -float("inf"), 0.0
    total = tl.zeros([SIZE], tl.float32)
    for first in range(0, keys, TILE):
        at = first + tl.arange(0, TILE)
        key = tl.load(k + head * keys * SIZE + at[:, None] * SIZE + inner[None, :]).to(tl.float32)
        score = tl.sum(key * query[None, :], axis=1) * scale
        grown = tl.maximum(most, tl.max(score, axis=0))
        old, score = tl.exp(most - grown), tl.exp(score - grown)
        value = tl.load(v + head * keys * SIZE + at[:, None] * SIZE + inner[None, :]).to(tl.float32)
        total = total * old + tl.sum(value * score[:, None], axis=0)
        weight = weight * old + tl.sum(score, axis=0)
        most = grown
    tl.store(out + head * SIZE + inner, (total / weight).to(tl.bfloat16))


_ARRAYS = {"bfloat16": "*bf16", "float32": "*fp32", "int32": "*i32", "uint8": "*fp8e4nv"}


def _array(dtype: str, count: int, below: int = 0) -> dict[str, Any]:
    return {"dtype": dtype, "count": count} | ({"below": below} if below else {})


def _bf16(count: int) -> dict[str, Any]:
    return _array("bfloat16", count)


def _f32(count: int) -> dict[str, Any]:
    return _array("float32", count)


def launches() -> Iterator[tuple[str, Any, tuple[int, ...], list[Any], dict[str, int], int, int]]:
    """Name, function, grid, arguments, constants, warps and stages of each launch."""
    for rows, columns in ((96, 2048), (4096, 5120)):
        args = [_bf16(rows * columns), _bf16(rows * columns), _f32(columns), _bf16(rows * columns), columns, 1e-6]
        constants = {"BLOCK": triton.next_power_of_2(columns)}
        yield f"rms_norm_add {rows}x{columns}", rms_norm_add, (rows,), args, constants, 8, 1
    for n in (1 << 19, 3 << 24):
        yield f"swiglu {n}", swiglu, (n // 1024,), [_bf16(n), _bf16(n), _bf16(n), n], {"BLOCK": 1024}, 4, 1
    tokens = 4096
    args = [_bf16(tokens * 4096), _f32(tokens * 64), _f32(tokens * 64), _bf16(tokens * 4096), tokens]
    yield f"rotary {tokens}", rotary, (tokens,), args, {"HEADS": 32, "HALF": 64}, 4, 1
    for rows, columns in ((160, 32000), (2048, 50304)):
        args = [_bf16(rows * columns), _array("int32", rows, columns), _f32(rows), columns]
        yield f"cross_entropy {rows}x{columns}", cross_entropy, (rows,), args, {"BLOCK": 4096}, 8, 1
    args = [_bf16(32000 * 4096), _array("int32", 8192, 32000), _bf16(8192 * 4096), 4096]
    yield "embedding 8192 of 32000", embedding, (8192,), args, {"BLOCK": 4096}, 8, 1
    args = [_bf16(4096 * 7168), _array("uint8", 4096 * 7168), _f32(4096), 7168]
    yield "quantize_fp8 4096x7168", quantize_fp8, (4096,), args, {"BLOCK": 8192}, 8, 1
    n = 1 << 22
    yield f"dropout {n}", dropout, (n // 1024,), [_f32(n), _f32(n), n, 0.25, 123], {"BLOCK": 1024}, 4, 1
    args = [_f32(2048 * 2048), _f32(2048 * 2048), 2048]
    yield "cumulative 2048x2048", cumulative, (2048,), args, {"BLOCK": 2048}, 4, 1
    yield "sort_rows 1024x512", sort_rows, (1024,), [_f32(1 << 19), _f32(1 << 19)], {"BLOCK": 512}, 4, 1
    for size in (1024, 4096):
        args = [_array("uint8", size * size), _array("uint8", size * size), _bf16(size * size), size, size, size]
        tiles = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 128}
        yield f"matmul_fp8 {size}", matmul_fp8, (size // 128, size // 128), args, tiles, 8, 3
    args = [_bf16(256 * 8192), _bf16(8192 * 512), _f32(256 * 512), 256, 512, 8192]
    constants = {"SPLIT": 8, "TILE": 64, "TILE_K": 64}
    yield "matmul_split_k 256x512x8192", matmul_split_k, (4, 8, 8), args, constants, 4, 4
    args = [_bf16(2048 * 1024), _bf16(1024 * 4096), _bf16(2048 * 4096), 2048, 4096, 1024]
    constants = {"CTAS": 132, "TILE_M": 128, "TILE_N": 128, "TILE_K": 64}
    yield "matmul_persistent 2048x4096x1024", matmul_persistent, (132,), args, constants, 8, 3
    args = [_bf16(256 * 128), _bf16(256 * 2048 * 128), _bf16(256 * 2048 * 128), _bf16(256 * 128), 2048, 0.088]
    yield "decode_attention 256 heads, 2048 keys", decode_attention, (256,), args, {"SIZE": 128, "TILE": 64}, 4, 2


def compiled() -> Iterator[tuple[dict[str, Any], str]]:
    """Each launch as it is recorded, and its PTX."""
    for name, function, grid, args, constants, warps, stages in launches():
        types = [_ARRAYS[each["dtype"]] if isinstance(each, dict) else "i32" if isinstance(each, int) else "fp32" for each in args]  # fmt: skip  # noqa: E501
        names = [each.name for each in function.params]
        signature = dict(zip(names, [*types, *["constexpr"] * len(constants)], strict=True))
        # As Triton specializes what is launched: addresses and numbers that 16 divides.
        attrs = {
            (i,): [["tt.divisibility", 16]]
            for i, each in enumerate(args)
            if isinstance(each, dict) or (isinstance(each, int) and each % 16 == 0)
        }
        source = ASTSource(function, signature, {(names.index(key),): value for key, value in constants.items()}, attrs)
        made = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": warps, "num_stages": stages})
        record = {
            "name": f"triton {name}", "grid": [*grid], "block": 32 * warps, "shared": made.metadata.shared,
            "args": args, "entry": made.metadata.name,
        }  # fmt: skip
        yield record, made.asm["ptx"]
