"""PyTorch: `ptxgen.torch.gemm` and `ptxgen.torch.attention`, custom ops that run the kernels of the library.

On CUDA tensors they run on that GPU, on torch's current stream; on CPU tensors in the emulator, with all checks, which
takes seconds. Needs PyTorch: pip install "ptxgen[torch]".
"""

try:
    import torch  # noqa: F401  # pyright: ignore[reportMissingImports]
except ImportError:
    raise ImportError("ptxgen.torch needs PyTorch, which is not installed: pip install 'ptxgen[torch]'") from None

from ptxgen.torch.attention_op import attention
from ptxgen.torch.emulation import emulated
from ptxgen.torch.gemm_op import gemm
from ptxgen.torch.prepared import kernel_for

__all__ = ["attention", "emulated", "gemm", "kernel_for"]
