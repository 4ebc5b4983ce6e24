"""Kernels of Numba are compiled with line information."""

import functools


def patch(module):
    plain = module.jit

    @functools.wraps(plain)
    def jit(*arguments, **options):
        if not options.get("debug") and not options.get("device"):
            options.setdefault("lineinfo", True)
        return plain(*arguments, **options)

    module.jit = jit
