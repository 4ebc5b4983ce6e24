"""The `ptxgen` command, over the library: a folder per group of commands. Nothing imports it."""
