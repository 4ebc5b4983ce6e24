"""Kernels that treat the rows of a matrix: normalization, reductions, scans, sorts."""

from __future__ import annotations

import triton
import triton.language as tl

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Witness, output


@triton.jit
def rms_norm(x, w, y, r, n, eps, BLOCK: tl.constexpr):
    """y = x / rms(x) * w over rows longer than a block, in two passes."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        column = at + tl.arange(0, BLOCK)
        value = tl.load(x + row * n + column, mask=column < n, other=0.0).to(tl.float32)
        total += value * value
    scale = tl.rsqrt(tl.sum(total) / n + eps)
    tl.store(r + row, scale)
    for at in range(0, n, BLOCK):
        column = at + tl.arange(0, BLOCK)
        inside = column < n
        value = tl.load(x + row * n + column, mask=inside).to(tl.float32)
        weight = tl.load(w + column, mask=inside).to(tl.float32)
        tl.store(y + row * n + column, (value * scale * weight).to(y.dtype.element_ty), mask=inside)


@triton.jit
def online_softmax(x, y, n, stride, BLOCK: tl.constexpr):
    """Maximum and sum in one pass over blocks, the quotient in a second."""
    row = tl.program_id(0)
    highest = -float("inf")
    total = 0.0
    for at in range(0, n, BLOCK):
        column = at + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + column, mask=column < n, other=-float("inf")).to(tl.float32)
        now = tl.maximum(highest, tl.max(value))
        total = total * tl.exp(highest - now) + tl.sum(tl.exp(value - now))
        highest = now
    for at in range(0, n, BLOCK):
        column = at + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + column, mask=column < n).to(tl.float32)
        tl.store(y + row * n + column, tl.exp(value - highest) / total, mask=column < n)


@triton.jit
def layer_norm_backward(g, x, w, dx, dw, db, lock, n, ROWS: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """dx of some rows each, and dw and db summed under a lock for each group of programs."""
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < n
    weight = tl.load(w + column, mask=inside, other=0.0)
    sum_w = tl.zeros((BLOCK,), tl.float32)
    sum_b = tl.zeros((BLOCK,), tl.float32)
    for at in range(ROWS):
        row = program * ROWS + at
        value = tl.load(x + row * n + column, mask=inside, other=0.0)
        grad = tl.load(g + row * n + column, mask=inside, other=0.0)
        mean = tl.sum(value) / n
        centred = tl.where(inside, value - mean, 0.0)
        inverse = 1 / tl.sqrt(tl.sum(centred * centred) / n + 1e-5)
        normal = centred * inverse
        weighted = weight * grad
        c1 = tl.sum(normal * weighted) / n
        c2 = tl.sum(weighted) / n
        tl.store(dx + row * n + column, (weighted - (normal * c1 + c2)) * inverse, mask=inside)
        sum_w += grad * normal
        sum_b += grad
    group = program % GROUPS
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    here_w = dw + group * n + column
    here_b = db + group * n + column
    if tl.load(lock + GROUPS + group) == 0:
        tl.atomic_xchg(lock + GROUPS + group, 1)
    else:
        sum_w += tl.load(here_w, mask=inside)
        sum_b += tl.load(here_b, mask=inside)
    tl.store(here_w, sum_w, mask=inside)
    tl.store(here_b, sum_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


@triton.jit
def _join(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    part = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * part, m2_a + m2_b + delta * delta * weight_a * part, weight


@triton.jit
def welford(x, mean, variance, n, m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and variance by a reduction of triples with an operator of our own."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < m)[:, None] & (column < n)[None, :]
    value = tl.load(x + row[:, None] * n + column[None, :], mask=inside, other=0.0).to(tl.float32)
    weight = tl.where(inside, 1.0, 0.0)
    mu, m2, count = tl.reduce((value, tl.zeros_like(value), weight), 1, _join)
    tl.store(mean + row, mu, mask=row < m)
    tl.store(variance + row, m2 / count, mask=row < m)


@triton.jit
def _recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(x, a, total, product, state, backward, highest, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Running sum, product and maximum, a linear recurrence, and a sum from the end."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + at)
    decay = tl.load(a + at)
    tl.store(total + at, tl.cumsum(value, 1))
    tl.store(product + at, tl.cumprod(decay, 0))
    tl.store(backward + at, tl.cumsum(value, 1, reverse=True))
    _, h = tl.associative_scan((decay, value), 1, _recurrence)
    tl.store(state + at, h)
    tl.store(highest + at, tl.associative_scan(value, 0, _larger))


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def order(x, ascending, descending, best, where, least, flipped, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sorts both ways, the largest with their places, the first of the smallest."""
    row = tl.arange(0, ROWS)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + at)
    tl.store(ascending + at, tl.sort(value, 1))
    tl.store(descending + at, tl.sort(value, 1, descending=True))
    highest, place = tl.max(value, 1, return_indices=True)
    tl.store(best + row, highest)
    tl.store(where + row, place)
    tl.store(least + row, tl.argmin(value, 1))
    tl.store(flipped + at, tl.flip(value, 1))


@triton.jit
def top(x, y, K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The K largest of each row, in order, of 16-bit values."""
    row = tl.arange(0, ROWS)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + row[:, None] * K + tl.arange(0, K)[None, :], tl.topk(tl.load(x + at), K))


@triton.jit
def counts(x, h, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """A histogram of each block, added to the grid's by atomics, with a mask."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    found = tl.histogram(value, BINS, mask=at < n)
    tl.atomic_add(h + tl.arange(0, BINS), found)


@triton.jit
def shuffles(x, index, taken, pairs, first, second, turned, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Gathers along both axes, interleaves, splits, transposes, reshapes."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + at)
    tl.store(taken + at, tl.gather(value, tl.load(index + at), 1))
    wide = tl.arange(0, ROWS)[:, None] * (2 * COLUMNS) + tl.arange(0, 2 * COLUMNS)[None, :]
    tl.store(pairs + wide, tl.interleave(value, -value))
    half = tl.arange(0, ROWS)[:, None] * (COLUMNS // 2) + tl.arange(0, COLUMNS // 2)[None, :]
    left, right = tl.split(tl.reshape(value, (ROWS, COLUMNS // 2, 2)))
    tl.store(first + half, left)
    tl.store(second + half, right)
    tall = tl.arange(0, COLUMNS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    tl.store(turned + tall, tl.trans(value) * 2)


@triton.jit
def cross_entropy(x, label, loss, dx, n, BLOCK: tl.constexpr):
    """Loss and gradient of a row of logits; negative labels are ignored."""
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    dx += row * n
    column = tl.arange(0, BLOCK)
    inside = column < n
    target = tl.load(label + row)
    if target < 0:
        tl.store(loss + row, 0.0)
        tl.store(dx + column, tl.zeros((BLOCK,), tl.float32).to(dx.dtype.element_ty), mask=inside)
        return
    value = tl.load(x + column, mask=inside, other=-float("inf")).to(tl.float32)
    highest = tl.max(value)
    power = tl.exp(value - highest)
    total = tl.sum(power)
    tl.store(loss + row, tl.log(total) + highest - tl.load(x + target).to(tl.float32))
    tl.store(dx + column, (power / total - tl.where(column == target, 1.0, 0.0)).to(dx.dtype.element_ty), mask=inside)


WITNESSES = [
    Witness(
        "rms_norm", rms_norm, (7,), ("t35_90", "t37_100"),
        {
            "x": Buffer("bf16", (7, 700)), "w": Buffer("bf16", (700,)), "y": output("bf16", 7, 700),
            "r": output("fp32", 7, tolerance=(1e-5, 1e-6)), "n": 700, "eps": 1e-5, "BLOCK": Constant(256),
        },
        references.rms_norm, options={"num_warps": 2},
    ),
    Witness(
        "online_softmax", online_softmax, (9,), ("t37_90",),
        {
            "x": Buffer("fp16", (9, 336)), "y": output("fp32", 9, 333), "n": 333, "stride": 336,
            "BLOCK": Constant(128),
        },
        references.online_softmax, options={"num_warps": 1}, tolerance=(1e-4, 1e-6),
    ),
    Witness(
        "layer_norm_backward", layer_norm_backward, (8,), ("t36_100", "t39_90"),
        {
            "g": Buffer("fp32", (24, 100)), "x": Buffer("fp32", (24, 100)), "w": Buffer("fp32", (100,)),
            "dx": output("fp32", 24, 100), "dw": output("fp32", 2, 100), "db": output("fp32", 2, 100),
            "lock": Buffer("i32", (4,), "zeros", role="inout"), "n": 100, "ROWS": Constant(3), "GROUPS": Constant(2),
            "BLOCK": Constant(128),
        },
        references.layer_norm_backward, tolerance=(1e-3, 1e-4),
    ),
    Witness(
        "welford", welford, (3,), ("t36_90", "t39_100"),
        {
            "x": Buffer("fp16", (10, 300)), "mean": output("fp32", 10), "variance": output("fp32", 10), "n": 300,
            "m": 10, "ROWS": Constant(4), "BLOCK": Constant(512),
        },
        references.welford, options={"num_warps": 8}, tolerance=(1e-4, 1e-5),
    ),
    Witness(
        "scans", scans, (1,), ("t37_100",),
        {
            "x": Buffer("fp32", (16, 128)), "a": Buffer("fp32", (16, 128), scale=0.7),
            **{name: output("fp32", 16, 128) for name in ("total", "product", "state", "backward", "highest")},
            "ROWS": Constant(16), "COLUMNS": Constant(128),
        },
        references.scans, tolerance=(1e-3, 1e-3),
    ),
    Witness(
        "order", order, (1,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (8, 64), "randint", lo=-90, hi=90), "ascending": output("i32", 8, 64),
            "descending": output("i32", 8, 64), "best": output("i32", 8), "where": output("i32", 8),
            "least": output("i32", 8), "flipped": output("i32", 8, 64), "ROWS": Constant(8), "COLUMNS": Constant(64),
        },
        references.order, tolerance=(0, 0),
    ),
    Witness(
        "top", top, (1,), ("t37_90",),
        {
            "x": Buffer("fp16", (16, 128)), "y": output("fp16", 16, 8), "K": Constant(8), "ROWS": Constant(16),
            "COLUMNS": Constant(128),
        },
        references.top, tolerance=(0, 0), options={"num_warps": 8},
    ),
    Witness(
        "counts", counts, (5,), ("t36_90", "t39_100"),
        {
            "x": Buffer("i32", (1190,), "randint", lo=0, hi=64), "h": Buffer("i32", (64,), "zeros", role="inout"),
            "n": 1190, "BINS": Constant(64), "BLOCK": Constant(256),
        },
        references.counts, tolerance=(0, 0), options={"num_warps": 2},
    ),
    Witness(
        "shuffles", shuffles, (1,), ("t36_100", "t39_90"),
        {
            "x": Buffer("fp16", (32, 64)), "index": Buffer("i16", (32, 64), "randint", lo=0, hi=64),
            "taken": output("fp16", 32, 64), "pairs": output("fp16", 32, 128), "first": output("fp16", 32, 32),
            "second": output("fp16", 32, 32), "turned": output("fp16", 64, 32), "ROWS": Constant(32),
            "COLUMNS": Constant(64),
        },
        references.shuffles, tolerance=(0, 0),
    ),
    Witness(
        "cross_entropy", cross_entropy, (6,), ("t36_100", "t37_90"),
        {
            "x": Buffer("bf16", (6, 200), scale=2.0),
            "label": Buffer("i64", (6,), "randint", lo=-90, hi=200),
            "loss": output("fp32", 6), "dx": output("bf16", 6, 200), "n": 200, "BLOCK": Constant(256),
        },
        references.cross_entropy, options={"num_warps": 8},
    ),
]  # fmt: skip
