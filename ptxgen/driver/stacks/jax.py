"""JAX: XLA and Mosaic GPU are to run ptxas, which is wrapped; CUPTI, whose version JAX checks, needs a real driver."""

from ptxgen.driver.stacks.stack import Stack

_FLAGS = (
    "--xla_gpu_enable_libnvptxcompiler=false",
    "--xla_gpu_enable_libnvjitlink=false",
    "--xla_gpu_autotune_level=0",
)

STACK = Stack(
    "jax",
    environment=lambda folder: {
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "XLA_PYTHON_CLIENT_ALLOCATOR": "platform",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "XLA_FLAGS": " ".join(_FLAGS),
    },
    hooks=(("jax._src.hardware_utils", "jax_device"),),
)
