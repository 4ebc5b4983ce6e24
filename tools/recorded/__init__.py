"""Recorded kernels of `tests/data`: running them, their inputs and their references."""
