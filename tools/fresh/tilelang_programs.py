"""TileLang kernels whose shapes, types and options a seed draws: tilelang_programs.py SEED [NAMES]."""

from __future__ import annotations

import random
import sys

import tilelang
import tilelang.language as T
import torch

seed, wanted = sys.argv[1], sys.argv[2:]
draw = random.Random()
TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def randn(*shape, dtype="float16"):
    values = torch.randn(shape).to(TYPES.get(dtype, torch.float32))
    return values.to("cuda"), values.float()


def close(found, expected, tolerance=2e-2):
    torch.testing.assert_close(found.cpu().float(), expected.float(), rtol=tolerance, atol=tolerance)


@tilelang.jit(out_idx=[-1])
def product(M, N, K, bM, bN, bK, stages, threads, kind, across):
    @T.prim_func
    def main(A: T.Tensor((M, K), kind), B: T.Tensor((N, K) if across else (K, N), kind), C: T.Tensor((M, N), kind)):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=threads) as (bx, by):
            As = T.alloc_shared((bM, bK), kind)
            Bs = T.alloc_shared((bN, bK) if across else (bK, bN), kind)
            Cl = T.alloc_fragment((bM, bN), "float32")
            T.clear(Cl)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=stages):
                T.copy(A[by * bM, k * bK], As)
                if across:
                    T.copy(B[bx * bN, k * bK], Bs)
                else:
                    T.copy(B[k * bK, bx * bN], Bs)
                T.gemm(As, Bs, Cl, transpose_B=across)
            T.copy(Cl, C[by * bM, bx * bN])

    return main


def matmul():
    kind, across = draw.choice(list(TYPES)), draw.random() < 0.5
    bm, bn, bk = draw.choice([64, 128]), draw.choice([64, 128]), draw.choice([32, 64])
    m, n, k = bm * draw.choice([1, 2]), bn * draw.choice([1, 2]), bk * draw.randint(2, 5)
    stages, threads = draw.choice([0, 1, 2, 3]), draw.choice([128, 256])
    a, x = randn(m, k, dtype=kind)
    b, y = randn(*((n, k) if across else (k, n)), dtype=kind)
    close(product(m, n, k, bm, bn, bk, stages, threads, kind, across)(a, b), x @ (y.T if across else y), 8e-2)
    return f"{kind} {m}x{n}x{k} tile {bm}x{bn}x{bk} stages {stages} threads {threads} across {across}"


@tilelang.jit(out_idx=[-1])
def attended(H, S, D, bM, bN, causal, stages, threads):
    scale = (1 / D) ** 0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((H, S, D), "float16"), K: T.Tensor((H, S, D), "float16"), V: T.Tensor((H, S, D), "float16"),
        Y: T.Tensor((H, S, D), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, bM), H, threads=threads) as (bx, h):
            Qs, Ks, Vs = (
                T.alloc_shared([bM, D], "float16"),
                T.alloc_shared([bN, D], "float16"),
                T.alloc_shared([bN, D], "float16"),
            )
            s, p = T.alloc_fragment([bM, bN], "float32"), T.alloc_fragment([bM, bN], "float16")
            o = T.alloc_fragment([bM, D], "float32")
            m, before, ratio, part, total = (T.alloc_fragment([bM], "float32") for _ in range(5))
            T.copy(Q[h, bx * bM : (bx + 1) * bM, :], Qs)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv((bx + 1) * bM, bN) if causal else T.ceildiv(S, bN), num_stages=stages):
                T.copy(K[h, k * bN : (k + 1) * bN, :], Ks)
                if causal:
                    for i, j in T.Parallel(bM, bN):
                        s[i, j] = T.if_then_else(bx * bM + i >= k * bN + j, 0, -T.infinity("float32"))
                else:
                    T.clear(s)
                T.gemm(Qs, Ks, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(m, before)
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(bM):
                    ratio[i] = T.exp2(before[i] * scale - m[i] * scale)
                for i, j in T.Parallel(bM, bN):
                    s[i, j] = T.exp2(s[i, j] * scale - m[i] * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(bM):
                    total[i] = total[i] * ratio[i] + part[i]
                for i, j in T.Parallel(bM, D):
                    o[i, j] *= ratio[i]
                T.copy(s, p)
                T.copy(V[h, k * bN : (k + 1) * bN, :], Vs)
                T.gemm(p, Vs, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(bM, D):
                o[i, j] /= total[i]
            T.copy(o, Y[h, bx * bM : (bx + 1) * bM, :])

    return main


def attention():
    d, bm, bn = draw.choice([64, 128]), draw.choice([64, 128]), draw.choice([32, 64])
    h, s, causal = draw.choice([1, 2]), 128 * draw.choice([1, 2]), draw.random() < 0.5
    stages, threads = draw.choice([0, 1, 2]), 128
    (q, x), (k, y), (v, z) = (randn(h, s, d) for _ in range(3))
    found = attended(h, s, d, bm, bn, causal, stages, threads)(q, k, v)
    close(found, torch.nn.functional.scaled_dot_product_attention(x, y, z, is_causal=causal))
    return f"{h}x{s}x{d} tile {bm}x{bn} causal {causal} stages {stages}"


@tilelang.jit
def added(M, N, K, bM, bN, bK, split):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), split, threads=128) as (bx, by, bz):
            As, Bs = T.alloc_shared((bM, bK), "float16"), T.alloc_shared((bK, bN), "float16")
            Cl = T.alloc_fragment((bM, bN), "float32")
            T.clear(Cl)
            for k in T.Pipelined(K // split // bK, num_stages=2):
                T.copy(A[by * bM, bz * (K // split) + k * bK], As)
                T.copy(B[bz * (K // split) + k * bK, bx * bN], Bs)
                T.gemm(As, Bs, Cl)
            for i, j in T.Parallel(bM, bN):
                T.atomic_add(C[by * bM + i, bx * bN + j], Cl[i, j])

    return main


def split():
    bm, bn, bk, parts = draw.choice([64, 128]), draw.choice([64, 128]), 32, draw.choice([2, 3])
    m, n, k = bm, bn * draw.choice([1, 2]), bk * parts * draw.choice([1, 2])
    a, x = randn(m, k)
    b, y = randn(k, n)
    c = torch.zeros(m, n, device="cuda")
    added(m, n, k, bm, bn, bk, parts)(a, b, c)
    close(c, x @ y, 8e-2)
    return f"{m}x{n}x{k} tile {bm}x{bn}x{bk} split {parts}"


@tilelang.jit(out_idx=[-1])
def normed(M, N, bM, threads):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, bM), threads=threads) as bx:
            As, local = T.alloc_shared((bM, N), "float32"), T.alloc_fragment((bM, N), "float32")
            square, total = T.alloc_fragment((bM, N), "float32"), T.alloc_fragment((bM,), "float32")
            T.copy(A[bx * bM : (bx + 1) * bM, :], As)
            T.copy(As, local)
            for i, j in T.Parallel(bM, N):
                square[i, j] = local[i, j] * local[i, j]
            T.reduce_sum(square, total, dim=1)
            for i in T.Parallel(bM):
                total[i] = T.rsqrt(total[i] / N + 1e-5)
            for i, j in T.Parallel(bM, N):
                As[i, j] *= total[i]
            T.copy(As, B[bx * bM : (bx + 1) * bM, :])

    return main


def norm():
    rows, n, threads = draw.choice([1, 2, 4]), draw.choice([128, 256, 1024]), draw.choice([64, 128, 256])
    a, x = randn(rows * 3, n, dtype="float32")
    close(normed(rows * 3, n, rows, threads)(a), x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5), 1e-4)
    return f"{rows}x{n} threads {threads}"


@tilelang.jit(out_idx=[-1])
def by_rows(N, K, bN, bK):
    @T.prim_func
    def main(A: T.Tensor((K,), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, bN), threads=(bN, bK)) as bn:
            tn, tk = T.get_thread_binding(0), T.get_thread_binding(1)
            shared, sums = T.alloc_shared((bN,), "float32"), T.alloc_local((1,), "float32")
            if tk == 0:
                shared[tn] = 0
            T.clear(sums)
            for k in T.serial(K // bK):
                sums[0] += A[k * bK + tk].astype("float32") * B[bn * bN + tn, k * bK + tk].astype("float32")
            T.atomic_add(shared[tn], sums[0])
            C[bn * bN + tn] = shared[tn]

    return main


def vector():
    bn, bk = draw.choice([4, 8, 16]), draw.choice([8, 16, 32])
    n, k = bn * draw.choice([2, 3]), bk * draw.choice([2, 4])
    a, x = randn(k)
    b, y = randn(n, k)
    close(by_rows(n, k, bn, bk)(a, b), y @ x)
    return f"{n}x{k} block {bn}x{bk}"


@tilelang.jit(out_idx=[-1])
def unpacked(M, N, K, bM, bN, bK, stages):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=128) as (bx, by):
            As, Bs = T.alloc_shared((bM, bK), "float16"), T.alloc_shared((bN, bK // 2), "uint8")
            Bl, Bd = T.alloc_fragment((bN, bK // 2), "uint8"), T.alloc_fragment((bN, bK), "float16")
            Bf = T.alloc_shared((bN, bK), "float16")
            Cl = T.alloc_fragment((bM, bN), "float32")
            T.clear(Cl)
            for k in T.Pipelined(K // bK, num_stages=stages):
                T.copy(A[by * bM, k * bK], As)
                T.copy(B[bx * bN, k * bK // 2], Bs)
                T.copy(Bs, Bl)
                for i, j in T.Parallel(bN, bK):
                    Bd[i, j] = ((Bl[i, j // 2] >> ((j % 2) * 4)) & 15).astype("float16") - T.float16(8)
                T.copy(Bd, Bf)
                T.gemm(As, Bf, Cl, transpose_B=True)
            T.copy(Cl, C[by * bM, bx * bN])

    return main


def dequantized():
    bm, bn, bk, stages = 64, draw.choice([32, 64]), draw.choice([32, 64]), draw.choice([1, 2, 3])
    m, n, k = bm, bn * draw.choice([1, 2]), bk * draw.randint(2, 4)
    a, x = randn(m, k)
    b = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8)
    y = torch.stack([b & 15, b >> 4], 2).reshape(n, k).float() - 8
    close(unpacked(m, n, k, bm, bn, bk, stages)(a, b.to("cuda")), x @ y.T, 0.3)
    return f"{m}x{n}x{k} tile {bm}x{bn}x{bk} stages {stages}"


for number, kernel in enumerate([matmul] * 4 + [attention] * 2 + [split, split, norm, norm, vector, dequantized]):
    draw.seed(f"{seed} {number}")
    torch.manual_seed(number)
    if wanted and kernel.__name__ not in wanted:
        continue
    try:
        print(f"right: {kernel.__name__} {kernel()}", flush=True)
    except Exception as error:
        text = " ".join(str(error).split())[-300:]
        print(f"WRONG: {kernel.__name__} {type(error).__name__}: {text}", flush=True)
