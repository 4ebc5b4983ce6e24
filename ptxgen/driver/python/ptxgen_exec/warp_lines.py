"""Kernels of Warp are compiled with line information."""


def patch(module):
    module.config.lineinfo = True
