"""Kernels that a seed draws, of several compilers, run by `ptxgen exec`: README.md beside this file."""
