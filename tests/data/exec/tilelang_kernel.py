"""TileLang: a product of matrices on torch's tensors."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


torch.manual_seed(0)
a = torch.randn(128, 64, device="cuda", dtype=torch.float16)
b = torch.randn(64, 128, device="cuda", dtype=torch.float16)
c = matmul(128, 128, 64, 64, 64, 32)(a, b)
torch.testing.assert_close(c.cpu(), a.cpu().float() @ b.cpu().float(), rtol=1e-2, atol=1e-2)
print("PASS")
