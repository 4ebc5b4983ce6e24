"""A split product of matrices that adds its parts atomically, and causal attention, in TileLang.

`python tiles.py split_product 90 > FILE.cu` gives CUDA C++, the launch, and the tensormaps, as comments.
"""

import sys

import tilelang.language as T
from tilelang import tvm
from tilelang.engine.lower import lower


def split_product(M, N, K, bM, bN, bK, split):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), split, threads=128) as (bx, by, bz):
            As = T.alloc_shared((bM, bK), "float16")
            Bs = T.alloc_shared((bN, bK), "float16")
            C_l = T.alloc_fragment((bM, bN), "float")
            Cs = T.alloc_shared((bM, bN), "float")
            T.clear(C_l)
            for k in T.Pipelined(K // split // bK, num_stages=2):
                T.copy(A[by * bM, bz * (K // split) + k * bK], As)
                T.copy(B[bx * bN, bz * (K // split) + k * bK], Bs)
                T.gemm(As, Bs, C_l, transpose_B=True)
            T.copy(C_l, Cs)
            T.atomic_add(C[by * bM, bx * bN], Cs)

    return main


def attention(B, H, S, D, bM, bN, causal, stages, threads):
    sc = (1 / D) ** 0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((B, S, H, D), "float16"),
        K: T.Tensor((B, S, H, D), "float16"),
        V: T.Tensor((B, S, H, D), "float16"),
        Y: T.Tensor((B, S, H, D), "float16"),
    ):
        with T.Kernel(T.ceildiv(S, bM), H, B, threads=threads) as (bx, by, bz):
            Qs = T.alloc_shared([bM, D], "float16")
            Ks = T.alloc_shared([bN, D], "float16")
            Vs = T.alloc_shared([bN, D], "float16")
            Os = T.alloc_shared([bM, D], "float16")
            a = T.alloc_fragment([bM, bN], "float")
            ac = T.alloc_fragment([bM, bN], "float16")
            o = T.alloc_fragment([bM, D], "float")
            m = T.alloc_fragment([bM], "float")
            mp = T.alloc_fragment([bM], "float")
            ss = T.alloc_fragment([bM], "float")
            su = T.alloc_fragment([bM], "float")
            total = T.alloc_fragment([bM], "float")
            T.copy(Q[bz, bx * bM : (bx + 1) * bM, by, :], Qs)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -T.infinity("float"))
            for k in T.Pipelined(T.ceildiv((bx + 1) * bM, bN) if causal else T.ceildiv(S, bN), num_stages=stages):
                T.copy(K[bz, k * bN : (k + 1) * bN, by, :], Ks)
                if causal:
                    for i, j in T.Parallel(bM, bN):
                        a[i, j] = T.if_then_else(bx * bM + i >= k * bN + j, 0, -T.infinity("float"))
                else:
                    T.clear(a)
                T.gemm(Qs, Ks, a, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(m, mp)
                T.fill(m, -T.infinity("float"))
                T.reduce_max(a, m, dim=1, clear=False)
                for i in T.Parallel(bM):
                    m[i] = T.max(m[i], mp[i])
                for i in T.Parallel(bM):
                    ss[i] = T.exp2(mp[i] * sc - m[i] * sc)
                for i, j in T.Parallel(bM, bN):
                    a[i, j] = T.exp2(a[i, j] * sc - m[i] * sc)
                T.reduce_sum(a, su, dim=1)
                for i in T.Parallel(bM):
                    total[i] = total[i] * ss[i] + su[i]
                T.copy(a, ac)
                for i, j in T.Parallel(bM, D):
                    o[i, j] *= ss[i]
                T.copy(V[bz, k * bN : (k + 1) * bN, by, :], Vs)
                T.gemm(ac, Vs, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(bM, D):
                o[i, j] /= total[i]
            T.copy(o, Os)
            T.copy(Os, Y[bz, bx * bM : (bx + 1) * bM, by, :])

    return main


KERNELS = {
    "split_product": split_product(128, 128, 256, 64, 64, 32, 2),
    "attention": attention(1, 2, 192, 64, 64, 64, True, 2, 128),
}

if __name__ == "__main__":
    target = tvm.target.Target({"kind": "cuda", "arch": f"sm_{sys.argv[2]}a"}, host="c")
    with target:
        made = lower(KERNELS[sys.argv[1]], target=target, enable_host_codegen=True)
    print(made.kernel_source)
    print("\n".join(f"// {line}" for line in made.host_mod.inspect_source().splitlines()))
