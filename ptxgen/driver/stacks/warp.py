"""NVIDIA Warp: it compiles to PTX for a driver as new as its toolkit; native/warp.c replaces its memory functions."""

from ptxgen.driver.stacks.stack import Stack

STACK = Stack(
    "warp", environment=lambda folder: {"WARP_CACHE_PATH": str(folder / "warp")}, hooks=(("warp", "warp_lines"),)
)
