"""Kernels as users of Triton write them, and the sizes at which they run. Needs torch with a GPU, and triton."""

# pyright: basic, reportMissingImports=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside).to(tl.float32)
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    tanh = 2.0 / (1.0 + tl.exp(-2.0 * inner)) - 1.0
    tl.store(out + at, (0.5 * value * (1.0 + tanh)).to(tl.bfloat16), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row + at, (value / tl.sum(value, axis=0)).to(tl.bfloat16), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    square = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
        value = tl.where(at < columns, value - mean, 0.0)
        square += value * value
    scale = 1 / tl.sqrt(tl.sum(square, axis=0) / columns + eps)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = (tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32) - mean) * scale
        value = value * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
        tl.store(out + row + at, value.to(tl.bfloat16), mask=inside)


@triton.jit
def transpose(x, out, rows, columns, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(inside))


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def matmul(
    a, b, c, m, n, k, stride_a, stride_b, stride_c,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0)
    across_m, across_n = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N)
    group = GROUP * across_n
    first = number // group * GROUP
    size = min(across_m - first, GROUP)
    tile_m, tile_n = first + number % group % size, number % group // size
    rows = (tile_m * TILE_M + tl.arange(0, TILE_M)) % m
    columns = (tile_n * TILE_N + tl.arange(0, TILE_N)) % n
    inner = tl.arange(0, TILE_K)
    from_a = a + rows[:, None] * stride_a + inner[None, :]
    from_b = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for block in range(tl.cdiv(k, TILE_K)):
        left = tl.load(from_a, mask=inner[None, :] < k - block * TILE_K, other=0.0)
        right = tl.load(from_b, mask=inner[:, None] < k - block * TILE_K, other=0.0)
        total = tl.dot(left, right, total)
        from_a += TILE_K
        from_b += TILE_K * stride_b
    row, column = tile_m * TILE_M + tl.arange(0, TILE_M), tile_n * TILE_N + tl.arange(0, TILE_N)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * stride_c + column[None, :], total.to(tl.bfloat16), mask=inside)


@triton.jit
def attention(q, k, v, out, scale, keys, SIZE: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * keys * SIZE
    rows, inner = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M), tl.arange(0, SIZE)
    query = tl.load(q + head + rows[:, None] * SIZE + inner[None, :])
    largest = tl.full([TILE_M], -float("inf"), tl.float32)
    weight = tl.zeros([TILE_M], tl.float32)
    total = tl.zeros([TILE_M, SIZE], tl.float32)
    for first in range(0, keys, TILE_N):
        at = first + tl.arange(0, TILE_N)
        key = tl.load(k + head + at[None, :] * SIZE + inner[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        grown = tl.maximum(largest, tl.max(score, 1))
        score = tl.math.exp2(score - grown[:, None])
        old = tl.math.exp2(largest - grown)
        weight = weight * old + tl.sum(score, 1)
        value = tl.load(v + head + at[:, None] * SIZE + inner[None, :])
        total = tl.dot(score.to(tl.bfloat16), value, total * old[:, None])
        largest = grown
    tl.store(out + head + rows[:, None] * SIZE + inner[None, :], (total / weight[:, None]).to(tl.bfloat16))


def _random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def launches() -> Iterator[tuple[str, Any, tuple[int, ...], list[Any], dict[str, Any]]]:
    """Name, function, grid, arguments and options of each launch."""
    for n, block in ((98432, 1024), (1 << 24, 1024), (1 << 26, 2048)):
        x, y, out = (_random(n, dtype=torch.float32) for _ in range(3))
        yield f"add {n}", add, (triton.cdiv(n, block),), [x, y, out, n], {"BLOCK": block}
    for n in (1 << 20, 1 << 25):
        x, out = _random(n), _random(n)
        yield f"gelu {n}", gelu, (triton.cdiv(n, 2048),), [x, out, n], {"BLOCK": 2048}
    for rows, columns in ((128, 1000), (1823, 781), (8192, 4096), (512, 16384)):
        x, out, block = _random(rows, columns), _random(rows, columns), triton.next_power_of_2(columns)
        warps = 4 if block <= 2048 else 8 if block <= 4096 else 16
        options = {"BLOCK": block, "num_warps": warps}
        yield f"softmax {rows}x{columns}", softmax, (rows,), [x, out, columns], options
    for rows, columns in ((256, 768), (4096, 1024), (1151, 8192)):
        x, out = _random(rows, columns), _random(rows, columns)
        weight, bias = _random(columns, dtype=torch.float32), _random(columns, dtype=torch.float32)
        options = {"BLOCK": min(4096, triton.next_power_of_2(columns)), "num_warps": 8 if columns > 2048 else 4}
        yield f"layer_norm {rows}x{columns}", layer_norm, (rows,), [x, weight, bias, out, columns, 1e-5], options
    for rows, columns in ((512, 512), (4096, 4096), (1000, 3000)):
        x, out = _random(rows, columns, dtype=torch.float32), _random(columns, rows, dtype=torch.float32)
        grid = triton.cdiv(rows, 64), triton.cdiv(columns, 64)
        yield f"transpose {rows}x{columns}", transpose, grid, [x, out, rows, columns], {"TILE": 64, "num_warps": 8}
    for n in (1 << 18, 1 << 23):
        x = torch.randint(0, 256, (n,), device="cuda", dtype=torch.int32)
        out = torch.zeros(256, device="cuda", dtype=torch.int32)
        yield f"histogram {n}", histogram, (n // 2048,), [x, out, n], {"BINS": 256, "BLOCK": 2048}
    for m, n, k, tile_m, tile_n, tile_k, warps, stages in (
        (256, 256, 256, 64, 64, 64, 4, 3),
        (512, 512, 512, 64, 128, 64, 4, 3),
        (1024, 1024, 1024, 128, 128, 64, 4, 3),
        (2048, 2048, 2048, 128, 128, 64, 8, 3),
        (1000, 1500, 777, 128, 128, 32, 4, 4),
        (64, 4096, 4096, 64, 64, 128, 4, 4),
        (4096, 4096, 4096, 128, 256, 64, 8, 3),
        (8192, 8192, 8192, 128, 256, 64, 8, 4),
    ):
        a, b, c = _random(m, k), _random(k, n), _random(m, n)
        options = {
            "TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k, "GROUP": 8, "num_warps": warps, "num_stages": stages,
        }  # fmt: skip
        grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
        name = f"matmul {m}x{n}x{k} tile {tile_m}x{tile_n}x{tile_k}"
        yield name, matmul, grid, [a, b, c, m, n, k, k, n, n], options
    for keys, heads, size, tile_m, tile_n, warps, stages in (
        (256, 4, 64, 64, 64, 4, 3),
        (1024, 8, 64, 128, 64, 4, 3),
        (1024, 16, 128, 128, 64, 8, 3),
        (4096, 16, 128, 128, 64, 8, 3),
        (8192, 16, 64, 128, 128, 8, 2),
    ):
        q, k, v, out = (_random(heads, keys, size) for _ in range(4))
        options = {"SIZE": size, "TILE_M": tile_m, "TILE_N": tile_n, "num_warps": warps, "num_stages": stages}
        name = f"attention {keys} keys, {heads} heads of {size}"
        yield name, attention, (keys // tile_m, heads), [q, k, v, out, size**-0.5, keys], options
