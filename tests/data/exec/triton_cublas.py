"""Triton's wrapper of cuBLASLt, as its tutorials construct it to compare with."""

import torch
from triton._C.libtriton import nvidia

workspace = torch.empty(1024, device="cuda", dtype=torch.uint8)
cublas = nvidia.cublas.CublasLt(workspace)
a, b = (torch.randn(rows, 64, device="cuda", dtype=torch.float16) for rows in (32, 48))
c = torch.empty(32, 48, device="cuda", dtype=torch.float16)
d = torch.empty_like(c)
cublas.matmul(a, b, c)
cublas.gemm(a, b, c, d, 2.0, 1.0)
expected = a.double().cpu() @ b.double().cpu().T
torch.testing.assert_close(c.double().cpu(), expected, atol=2e-2, rtol=1e-3)
torch.testing.assert_close(d.double().cpu(), 3 * expected, atol=8e-2, rtol=2e-3)
print("PASS")
