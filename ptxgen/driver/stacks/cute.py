"""CuTe DSL: a linked-in compiler makes its cubins, so the PTX that it keeps is matched by the names of the kernels."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "cute",
    environment=lambda folder: {
        "CUTE_DSL_KEEP": "ptx",
        "CUTE_DSL_DUMP_DIR": str(folder / "cute"),
        "CUTE_DSL_CACHE_DIR": str(folder / "cute-cache"),
        "CUTE_DSL_LINEINFO": "1",
    },
    ptx_folders=("cute",),
    hooks=(("cutlass.base_dsl.compiler", "cute_ptx"),),
)
