"""Misuse of mbarriers: transaction counts, stale phases."""
