"""Arithmetic of the number formats, on arrays: exact sums and products, roundings, approximations.

It is independent of instructions; `ptxgen.emulator.semantics` calls it.
"""
