"""Runs of ordinary instructions by machine code: a C library, which does for many lanes what the NumPy code does.

`lanes.c` has the instructions, `encode` says which declared instruction is which of them, `runs` puts neighbors in a
block together, `library` finds the compiled file. Without that the NumPy code does everything, with the same results.
"""
