"""Runs of ordinary instructions by machine code: a C library, which does for many lanes what the NumPy code does.

`lanes.c` and `floats.c` in `sources` have the instructions, `encode` says which declared instruction is which of them,
`tables` has the tables of the special function unit, `runs` puts neighbors in a block together, `library` finds the
compiled file. Without that the NumPy code does everything, with the same results.
"""
