"""The real device: run kernels on an NVIDIA GPU through the CUDA driver. Importing it needs no driver."""

from ptxgen.gpu.device import Gpu, GpuArray, GpuError, GpuNotFoundError

__all__ = ["Gpu", "GpuArray", "GpuError", "GpuNotFoundError"]
