"""Random inputs of a GEMM, the C that they must give, and the comparison element by element."""
