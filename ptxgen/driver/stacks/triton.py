"""Triton and Gluon: their ptxas is wrapped, and their cache holds cubins."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack("triton", environment=lambda folder: {"TRITON_CACHE_DIR": str(folder / "triton")})
