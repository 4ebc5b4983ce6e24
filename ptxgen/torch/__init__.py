"""PyTorch: `ptxgen.torch.gemm`, a custom op that runs the kernels of the library.

On a CUDA tensor it runs on that GPU, on torch's current stream; on a CPU tensor in the emulator, with all checks, which
takes seconds. Needs PyTorch: pip install "ptxgen[torch]".
"""

try:
    import torch  # noqa: F401  # pyright: ignore[reportMissingImports]
except ImportError:
    raise ImportError("ptxgen.torch needs PyTorch, which is not installed: pip install 'ptxgen[torch]'") from None

from ptxgen.torch.gemm_op import emulated, gemm
from ptxgen.torch.prepared import kernel_for

__all__ = ["emulated", "gemm", "kernel_for"]
