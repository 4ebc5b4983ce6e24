"""Taichi: it loads PTX; its offline cache is kept apart."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack("taichi", environment=lambda folder: {"TI_OFFLINE_CACHE_FILE_PATH": str(folder / "taichi")})
