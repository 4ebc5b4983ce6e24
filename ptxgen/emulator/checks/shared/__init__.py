"""Races and lifetime of shared memory."""
