"""nvcc: programs that are compiled while they run (extensions of PyTorch, TileLang) get line information."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack("nvcc", environment=lambda folder: {"NVCC_APPEND_FLAGS": "-lineinfo"})
