"""Parts of the benchmarks that need a GPU: shapes, arms, clocks, and how they are measured."""
