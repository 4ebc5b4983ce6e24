"""Races in global memory, and tensormaps that a kernel changes there."""
