"""Numba-CUDA kernels whose shapes and types a seed draws: numba_programs.py SEED [NAMES]."""

from __future__ import annotations

import random
import sys
import warnings

import numpy as np
from numba import cuda, float32, float64, int32, int64

warnings.simplefilter("ignore")
seed, wanted = sys.argv[1], sys.argv[2:]
draw, numbers = random.Random(), np.random.default_rng(0)
TYPES = {"float32": float32, "float64": float64, "int32": int32, "int64": int64}


def values(kind, *shape):
    return numbers.integers(-9, 10, shape).astype(kind)


def tree():
    kind, threads, blocks = draw.choice(list(TYPES)), draw.choice([64, 128, 256]), draw.randint(2, 4)
    element = TYPES[kind]

    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(threads, element)
        t = cuda.threadIdx.x
        total = element(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            total += x[i]
        tile[t] = total
        cuda.syncthreads()
        step = threads // 2
        while step > 0:
            if t < step:
                tile[t] += tile[t + step]
            cuda.syncthreads()
            step //= 2
        if t == 0:
            cuda.atomic.add(out, 0, tile[0])

    x = values(kind, draw.randint(300, 2000))
    out = cuda.to_device(np.zeros(1, kind))
    kernel[blocks, threads](cuda.to_device(x), out)
    assert out.copy_to_host()[0] == x.sum()
    return f"{kind} {x.size} threads {threads} blocks {blocks}"


def shuffled():
    threads, n = draw.choice([64, 128, 256]), draw.randint(100, 250)

    @cuda.jit
    def kernel(x, out):
        warps = cuda.shared.array(32, int32)
        t, lane, warp = cuda.threadIdx.x, cuda.laneid, cuda.threadIdx.x // 32
        v = x[t] if t < x.size else int32(0)
        step = 1
        while step < 32:
            u = cuda.shfl_up_sync(0xFFFFFFFF, v, step)
            if lane >= step:
                v += u
            step *= 2
        if lane == 31:
            warps[warp] = v
        cuda.syncthreads()
        for w in range(warp):
            v += warps[w]
        if t < x.size:
            out[t] = v

    x = values("int32", min(n, threads))
    out = cuda.to_device(np.zeros_like(x))
    kernel[1, threads](cuda.to_device(x), out)
    assert np.array_equal(out.copy_to_host(), x.cumsum())
    return f"{x.size} threads {threads}"


def privatized():
    bins, threads, blocks = draw.choice([16, 64, 100]), draw.choice([64, 128]), draw.randint(2, 3)

    @cuda.jit
    def kernel(x, out):
        own = cuda.shared.array(128, int32)
        for i in range(cuda.threadIdx.x, bins, cuda.blockDim.x):
            own[i] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(own, x[i], 1)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, bins, cuda.blockDim.x):
            cuda.atomic.add(out, i, own[i])

    x = numbers.integers(0, bins, draw.randint(500, 1500)).astype(np.int32)
    out = cuda.to_device(np.zeros(bins, np.int32))
    kernel[blocks, threads](cuda.to_device(x), out)
    assert np.array_equal(out.copy_to_host(), np.bincount(x, minlength=bins))
    return f"{x.size} bins {bins} threads {threads} blocks {blocks}"


def tiled():
    side, kind = draw.choice([8, 16]), draw.choice(["float32", "int32"])
    m, n, k = (draw.randint(10, 50) for _ in range(3))
    element = TYPES[kind]

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = cuda.shared.array((side, side), element), cuda.shared.array((side, side), element)
        j, i = cuda.grid(2)
        tj, ti = cuda.threadIdx.x, cuda.threadIdx.y
        total = element(0)
        for s in range((a.shape[1] + side - 1) // side):
            sa[ti, tj] = a[i, s * side + tj] if i < a.shape[0] and s * side + tj < a.shape[1] else element(0)
            sb[ti, tj] = b[s * side + ti, j] if j < b.shape[1] and s * side + ti < b.shape[0] else element(0)
            cuda.syncthreads()
            for q in range(side):
                total += sa[ti, q] * sb[q, tj]
            cuda.syncthreads()
        if i < c.shape[0] and j < c.shape[1]:
            c[i, j] = total

    a, b = values(kind, m, k), values(kind, k, n)
    c = cuda.to_device(np.zeros((m, n), kind))
    kernel[(-(-n // side), -(-m // side)), (side, side)](cuda.to_device(a), cuda.to_device(b), c)
    assert np.array_equal(c.copy_to_host(), a @ b)
    return f"{kind} {m}x{n}x{k} tile {side}"


def bitonic():
    n = draw.choice([64, 128, 256])

    @cuda.jit
    def kernel(x):
        tile = cuda.shared.array(n, int32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncthreads()
        size = 2
        while size <= n:
            step = size // 2
            while step > 0:
                other = t ^ step
                if other > t:
                    up = (t & size) == 0
                    if (tile[t] > tile[other]) == up:
                        tile[t], tile[other] = tile[other], tile[t]
                cuda.syncthreads()
                step //= 2
            size *= 2
        x[t] = tile[t]

    x = values("int32", n)
    there = cuda.to_device(x)
    kernel[1, n](there)
    assert np.array_equal(there.copy_to_host(), np.sort(x))
    return f"{n}"


def last_block():
    threads, blocks = draw.choice([32, 64, 128]), draw.randint(2, 5)

    @cuda.jit
    def kernel(x, parts, count, out):
        last = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        tile = cuda.shared.array(threads, int32)
        tile[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        if t == 0:
            total = int32(0)
            for i in range(threads):
                total += tile[i]
            parts[cuda.blockIdx.x] = total
            cuda.threadfence()
            last[0] = cuda.atomic.add(count, 0, 1) == blocks - 1
        cuda.syncthreads()
        if last[0] and t == 0:
            cuda.threadfence()
            total = int32(0)
            for i in range(blocks):
                total += parts[i]
            out[0] = total

    x = values("int32", threads * blocks)
    parts, count, out = (cuda.to_device(np.zeros(n, np.int32)) for n in (blocks, 1, 1))
    kernel[blocks, threads](cuda.to_device(x), parts, count, out)
    assert out.copy_to_host()[0] == x.sum()
    return f"threads {threads} blocks {blocks}"


def cooperative():
    threads, blocks, rounds = draw.choice([32, 64]), draw.randint(2, 4), draw.randint(2, 3)

    @cuda.jit
    def kernel(a, b):
        grid = cuda.cg.this_grid()
        i, n = cuda.grid(1), a.size
        for _ in range(rounds):
            b[i] = a[i] + a[(i + 1) % n]
            grid.sync()
            a[i] = b[i] - b[(i + n - 3) % n]
            grid.sync()

    x = values("int32", threads * blocks)
    a, b = cuda.to_device(x), cuda.to_device(np.zeros_like(x))
    kernel[blocks, threads](a, b)
    for _ in range(rounds):
        y = x + np.roll(x, -1)
        x = y - np.roll(y, 3)
    assert np.array_equal(a.copy_to_host(), x)
    return f"threads {threads} blocks {blocks} rounds {rounds}"


def locked():
    threads, blocks = draw.choice([32, 64]), draw.randint(2, 4)

    @cuda.jit
    def kernel(lock, data):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            for i in range(data.size):
                data[i] += cuda.blockIdx.x + i
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

    n = draw.randint(3, 9)
    lock, data = cuda.to_device(np.zeros(1, np.int32)), cuda.to_device(np.zeros(n, np.int32))
    kernel[blocks, threads](lock, data)
    assert np.array_equal(data.copy_to_host(), [sum(b + i for b in range(blocks)) for i in range(n)])
    return f"{n} threads {threads} blocks {blocks}"


KERNELS = [tree, tree, shuffled, privatized, tiled, bitonic, last_block, cooperative, locked]
for number, kernel in enumerate(KERNELS):
    draw.seed(f"{seed} {number}")
    if wanted and kernel.__name__ not in wanted:
        continue
    try:
        print(f"right: {kernel.__name__} {kernel()}", flush=True)
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        print(f"WRONG: {kernel.__name__} {type(error).__name__}: {text}", flush=True)
