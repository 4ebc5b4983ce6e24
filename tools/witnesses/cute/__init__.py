"""Witnesses in CuTe DSL, and the command that compiles them: README.md in the folder above."""
