"""Kernels that compilers wrote, timed on a GPU and predicted."""
