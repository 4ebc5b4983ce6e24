"""Sources of `tests/data/witnesses`, and the command that compiles them: README.md beside this file."""
