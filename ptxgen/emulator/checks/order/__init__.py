"""Happens-before: vector clocks of warps, proxy fences, scopes, strong accesses."""
