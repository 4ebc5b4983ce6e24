"""Reads of uninitialized registers, local, shared and tensor memory, and whether they matter."""
