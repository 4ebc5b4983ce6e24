"""Which warps run next, grids that overlap, and launches that can make no progress."""
