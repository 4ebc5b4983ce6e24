"""The `ptxgen` command: one module per group of commands, over the library. Nothing imports it."""
