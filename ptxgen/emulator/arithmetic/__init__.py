"""Arithmetic of the number formats, on arrays: exact sums and products, roundings, approximations.

It knows nothing of instructions; `ptxgen.emulator.semantics` does, and calls it.
"""
