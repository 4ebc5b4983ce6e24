"""Latencies and rates of Hopper's instructions, and cycles of single launches, as `ptxgen.timing` takes them."""
