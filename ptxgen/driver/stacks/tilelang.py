"""TileLang: nvcc below it runs ptxas, which is wrapped."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack("tilelang", environment=lambda folder: {"TILELANG_CACHE_DIR": str(folder / "tilelang")})
