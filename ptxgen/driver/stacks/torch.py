"""PyTorch: its operators run on the CPU, in the emulated device's memory; its caching allocator hides overruns."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "torch",
    environment=lambda folder: {
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "TORCH_EXTENSIONS_DIR": str(folder / "torch-extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    },
    hooks=(("torch", "torch_operators"),),
)
