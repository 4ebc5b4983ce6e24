"""CuPy: kernels of NVRTC are handed out as PTX (native/hooks.c); its memory pool hides overruns.

Reductions and scans are compiled in place of CUB's, which CuPy has as machine code alone.
"""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "cupy",
    environment=lambda folder: {
        "CUPY_CACHE_DIR": str(folder / "cupy"),
        "CUPY_CACHE_SAVE_CUDA_SOURCE": "1",
        "CUPY_ACCELERATORS": "",
    },
    hooks=(("cupy", "cupy_pool"),),
)
