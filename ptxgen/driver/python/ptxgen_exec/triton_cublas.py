"""Triton's own wrapper of cuBLASLt computes by PyTorch on the CPU, as its operators do: cuBLAS is machine code."""


class CublasLt:
    """triton._C.libtriton.nvidia.cublas.CublasLt: matrices A (M, K), B (N, K) and C (M, N), all row-major."""

    def __init__(self, workspace):
        self.workspace = workspace

    def matmul(self, A, B, C):
        """C = A · Bᵀ, with sums in f32."""
        C.copy_((A.float() @ B.float().T).to(C.dtype))

    def gemm(self, A, B, C, D, alpha, beta):
        """D = alpha · A · Bᵀ + beta · C, with sums in f32."""
        D.copy_((alpha * (A.float() @ B.float().T) + beta * C.float()).to(D.dtype))

    def _refuse(self, *matrices):
        raise RuntimeError("ptxgen exec: cuBLASLt is machine code; its block-scaled products are not computed")

    block_scaled_matmul_mxfp8 = block_scaled_matmul_nvfp4 = _refuse


def patch(module):
    cublas = getattr(getattr(module, "nvidia", None), "cublas", None)
    if cublas is not None:
        cublas.CublasLt = CublasLt
